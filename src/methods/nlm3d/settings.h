// The settings of nlm3d, resolved, and the rules that all versions share.
#pragma once

#include "core/border.h"
#include "core/solid.h"
#include "ungrain/image.h"
#include "ungrain/methods/nlm3d.h"

namespace ungrain {

constexpr int largest_volume_search = 21;  // sides
constexpr int largest_volume_patch = 7;
constexpr double largest_prefilter = 1.0 / 3;  // the mean of three voxels

struct NlmVolumeSettings {
  ImageSpec spec;
  int radius = 5;  // of the search, along x and y
  int radius_z = 5;
  int around = 1;  // radius of a patch, along x and y
  int around_z = 1;
  double prefilter = 0;  // share of a neighbour along x and y
  double prefilter_z = 0;
  double noise = 0;  // deviation in the compared copy
  double h = 0;
  SelfWeight self = SelfWeight::max;

  int patch_voxels() const { return (2 * around + 1) * (2 * around + 1) * (2 * around_z + 1); }
  bool has_prefilter() const { return prefilter > 0 || prefilter_z > 0; }
  // How far the result depends on voxels around.
  int reach() const { return radius + around + (prefilter > 0 ? 1 : 0); }
  int reach_z() const { return radius_z + around_z + (prefilter_z > 0 ? 1 : 0); }

  // Voxels times this, their differences squared and summed over a patch, are exponents of 2.
  double exponent_scale() const;
  // What noise alone adds to an exponent.
  double noise_exponent() const;
};

NlmVolumeSettings nlm3d_settings(const NlmVolumeParams& params, const ImageSpec& spec);
bool is_identity(const NlmVolumeSettings& settings);

// The shares of a neighbour along each axis, and the deviation of the copy's noise for noise of 1.
double prefilter_along_z(double prefilter, double aspect, int depth);
double noise_after_prefilter(double prefilter, double prefilter_z);
// h of noise of 1 for a factor of 1: the root of the deviation that noise gives to the mean of a patch's
// squared differences.
double distance_deviation(int patch, int patch_z, double prefilter, double prefilter_z);

// Which voxel stands at a position of one axis: the volume is continued by reflection. Positions whose voxel
// is not held give the nearest one that is: no result depends on them.
constexpr int held_index(int i, int size, const RowRange& held) {
  const int index = border_index(Border::symmetric, i, size);
  return index < held.begin ? held.begin : index >= held.end ? held.end - 1 : index;
}

}  // namespace ungrain
