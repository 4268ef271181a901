// The innermost part of nlm3d on a CPU: the sums of a tile's voxels over some shifts.
#pragma once

#include <cstddef>

#include "core/solid.h"

namespace ungrain {

constexpr int volume_vector_slack = 16;  // floats of the longest vector

// A part of the volume whose voxels are filtered together. Lines of all solids have room for
// volume_vector_slack more floats, finite ones.
struct VolumeTile {
  Box out;            // voxels that get sums
  Box candidates;     // the volume, as far as it is held
  ConstSolid guide;   // what is compared, times NlmVolumeSettings::exponent_scale()
  ConstSolid values;  // what is averaged
  Solid weight_sums;
  Solid value_sums;  // of differences from the voxel itself
  Solid largest;     // of the weights; no data: not wanted
  float* memory;     // volume_search_floats()
  int around = 1;    // radii of a patch
  int around_z = 1;
  float noise_exponent = 0;
};

// Voxels along x of a tile at most, and shifts at once.
constexpr int widest_volume_tile = 128;
constexpr int volume_shifts_at_once = 11;

// Adds to all sums what the voxels at the distances (dx, dy, dz), dx in [first_dx, end_dx), bring, before and
// behind: each weight is found once for both its voxels. At most volume_shifts_at_once shifts, dz >= 0. The
// order of a voxel's sums does not depend on the tile.
void add_volume_shifts(const VolumeTile& tile, const RowRange& dx, int dy, int dz);
std::size_t volume_search_floats(int radius, int around);

// Sums of a line become means.
void finish_volume_line(const float* values, const float* value_sums, const float* weight_sums,
                        const float* largest, int count, float* out);

}  // namespace ungrain
