// Stands in for the CUDA runtime: GPUs that are the host's own memory and streams that do nothing until
// somebody waits for them. What a program must not do with several GPUs is an error here as it is there, and
// what it only must not rely on (work done before it is waited for) never happens.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace fake_gpus {

void reset(int count, std::size_t bytes_each);

// A kernel: refused unless the stream's GPU is the current one.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

int gpu_of(cudaStream_t stream);
int gpu_of(const void* memory);  // -1: no GPU's

std::size_t bytes_in_use(int gpu);
int kernels_run(int gpu);

}  // namespace fake_gpus
