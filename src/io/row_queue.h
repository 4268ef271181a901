// A queue of rows from a producer to an encoder that requests them in another thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace ungrain::io {

// Holds `capacity` rows, and more only while the reader waits for a missing row, so that neither side can
// block the other for ever.
class RowQueue {
 public:
  using Row = std::vector<std::byte>;

  RowQueue(std::size_t row_bytes, std::size_t capacity);

  // The writer's side.
  Row blank();         // to be filled and pushed
  bool push(Row row);  // false once the reader has closed the queue
  void abandon();      // no more rows will come; waiting readers get null

  // The reader's side. Rows before `first` will not be requested again.
  void release_before(std::int64_t first);
  const std::byte* wait_for(std::int64_t row);  // null: abandoned, or released already
  void close();                                 // the reader needs no more

 private:
  bool has(std::int64_t row) const { return row - first_ < static_cast<std::int64_t>(rows_.size()); }

  std::size_t row_bytes_;
  std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable rows_came_;
  std::condition_variable rows_wanted_;
  std::deque<Row> rows_;
  std::vector<Row> blanks_;
  std::int64_t first_ = 0;    // the number of rows_.front()
  std::int64_t wanted_ = -1;  // the row that the reader waits for
  bool abandoned_ = false;
  bool closed_ = false;
};

}  // namespace ungrain::io
