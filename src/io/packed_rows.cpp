#include "io/packed_rows.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "io/failure.h"
#include "ungrain/convert.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

[[noreturn]] void misuse(const std::filesystem::path& file, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, one_line(fmt::format("{}: {}", file.string(), what)));
}

bool rows_are_packed(const Strides& strides, const ImageSpec& spec) {
  const Strides packed = interleaved_strides(spec);
  return strides.x == packed.x && strides.channel == packed.channel;
}

ImageSpec one_row(ImageSpec spec) {
  spec.height = 1;
  return spec;
}

}  // namespace

std::size_t row_bytes(const ImageSpec& spec) {
  return static_cast<std::size_t>(spec.width) * spec.channels * bytes_per_sample(spec.type);
}

void unpack_row(const std::byte* packed, const ImageView& rows, int y) {
  if (rows_are_packed(rows.strides, rows.spec)) {
    std::memcpy(static_cast<std::byte*>(rows.data) + y * rows.strides.y, packed, row_bytes(rows.spec));
    return;
  }
  const ConstImageView row(packed, one_row(rows.spec));
  for (int channel = 0; channel < rows.spec.channels; ++channel) copy_row(row, 0, rows, y, channel);
}

void pack_row(const ConstImageView& rows, int y, std::byte* packed) {
  if (rows_are_packed(rows.strides, rows.spec)) {
    std::memcpy(packed, static_cast<const std::byte*>(rows.data) + y * rows.strides.y, row_bytes(rows.spec));
    return;
  }
  const ImageView row(packed, one_row(rows.spec));
  for (int channel = 0; channel < rows.spec.channels; ++channel) copy_row(rows, y, row, 0, channel);
}

void check_rows(const std::filesystem::path& file, const ImageSpec& spec, int first,
                const ConstImageView& rows) {
  const ImageSpec& given = rows.spec;
  if (rows.space.memory != Space::Memory::host) misuse(file, "rows must lie in host memory");
  if (given.width != spec.width || given.channels != spec.channels || given.type != spec.type) {
    misuse(file,
           fmt::format(
               "rows of {} pixels with {} channels of {} were asked of an image that has {}, {} and {}",
               given.width, given.channels, name(given.type), spec.width, spec.channels, name(spec.type)));
  }
  if (first < 0 || given.height < 0 || given.height > spec.height - first) {
    misuse(file, fmt::format("rows {} to {} are not rows of a page of {}", first,
                             static_cast<std::int64_t>(first) + given.height, spec.height));
  }
}

RowCursor::RowCursor(std::filesystem::path file, int height, int pages)
    : file_(std::move(file)), height_(height), pages_(pages) {}

void RowCursor::take(int first, int count) {
  if (first != row_) misuse(file_, fmt::format("row {} was written where row {} was due", first, row_));
  row_ += count;
}

void RowCursor::check_page_complete() const {
  if (row_ != height_) misuse(file_, fmt::format("page {} has {} of its {} rows", page_, row_, height_));
}

void RowCursor::next_page() {
  check_page_complete();
  if (page_ + 1 == pages_) misuse(file_, fmt::format("it has only {} pages", pages_));
  ++page_;
  row_ = 0;
}

void RowCursor::check_complete() const {
  check_page_complete();
  if (page_ + 1 != pages_) misuse(file_, fmt::format("{} of its {} pages were written", page_ + 1, pages_));
}

}  // namespace ungrain::io
