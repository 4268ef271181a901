#include "row_bands.h"

#include <algorithm>

#include "signals.h"
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

RowBand::RowBand(const ImageSpec& image)
    : image_(image), rows_(rows_of(image)), memory_(band_memory(image, rows_)) {}

int band_rows(const ImageSpec& image, int first) { return std::min(rows_of(image), image.height - first); }

bool RowBand::read_next(RowReader& file) {
  if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted, nothing written");
  first_ += count_;
  count_ = std::min(rows_, image_.height - first_);
  if (count_ == 0) return false;
  file.read_rows(first_, view());
  return true;
}

ImageView RowBand::rows(int first, int count) {
  ImageSpec spec = image_;
  spec.height = count;
  return {memory_.view().data, spec, interleaved_strides(spec), {}, {0, first, image_.width, image_.height}};
}

}  // namespace ungrain::cli
