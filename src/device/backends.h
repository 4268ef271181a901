// The one list of backends: all functions that must know each of them.
#pragma once

#include <memory>
#include <vector>

#include "core/noise_stages.h"
#include "device/backend.h"
#include "ungrain/denoiser.h"

namespace ungrain {

class NoisePass;  // noise/noise_pass.h

// One entry for each GPU; without a GPU, one unusable entry that says why.
std::vector<DeviceInfo> discover_gpus();

// Whether a GPU has been used in this process, by whomever: it takes work at once.
bool gpu_is_started();
void start_gpu(Device device);

// Of one thread, with the vector instructions that there are, relative to AVX-512.
double cpu_thread_speed();

// For a device that choose_device() returned (core/device.h).
std::unique_ptr<Backend> make_backend(Device device, const Options& options);

// For an image in the memory of a GPU.
std::unique_ptr<NoisePass> make_noise_pass(const ConstImageView& image);

// The stages around every method, as the backend computes them.
PointwiseStages pointwise_stages(Device::Kind kind);

}  // namespace ungrain
