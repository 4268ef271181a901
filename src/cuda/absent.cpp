// Stands in for discovery.cpp where the library is built without the CUDA toolkit.
#include "cuda/discovery.h"

namespace ungrain::cuda {

std::vector<DeviceInfo> discover() {
  return {{{Device::Kind::cuda, 0}, "NVIDIA GPU", false, "this build of ungrain has no CUDA support"}};
}

}  // namespace ungrain::cuda
