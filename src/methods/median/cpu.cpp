// Median on the CPU: tiles with their borders in a core's cache. A 3 x 3 window is sorted by a network of
// minima and maxima over whole rows; larger ones are selected pixel by pixel.
#include <algorithm>
#include <array>

#include "core/border.h"
#include "cpu/tiles.h"
#include "methods/median/median.h"

namespace ungrain {
namespace {

constexpr int tile_width = 256;
constexpr int tile_height = 16;

int pitch_for(int radius) { return tile_width + 2 * radius; }

std::size_t window_pixels(int radius) { return static_cast<std::size_t>(2 * radius + 1) * (2 * radius + 1); }

// The tile with its border, then room for one window.
std::size_t scratch_floats(int radius) {
  return static_cast<std::size_t>(pitch_for(radius)) * (tile_height + 2 * radius) + window_pixels(radius);
}

inline void sort_two(float& a, float& b) {
  const float low = a < b ? a : b;
  b = a < b ? b : a;
  a = low;
}

// The median of nine: sort each row of three; of the rows' minima take the largest, of the middles the
// middle, of the maxima the smallest; the middle of these is the median.
inline float median_of_nine(std::array<float, 9> v) {
  for (std::size_t row = 0; row < 9; row += 3) {
    sort_two(v[row], v[row + 1]);
    sort_two(v[row + 1], v[row + 2]);
    sort_two(v[row], v[row + 1]);
  }
  const auto larger = [](float a, float b) { return a > b ? a : b; };
  const auto smaller = [](float a, float b) { return a < b ? a : b; };
  float low = larger(larger(v[0], v[3]), v[6]);
  float high = smaller(smaller(v[2], v[5]), v[8]);
  sort_two(v[1], v[4]);
  float middle = larger(v[1], smaller(v[4], v[7]));
  sort_two(low, high);
  return larger(low, smaller(middle, high));
}

void row_of_nines(const float* above, const float* here, const float* below, int width, float* out) {
  for (int x = 0; x < width; ++x) {
    out[x] = median_of_nine({above[x - 1], above[x], above[x + 1], here[x - 1], here[x], here[x + 1],
                             below[x - 1], below[x], below[x + 1]});
  }
}

float select_median(float* values, std::size_t count) {
  float* const middle = values + count / 2;
  std::nth_element(values, middle, values + count);
  if (count % 2 == 1) return *middle;
  const float below = *std::max_element(values, middle);
  return static_cast<float>((static_cast<double>(below) + *middle) / 2);
}

void median_of_tile(const MedianParams& params, const StageCall& call, const Rect& tile, int plane,
                    float* scratch) {
  const int radius = params.radius;
  const int pitch = pitch_for(radius);
  const bool shrink = params.border == Border::shrink;
  gather(call.in[0], plane, call.image, params.border,
         {tile.x0 - radius, tile.y0 - radius, tile.x1 + radius, tile.y1 + radius}, scratch, pitch);
  float* const window = scratch + static_cast<std::ptrdiff_t>(pitch) * (tile_height + 2 * radius);
  for (int y = tile.y0; y < tile.y1; ++y) {
    const float* centre = scratch + (y - tile.y0 + radius) * pitch + radius;
    float* out = call.out.row(plane, y) + (tile.x0 - call.out.rect.x0);
    if (radius == 1 && !shrink) {
      row_of_nines(centre - pitch, centre, centre + pitch, tile.width(), out);
      continue;
    }
    const int top = shrink ? std::max(-radius, -y) : -radius;
    const int bottom = shrink ? std::min(radius, call.image.height - 1 - y) : radius;
    for (int x = tile.x0; x < tile.x1; ++x) {
      const int left = shrink ? std::max(-radius, -x) : -radius;
      const int right = shrink ? std::min(radius, call.image.width - 1 - x) : radius;
      float* end = window;
      for (int dy = top; dy <= bottom; ++dy) {
        const float* row = centre + dy * pitch + (x - tile.x0);
        end = std::copy(row + left, row + right + 1, end);
      }
      out[x - tile.x0] = select_median(window, static_cast<std::size_t>(end - window));
    }
  }
}

}  // namespace

Pipeline median_cpu(const MedianParams& params, const ImageSpec& spec) {
  if (params.radius == 0) return {};
  const auto run = [params](const StageCall& call) {
    for_tiles(call.workers, call.out.rect, tile_width, tile_height, [&](const Rect& tile, int worker) {
      for (int plane = 0; plane < call.out.count; ++plane) {
        median_of_tile(params, call, tile, plane, call.scratch_of(worker));
      }
    });
  };
  return {.stages = {{.name = "median",
                      .reach = {.x = params.radius, .y = params.radius},
                      .planes = spec.colour_channels(),
                      .scratch = scratch_floats(params.radius),
                      .run = run}},
          .wraps = params.border == Border::wrap};
}

}  // namespace ungrain
