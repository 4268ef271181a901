// Runs a pipeline on a GPU.
#pragma once

#include <memory>
#include <vector>

#include "core/executor.h"

namespace ungrain::cuda {

// `queues` names the GPU of each queue. Images on a GPU are worked on there, if it is the only queue's; bands
// of images on the host go round over all queues. Throws where the GPUs have not the memory for a single
// row's bands.
std::unique_ptr<Executor> make_execution(Pipeline pipeline, const ImageSpec& spec, const Options& options,
                                         std::vector<int> queues);

}  // namespace ungrain::cuda
