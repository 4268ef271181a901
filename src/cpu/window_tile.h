// What the bilateral family shares on the CPU: a tile gathered with its border into a core's cache, the
// offsets of the window with their spatial weights, and the stages that go to Lab and back.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/border.h"
#include "core/method.h"
#include "cpu/tiles.h"
#include "ungrain/methods/common.h"

namespace ungrain {

struct WindowTap {
  int dx;
  int dy;
  float log2_weight;  // of the distance
};

// The offsets within `reach` in the order in which every pixel's sums are taken: dy, then dx.
std::vector<WindowTap> window_taps(Window window, int radius, const Reach& reach, double sigma_space);

// Differences times this, squared and summed, are the negative exponent of 2 of the range weight.
float inverse_range(double sigma_range, int divisor);

class WindowTile {
 public:
  static constexpr int width = 256;
  static constexpr int height = 16;

  WindowTile(const Reach& reach, int channels, Border border)
      : reach_(reach),
        channels_(channels),
        border_(border),
        pitch_(width + 2 * reach.x),
        plane_(static_cast<std::ptrdiff_t>(pitch_) * (height + 2 * reach.y)) {}

  // Floats of the tile with its border; what a method needs beside it lies behind.
  std::size_t floats() const { return static_cast<std::size_t>(plane_ * channels_); }
  std::ptrdiff_t plane() const { return plane_; }  // from one channel to the next

  void load(const StageCall& call, const Rect& tile, int first_channel, float* memory) const {
    const Rect with_border{tile.x0 - reach_.x, tile.y0 - reach_.y, tile.x1 + reach_.x, tile.y1 + reach_.y};
    for (int c = 0; c < channels_; ++c) {
      gather(call.in[0], first_channel + c, call.image, border_, with_border, memory + c * plane_, pitch_);
    }
  }

  // The pixel (tile.x0, y) in the tile's memory.
  const float* row(const float* memory, const Rect& tile, int y) const {
    return memory + (y - tile.y0 + reach_.y) * pitch_ + reach_.x;
  }

  // Calls body(tap, offset in memory, first x, last x + 1) for every tap that counts for row y of the tile.
  template <class Body>
  void for_taps(const std::vector<WindowTap>& taps, const Extent& image, const Rect& tile, int y,
                Body body) const {
    for (const WindowTap& tap : taps) {
      int begin = 0;
      int end = tile.width();
      if (border_ == Border::shrink) {
        if (y + tap.dy < 0 || y + tap.dy >= image.height) continue;
        begin = std::max(begin, -tap.dx - tile.x0);
        end = std::min(end, image.width - tap.dx - tile.x0);
      }
      body(tap, static_cast<std::ptrdiff_t>(tap.dy) * pitch_ + tap.dx, begin, end);
    }
  }

 private:
  Reach reach_;
  int channels_;
  Border border_;
  int pitch_;
  std::ptrdiff_t plane_;
};

// rgb in pixel units to Lab and back, every pixel by itself.
Stage to_lab_stage(double white);
Stage from_lab_stage(double white);

// The passes of a filter by themselves, or between the two where it works in Lab.
Pipeline in_colour_mode(ColourMode mode, std::vector<Stage> passes, double white, bool wraps);

}  // namespace ungrain
