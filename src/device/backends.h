// The one list of backends: everything that must know of each.
#pragma once

#include <memory>
#include <vector>

#include "core/noise_stages.h"
#include "device/backend.h"
#include "ungrain/denoiser.h"

namespace ungrain {

// One entry for each GPU; where there is none, one that is not usable and says why.
std::vector<DeviceInfo> discover_gpus();

// For a device that choose_device() gave (core/device.h).
std::unique_ptr<Backend> make_backend(Device device, const Options& options);

// The stages around every method, as the backend computes them.
PointwiseStages pointwise_stages(Device::Kind kind);

}  // namespace ungrain
