// Filtering of groups of patches on a GPU, and the sums of all estimates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/method.h"
#include "core/planes.h"
#include "cuda/memory.h"
#include "groups/cuda_match.h"
#include "methods/bm3d/settings.h"

namespace ungrain::cuda {

// The sums of a call's estimates, as integers, so that every order gives the same bits. Values are those of
// every pixel of `rect`. A weight is one number for each patch, at its top left pixel: a pixel's weight is
// the sum of the weights of the patches around it times the window. Patches that reach `rect` begin up to
// patch - 1 pixels before it.
struct Bm3dSums {
  unsigned long long* values = nullptr;   // [plane][row][column], two's complement
  unsigned long long* weights = nullptr;  // the same for weight_rect()
  Rect rect;
  int patch = 8;
  // Steps per unit: for a value of 1 (in the filter's unit) with weight 1, and for a weight of 1.
  float value_steps = 1;
  float weight_steps = 1;

  constexpr Rect weight_rect() const {
    return {rect.x0 - (patch - 1), rect.y0 - (patch - 1), rect.x1, rect.y1};
  }
  static constexpr std::size_t index(const Rect& r, int plane, int x, int y) {
    return (static_cast<std::size_t>(plane) * r.height() + static_cast<std::size_t>(y - r.y0)) * r.width() +
           static_cast<std::size_t>(x - r.x0);
  }
  static constexpr bool holds(const Rect& r, int x, int y) {
    return x >= r.x0 && x < r.x1 && y >= r.y0 && y < r.y1;
  }
  static constexpr std::size_t floats(int planes, int columns, int rows, int patch) {
    const auto pixels = static_cast<std::size_t>(columns) * rows;
    const auto begins = static_cast<std::size_t>(columns + patch - 1) * (rows + patch - 1);
    return 2 * static_cast<std::size_t>(planes) * (pixels + begins);
  }
};

// From sums to pixels.
struct Bm3dFinishCall {
  Bm3dSums sums;
  ConstPlanes noisy;
  Planes out;
  float to_colours[3][3];    // from opponent planes
  float unit[max_channels];  // of the sums' values
  bool lost;                 // the sums are of noisy minus estimate
  bool to_rgb;
  float window[32];
};
void launch_bm3d_finish(const Bm3dFinishCall& call, Stream stream);
// A stage: rgb to luminance and colour differences.
void launch_bm3d_opponent(const DeviceStageCall& call);

// Covariances of two patches' noise, see PlaneNoise: [dy >= 0][dx][8][8], 1 on average at (0, 0), 0 beyond
// the reaches.
struct Bm3dCommonNoise {
  const float* values = nullptr;
  int reach_x = 0;
  int reach_y = 0;
};

// Noise by level and frequency, see PlaneNoise: a coefficient's variance is the square of its group's
// deviation times the coefficient's share.
struct Bm3dModelNoise {
  // [plane][8][8], 1 on average; null: one sigma for every group and coefficient.
  const float* shares = nullptr;
  const float* deviations = nullptr;     // [plane][reference], in units of the plane's sigma
  float strength[max_channels] = {};     // factor on the deviation for thresholds and shrinkage
  Bm3dCommonNoise common[max_channels];  // if it has values, instead of shares; only in the general kernel
};

// Sums hold what a group's coefficients lose, the noise. Its size is known (sigma) for any range of the
// image, and the image's own pixels need no sums.
struct Bm3dFilterCall {
  ConstPlanes noisy;  // in GPU memory, every plane of the image
  ConstPlanes basic;  // step 2's; null in step 1
  int first_plane = 0;
  int planes = 1;  // filtered with the same groups
  ReferenceGrid grid;
  int count = 16;  // capacity of a list
  const std::int8_t* offsets = nullptr;
  const std::uint8_t* found = nullptr;
  Bm3dSums sums;
  float sigma[max_channels] = {};
  float middle[max_channels] = {};  // of the range of values: pixels less this are rounded least
  float strength = 1;               // factor on sigma for thresholds and Wiener factors
  Bm3dModelNoise noise;
  float window[32] = {};  // along one axis
  // Groups that the fast kernel leaves to the general one: [0] their number, then reference + plane x
  // references.
  unsigned* left_over = nullptr;

