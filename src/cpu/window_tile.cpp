#include "cpu/window_tile.h"

#include "core/colour.h"
#include "core/window.h"
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
