#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ungrain/image.h"

namespace ungrain {

// Gives unset parameters below their values.
enum class Bm4dProfile : std::uint8_t { fast, normal, high };

// Block matching and 4-D filtering of volumes (ungrain/volume.h): similar cubes are stacked into a group. A
// transform of each cube and one along the group turn what the cubes have in common into a few large
// coefficients; small coefficients are taken for noise. The first step sets them to 0. The second (wiener)
// finds the groups again in the first step's result, and shrinks every coefficient according to the share of
// it that this result takes for signal. Channels are filtered each by itself.
struct Bm4dParams {
  static constexpr std::string_view method = "bm4d";
  Bm4dProfile profile = Bm4dProfile::normal;
  // The noise's standard deviation, pixel units: one number, or one for each colour channel; 0 returns the
  // input. Empty: measured.
  std::vector<double> sigma = {};
  // Instead of sigma: the standard deviation at every voxel, in the pixel units of the filtered volume. As
  // large as the whole volume, with one channel or one for each of its colour channels. Must outlive the
  // Denoiser.
  ConstImageView sigma_map = {};
  // How the noise at two voxels is correlated, by their offset: largest_correlated_offset and its negative
  // are the ends along each axis, x fastest, (0, 0, 0) in the middle with a value of 1. Empty: white noise.
  static constexpr int largest_correlated_offset = 4;
  std::vector<double> correlation = {};
  int steps = 2;
  std::optional<int> cube = {};  // voxels: side of a cube, 4 or 5
  std::optional<int> wiener_cube = {};
  std::optional<int> stride = {};  // voxels from one reference cube to the next
  std::optional<int> wiener_stride = {};
  std::optional<int> search = {};  // voxels: side of the box that is searched, odd
  std::optional<int> wiener_search = {};
  std::optional<int> search_z = {};  // the same along z, of both steps; unset: follows search and aspect
  double aspect = 1;                 // a voxel's depth over its width
  std::optional<int> group = {};     // cubes of a group at most; powers of two are used
  std::optional<int> wiener_group = {};
  std::optional<double> lambda = {};  // the first step's threshold, in deviations of the noise
};

}  // namespace ungrain
