#include "page_rows.h"

#include "row_bands.h"
#include "signals.h"
#include "ungrain/convert.h"
#include "ungrain/error.h"

namespace ungrain::cli {

PageRows::PageRows(io::InputFile& file, bool hold) : file_(file) {
  if (hold) pixels_ = all();
}

Image PageRows::all() {
  if (pixels_.bytes() > 0) return pixels_.copy();
  const ImageSpec spec = file_.info().spec;
  Image pixels(spec);
  for (int top = 0; top < spec.height;) {
    if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted");
    const int rows = band_rows(spec, top);
    file_.read_rows(top, pixels.view().rows(top, rows));
    top += rows;
  }
  return pixels;
}

void PageRows::read_rows(int first, const ImageView& rows) {
  if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted");
  if (pixels_.bytes() == 0) {
    file_.read_rows(first, rows);
    return;
  }
  for (int y = 0; y < rows.spec.height; ++y) copy_pixels(pixels_.view(), first + y, rows, y);
}

}  // namespace ungrain::cli
