#include "core/rows.h"

#include <algorithm>
#include <cstring>

#include "core/convert.h"
#include "ungrain/error.h"

namespace ungrain {

StreamSource::StreamSource(RowReader& reader, const ImageSpec& row_spec, const Buffer<std::byte>& memory)
    : reader_(&reader) {
  ImageSpec spec = row_spec;
  spec.height = static_cast<int>(memory.size() / static_cast<std::size_t>(interleaved_strides(spec).y));
  window_ = ImageView(memory.data(), spec);
}

ConstImageView StreamSource::rows(RowRange wanted) {
  if (wanted.begin < held_.begin || wanted.begin > held_.end) held_ = {wanted.begin, wanted.begin};
  if (wanted.end - held_.begin > window_.spec.height) {
    const int keep = std::clamp(std::min(wanted.begin, retain_from_), held_.begin, held_.end);
    std::memmove(window_.data, window_.rows(keep - held_.begin, 0).data,
                 static_cast<std::size_t>((held_.end - keep) * window_.strides.y));
    held_.begin = keep;
  }
  if (wanted.end - held_.begin > window_.spec.height) {
    throw Error(ErrorCode::internal, "the window of input rows is too small");
  }
  if (wanted.end > held_.end) {
    reader_->read_rows(held_.end, window_.rows(held_.end - held_.begin, wanted.end - held_.end));
    held_.end = wanted.end;
  }
  return window_.rows(wanted.begin - held_.begin, wanted.count());
}

void ViewReader::read_rows(int first, const ImageView& rows) {
  for (int y = 0; y < rows.spec.height; ++y) copy_pixels(view_, first - first_row_ + y, rows, y);
}

namespace {
std::ptrdiff_t padded(int width) { return (static_cast<std::ptrdiff_t>(width) + 15) / 16 * 16; }
}  // namespace

std::size_t PlaneRows::floats(int planes, int width, int rows) {
  return static_cast<std::size_t>(planes) * static_cast<std::size_t>(padded(width)) *
         static_cast<std::size_t>(rows);
}

PlaneRows::PlaneRows(int planes, int width, int rows)
    : memory_(floats(planes, width, rows)), planes_(planes), capacity_(rows), stride_(padded(width)) {}

void PlaneRows::start(RowRange columns, int first_row) {
  columns_ = columns;
  held_ = {first_row, first_row};
}

void PlaneRows::drop_before(int row) {
  const int keep = std::clamp(row, held_.begin, held_.end);
  if (keep == held_.begin) return;
  const Planes all = view(held_);
  for (int plane = 0; plane < planes_; ++plane) {
    std::memmove(all.row(plane, held_.begin), all.row(plane, keep),
                 static_cast<std::size_t>((held_.end - keep) * stride_) * sizeof(float));
  }
  held_.begin = keep;
}

Planes PlaneRows::make(RowRange rows) {
  if (rows.begin != held_.end || rows.end - held_.begin > capacity_) {
    throw Error(ErrorCode::internal, "the rows of a stage are out of step");
  }
  held_.end = rows.end;
  return view(rows);
}

Planes PlaneRows::view(RowRange rows) const {
  return {memory_.data() + (rows.begin - held_.begin) * stride_,
          {columns_.begin, rows.begin, columns_.end, rows.end},
          stride_,
          capacity_ * stride_,
          planes_};
}

}  // namespace ungrain
