// One group's patches, each re-estimated as a combination of all: the innermost part of ridge on a CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ungrain {

constexpr int most_combined = 64;  // patches of a group
constexpr int longest_patch = 8;   // side
constexpr std::size_t combine_scratch_floats = std::size_t{5} * 64 * (64 + 16);

struct CombineCall {
  int patch = 6;                         // side
  int count = 0;                         // patches of the group
  const std::int32_t* places = nullptr;  // of their first pixels, in all planes below
  int pitch = 0;
  const float* guide = nullptr;
  const float* partly = nullptr;
  float noise = 0;        // variance of a patch's noise, summed over its pixels
  float least_noise = 0;  // as a share of the largest of the pixels' energies
  // Where patches' noise differs: the reciprocal of each one's variance, in units of `noise`; else null.
  const float* precisions = nullptr;
  float step = 1;    // how far the partly denoised image goes towards the estimate
  float weight = 1;  // factor on all weights
  // Sums of weighted differences between the new and the partly denoised image, and of weights at patches'
  // first pixels. No guide in the last pass.
  float* guide_sums = nullptr;
  float* partly_sums = nullptr;
  float* weight_sums = nullptr;
  float* scratch = nullptr;  // combine_scratch_floats
};

void combine_group(const CombineCall& call);

}  // namespace ungrain
