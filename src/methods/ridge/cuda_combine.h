// Combining the patches of groups on a GPU, and the sums of all estimates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/planes.h"
#include "cuda/memory.h"
#include "groups/cuda_match.h"

namespace ungrain::cuda {

// The sums of a plane's estimates less what they started from, as integers, so that every order gives the
// same bits. A pixel has two sums, of the guide and of the partly denoised image. Both fit one word, 32 bits
// each, because most numbers are small; those above a limit go to words of their own. A weight is one number
// for each patch, at its top left pixel: a pixel's weight is the sum of those of the patches around it.
// Patches that reach `rect` begin up to patch - 1 pixels before it.
struct RidgeSums {
  unsigned long long* values = nullptr;   // [row][column]: guide in the upper half, partly in the lower
  unsigned long long* large = nullptr;    // [2][row][column]: guide, partly; two's complement
  unsigned long long* weights = nullptr;  // [row][column] of weight_rect()
  Rect rect;
  int patch = 6;
  float value_steps = 1;  // a unit's, for a weight of 1
  float limit = 1;        // of numbers that are added to `values`
  float weight_steps = 1048576;

  constexpr Rect weight_rect() const {
    return {rect.x0 - (patch - 1), rect.y0 - (patch - 1), rect.x1, rect.y1};
  }
  static constexpr std::size_t index(const Rect& r, int x, int y) {
    return static_cast<std::size_t>(y - r.y0) * r.width() + static_cast<std::size_t>(x - r.x0);
  }
  static constexpr std::size_t words(int columns, int rows, int patch) {
    return 3 * static_cast<std::size_t>(columns) * rows +
           static_cast<std::size_t>(columns + patch - 1) * (rows + patch - 1);
  }
};

// A model's variances by level.
struct RidgeLevels {
  const float* levels = nullptr;  // ascending
  const float* variances = nullptr;
  int count = 0;
};

struct RidgeCombineCall {
  // Of one plane, in GPU memory, of the same shape.
  ConstPlanes guide;
  ConstPlanes partly;
  ReferenceGrid grid;
  int patch = 6;
  int count = 48;  // capacity of a list
  const std::int8_t* offsets = nullptr;
  const std::uint8_t* found = nullptr;
  RidgeSums sums;

  // Sums over the patches that begin at each pixel of the guide's rectangle.
  const float2* removed = nullptr;    // the noise removed so far, and its square; null: none was
  const float* variances = nullptr;   // of a map's noise; null: no map
  const float* level_sums = nullptr;  // of the guide in which groups were found; null: no model
  RidgeLevels levels;                 // of the model

  float variance = 0;    // of the plane's noise; with a map or a model, on average
  float kept = 0;        // share of the noise that remains after the pass
  float least_left = 0;  // settings.h has these
  float noise_factor = 1;
  float least_noise = 0;
  float least_noise_share = 0;
  bool last = false;  // only the partly denoised image is made
};

// Patches of 6 x 6 on tensor cores, others and older GPUs by a general kernel.
void launch_ridge_combine(const RidgeCombineCall& call, Stream stream);

}  // namespace ungrain::cuda
