#include "scene/clip.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/portable_math.h"
#include "scene/canvas.h"
#include "ungrain/error.h"

namespace ungrain {

using namespace scene;

namespace {

// From 0 up to 1 and back in `period` frames, smoothly, 0 at frame 0.
double swing(int frame, int period) { return 0.5 - 0.5 * portable::cos(2 * pi * (frame % period) / period); }
// From 0 to 1, back over 0 to -1, and to 0.
double sway(int frame, int period) { return portable::sin(2 * pi * (frame % period) / period); }

// Speeds do not depend on the clip's length. At 768 x 512 the camera moves by up to 4 pixels a frame, the
// boat by up to 1.4, both of them by fractions of a pixel.
Moment moment_of(int frame, int cut) {
  Moment moment;
  moment.boat = 0.08 * sway(frame, 251);
  moment.clouds = 0.012 * frame;
  if (frame < cut) {
    moment.zoom = 1 + 0.35 * swing(frame, 240);
    moment.across = 0.5 + 0.5 * sway(frame, 230);
    moment.down = 0.35;
  } else {
    const int since = frame - cut;
    moment.zoom = 2.2 - 0.4 * swing(since, 210);
    moment.across = 0.45 + 0.2 * sway(since, 310);
    moment.down = 0.95;
  }
  return moment;
}

// Rows of a frame are independent.
void render_on_all_threads(const Scene& scene, const ImageView& image) {
  constexpr int rows_at_once = 8;
  std::atomic<int> next = 0;
  const auto work = [&] {
    for (int first = next.fetch_add(rows_at_once); first < image.spec.height;
         first = next.fetch_add(rows_at_once)) {
      scene.render_rows(first, image.rows(first, std::min(rows_at_once, image.spec.height - first)));
    }
  };
  const int others =
      std::min(static_cast<int>(std::thread::hardware_concurrency()), image.spec.height / rows_at_once) - 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < others; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

struct Ycbcr {
  double luma;
  double blue;
  double red;
};

// BT.709, limited range, in steps of 8 bits.
Ycbcr ycbcr_of(const float* rgb) {
  const double r = rgb[0];
  const double g = rgb[1];
  const double b = rgb[2];
  const double luma = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return {16 + 219 * luma, 128 + 224 * (b - luma) / 1.8556, 128 + 224 * (r - luma) / 1.5748};
}

void store(const ImageView& image, int channel, int x, int y, double value) {
  const double white = image.spec.white();
  const double scaled = std::clamp(value * (white + 1) / 256, 0.0, white);
  auto* at = static_cast<std::byte*>(image.data) + channel * image.strides.channel + y * image.strides.y +
             x * image.strides.x;
  if (image.spec.type == PixelType::u8) {
    *reinterpret_cast<std::uint8_t*>(at) = static_cast<std::uint8_t>(std::lround(scaled));
  } else {
    *reinterpret_cast<std::uint16_t*>(at) = static_cast<std::uint16_t>(std::lround(scaled));
  }
}

void store_ycbcr(const Image& rgb, const ImageView& image) {
  const ImageSpec& spec = image.spec;
  const auto at = [&](int x, int y) {
    return ycbcr_of(rgb.samples<float>() + 3 * (static_cast<std::ptrdiff_t>(y) * spec.width + x));
  };
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) store(image, 0, x, y, at(x, y).luma);
  }
  for (int y = 0; y < spec.height; y += spec.chroma.y) {
    for (int x = 0; x < spec.width; x += spec.chroma.x) {
      Ycbcr sum{};
      int count = 0;
      for (int j = y; j < std::min(y + spec.chroma.y, spec.height); ++j) {
        for (int i = x; i < std::min(x + spec.chroma.x, spec.width); ++i, ++count) {
          const Ycbcr pixel = at(i, j);
          sum.blue += pixel.blue;
          sum.red += pixel.red;
        }
      }
      store(image, 1, x / spec.chroma.x, y, sum.blue / count);
      store(image, 2, x / spec.chroma.x, y, sum.red / count);
    }
  }
}

}  // namespace

SceneClip::SceneClip(int width, int height, int frames)
    : still_(width, height), width_(width), height_(height), frames_(frames) {
  if (frames < 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("a clip has at least 1 frame, got {}", frames));
}

void SceneClip::render(int frame, const ImageView& image) const {
  if (frame < 0 || frame >= frames_) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("frame {} is not in a clip of {} frames", frame, frames_));
  }
  if (image.spec.width != width_ || image.spec.height != height_) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a frame of {} x {} pixels is not one of a clip of {} x {}", image.spec.width,
                            image.spec.height, width_, height_));
  }
  validate(image.spec);
  const Scene moved(still_, moment_of(frame, cut()));
  if (image.spec.colour != Colour::ycbcr) {
    render_on_all_threads(moved, image);
    return;
  }
  if (is_float(image.spec.type) || image.spec.alpha)
    throw Error(ErrorCode::unsupported, "clips of ycbcr have integer samples and no alpha");
  Image rgb(
      {.width = width_, .height = height_, .channels = 3, .type = PixelType::f32, .colour = Colour::rgb});
  render_on_all_threads(moved, rgb.view());
  store_ycbcr(rgb, image);
}

}  // namespace ungrain
