// The backends of nlm, and what they share: the weights of a patch.
#pragma once

#include <cmath>
#include <vector>

#include "core/method.h"
#include "ungrain/methods/nlm.h"

namespace ungrain {

Pipeline nlm_reference(const NlmParams& params, const ImageSpec& spec);
Pipeline nlm_cpu(const NlmParams& params, const ImageSpec& spec);

inline bool is_identity(const NlmParams& params) { return params.h.value() == 0 || params.search == 1; }

inline Reach nlm_reach(const NlmParams& params) {
  if (params.search == NlmParams::whole_image) return {.whole = true};
  const int reach = params.search / 2 + params.patch / 2;
  return {.x = reach, .y = reach};
}

// The weights of a patch along one axis, from -patch/2 to patch/2; a patch's are their products. Sum 1.
inline std::vector<double> patch_weights(const NlmParams& params) {
  std::vector<double> weights;
  double sum = 0;
  for (int k = -(params.patch / 2); k <= params.patch / 2; ++k) {
    weights.push_back(params.patch_sigma == 0 ? 1 : std::exp(-std::pow(k / params.patch_sigma, 2) / 2));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// Weights below this count as none, in every precision: where all are, a pixel stays as it is.
inline constexpr double smallest_weight = 0x1p-126;

}  // namespace ungrain
