#include "core/slice_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/convert.h"
#include "ungrain/volume.h"

namespace ungrain {
namespace {

void copy_lines(const ConstImageView& from, const ImageView& to) {
  for (int y = 0; y < to.spec.height; ++y) copy_pixels(from, y, to, y);
}

// Scanners and brain extraction set what lies outside the object to exactly 0. Such runs say nothing of the
// noise: measurements leave out what is not finite. Noise that was cut off at 0 makes shorter runs.
void mark_masked(const ImageView& rows) {
  if (rows.spec.type != PixelType::f32) return;
  constexpr int shortest_run = 16;
  constexpr int shortest_at_end = 4;  // of a line, where masks are and chance seldom is
  for (int y = 0; y < rows.spec.height; ++y) {
    for (int c = 0; c < rows.spec.channels; ++c) {
      auto* const line = static_cast<std::byte*>(rows.data) + y * rows.strides.y + c * rows.strides.channel;
      const auto at = [&](int x) { return reinterpret_cast<float*>(line + x * rows.strides.x); };
      for (int x = 0; x < rows.spec.width;) {
        int end = x;
        while (end < rows.spec.width && *at(end) == 0) ++end;
        const bool at_end = x == 0 || end == rows.spec.width;
        if (end - x >= (at_end ? shortest_at_end : shortest_run)) {
          for (int i = x; i < end; ++i) *at(i) = std::numeric_limits<float>::quiet_NaN();
        }
        x = std::max(end, x + 1);
      }
    }
  }
}

}  // namespace

SliceRows::SliceRows(const ImageSpec& volume, Read read, double most_voxels)
    : spec_(slice_spec(volume)), read_(std::move(read)), slice_(spec_) {
  const double most_slices = std::max(1.0, most_voxels / volume.width);
  every_ = static_cast<int>(std::ceil(volume.height / most_slices));
  spec_.height *= (volume.height - 1) / every_ + 1;
}

void SliceRows::read_rows(int first, const ImageView& rows) {
  const int high = slice_.spec().height;
  for (int y = 0; y < rows.spec.height;) {
    const int slice = (first + y) / high;
    const int line = (first + y) % high;
    const int count = std::min(rows.spec.height - y, high - line);
    if (slice != held_) read_(slice * every_, slice_.view());
    held_ = slice;
    copy_lines(slice_.view().rows(line, count), rows.rows(y, count));
    y += count;
  }
  mark_masked(rows);
}

SliceRows slice_rows(const ConstImageView& volume, double most_voxels) {
  const auto read = [volume](int z, const ImageView& slice) {
    copy_lines(slice_view(volume.rows(z, 1)), slice);
  };
  return {volume.spec, read, most_voxels};
}

SliceRows slice_rows(RowReader& volume, const ImageSpec& spec, double most_voxels) {
  const auto read = [&volume, spec](int z, const ImageView& slice) {
    ImageSpec row = spec;
    row.height = 1;
    volume.read_rows(z, {slice.data, row});
  };
  return {spec, read, most_voxels};
}

}  // namespace ungrain
