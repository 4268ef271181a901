// NVIDIA GPUs as a backend.
#pragma once

#include <memory>
#include <vector>

#include "device/backend.h"

namespace ungrain::cuda {

// `queues` names the GPU of each queue. Images on a GPU are filtered there if it is the only queue's.
// `threads` are the host's, for copies.
std::unique_ptr<Backend> make_backend(std::vector<int> queues, int threads);

}  // namespace ungrain::cuda
