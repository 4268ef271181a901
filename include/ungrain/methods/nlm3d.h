#pragma once

#include <optional>
#include <string_view>

#include "ungrain/image.h"
#include "ungrain/methods/nlm.h"

namespace ungrain {

// Non-local means of volumes (ungrain/volume.h): a mean of the voxels around whose surroundings (patches,
// boxes of voxels) look alike: w(p,q) = exp(-max(d² - 2 noise², 0) / h²). d² is the mean of the squared
// differences of the patches around p and q in a slightly smoothed copy of the volume (prefilter), noise the
// deviation of the noise in that copy. Channels are filtered each by itself.
struct NlmVolumeParams {
  static constexpr std::string_view method = "nlm3d";
  int search = 9;                    // voxels: side of the box that is searched, odd
  std::optional<int> search_z = {};  // the same along z; unset: follows search and aspect
  int patch = 3;                     // voxels: side of a patch, odd
  std::optional<int> patch_z = {};   // the same along z; unset: follows patch and aspect
  double aspect = 1;                 // a voxel's depth over its width
  // The share of each neighbour along an axis in the copy that is compared; 0: the volume itself. Unset:
  // follows sigma; 0 where that is not known. Along z it is divided by aspect².
  std::optional<double> prefilter = {};
  // The noise's standard deviation, pixel units; 0: no correction for it. Unset: measured, or 0 where h is
  // given.
  std::optional<double> sigma = {};
  std::optional<double> h = {};  // strength, pixel units; 0 returns the input. Unset: follows sigma.
  SelfWeight self = SelfWeight::max;
};

}  // namespace ungrain
