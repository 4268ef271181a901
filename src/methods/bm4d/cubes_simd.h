// The innermost parts of bm4d on a CPU: distances between cubes, and the filtering of one group.
#pragma once

#include <cstddef>
#include <cstdint>

#include "methods/bm4d/settings.h"

namespace ungrain {

// A cube's row may be read so many floats beyond its end: rows of compared voxels need the room.
constexpr int cube_row_slack = 32;

// Distances from the reference cube to the `count` cubes that begin at `first` and its right neighbours.
// `line` and `slice` lead from a voxel to the ones below and behind. Where all are known to exceed `enough`,
// they may be too small, but not below it.
void cube_distances(int cube, const float* reference, const float* first, std::ptrdiff_t line,
                    std::ptrdiff_t slice, int count, float enough, float* distances);
// Voxels in units of comparison, rounded.
void compared_voxels(const float* from, int count, float scale, float* to);

// A group's members: the place of a cube's first voxel in its slice, and the slice.
struct CubeGroup {
  int count = 0;
  std::ptrdiff_t places[most_cubes];
  int z[most_cubes];
};

// Slices of a solid from the `first`-th on.
template <class T>
struct CubeSlices {
  T* data = nullptr;
  std::ptrdiff_t stride = 0;
  int first = 0;

  T* at(int z) const { return data + (z - first) * stride; }
};

// Adds a group's weighted estimates to sums, of which there are slices [first_z, end_z).
struct FilterCall {
  int cube = 4;
  const float* transform = nullptr;  // cube_transform(), and its transpose
  const float* back = nullptr;
  const float* window = nullptr;  // of a cube's voxels
  const CubeGroup* group = nullptr;
  std::ptrdiff_t line = 0;  // from a voxel to the one below, in all slices
  CubeSlices<const float> noisy;
  CubeSlices<const float> guide;  // no data: coefficients are thresholded
  float threshold = 0;
  float variance = 0;
  // Of coefficients, in units of the noise's deviation; rows have coefficient_row() floats, the last ones 1.
  // Null: white noise.
  const float* deviations = nullptr;
  CubeSlices<float> values;
  CubeSlices<float> weights;
  int first_z = 0;
  int end_z = 0;
  float* scratch = nullptr;  // filter_cubes_floats
};
constexpr std::size_t filter_cubes_floats = std::size_t{2} * most_cubes * largest_cube * largest_cube * 8;
void filter_cubes(const FilterCall& call);
constexpr int coefficient_row(int cube) { return (cube + 3) / 4 * 4; }

}  // namespace ungrain
