// The noise as the methods take it that know it by channel: parameters `sigma`, `correlation` and
// `sigma_map`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/descriptor.h"
#include "core/planes.h"
#include "noise/noise_model.h"
#include "ungrain/estimate.h"
#include "ungrain/image.h"

namespace ungrain {

// The root mean square of each channel of a map.
std::vector<double> levels_of(const ConstImageView& map);

// The variance that a map gives a plane at a pixel, inside the image or beyond, where it is its mirror's. For
// references: one pixel at a time.
double map_variance(const ConstImageView& map, bool opponent, int plane, int x, int y);
// The same for all pixels of a rectangle, row by row. Beyond the image the map is mirrored.
void map_variances(const ConstImageView& map, bool opponent, int plane, const Rect& rect, float* to);

// Throws Error(invalid_argument) where there is a map and it does not fit the image.
void check_sigma_map(std::string_view method, const ConstImageView& map, const ImageSpec& spec);

// The same where a model does not.
void check_noise_model(std::string_view method, const NoiseModel& model, const ConstImageView& map,
                       const ImageSpec& spec);

// The deviations of `planes` planes: one number serves all.
std::vector<double> channel_deviations(const std::vector<double>& sigma, int planes);
// Those of luminance and colour differences (core/opponent.h), from the three channels'.
std::vector<double> opponent_deviations(const std::vector<double>& sigma, double correlation);

namespace describe {

// Whether neither a map nor a model gives the noise.
template <class Params>
bool takes_sigma(const Params& params) {
  return params.sigma_map.data == nullptr && params.noise_model == nullptr;
}

// Follows the map or the model where there is one; measured where it is unset.
template <class Params>
Descriptor channel_sigma() {
  Descriptor d = per_channel(&Params::sigma, "sigma", {.min = 0, .unit = Unit::intensity},
                             Fallback::automatic, "the noise's standard deviation; 0 returns the input");
  d.info.default_text = "auto (measured)";
  d.needed = [](const void* params) { return takes_sigma(*static_cast<const Params*>(params)); };
  d.derive = [](void* params, const ImageSpec&) {
    auto* p = static_cast<Params*>(params);
    if (p->sigma.empty() && p->sigma_map.data != nullptr) p->sigma = levels_of(p->sigma_map);
    if (p->noise_model != nullptr) p->sigma = {mean_deviation(*p->noise_model, 0)};
  };
  return d;
}

// `joint`: whether the channels are filtered together; empty: always.
template <class Params>
Descriptor channel_correlation(bool (*joint)(const Params&) = nullptr) {
  Descriptor d =
      optional_number(&Params::correlation, "correlation", {.min = 0, .max = 1}, Fallback::automatic,
                      "rgb: how much the channels' noise has in common, 0 to 1");
  d.info.default_text = "auto (measured with sigma; 0 where that is given)";
  d.needed = [joint](const void* params) {
    const Params& p = *static_cast<const Params*>(params);
    return p.sigma.empty() && takes_sigma(p) && (joint == nullptr || joint(p));
  };
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
