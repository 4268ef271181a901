// What the rungs' kernels share, so that each file shows its own idea and little else.
#pragma once

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/launch.cuh"
#include "study/rung.h"

namespace ungrain::study {

// exp(factor · distance²) is the Gaussian of that deviation.
inline float gaussian_factor(double sigma) { return static_cast<float>(-0.5 / (sigma * sigma)); }

__device__ inline float gaussian(float difference, float factor) {
  return expf(factor * difference * difference);
}

struct WeightedMean {
  float weights = 0;
  float values = 0;

  __device__ void add(float weight, float value) {
    weights += weight;
    values += weight * value;
  }
  __device__ float value() const { return values / weights; }
};

// ---- Where a thread is -----------------------------------------------------------------------------------

__device__ inline int first_column(int tiling = 1) {
  return static_cast<int>(blockIdx.x * blockDim.x) * tiling;
}
__device__ inline int first_row() { return static_cast<int>(blockIdx.y * blockDim.y); }
__device__ inline int thread_x() { return static_cast<int>(threadIdx.x); }
__device__ inline int thread_y() { return static_cast<int>(threadIdx.y); }
__device__ inline int block_side() { return static_cast<int>(blockDim.x); }
__device__ inline int block_rows() { return static_cast<int>(blockDim.y); }
__device__ inline int thread_number() { return thread_y() * block_side() + thread_x(); }

__device__ inline bool in_picture(const Picture& picture, int x, int y) {
  return x >= 0 && y >= 0 && x < picture.width && y < picture.height;
}
__device__ inline float pixel(const Picture& picture, int x, int y) {
  return picture.pixels[y * picture.stride + x];
}
// For tiles that reach past the margin: the nearest pixel that is held.
__device__ inline int held_offset(const Picture& picture, int x, int y) {
  const int column = min(max(x, -margin), picture.width + margin - 1);
  const int row = min(max(y, -margin), picture.height + margin - 1);
  return row * picture.stride + column;
}
__device__ inline float held_pixel(const Picture& picture, int x, int y) {
  return picture.pixels[held_offset(picture, x, y)];
}

// The whole block reads the rectangle at (x0, y0) into shared memory ([001]'s Algorithm 1); who calls it
// waits.
__device__ inline void load_tile(const Picture& picture, int x0, int y0, int width, int height, float* tile,
                                 int tile_stride) {
  for (int y = thread_y(); y < height; y += block_rows()) {
    for (int x = thread_x(); x < width; x += block_side()) {
      tile[y * tile_stride + x] = held_pixel(picture, x0 + x, y0 + y);
    }
  }
}

// Shared memory rows of [001]'s equations 5.2 to 5.4: as wide as the tile, or so wide that the rows of
// threads in one warp read from different banks.
inline int plain_stride(int side, int tiling, int radius) { return side * tiling + 2 * radius; }
inline int padded_stride(int side, int tiling, int radius) {
  return (2 * radius + side * (tiling - 1) + 31) / 32 * 32 + side;
}
inline std::size_t tile_bytes(int stride, int side, int radius) {
  return sizeof(float) * static_cast<std::size_t>(stride) * static_cast<std::size_t>(side + 2 * radius);
}

// ---- Tables ----------------------------------------------------------------------------------------------

inline std::vector<float> spatial_table(const Strengths& strengths) {
  std::vector<float> table;
  for (int dy = -strengths.radius; dy <= strengths.radius; ++dy) {
    for (int dx = -strengths.radius; dx <= strengths.radius; ++dx) {
      table.push_back(
          std::exp(gaussian_factor(strengths.sigma_space) * static_cast<float>(dx * dx + dy * dy)));
    }
  }
  return table;
}

inline constexpr int range_entries = 256;
inline std::vector<float> range_table(const Strengths& strengths) {
  std::vector<float> table;
  for (int difference = 0; difference < range_entries; ++difference) {
    table.push_back(
        std::exp(gaussian_factor(strengths.sigma_range) * static_cast<float>(difference * difference)));
  }
  return table;
}

inline constexpr int most_spatial_entries = (2 * largest_radius + 1) * (2 * largest_radius + 1);

// Stays on the GPU as long as a copy of the pointer lives: closures hold one.
inline std::shared_ptr<const cuda::DeviceBuffer> upload(const std::vector<float>& values) {
  auto memory = std::make_shared<cuda::DeviceBuffer>(values.size() * sizeof(float));
  cuda::check(cudaMemcpy(memory->data(), values.data(), memory->size(), cudaMemcpyHostToDevice),
              "uploading a table");
  return memory;
}
template <std::size_t Size>
void upload_constant(const float (&symbol)[Size], const std::vector<float>& values) {
  cuda::check(cudaMemcpyToSymbol(symbol, values.data(), values.size() * sizeof(float)), "uploading a table");
}

// ---- Launching -------------------------------------------------------------------------------------------

// Nothing where the GPU cannot hold such a block.
template <class Kernel>
std::optional<KernelUse> kernel_use(Kernel kernel, int threads, std::size_t shared) {
  int device = 0;
  int most_shared = 0;
  int most_threads = 0;
  cuda::check(cudaGetDevice(&device), "asking for the GPU");
  cuda::check(cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
              "asking for the GPU");
  cuda::check(cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device),
              "asking for the GPU");
  cudaFuncAttributes attributes{};
  cuda::check(cudaFuncGetAttributes(&attributes, kernel), "asking for a kernel");
  if (threads > attributes.maxThreadsPerBlock) return {};
  if (shared + attributes.sharedSizeBytes > static_cast<std::size_t>(most_shared)) return {};
  cuda::allow_shared(kernel, shared);
  KernelUse use{.registers = attributes.numRegs,
                .spilled = static_cast<int>(attributes.localSizeBytes),
                .shared = shared + attributes.sharedSizeBytes};
  cuda::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&use.blocks, kernel, threads, shared),
              "asking for a kernel");
  if (use.blocks == 0) return {};
  use.occupancy = static_cast<double>(use.blocks) * threads / most_threads;
  return use;
}

// A grid that covers width × height, blocks of side × side threads that each filter `tiling` pixels of a row.
inline dim3 grid_for(int width, int height, const Shape& shape) {
  return {static_cast<unsigned>(cuda::blocks_for(width, shape.side * shape.tiling)),
          static_cast<unsigned>(cuda::blocks_for(height, shape.side))};
}
inline dim3 block_for(const Shape& shape) {
  return {static_cast<unsigned>(shape.side), static_cast<unsigned>(shape.side)};
}

// One launch over the picture; `keep` holds the tables that the arguments point into.
template <class... Parameters, class... Arguments>
std::optional<Prepared> one_launch(void (*kernel)(Parameters...), const RungCall& call, std::size_t shared,
                                   std::vector<std::shared_ptr<const void>> keep, Arguments... arguments) {
  const auto use = kernel_use(kernel, call.shape.side * call.shape.side, shared);
  if (!use) return {};
  const auto enqueue = [kernel, shared, picture = call.device, shape = call.shape, keep = std::move(keep),
                        arguments...] {
    cuda::launch(kernel, grid_for(picture.width, picture.height, shape), block_for(shape), shared, Stream{},
                 picture, arguments...);
  };
  return Prepared{.enqueue = enqueue, .use = use};
}

}  // namespace ungrain::study