  constexpr int references() const { return grid.count_i * grid.count_j; }
};

// ---- The deviations of groups, of a noise model

// A plane's variances by level, as offsets in a table of floats.
struct Bm3dLevels {
  int levels = 0;
  int variances = 0;  // in units of the plane's squared sigma
  int count = 0;
};

struct Bm3dDeviationsCall {
  ConstPlanes plane;  // in plane 0 of it the groups of 8 x 8 patches were found
  ReferenceGrid grid;
  int count = 16;         // capacity of a list
  bool any_size = false;  // groups of any size; else powers of two
  const std::int8_t* offsets = nullptr;
  const std::uint8_t* found = nullptr;
  const float* table = nullptr;
  Bm3dLevels planes[max_channels];  // of the planes that are filtered with these groups
  int plane_count = 1;
  float* deviations = nullptr;  // [plane][reference]
  float* sums = nullptr;        // scratch: one for each pixel of the plane
};
void launch_bm3d_deviations(const Bm3dDeviationsCall& call, Stream stream);

// ---- The fast kernel: patches of 8 x 8, groups of 1, 2, 4 ... 32 with Haar, one sigma above 0 for each
// plane, or a noise model whose deviations are at least the plane's sigma

// A block's reference patches and the pixels that their groups may cover.
struct Bm3dTile {
  int columns = 0;  // reference patches
  int rows = 0;
  int reach = 0;
  int width = 0;  // pixels
  int height = 0;
  int pitch = 0;
  std::size_t bytes = 0;  // of shared memory
};

struct Bm3dFastTables {
  // A lane's numbers of the matrices, forward and back: for the first product, where a matrix stands twice on
  // the diagonal of one of 16 x 16, and for the second.
  std::uint32_t first[2][4][32] = {};
  std::uint32_t second[2][32] = {};
  float row_sums[32] = {};              // of a lane's row of the first, as it is rounded
  std::uint32_t corner[2][4][32] = {};  // wavelets: the transform of the low-low quadrant, and back
};

struct Bm3dFast {
  Bm3dTile tile;
  Bm3dFastTables tables;
  int most = 16;  // patches in a group
  bool wiener = false;
  bool wavelet = false;
  bool model = false;
  bool halves = false;  // whether coefficients are halves
};

// Nothing if the step's settings need the general kernel. With a model the call's sigma must be fast_sigma().
std::optional<Bm3dFast> bm3d_fast_filter(const Bm3dSettings& settings, int step, double white);
// The least sigma of a group of the plane. With it weights are at most 1, as with one sigma.
double fast_sigma(const Bm3dSettings& settings, int plane);
// Sets the units in which no sum of a block overflows.
void set_fast_units(const Bm3dFast& fast, Bm3dSums& sums);
void launch_bm3d_fast(const Bm3dFast& fast, const Bm3dFilterCall& call, Stream stream);

// ---- The general kernel: any settings

// Offsets of a transform's numbers in a table of floats; complex numbers take two.
struct Bm3dGeneralShape {
  struct Level {
    int side = 0;
    int forward = 0;
    int inverse = 0;
    int squares = 0;  // side x patch: of the level and those before it
  };
  Level levels[6];
  int level_count = 0;
  int patch = 8;
  int most = 16;  // patches in a group
  bool any_size = false;
  bool complex = false;
  int group_forward[129] = {};  // by the group's size
  int group_inverse[129] = {};
};

struct Bm3dGeneral {
  Bm3dGeneralShape shape;
  std::vector<float> table;
  int blocks = 0;
  std::size_t workspace = 0;  // floats a block if shared memory is too small
  std::size_t shared_bytes = 0;
};

struct Bm3dGeneralCall {
  Bm3dFilterCall filter;
  Bm3dGeneralShape shape;
  const float* table = nullptr;
  float* workspace = nullptr;
  std::size_t workspace_floats = 0;
  ConstPlanes variance;  // of the noise at every pixel; null: sigma
  // Only the groups that the fast kernel left; sums hold what they lose instead of what they keep.
  bool only_left = false;
  float value_scale = 1;  // from pixels to the filter's unit; with only_left the unit is sigma
};

// `variances`: each coefficient of a group has its own variance.
Bm3dGeneral bm3d_general_filter(const Bm3dStep& step, bool wiener, bool variances);
void launch_bm3d_general(const Bm3dGeneral& general, const Bm3dGeneralCall& call, Stream stream);

// ---- The general search: any number of patches, thresholded coefficients

struct Bm3dGeneralMatch {
  GroupMatchCall match;
  Bm3dGeneralShape shape;  // of the transform whose coefficients are compared
  const float* table = nullptr;
  float threshold = -1;  // coefficients up to this are set to 0; below 0: pixels are compared
  // [coefficient][row][column] of the plane's rectangle, if coefficients are compared.
  float* compared = nullptr;
};
std::size_t bm3d_compared_floats(const Bm3dGeneralShape& shape, int columns, int rows);
void launch_bm3d_general_match(const Bm3dGeneralMatch& call, Stream stream);

}  // namespace ungrain::cuda
