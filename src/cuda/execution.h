// Runs a pipeline on a GPU.
#pragma once

#include <memory>

#include "core/executor.h"

namespace ungrain::cuda {

// Throws where the GPU has not the memory for a single row's band.
std::unique_ptr<Executor> make_execution(Pipeline pipeline, const ImageSpec& spec, const Options& options,
                                         Device device);

}  // namespace ungrain::cuda
