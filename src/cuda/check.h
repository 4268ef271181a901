// Every call of the CUDA runtime goes through check().
#pragma once

#include <cuda_runtime_api.h>

namespace ungrain::cuda {

// Throws Error(out_of_memory) or Error(device) with what was being done and the runtime's own words.
void check(cudaError_t status, const char* what);

}  // namespace ungrain::cuda
