#include "cpu/separable.h"

#include <algorithm>

#include "core/border.h"
#include "cpu/scratch.h"
#include "cpu/tiles.h"

namespace ungrain {
namespace {

constexpr int tile_width = 512;
constexpr int tile_height = 16;

// The weights of both sides, normalised; and for `shrink`, what to divide by where only some of them lie
// inside.
struct Weights {
  Weights(const std::vector<double>& half, Border rule)
      : radius(static_cast<int>(half.size()) - 1), border(rule) {
    for (int k = -radius; k <= radius; ++k) full.push_back(half[static_cast<std::size_t>(k < 0 ? -k : k)]);
    double sum = 0;
    for (const double weight : full) sum += weight;
    for (double& weight : full) weight /= sum;
  }

  double of(int k) const { return full[static_cast<std::size_t>(k + radius)]; }

  // The sum of the weights that lie inside [0, n) around position i; 1 where all take part.
  double inside(int i, int n) const {
    if (border != Border::shrink) return 1;
    double sum = 0;
    for (int k = std::max(-radius, -i); k <= std::min(radius, n - 1 - i); ++k) sum += of(k);
    return sum;
  }

  int radius;
  Border border;
  std::vector<double> full;
};

// Along a row, the tile's rows are gathered with their borders into scratch: `tile_width + 2 radius` floats,
// then `tile_width` doubles of sums.
std::size_t row_scratch(int radius) {
  return static_cast<std::size_t>(tile_width + 2 * radius) + 2 * static_cast<std::size_t>(tile_width) + 2;
}

void mean_along_rows(const Weights& weights, const StageCall& call) {
  const int radius = weights.radius;
  for_tiles(call.workers, call.out.rect, tile_width, tile_height, [&](const Rect& tile, int worker) {
    float* line = call.scratch_of(worker);
    double* sums = doubles_in(line + tile_width + 2 * radius);
    const int width = tile.width();
    for (int plane = 0; plane < call.out.count; ++plane) {
      for (int y = tile.y0; y < tile.y1; ++y) {
        gather(call.in[0], plane, call.image, weights.border, {tile.x0 - radius, y, tile.x1 + radius, y + 1},
               line, 0);
        std::fill_n(sums, width, 0.0);
        for (int k = -radius; k <= radius; ++k) {
          const double weight = weights.of(k);
          const float* from = line + radius + k;
          for (int x = 0; x < width; ++x) sums[x] += weight * from[x];
        }
        float* out = call.out.row(plane, y) + (tile.x0 - call.out.rect.x0);
        for (int x = 0; x < width; ++x) out[x] = static_cast<float>(sums[x]);
        if (weights.border != Border::shrink) continue;
        for (int x = 0; x < width; ++x) {
          out[x] = static_cast<float>(sums[x] / weights.inside(tile.x0 + x, call.image.width));
        }
      }
    }
  });
}

void mean_along_columns(const Weights& weights, const StageCall& call) {
  const int radius = weights.radius;
  const ConstPlanes& in = call.in[0];
  for_tiles(call.workers, call.out.rect, tile_width, tile_height, [&](const Rect& tile, int worker) {
    double* sums = doubles_in(call.scratch_of(worker));
    const int width = tile.width();
    for (int plane = 0; plane < call.out.count; ++plane) {
      for (int y = tile.y0; y < tile.y1; ++y) {
        std::fill_n(sums, width, 0.0);
        for (int k = -radius; k <= radius; ++k) {
          const int row = border_row(weights.border, in.rect, call.image, y + k);
          if (row == no_pixel && weights.border != Border::wrap) continue;
          const double weight = weights.of(k);
          const float* from = in.row(plane, row) + (tile.x0 - in.rect.x0);
          for (int x = 0; x < width; ++x) sums[x] += weight * from[x];
        }
        const double inside = weights.inside(y, call.image.height);
        float* out = call.out.row(plane, y) + (tile.x0 - call.out.rect.x0);
        for (int x = 0; x < width; ++x) out[x] = static_cast<float>(sums[x] / inside);
      }
    }
  });
}

}  // namespace

Pipeline separable_mean(const std::vector<double>& half, Border border, int planes) {
  const Weights weights(half, border);
  const int radius = weights.radius;
  Pipeline pipeline;
  pipeline.wraps = border == Border::wrap;
  pipeline.stages = {
      {.name = "rows",
       .reach = {.x = radius, .y = 0},
       .planes = planes,
       .reads = {0},
       .scratch = row_scratch(radius),
       .run = [weights](const StageCall& call) { mean_along_rows(weights, call); }},
      {.name = "columns",
       .reach = {.x = 0, .y = radius},
       .planes = planes,
       .reads = {1},
       .scratch = 2 * static_cast<std::size_t>(tile_width) + 2,
       .run = [weights](const StageCall& call) { mean_along_columns(weights, call); }},
  };
  return pipeline;
}

}  // namespace ungrain
