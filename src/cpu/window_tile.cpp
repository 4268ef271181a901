#include "cpu/window_tile.h"

#include <algorithm>
#include <cmath>

#include "core/colour.h"
#include "cpu/exp.h"

namespace ungrain {
namespace {

template <class Convert>
void convert_pixels(const StageCall& call, Convert convert) {
  const Rect& area = call.out.rect;
  call.workers.for_each(area.height(), [&](std::int64_t row, int) {
    const int y = area.y0 + static_cast<int>(row);
    for (int x = area.x0; x < area.x1; ++x) {
      const Triple pixel = convert({call.in[0].at(0, x, y), call.in[0].at(1, x, y), call.in[0].at(2, x, y)});
      for (int c = 0; c < 3; ++c)
        call.out.at(c, x, y) = static_cast<float>(pixel[static_cast<std::size_t>(c)]);
    }
  });
}

}  // namespace

std::vector<WindowTap> window_taps(Window window, int radius, const Reach& reach, double sigma_space) {
  constexpr double lowest = -1e30;  // no weight at all, and still a number
  std::vector<WindowTap> taps;
  for (int dy = -reach.y; dy <= reach.y; ++dy) {
    for (int dx = -reach.x; dx <= reach.x; ++dx) {
      if (!in_window(window, radius, dx, dy)) continue;
      const double distance = std::pow(dx / sigma_space, 2) + std::pow(dy / sigma_space, 2);
      taps.push_back({dx, dy, static_cast<float>(std::max(-distance / 2 * log2_e, lowest))});
    }
  }
  return taps;
}

float inverse_range(double sigma_range, int divisor) {
  constexpr double largest = 1e18;  // its square is still finite
  return static_cast<float>(std::min(largest, std::sqrt(log2_e / (2.0 * divisor)) / sigma_range));
}

void WindowTile::set_scale(double wanted, double white) {
  // Beyond these bounds the weights are 0 or 1 to what a float can hold, and within them every square is a
  // number.
  constexpr double weakest = 1e-9;
  constexpr double strongest = 1e9;
  scale = static_cast<float>(std::clamp(wanted, weakest / white, strongest / white));
}

void WindowTile::set_taps(const std::vector<WindowTap>& window) {
  constexpr float nothing = -100;  // beside the centre's weight of 1
  int dy = -reach.y;
  starts_.push_back(0);
  for (const WindowTap& tap : window) {
    for (; dy < tap.dy; ++dy) starts_.push_back(taps_.size());
    if (tap.log2_weight < nothing) continue;
    taps_.push_back({static_cast<std::ptrdiff_t>(tap.dy) * pitch + tap.dx, tap.dx, tap.log2_weight});
    lowest_tap = std::min(lowest_tap, tap.log2_weight);
  }
  starts_.push_back(taps_.size());
}

void WindowTile::load(const StageCall& call, const Rect& tile, int first_channel, float* memory) const {
  const Rect with_border{tile.x0 - reach.x, tile.y0 - reach.y, tile.x1 + reach.x, tile.y1 + reach.y};
  for (int c = 0; c < channels; ++c) {
    gather(call.in[0], first_channel + c, call.image, border, with_border, memory + c * plane, pitch);
  }
}

bool WindowTile::mark_columns(const Rect& tile, const Extent& image, float* memory) const {
  constexpr float no_weight = -1e30F;
  float* const exponents = column_exponents(memory);
  std::fill_n(exponents, pitch, 0.0F);
  if (border != Border::shrink) return false;
  const int left = tile.x0 - reach.x;
  const int inside_begin = std::max(0, -left);
  const int inside_end = std::min(pitch, image.width - left);
  std::fill(exponents, exponents + inside_begin, no_weight);
  std::fill(exponents + inside_end, exponents + pitch, no_weight);
  return inside_begin > 0 || inside_end < tile.width() + 2 * reach.x;
}

std::span<const TileTap> WindowTile::taps_of_row(int y, const Extent& image) const {
  int first = -reach.y;
  int last = reach.y;
  if (border == Border::shrink) {
    first = std::max(first, -y);
    last = std::min(last, image.height - 1 - y);
  }
  const std::size_t begin = starts_[static_cast<std::size_t>(first + reach.y)];
  const std::size_t end = starts_[static_cast<std::size_t>(last + reach.y + 1)];
  return std::span(taps_).subspan(begin, end - begin);
}

Stage to_lab_stage(double white) {
  return {.name = "to Lab", .planes = 3, .run = [white](const StageCall& call) {
            convert_pixels(call, [white](const Triple& p) {
              return rgb_to_lab({p[0] / white, p[1] / white, p[2] / white});
            });
          }};
}

Stage from_lab_stage(double white) {
  return {.name = "from Lab", .planes = 3, .run = [white](const StageCall& call) {
            convert_pixels(call, [white](const Triple& p) {
              const Triple rgb = lab_to_rgb(p);
              return Triple{rgb[0] * white, rgb[1] * white, rgb[2] * white};
            });
          }};
}

Pipeline in_colour_mode(ColourMode mode, std::vector<Stage> passes, double white, bool wraps) {
  if (mode == ColourMode::lab) {
    passes.insert(passes.begin(), to_lab_stage(white));
    passes.push_back(from_lab_stage(white));
  }
  return {.stages = std::move(passes), .wraps = wraps};
}

}  // namespace ungrain
