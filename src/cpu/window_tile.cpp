#include "cpu/window_tile.h"

#include <algorithm>
#include <cmath>

#include "cpu/exp.h"
#include "cpu/far_lab.h"
#include "cpu/lab_simd.h"

namespace ungrain {
namespace {

constexpr float negligible = -100;  // exponent of 2, beside the centre's weight of 1

Stage to_lab_stage(double white, int reads) {
  return {.name = "to Lab", .planes = 3, .reads = {reads}, .run = [white](const StageCall& call) {
            const Rect& area = call.out.rect;
            call.workers.for_each(area.height(), [&](std::int64_t row, int) {
              const int y = area.y0 + static_cast<int>(row);
              const auto in = [&](int c) { return &call.in[0].at(c, area.x0, y); };
              const auto out = [&](int c) { return &call.out.at(c, area.x0, y); };
              lab_from_rgb_row({in(0), in(1), in(2)}, {out(0), out(1), out(2)}, area.width(), white);
            });
          }};
}

void convert_to_rgb(const StageCall& call, double white) {
  const Rect& area = call.out.rect;
  call.workers.for_each_quietly(area.height(), [&](std::int64_t row, int) {
    const auto at = [&](int c) { return &call.out.at(c, area.x0, area.y0 + static_cast<int>(row)); };
    rgb_from_lab_row({at(0), at(1), at(2)}, {at(0), at(1), at(2)}, area.width(), white);
  });
}

}  // namespace

std::vector<WindowTap> window_taps(Window window, int radius, const Reach& reach, double sigma_space) {
  constexpr double lowest = -1e30;  // no weight at all, and still finite
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
  // Beyond these bounds the weights are 0 or 1 for any difference that is visible in a result.
  constexpr double weakest = 1e-9;
  constexpr double strongest = 1e6;
  scale = static_cast<float>(std::clamp(wanted, weakest / white, strongest / white));
  unscale = 1 / scale;
}

void WindowTile::set_taps(const std::vector<WindowTap>& window) {
  lowest_tap = raised_by;
  for (const WindowTap& tap : window) {
    if (tap.log2_weight < negligible) continue;
    taps.push_back({static_cast<std::ptrdiff_t>(tap.dy) * pitch + tap.dx, tap.log2_weight + raised_by});
    lowest_tap = std::min(lowest_tap, taps.back().log2_weight);
  }
}

WindowTile WindowTile::over_images_of(const StageCall& call,
                                      const std::function<double(int)>& exponent) const {
  WindowTile over = *this;
  over.images = 0;
  for (int offset = -reach.before; offset <= reach.after; ++offset) {
    if (call.at(0, offset).data == nullptr) continue;
    if (offset == 0) over.own = over.images;
    ++over.images;
  }
  over.taps.clear();
  for (int image = 0; image < over.images; ++image) {
    const int offset = image - over.own;
    const auto log2_weight = static_cast<float>(std::max<double>(exponent(offset), 2 * negligible));
    for (const TileTap& tap : taps) {
      const float combined = tap.log2_weight + log2_weight;
      if (combined - raised_by < negligible) continue;
      over.taps.push_back({offset * channels * plane + tap.offset, combined});
      over.lowest_tap = std::min(over.lowest_tap, combined);
    }
  }
  return over;
}

void WindowTile::load(const StageCall& call, const Rect& tile, int first_channel, float* memory) const {
  for (int offset = -reach.before; offset <= reach.after; ++offset) {
    const ConstPlanes& image = call.at(0, offset);
    if (image.data == nullptr) continue;
    for (int c = 0; c < channels; ++c, memory += plane) {
      gather(image, first_channel + c, call.image, border, with_border(tile), memory, pitch);
    }
  }
}

bool WindowTile::exclude_outside(const Extent& image, const Rect& tile, float* memory) const {
  const Rect area = with_border(tile);
  if (border != Border::shrink || Rect{0, 0, image.width, image.height}.contains(area)) return false;
  const int inside_begin = std::max(0, -area.x0);
  const int inside_end = std::min(area.x1, image.width) - area.x0;
  for (int i = 0; i < images * channels; ++i) {
    float* row = memory + i * plane;
    for (int y = area.y0; y < area.y1; ++y, row += pitch) {
      const bool inside = y >= 0 && y < image.height;
      std::fill(row, row + (inside ? inside_begin : area.width()), excluded);
      if (inside) std::fill(row + inside_end, row + area.width(), excluded);
    }
  }
  return true;
}

Pipeline in_colour_mode(ColourMode mode, std::vector<Stage> passes, const Pipeline& reference, double white) {
  const bool wraps = reference.wraps;
  if (mode != ColourMode::lab) {
    return {.stages = std::move(passes), .wraps = wraps, .slow_border = reference.slow_border};
  }
  Pipeline pipeline{.stages = {}, .wraps = wraps, .slow_border = reference.slow_border};
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const int before = static_cast<int>(pipeline.stages.size());
    pipeline.stages.push_back(to_lab_stage(white, before));
    Stage& pass = passes[i];
    pass.reads = {before + 1, before};
    pass.run = [run = std::move(pass.run), exact = reference.stages[i], white, wraps](const StageCall& call) {
      run(call);
      convert_to_rgb(call, white);
      // The reference of a search of the whole image would take days.
      if (!call.reach.whole) filter_far_pixels(call, exact, white, wraps);
    };
    pipeline.stages.push_back(std::move(pass));
  }
  return pipeline;
}

}  // namespace ungrain
