#include "core/overlap.h"

#include <algorithm>

#include "core/convert.h"

namespace ungrain {

ReadAhead::ReadAhead(RowReader& source, const ImageSpec& image, const Buffer<std::byte>& memory)
    : source_(&source), height_(image.height) {
  ImageSpec spec = image;
  spec.height = static_cast<int>(memory.size() / static_cast<std::size_t>(interleaved_strides(spec).y));
  room_ = ImageView(memory.data(), spec);
}

void ReadAhead::read_rows(int first, const ImageView& rows) {
  const int end = first + rows.spec.height;
  int next = first;
  if (ahead_.count() > 0 && ahead_.begin == first) {
    reading_.wait();
    const int taken = std::min(ahead_.count(), rows.spec.height);
    for (int y = 0; y < taken; ++y) copy_pixels(room_, first - room_begin_ + y, rows, y);
    next += taken;
    ahead_.begin += taken;
  }
  // Rows that start again elsewhere, under a wrap border, come after the last one: nothing was read in vain.
  if (next < end) {
    reading_.wait();
    source_->read_rows(next, rows.rows(next - first, end - next));
    ahead_ = {end, end};
  }
  if (ahead_.count() > 0) return;
  ahead_ = {end, std::min({height_, end + rows.spec.height, end + room_.spec.height})};
  room_begin_ = end;
  if (ahead_.count() == 0) return;
  reading_.start(
      [this, part = room_.rows(0, ahead_.count()), begin = end] { source_->read_rows(begin, part); });
}

void WriteBehind::write_rows(int first, const ConstImageView& rows) {
  writing_.wait();
  writing_.start([this, first, rows] { target_->write_rows(first, rows); });
}

}  // namespace ungrain
