#include "view/frame_colours.h"
#include "ungrain/convert.h"

#include <algorithm>
#include <array>
#include <vector>

namespace ungrain::cli::view {
namespace {

constexpr int lines_of_high_definition = 720;

}  // namespace

FrameColours FrameColours::of(const std::string& matrix, const std::string& range, int height) {
  FrameColours colours;
  const bool old = matrix == "smpte170m" || matrix == "bt470bg" || matrix == "fcc";
  if (old || (matrix.empty() && height < lines_of_high_definition)) {
    colours.red = 0.299;
    colours.blue = 0.114;
  } else if (matrix.starts_with("bt2020")) {
    colours.red = 0.2627;
    colours.blue = 0.0593;
  }
  colours.limited = range != "pc" && range != "FULL" && range != "full";
  return colours;
}

Image to_rgb(const ConstImageView& frame, const FrameColours& colours) {
  const ImageSpec& from = frame.spec;
  ImageSpec spec = from;
  spec.colour = Colour::rgb;
  spec.channels = 3;
  spec.alpha = false;
  spec.chroma = {};
  spec.range = from.white();
  Image image(spec);
  const auto width = static_cast<std::size_t>(from.width);
  const double white = from.white();
  // Steps of 8 bits, in units of these samples.
  const double step = is_float(from.type) ? white / 255 : (white + 1) / 256;
  const double black = colours.limited ? 16 * step : 0;
  const double luma = colours.limited ? white / (219 * step) : 1;
  const double chroma = colours.limited ? white / (224 * step) : 1;
  const double middle = 128 * step;
  const double green = 1 - colours.red - colours.blue;
  const double to_red = 2 * (1 - colours.red);
  const double to_blue = 2 * (1 - colours.blue);
  const std::array<double, 2> to_green = {-colours.blue * to_blue / green, -colours.red * to_red / green};
  const ConstImageView light = luma_view(frame);
  const ConstImageView colour = chroma_view(frame);
  std::array<std::vector<float>, 3> samples;
  samples[0].resize(width);
  samples[1].resize(static_cast<std::size_t>(colour.spec.width));
  samples[2].resize(static_cast<std::size_t>(colour.spec.width));
  std::array<std::vector<float>, 3> rgb;
  for (std::vector<float>& row : rgb) row.resize(width);
  for (int y = 0; y < from.height; ++y) {
    load_row(light, y, 0, samples[0].data());
    if (y % from.chroma.y == 0) {
      for (int channel = 0; channel < 2; ++channel)
        load_row(colour, y / from.chroma.y, channel, samples[static_cast<std::size_t>(channel) + 1].data());
    }
    for (std::size_t x = 0; x < width; ++x) {
      const std::size_t at = x / static_cast<std::size_t>(from.chroma.x);
      const double bright = (samples[0][x] - black) * luma;
      const double cb = (samples[1][at] - middle) * chroma;
      const double cr = (samples[2][at] - middle) * chroma;
      const auto cut = [&](double value) { return static_cast<float>(std::clamp(value, 0.0, white)); };
      rgb[0][x] = cut(bright + to_red * cr);
      rgb[1][x] = cut(bright + to_green[0] * cb + to_green[1] * cr);
      rgb[2][x] = cut(bright + to_blue * cb);
    }
    for (int channel = 0; channel < 3; ++channel)
      store_row(image.view(), y, channel, rgb[static_cast<std::size_t>(channel)].data());
  }
  return image;
}

}  // namespace ungrain::cli::view
