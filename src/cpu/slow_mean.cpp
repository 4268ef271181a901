#include "cpu/slow_mean.h"

#include "core/slow_weights.h"
#include "cpu/tiles.h"

namespace ungrain {
namespace {

// Sums go from the earliest image to the latest: their order is the same for every pixel.
void mean_of_row(const StageCall& call, const std::vector<float>& weights, int plane, int x0, int x1, int y) {
  float* out = call.out.row(plane, y) + (x0 - call.out.rect.x0);
  const int count = x1 - x0;
  bool first = true;
  for (int offset = -call.reach.before; offset <= call.reach.after; ++offset) {
    const ConstPlanes& planes = call.at(0, offset);
    if (planes.data == nullptr) continue;
    const float weight = weights[static_cast<std::size_t>(offset + call.reach.before)];
    const float* in = planes.row(plane, y) + (x0 - planes.rect.x0);
    if (first) {
      for (int x = 0; x < count; ++x) out[x] = weight * in[x];
    } else {
      for (int x = 0; x < count; ++x) out[x] += weight * in[x];
    }
    first = false;
  }
}

}  // namespace

Pipeline with_slow_mean(Pipeline pipeline, const std::vector<double>& half, Border border, int planes) {
  const int radius = static_cast<int>(half.size()) - 1;
  if (radius == 0) return pipeline;
  const auto run = [half, border](const StageCall& call) {
    const std::vector<float> weights = slow_weights(half, border, call);
    // A row of a tile stays in a core's first cache while the images are added up.
    constexpr int tile_width = 2048;
    constexpr int tile_height = 8;
    for_tiles(call.workers, call.out.rect, tile_width, tile_height, [&](const Rect& tile, int) {
      for (int plane = 0; plane < call.out.count; ++plane) {
        for (int y = tile.y0; y < tile.y1; ++y) mean_of_row(call, weights, plane, tile.x0, tile.x1, y);
      }
    });
  };
  pipeline.stages.push_back({.name = "images",
                             .reach = {.before = radius, .after = radius},
                             .planes = planes,
                             .reads = {static_cast<int>(pipeline.stages.size())},
                             .run = run});
  pipeline.slow_border = border;
  pipeline.direct = {};
  return pipeline;
}

}  // namespace ungrain
