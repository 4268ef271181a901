// Which device is done sooner: the times that a method takes on the CPU and on a GPU, predicted.
#pragma once

#include <optional>
#include <string>

#include "core/method.h"
#include "ungrain/denoiser.h"

namespace ungrain {

// What the prediction needs to know of the machine.
struct Machine {
  int threads = 1;
  double cpu_speed = 1;  // of a thread, relative to the one that Cost was measured on
  struct Gpu {
    Device device;
    double speed = 1;
    bool started = false;  // in this process: it takes work at once
  };
  std::optional<Gpu> gpu = {};  // the first usable one
};

struct PredictedTimes {
  double cpu_ms = 0;
  double gpu_ms = 0;
};
// `images`: how many are worked on, one after the other; 0: so many that starting a GPU does not count.
PredictedTimes predict_times(const Cost& cost, const ImageSpec& spec, int images, const Machine& machine);

// What starting a GPU takes, at least: work that the CPU does in this time needs no look for a GPU, which is
// a part of starting it.
inline constexpr double gpu_start_ms = 250;

// Turns `automatic` into the usable device that the method supports and that is done soonest.
DeviceChoice choose_by_time(const Method& method, const void* params, const ImageSpec& spec,
                            const Options& options);

}  // namespace ungrain
