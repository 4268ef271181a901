// Replaces the CUDA backend where the library is built without the CUDA toolkit.
#include "cuda/cuda_backend.h"
#include "cuda/discovery.h"
#include "cuda/noise_pass.h"
#include "cuda/pointwise.h"
#include "ungrain/error.h"

namespace ungrain::cuda {

std::vector<DeviceInfo> discover() {
  return {{{Device::Kind::cuda, 0}, "NVIDIA GPU", false, "this build of ungrain has no CUDA support"}};
}

bool is_started() { return false; }
void start(int) {}

std::unique_ptr<Backend> make_backend(std::vector<int>, int) {  // NOLINT: as cuda_backend.cpp takes it
  throw Error(ErrorCode::no_device, "this build of ungrain has no CUDA support");
}

std::unique_ptr<NoisePass> make_noise_pass(const ConstImageView&) {
  throw Error(ErrorCode::no_device, "this build of ungrain has no CUDA support");
}

PointwiseStages pointwise_stages() { return {}; }

}  // namespace ungrain::cuda
