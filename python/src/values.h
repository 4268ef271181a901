// Converts parameters, descriptors and reports between Python and the library.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "ungrain/denoiser.h"
#include "ungrain/parameters.h"

namespace ungrain::python {

// Parameters and the arrays that they refer to (sigma_map).
struct HeldParams {
  MethodParams params;
  std::vector<nanobind::object> held;
};

// `given` maps names to the caller's values: numbers, words, lists, arrays, None or "auto". A name that the
// method does not have is an InvalidType, a value that it does not take an Error; both name the parameter.
// The preset is applied first, given values override it. Every method also takes noise_model (a NoiseModel or
// its dict), rician_sigma and coils, strength, luminance, chroma, keep_grain, cut_at_black and cut_at_white.
HeldParams read_params(const std::string& method, nanobind::handle preset, const nanobind::dict& given,
                       double white);

// What of a volume's parameters follows its voxels' shape and was not given: a method of volumes gets
// `aspect`, one that looks along slices as far along z as within them.
void follow_aspect(MethodParams& params, const nanobind::dict& given, double aspect);

// The noise's standard deviation in pixel values, the largest of several; 0 where the method has none.
double noise_level(const MethodParams& params);

nanobind::dict to_dict(const MethodParams& params);  // unset: None; what read_params() takes
nanobind::dict to_dict(const NoiseModel& model);
nanobind::dict to_dict(const NoiseModelEstimate& estimate);
nanobind::dict to_dict(const RicianEstimate& estimate);
nanobind::dict to_dict(const Report& report);
nanobind::dict to_dict(const MethodInfo& info);
nanobind::dict to_dict(const DeviceInfo& info);

}  // namespace ungrain::python
