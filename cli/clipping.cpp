#include "clipping.h"

#include "ungrain/convert.h"

namespace ungrain::cli {

void ClippingWriter::write_rows(int first, const ConstImageView& rows) {
  constexpr double tolerance = 0.05;  // noise that is left on white
  const double white = in_.white();
  const auto lowest = static_cast<float>(-tolerance * white);
  const auto highest = static_cast<float>((1 + tolerance) * white);
  const double scale = out_.white() / white;
  ImageSpec spec = out_;
  spec.height = rows.spec.height;
  Image converted(spec);
  for (int y = 0; y < rows.spec.height; ++y) {
    for (int channel = 0; channel < in_.channels; ++channel) {
      load_row(rows, y, channel, row_.data());
      if (channel < in_.colour_channels()) {
        samples_ += in_.width;
        for (const float value : row_) {
          below_ += value < lowest ? 1 : 0;
          above_ += value > highest ? 1 : 0;
        }
      }
      store_row(converted.view(), y, channel, row_.data(), scale);
    }
  }
  writer_.write_rows(first, converted.view());
}

}  // namespace ungrain::cli
