// The spatial weights in constant memory. Every file that includes this has its own table: no rung can rely
// on what another has uploaded.
#pragma once

#include "study/kernels.cuh"

namespace ungrain::study {
namespace {

__constant__ float spatial_weights[most_spatial_entries];

// One pixel from a tile in shared memory; (x, y) is its window's first corner there.
__device__ inline float filter_in_tile(const float* tile, int tile_stride, int x, int y, int radius,
                                       float range_factor) {
  const int side = 2 * radius + 1;
  const float centre = tile[(y + radius) * tile_stride + x + radius];
  WeightedMean mean;
  for (int dy = 0; dy < side; ++dy) {
    for (int dx = 0; dx < side; ++dx) {
      const float value = tile[(y + dy) * tile_stride + x + dx];
      mean.add(spatial_weights[dy * side + dx] * gaussian(value - centre, range_factor), value);
    }
  }
  return mean.value();
}

}  // namespace
}  // namespace ungrain::study
