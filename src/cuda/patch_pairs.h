// The search of one image for similar patches on a GPU, each pair of pixels once.
#pragma once

#include <functional>

#include "core/method.h"
#include "core/patch_search.h"

namespace ungrain::cuda {

struct PatchSearchCall;

// Whether a kernel was compiled for the search.
bool searches_pairs(const PatchSearch& search, int channels_per_weight);

struct PairSearch {
  std::size_t shared_bytes = 0;                  // of a block
  std::function<std::size_t(int rows)> scratch;  // floats for so many rows of the image
  // With so much scratch in `sums`. Fills the channels of `out` that share a weight, from `first_channel` on.
  std::function<void(const PatchSearchCall&, Stream)> launch;
};

// Where searches_pairs(). A flat patch's weights are in the scale of the calls.
PairSearch pair_search(const PatchSearch& search, int channels_per_weight, const Extent& image);

}  // namespace ungrain::cuda
