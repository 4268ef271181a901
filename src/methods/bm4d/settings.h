// The settings of bm4d, resolved, and the rules that all versions share.
#pragma once

#include <algorithm>
#include <vector>

#include "core/solid.h"
#include "ungrain/image.h"
#include "ungrain/methods/bm4d.h"

namespace ungrain {

constexpr int largest_cube = 5;
constexpr int most_cubes = 32;           // of a group
constexpr int largest_cube_search = 15;  // side of the box that is searched

struct Bm4dStep {
  int cube = 4;
  int spacing = 3;
  int radius = 5;  // of the search, along x and y
  int radius_z = 5;
  int group = 32;  // a power of two

  // How far an estimate's voxel depends on others along an axis: the groups that touch it have their
  // reference `radius` and a cube away, and look `radius` farther.
  int reach(int along) const { return 2 * along + cube - 1; }
  friend bool operator==(const Bm4dStep&, const Bm4dStep&) = default;
};

struct Bm4dSettings {
  ImageSpec spec;
  std::vector<double> sigma;             // of each channel
  ConstImageView sigma_map = {};         // no data: sigma holds everywhere
  std::vector<double> correlation = {};  // Bm4dParams::correlation
  double lambda = 2.8;
  int steps = 2;
  Bm4dStep threshold;
  Bm4dStep wiener;

  // How far the result depends on voxels around, in both steps together.
  int reach() const;
  int reach_z() const;
};

Bm4dSettings bm4d_settings(const Bm4dParams& params, const ImageSpec& spec);
bool is_identity(const Bm4dSettings& settings);

// With a map a group's noise is that of its cubes: the mean of the squared deviations at the middle of each.
// Variances have a least share of the mean one.
constexpr double least_variance_share = 1e-9;
double map_deviation(const Bm4dSettings& settings, int channel, int x, int y, int z);

// Cubes are compared as integers: voxels in units of an eighth of the noise's deviation, rounded. Differences
// count up to `largest_difference`, so that the sum of their squares over a cube is exact in float, in any
// order: all versions choose the same cubes.
constexpr float largest_difference = 361;
float compared_scale(const Bm4dSettings& settings, int channel);

// The orthonormal cosine transform along one axis: row k of it are the weights of coefficient k.
std::vector<double> cube_transform(int cube);
// The noise's deviation in each coefficient of a cube's transform, in units of a voxel's, x fastest. Empty
// where the noise is white: 1 for all. Cubes of a group count as independent.
std::vector<double> coefficient_deviations(const Bm4dSettings& settings, int cube);
// Weights of a cube's voxels along one axis, 1 at most: a Kaiser window.
std::vector<double> cube_window(int cube);

// Positions of reference cubes along an axis: every spacing-th, and the last.
struct CubeAxis {
  int last = 0;  // the last position of a cube
  int spacing = 1;

  constexpr int count() const { return (last + spacing - 1) / spacing + 1; }
  constexpr int position(int index) const { return index * spacing < last ? index * spacing : last; }
};

// Where the cubes of a group may lie: positions along each axis, both ends inclusive.
struct CubeSearch {
  int x0, x1, y0, y1, z0, z1;
};
constexpr CubeSearch cube_search(const Bm4dStep& step, const SolidExtent& extent, int x, int y, int z) {
  const auto low = [](int at, int radius) { return std::max(0, at - radius); };
  const auto high = [&](int at, int radius, int size) { return std::min(size - step.cube, at + radius); };
  return {low(x, step.radius),   high(x, step.radius, extent.width),
          low(y, step.radius),   high(y, step.radius, extent.height),
          low(z, step.radius_z), high(z, step.radius_z, extent.depth)};
}

// Of n candidates a group takes so many: a power of two.
constexpr int cubes_taken(int group, int candidates) {
  int count = 1;
  while (count * 2 <= group && count * 2 <= candidates) count *= 2;
  return count;
}

}  // namespace ungrain
