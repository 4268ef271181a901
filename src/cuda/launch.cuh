// The one way to launch kernels, and small helpers for their grids.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "cuda/check.h"
#include "cuda/memory.h"

namespace ungrain::cuda {

constexpr int blocks_for(int count, int each) { return (count + each - 1) / each; }

// A grid of `across` x `down` blocks for each of `planes` planes. A grid has at most 65535 blocks in y, fewer
// than tall images need: further rows of blocks continue in z. Kernels ask block_row() and block_plane(), and
// skip rows of blocks beyond the last one, of which there may be a few.
inline dim3 tall_grid(int across, int down, int planes = 1) {
  constexpr int most_down = 65535;
  const int folds = std::max(1, blocks_for(down, most_down));
  return {static_cast<unsigned>(across), static_cast<unsigned>(blocks_for(down, folds)),
          static_cast<unsigned>(folds * planes)};
}

// The block's row in a tall_grid() of so many planes, from the top.
__device__ inline int block_row(int planes = 1) {
  const unsigned fold = static_cast<int>(gridDim.z) == planes ? 0 : blockIdx.z / planes;
  return static_cast<int>(fold * gridDim.y + blockIdx.y);
}
__device__ inline int block_plane(int planes) {
  return static_cast<int>(static_cast<int>(gridDim.z) == planes ? blockIdx.z : blockIdx.z % planes);
}

// More than 48 KB of shared memory a block must be requested.
template <class Kernel>
void allow_shared(Kernel kernel, std::size_t bytes) {
  constexpr std::size_t without_asking = 48 * 1024;
  if (bytes <= without_asking) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "asking for shared memory");
}

// Whether the GPU in use has so much shared memory for a block.
inline bool has_shared(std::size_t bytes) {
  int device = 0;
  int most = 0;
  check(cudaGetDevice(&device), "asking for the GPU");
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "asking for the GPU's shared memory");
  return bytes <= static_cast<std::size_t>(most);
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared, Stream stream,
            const Arguments&... arguments) {
  allow_shared(kernel, shared);
  kernel<<<grid, block, shared, handle(stream)>>>(arguments...);
  check(cudaGetLastError(), "launching a kernel");
}

}  // namespace ungrain::cuda
