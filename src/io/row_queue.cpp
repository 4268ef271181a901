#include "io/row_queue.h"

#include <utility>

namespace ungrain::io {

RowQueue::RowQueue(std::size_t row_bytes, std::size_t capacity)
    : row_bytes_(row_bytes), capacity_(capacity) {}

RowQueue::Row RowQueue::blank() {
  {
    const std::lock_guard lock(mutex_);
    if (!blanks_.empty()) {
      Row row = std::move(blanks_.back());
      blanks_.pop_back();
      return row;
    }
  }
  return Row(row_bytes_);
}

bool RowQueue::push(Row row) {
  std::unique_lock lock(mutex_);
  rows_wanted_.wait(lock, [&] { return closed_ || !has(wanted_) || rows_.size() < capacity_; });
  if (closed_) return false;
  rows_.push_back(std::move(row));
  rows_came_.notify_one();
  return true;
}

void RowQueue::abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  rows_came_.notify_all();
}

void RowQueue::release_before(std::int64_t first) {
  const std::lock_guard lock(mutex_);
  while (first_ < first && !rows_.empty()) {
    if (blanks_.size() < capacity_) blanks_.push_back(std::move(rows_.front()));
    rows_.pop_front();
    ++first_;
  }
  rows_wanted_.notify_one();
}

const std::byte* RowQueue::wait_for(std::int64_t row) {
  std::unique_lock lock(mutex_);
  if (row < first_) return nullptr;
  if (!abandoned_ && !has(row)) {
    wanted_ = row;
    rows_wanted_.notify_one();
    rows_came_.wait(lock, [&] { return abandoned_ || has(row); });
    wanted_ = -1;
  }
  // The row's memory stays valid until the reader releases it, even while rows are pushed.
  return abandoned_ ? nullptr : rows_[static_cast<std::size_t>(row - first_)].data();
}

void RowQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  rows_wanted_.notify_all();
}

}  // namespace ungrain::io
