// The host's processors as a backend.
#pragma once

#include <memory>

#include "device/backend.h"

namespace ungrain {

std::unique_ptr<Backend> make_cpu_backend(int threads);  // 0: one for each processor

}  // namespace ungrain
