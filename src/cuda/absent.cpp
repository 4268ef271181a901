// Stands in for the CUDA backend where the library is built without the CUDA toolkit.
#include "cuda/discovery.h"
#include "cuda/execution.h"
#include "cuda/pointwise.h"
#include "ungrain/error.h"

namespace ungrain::cuda {

std::vector<DeviceInfo> discover() {
  return {{{Device::Kind::cuda, 0}, "NVIDIA GPU", false, "this build of ungrain has no CUDA support"}};
}

std::unique_ptr<Executor> make_execution(Pipeline, const ImageSpec&, const Options&, std::vector<int>) {
  throw Error(ErrorCode::no_device, "this build of ungrain has no CUDA support");
}

void launch_curves(Stage&, std::vector<PointCurve>) {}
void launch_fill(Stage&, std::vector<ChannelFill>, bool) {}
void launch_mix(Stage&, float) {}

}  // namespace ungrain::cuda
