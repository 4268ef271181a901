// Every call of the CUDA runtime goes through check().
#pragma once

#include <cuda_runtime_api.h>

namespace ungrain::cuda {

// Throws Error(out_of_memory) or Error(device) with what failed and the runtime's own message.
void check(cudaError_t status, const char* what);

}  // namespace ungrain::cuda
