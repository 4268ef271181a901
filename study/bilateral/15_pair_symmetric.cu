// From [001] §4.2 and §7.3 (Agarwal et al.): w(p, q) = w(q, p), so half the window suffices when each weight
// serves both its pixels. It costs sums for the neighbours, in shared memory for the block's surroundings,
// and a second kernel: what blocks add to each other's pixels goes through global memory.
//
// For one offset all threads add to different pixels, and the block waits before the next: no race.
#include "study/bilateral/rungs.h"
#include "study/kernels.cuh"

namespace ungrain::study {
namespace {

__constant__ float spatial_weights[most_spatial_entries];

// The pixels p also lie `radius` left, right and above the picture: their pairs end in it.
__global__ void pairs_kernel(Picture picture, float* all_weights, float* all_values, int radius,
                             float range_factor) {
  extern __shared__ float memory[];
  const int side = block_side();
  const int width = side + 2 * radius;  // of the tile: the pixels q of the block's pairs
  const int height = side + radius;
  const int x0 = first_column() - 2 * radius;  // its first corner
  const int y0 = first_row() - radius;
  float* tile = memory;
  float* weights = tile + width * height;
  float* values = weights + width * height;
  load_tile(picture, x0, y0, width, height, tile, width);
  for (int i = thread_number(); i < width * height; i += side * side) {
    weights[i] = 0;
    values[i] = 0;
  }
  __syncthreads();
  const int at = thread_y() * width + thread_x() + radius;
  const float own = tile[at];
  WeightedMean mean;
  mean.add(spatial_weights[radius * (2 * radius + 1) + radius], own);
  // Pixels after this one, row by row; those in its own row first.
  for (int dy = 0; dy <= radius; ++dy) {
    for (int dx = dy == 0 ? 1 : -radius; dx <= radius; ++dx) {
      const int there = at + dy * width + dx;
      const float other = tile[there];
      const float weight = spatial_weights[(dy + radius) * (2 * radius + 1) + dx + radius] *
                           gaussian(other - own, range_factor);
      mean.add(weight, other);
      weights[there] += weight;
      values[there] += weight * own;
      __syncthreads();
    }
  }
  weights[at] += mean.weights;
  values[at] += mean.values;
  __syncthreads();
  for (int y = thread_y(); y < height; y += side) {
    for (int x = thread_x(); x < width; x += side) {
      if (!in_picture(picture, x0 + x, y0 + y)) continue;
      const int pixel_number = (y0 + y) * picture.width + x0 + x;
      atomicAdd(all_weights + pixel_number, weights[y * width + x]);
      atomicAdd(all_values + pixel_number, values[y * width + x]);
    }
  }
}

__global__ void divide_kernel(Picture picture, const float* all_weights, const float* all_values) {
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const int pixel_number = y * picture.width + x;
  picture.out[pixel_number] = all_values[pixel_number] / all_weights[pixel_number];
}

std::optional<Prepared> prepare(const RungCall& call) {
  upload_constant(spatial_weights, spatial_table(call.strengths));
  const int radius = call.strengths.radius;
  const Shape shape = call.shape;
  const std::size_t shared = 3 * sizeof(float) * static_cast<std::size_t>(shape.side + 2 * radius) *
                             static_cast<std::size_t>(shape.side + radius);
  const auto use = kernel_use(pairs_kernel, shape.side * shape.side, shared);
  if (!use) return {};
  const Picture picture = call.device;
  const std::size_t pixels = static_cast<std::size_t>(picture.width) * picture.height;
  const auto sums = std::make_shared<const cuda::DeviceBuffer>(2 * pixels * sizeof(float));
  const auto enqueue = [=, factor = gaussian_factor(call.strengths.sigma_range)] {
    float* weights = sums->floats().data();
    float* values = weights + pixels;
    cuda::check(cudaMemsetAsync(weights, 0, sums->size(), nullptr), "clearing memory");
    cuda::launch(pairs_kernel, grid_for(picture.width + 2 * radius, picture.height + radius, shape),
                 block_for(shape), shared, Stream{}, picture, weights, values, radius, factor);
    cuda::launch(divide_kernel, grid_for(picture.width, picture.height, shape), block_for(shape), 0, Stream{},
                 picture, weights, values);
  };
  return Prepared{.enqueue = enqueue, .use = use};
}

}  // namespace

Rung bilateral_pair_symmetric() {
  return {.name = "pair-symmetric weights",
          .paper = "[001] §7.3",
          .idea = "half the window, each weight for both its pixels",
          .prepare = prepare};
}

}  // namespace ungrain::study
