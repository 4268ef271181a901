#include "core/rows.h"

#include <algorithm>
#include <cstring>

#include "core/convert.h"
#include "ungrain/error.h"

namespace ungrain {

Strides packed_rows(const ImageSpec& spec) {
  Strides strides = interleaved_strides(spec);
  if (spec.colour == Colour::ycbcr) {
    strides.x = bytes_per_sample(spec.type);
    strides.channel = strides.x * spec.width;
  }
  return strides;
}

void copy_rows(const ConstImageView& from, const ImageView& to, Workers& workers) {
  const Strides packed = packed_rows(from.spec);
  const bool whole_rows = from.strides.x == packed.x && to.strides.x == packed.x &&
                          from.strides.channel == packed.channel && to.strides.channel == packed.channel;
  workers.for_each_quietly(from.spec.height, [&](std::int64_t item, int) {
    const int y = static_cast<int>(item);
    if (whole_rows) {
      std::memcpy(static_cast<std::byte*>(to.data) + y * to.strides.y,
                  static_cast<const std::byte*>(from.data) + y * from.strides.y,
                  static_cast<std::size_t>(packed.y));
    } else {
      copy_pixels(from, y, to, y);
    }
  });
}

void RowFeed::reserve(Queue& queue, int buffers, std::size_t bytes_each, bool uploads) {
  while (static_cast<int>(buffers_.size()) < buffers) {
    Buffer buffer;
    buffer.memory = queue.allocate_host(bytes_each);
    if (uploads) buffer.uploaded = queue.make_mark();
    buffers_.push_back(std::move(buffer));
  }
  bytes_each_ = bytes_each;
}

void RowFeed::start(const ImageSpec& row_spec, Read read, bool ahead, bool once) {
  row_spec_ = row_spec;
  read_ = std::move(read);
  ahead_ = ahead && buffers_.size() > 1;
  once_ = once;
  for (Buffer& buffer : buffers_) buffer.holds = {};
  last_ = read_ahead_ = nullptr;
}

RowFeed::Buffer& RowFeed::get(const RowRequest& request, const std::optional<RowRequest>& next) {
  Buffer* buffer = read_ahead_;
  if (buffer != nullptr) {
    reading_.wait();
    read_ahead_ = nullptr;
    if (buffer->holds.slice != request.slice || buffer->holds.rows != request.rows) {
      throw Error(ErrorCode::internal, "rows were read ahead that are not wanted");
    }
  } else {
    buffer = &fill(request);
    if (reading_job_) {
      reading_job_();
      reading_job_ = nullptr;
    }
  }
  if (ahead_ && next) {
    read_ahead_ = &fill(*next);
    reading_.start(std::exchange(reading_job_, nullptr));
  }
  return *buffer;
}

// Chooses the buffer; reading_job_ then fills it.
RowFeed::Buffer& RowFeed::fill(const RowRequest& request) {
  Buffer& buffer = buffers_[next_buffer_];
  next_buffer_ = (next_buffer_ + 1) % buffers_.size();
  if (buffer.uploads != nullptr) {
    buffer.uploads->wait(*buffer.uploaded);
    buffer.uploads = nullptr;
  }
  ImageSpec spec = row_spec_;
  spec.height = request.rows.count();
  const ImageView room(buffer.memory.data(), spec, packed_rows(spec));
  const std::ptrdiff_t row_bytes = room.strides.y;
  if (static_cast<std::size_t>(row_bytes) * static_cast<std::size_t>(spec.height) > bytes_each_) {
    throw Error(ErrorCode::internal, "the buffer of input rows is too small");
  }
  // Rows that the previous request has read already. Readers go on where they stopped, so it has all of them.
  RowRange had{request.rows.begin, request.rows.begin};
  if (once_ && last_ != nullptr && last_->holds.slice == request.slice &&
      last_->holds.rows.begin <= request.rows.begin && request.rows.begin <= last_->holds.rows.end) {
    had.end = std::min(last_->holds.rows.end, request.rows.end);
    std::memmove(room.data,
                 last_->memory.at(
                     static_cast<std::size_t>((request.rows.begin - last_->holds.rows.begin) * row_bytes)),
                 static_cast<std::size_t>(had.count() * row_bytes));
  }
  buffer.holds = request;
  last_ = &buffer;
  reading_job_ = [this, request, had, room] {
    if (had.end < request.rows.end) {
      read_(request.slice, had.end, room.rows(had.count(), request.rows.end - had.end));
    }
  };
  return buffer;
}

const RowFeed::Buffer* RowFeed::find(const RowRequest& request) const {
  for (const Buffer& buffer : buffers_) {
    if (&buffer != read_ahead_ && buffer.holds.slice == request.slice &&
        buffer.holds.rows.begin <= request.rows.begin && request.rows.end <= buffer.holds.rows.end) {
      return &buffer;
    }
  }
  return nullptr;
}

ConstImageView RowFeed::view(const Buffer& buffer, RowRange rows) const {
  ImageSpec spec = row_spec_;
  spec.height = buffer.holds.rows.count();
  return ConstImageView(buffer.memory.data(), spec, packed_rows(spec))
      .rows(rows.begin - buffer.holds.rows.begin, rows.count());
}

void RowFeed::settle() { reading_.wait(); }

void RowFeed::stop() {
  try {
    reading_.wait();
  } catch (...) {  // NOLINT: the run has failed already
  }
  read_ahead_ = nullptr;
}

void PlaneRows::start(RowRange columns, int first_row) {
  columns_ = columns;
  held_ = {first_row, first_row};
}

void PlaneRows::drop_before(int row) {
  const int keep = std::clamp(row, held_.begin, held_.end);
  if (keep == held_.begin) return;
  const std::size_t row_bytes = static_cast<std::size_t>(stride_) * bytes_of(element_);
  for (int plane = 0; plane < planes_; ++plane) {
    std::byte* first =
        memory_.at(static_cast<std::size_t>(plane) * static_cast<std::size_t>(capacity_) * row_bytes);
    std::memmove(first, first + static_cast<std::size_t>(keep - held_.begin) * row_bytes,
                 static_cast<std::size_t>(held_.end - keep) * row_bytes);
  }
  held_.begin = keep;
}

TypedPlanes PlaneRows::make(RowRange rows) {
  if (rows.begin != held_.end || rows.end - held_.begin > capacity_) {
    throw Error(ErrorCode::internal, "the rows of a stage are out of step");
  }
  held_.end = rows.end;
  return view(rows);
}

TypedPlanes PlaneRows::view(RowRange rows) const {
  const std::ptrdiff_t before = (rows.begin - held_.begin) * stride_;
  return {memory_.at(static_cast<std::size_t>(before) * bytes_of(element_)),
          element_,
          {columns_.begin, rows.begin, columns_.end, rows.end},
          stride_,
          capacity_ * stride_,
          planes_};
}

void SliceRing::retain(const std::vector<int>& slices) {
  for (int& slice : slices_) {
    if (std::find(slices.begin(), slices.end(), slice) == slices.end()) slice = none;
  }
}

PlaneRows& SliceRing::open(int slice) {
  const auto free = std::find(slices_.begin(), slices_.end(), none);
  if (free == slices_.end()) throw Error(ErrorCode::internal, "the ring of slices is too small");
  *free = slice;
  return slots_[static_cast<std::size_t>(free - slices_.begin())];
}

PlaneRows* SliceRing::find(int slice) {
  const auto found = std::find(slices_.begin(), slices_.end(), slice);
  return found == slices_.end() ? nullptr : &slots_[static_cast<std::size_t>(found - slices_.begin())];
}

void refuse_element_type() { throw Error(ErrorCode::internal, "planes of another type of element"); }

}  // namespace ungrain
