// Separable sums over half the shifts: w(p, q) = w(q, p), each weight serves both its pixels ([003] v0 on the
// processor). The neighbours' sums lie in shared memory, and what blocks add to each other's pixels goes
// through global memory to a second kernel.
//
// For one shift all threads add to different pixels, and the block waits before the next: no race.
#include "study/nlm/row_sums.cuh"
#include "study/nlm/rungs.h"

namespace ungrain::study {
namespace {

// Weights, values and largest weights, plane after plane.
struct Sums {
  float* weights;
  float* values;
  float* largest;

  __host__ __device__ Sums(float* first, std::size_t pixels)
      : weights(first), values(first + pixels), largest(first + 2 * pixels) {}
};

// The pixels p also lie `radius` left, right and above the picture: their pairs end in it.
__global__ void symmetric_weights_kernel(Picture picture, Sums all, NlmFactors factors) {
  extern __shared__ float memory[];
  const int radius = factors.radius;
  const int side = block_side();
  // The pixels q of the block's pairs, from (x0, y0) on; the tile has their patches too.
  const int width = side + 2 * radius;
  const int height = side + radius;
  const int x0 = first_column() - 2 * radius;
  const int y0 = first_row() - radius;
  const int stride = width + 2 * patch_reach;
  const int rows = height + 2 * patch_reach;
  float* tile = memory;
  float* row_sums = tile + stride * rows;
  const Sums sums(row_sums + side * (side + 2 * patch_reach), static_cast<std::size_t>(width * height));
  load_tile(picture, x0 - patch_reach, y0 - patch_reach, stride, rows, tile, stride);
  for (int i = thread_number(); i < 3 * width * height; i += side * side) sums.weights[i] = 0;
  __syncthreads();
  const float* corner = tile + radius;
  const float* middle = corner + (thread_y() + patch_reach) * stride + thread_x() + patch_reach;
  const int at = thread_y() * width + thread_x() + radius;
  SearchMean mean;
  // Pixels after this one, row by row; those in its own row first.
  for (int dy = 0; dy <= radius; ++dy) {
    for (int dx = dy == 0 ? 1 : -radius; dx <= radius; ++dx) {
      const int shift = dy * stride + dx;
      sum_rows(corner, stride, shift, row_sums);
      __syncthreads();
      const float weight = factors.weight(sum_of_rows(row_sums));
      mean.add(weight, middle[shift]);
      const int there = at + dy * width + dx;
      sums.weights[there] += weight;
      sums.values[there] += weight * *middle;
      sums.largest[there] = fmaxf(sums.largest[there], weight);
      __syncthreads();
    }
  }
  sums.weights[at] += mean.weights;
  sums.values[at] += mean.values;
  sums.largest[at] = fmaxf(sums.largest[at], mean.largest);
  __syncthreads();
  for (int y = thread_y(); y < height; y += side) {
    for (int x = thread_x(); x < width; x += side) {
      if (!in_picture(picture, x0 + x, y0 + y)) continue;
      const int from = y * width + x;
      const int to = (y0 + y) * picture.width + x0 + x;
      atomicAdd(all.weights + to, sums.weights[from]);
      atomicAdd(all.values + to, sums.values[from]);
      // Of numbers that are not negative the larger one has the larger bits.
      atomicMax(reinterpret_cast<int*>(all.largest + to), __float_as_int(sums.largest[from]));
    }
  }
}

__global__ void symmetric_divide_kernel(Picture picture, Sums all) {
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (!in_picture(picture, x, y)) return;
  const int at = y * picture.width + x;
  const SearchMean mean{all.weights[at], all.values[at], all.largest[at]};
  picture.out[at] = mean.value(pixel(picture, x, y));
}

std::optional<Prepared> prepare(const RungCall& call) {
  const int radius = call.strengths.radius;
  const Shape shape = call.shape;
  const int width = shape.side + 2 * radius;
  const int height = shape.side + radius;
  const std::size_t shared =
      sizeof(float) * static_cast<std::size_t>((width + 2 * patch_reach) * (height + 2 * patch_reach) +
                                               3 * width * height) +
      row_sums_bytes(shape.side);
  const auto use = kernel_use(symmetric_weights_kernel, shape.side * shape.side, shared);
  if (!use) return {};
  const Picture picture = call.device;
  const std::size_t pixels = static_cast<std::size_t>(picture.width) * picture.height;
  const auto memory = std::make_shared<const cuda::DeviceBuffer>(3 * pixels * sizeof(float));
  const auto enqueue = [=, factors = NlmFactors(call.strengths)] {
    const Sums all(memory->floats().data(), pixels);
    cuda::check(cudaMemsetAsync(memory->data(), 0, memory->size(), nullptr), "clearing memory");
    cuda::launch(symmetric_weights_kernel,
                 grid_for(picture.width + 2 * radius, picture.height + radius, shape), block_for(shape),
                 shared, Stream{}, picture, all, factors);
    cuda::launch(symmetric_divide_kernel, grid_for(picture.width, picture.height, shape), block_for(shape), 0,
                 Stream{}, picture, all);
  };
  return Prepared{.enqueue = enqueue, .use = use};
}

}  // namespace

Rung nlm_symmetric_weights() {
  return {.name = "symmetric weights",
          .paper = "ours, as [003] v0",
          .idea = "separable sums over half the shifts, each weight for both its pixels",
          .prepare = prepare};
}

}  // namespace ungrain::study
