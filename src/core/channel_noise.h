// The noise as the methods take it that know it by channel: parameters `sigma`, `correlation` and
// `sigma_map`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/descriptor.h"
#include "ungrain/estimate.h"
#include "ungrain/image.h"

namespace ungrain {

// The root mean square of each channel of a map.
std::vector<double> levels_of(const ConstImageView& map);

// Throws Error(invalid_argument) where there is a map and it does not fit the image.
void check_sigma_map(std::string_view method, const ConstImageView& map, const ImageSpec& spec);

// The deviations of `planes` planes: one number serves all.
std::vector<double> channel_deviations(const std::vector<double>& sigma, int planes);
// Those of luminance and colour differences (core/opponent.h), from the three channels'.
std::vector<double> opponent_deviations(const std::vector<double>& sigma, double correlation);

namespace describe {

// Follows the map where there is one. `needed`: whether it is measured where it is unset.
template <class Params>
Descriptor channel_sigma(bool (*needed)(const Params&)) {
  Descriptor d = per_channel(&Params::sigma, "sigma", {.min = 0, .unit = Unit::intensity},
                             Fallback::automatic, "the noise's standard deviation; 0 returns the input");
  d.info.default_text = "auto (measured)";
  d.needed = [needed](const void* params) { return needed(*static_cast<const Params*>(params)); };
  d.derive = [](void* params, const ImageSpec&) {
    auto* p = static_cast<Params*>(params);
    if (p->sigma.empty() && p->sigma_map.data != nullptr) p->sigma = levels_of(p->sigma_map);
  };
  return d;
}

template <class Params>
Descriptor channel_correlation(bool (*needed)(const Params&)) {
  Descriptor d =
      optional_number(&Params::correlation, "correlation", {.min = 0, .max = 1}, Fallback::automatic,
                      "rgb: how much the channels' noise has in common, 0 to 1");
  d.info.default_text = "auto (measured with sigma; 0 where that is given)";
  d.needed = [needed](const void* params) { return needed(*static_cast<const Params*>(params)); };
  d.measured = [](const NoiseEstimate& estimate) -> ParamValue { return estimate.correlation; };
  return d;
}

template <class Params>
Descriptor sigma_map() {
  return image(&Params::sigma_map, "sigma_map",
               "the noise's standard deviation at every pixel, instead of sigma");
}

}  // namespace describe
}  // namespace ungrain
