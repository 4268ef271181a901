#include "row_bands.h"

#include <algorithm>

#include "signals.h"
#include "ungrain/convert.h"
#include "ungrain/error.h"

namespace ungrain::cli {
namespace {

// Rows that come to about a million pixels.
int rows_of(const ImageSpec& image) { return std::clamp((1 << 20) / image.width, 1, image.height); }

Image band_memory(ImageSpec spec, int rows) {
  spec.height = rows;
  return Image(spec);
}

}  // namespace

RowBand::RowBand(const ImageSpec& image, int reach)
    : image_(image),
      reach_(reach),
      rows_(rows_of(image)),
      memory_(band_memory(image, std::min(rows_ + 2 * reach, image.height))) {}

int band_rows(const ImageSpec& image, int first) { return std::min(rows_of(image), image.height - first); }

bool RowBand::read_next(RowReader& file) {
  if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted, nothing written");
  first_ += count_;
  count_ = std::min(rows_, image_.height - first_);
  if (count_ == 0) return false;
  // Rows that both bands contain are moved, not read again: seeking back in a file may decode it again.
  const int first = std::max(0, first_ - reach_);
  const int end = std::min(image_.height, first_ + count_ + reach_);
  const ImageView held = view();
  const int kept = std::max(0, held_end_ - first);
  for (int y = 0; y < kept; ++y) copy_pixels(held, first + y - held_first_, held, y);
  held_first_ = first;
  held_end_ = end;
  if (first + kept < end) file.read_rows(first + kept, view().rows(kept, end - first - kept));
  return true;
}

ImageView RowBand::rows(int first, int count) {
  ImageSpec spec = image_;
  spec.height = count;
  return {memory_.view().data, spec, interleaved_strides(spec), {}, {0, first, image_.width, image_.height}};
}

}  // namespace ungrain::cli
