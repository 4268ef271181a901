// The one way to launch kernels, and small helpers for their grids.
#pragma once

#include <cuda_runtime.h>

#include "cuda/check.h"
#include "cuda/memory.h"

namespace ungrain::cuda {

inline int blocks_for(int count, int each) { return (count + each - 1) / each; }

// More than 48 KB of shared memory a block must be requested.
template <class Kernel>
void allow_shared(Kernel kernel, std::size_t bytes) {
  constexpr std::size_t without_asking = 48 * 1024;
  if (bytes <= without_asking) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "asking for shared memory");
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared, Stream stream,
            const Arguments&... arguments) {
  allow_shared(kernel, shared);
  kernel<<<grid, block, shared, handle(stream)>>>(arguments...);
  check(cudaGetLastError(), "launching a kernel");
}

}  // namespace ungrain::cuda
