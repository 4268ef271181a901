#include "view/frame_colours.h"
#include "ungrain/convert.h"
#include "view/in_parallel.h"

#include <algorithm>
#include <array>
#include <vector>

namespace ungrain::cli::view {
namespace {

constexpr int lines_of_high_definition = 720;

// What a sample of luma or chroma adds to red, green and blue.
struct Conversion {
  float white;
  float black;
  float middle;
  float luma;
  float red_of_cr;
  float green_of_cb;
  float green_of_cr;
  float blue_of_cb;

  Conversion(const ImageSpec& spec, const FrameColours& colours) {
    const double most = spec.white();
    // Steps of 8 bits, in units of these samples.
    const double step = is_float(spec.type) ? most / 255 : (most + 1) / 256;
    const double chroma = colours.limited ? most / (224 * step) : 1;
    const double green = 1 - colours.red - colours.blue;
    const double to_red = 2 * (1 - colours.red) * chroma;
    const double to_blue = 2 * (1 - colours.blue) * chroma;
    white = static_cast<float>(most);
    black = static_cast<float>(colours.limited ? 16 * step : 0);
    middle = static_cast<float>(128 * step);
    luma = static_cast<float>(colours.limited ? most / (219 * step) : 1);
    red_of_cr = static_cast<float>(to_red);
    blue_of_cb = static_cast<float>(to_blue);
    green_of_cb = static_cast<float>(-colours.blue * to_blue / green);
    green_of_cr = static_cast<float>(-colours.red * to_red / green);
  }

  // Rows [first, end).
  void run(const ConstImageView& frame, const ImageView& rgb, int first, int end) const {
    const auto width = static_cast<std::size_t>(frame.spec.width);
    const ConstImageView light = luma_view(frame);
    const ConstImageView colour = chroma_view(frame);
    const auto chroma_width = static_cast<std::size_t>(colour.spec.width);
    const auto across = static_cast<std::size_t>(frame.spec.chroma.x);
    std::vector<float> samples(4 * width + 2 * chroma_width);
    float* const y_row = samples.data();
    std::array<float*, 3> out = {y_row + width, y_row + 2 * width, y_row + 3 * width};
    float* const cb_row = y_row + 4 * width;
    float* const cr_row = cb_row + chroma_width;
    int held = -1;  // row of chroma
    for (int y = first; y < end; ++y) {
      load_row(light, y, 0, y_row);
      if (const int row = y / frame.spec.chroma.y; row != held) {
        load_row(colour, row, 0, cb_row);
        load_row(colour, row, 1, cr_row);
        held = row;
      }
      const auto cut = [this](float value) { return std::min(std::max(value, 0.0F), white); };
      for (std::size_t x = 0; x < width; ++x) {
        const float bright = (y_row[x] - black) * luma;
        const float cb = cb_row[x / across] - middle;
        const float cr = cr_row[x / across] - middle;
        out[0][x] = cut(bright + red_of_cr * cr);
        out[1][x] = cut(bright + green_of_cb * cb + green_of_cr * cr);
        out[2][x] = cut(bright + blue_of_cb * cb);
      }
      store_channels(rgb, y, 3, out.data());
    }
  }
};

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
  ImageSpec spec = frame.spec;
  spec.colour = Colour::rgb;
  spec.channels = 3;
  spec.alpha = false;
  spec.chroma = {};
  spec.range = frame.spec.white();
  Image image(spec);
  const Conversion conversion(frame.spec, colours);
  const ImageView to = image.view();
  in_parallel(spec.height, spec.width, [&](int first, int end) { conversion.run(frame, to, first, end); });
  return image;
}

}  // namespace ungrain::cli::view
