// The search of the whole image for similar patches on a GPU's tensor cores.
#pragma once

#include <functional>
#include <optional>

#include "core/method.h"
#include "core/patch_search.h"

namespace ungrain::cuda {

struct WholeImageSearch {
  std::size_t scratch = 0;  // floats
  // Filters channels [first, first + channels_per_weight).
  std::function<void(const DeviceStageCall& call, int first)> launch;
  // In the scratch, after a launch: not 0 where the values differ so much, relative to the strength, that
  // products cannot replace differences. Then nothing has been computed.
  std::function<const unsigned*(const DeviceStageCall& call)> left_undone;
};

// Empty where no kernel is compiled for the search.
std::optional<WholeImageSearch> whole_image_search(const PatchSearch& search, int channels_per_weight,
                                                   int divisor, const Extent& image);

}  // namespace ungrain::cuda
