// Filtering of a group of patches: the second innermost part of bm3d on a CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/bm3d/settings.h"

namespace ungrain {

constexpr int filter_patch = 8;
constexpr int most_filtered = 64;  // patches of a group

// Thresholds and factors of coefficients, for one plane, in the layout of the processor's vectors.
struct FilterTables {
  static constexpr int levels = 7;  // of the transform along the group, and its mean
  static constexpr int row = 16;
  // Step 1: thresholds; step 2: the noise's energy. Both are for coefficients of the transforms here, which
  // do not normalise.
  alignas(64) float noise[levels][filter_patch][row];
  alignas(64) float back[filter_patch][row];    // a patch's missing normalisation, in both directions
  alignas(64) float window[filter_patch][row];  // along one axis of a patch when it is added
  // Noise by the group's level, or null. Then `noise` is for a variance of 1 at that level.
  const PlaneNoise* model = nullptr;
  alignas(64) float shares[filter_patch][row];  // the model's
  double mean_share = 1;
  double mean_variance = 1;  // of the plane
  // Covariances of two patches' noise, over the variance at the group's level: [dy >= 0][dx][8][8], aligned
  // to 64 bytes; 0 beyond the reaches. Null: `shares` hold. With it `noise` is for a variance of 1, squared
  // in both steps.
  const float* common = nullptr;
  int reach_x = 0;
  int reach_y = 0;
};

// The numbers for FilterTables::common.
struct alignas(64) CommonNoise {
  float of[filter_patch][filter_patch];
};
std::vector<CommonNoise> common_noise(const PatchCovariances& covariances);

// Whether filter_group() supports the step.
bool filter_knows(const Bm3dStep& step);

// The model, for dct only, must outlive the tables; null: sigma.
void fill_filter_tables(const Bm3dStep& step, bool wiener, double sigma, const PlaneNoise* model,
                        std::span<const double, filter_patch> window, FilterTables& tables);

// A tile's image with its columns transformed: for every patch's corner, row by row, the coefficients of the
// column of pixels from there down. Neighbouring patches share columns, and a patch is one piece of memory.
struct ColumnTile {
  int width = 0;             // of the image
  int height = 0;            // at least the patch's side
  std::ptrdiff_t pitch = 0;  // of the image; rows have room for a vector more than the width
  std::ptrdiff_t column_pitch() const { return pitch * filter_patch; }
  std::size_t floats() const {
    return static_cast<std::size_t>(column_pitch()) * (height - filter_patch + 1);
  }
};

void transform_columns(PatchTransform transform, const ColumnTile& tile, const float* image, float* columns);

// The inverse: transforms columns back, weights them with the window and adds them to the image. Leaves
// zeros.
void move_columns(PatchTransform transform, const ColumnTile& tile, const FilterTables& tables,
                  float* columns, float* image);

// Turns weights of patches, at their upper left corners, into those of pixels, in place.
void spread_weights(const ColumnTile& tile, const FilterTables& tables, float* weights);

// Places are those of patches' upper left corners in a tile's image.
struct FilterCall {
  const FilterTables& tables;
  PatchTransform transform;
  const float* noisy;  // columns
  const float* basic;  // null in step 1
  const std::int32_t* places;
  int count;       // a power of two
  float* values;   // columns: weighted sums of filtered patches
  float* weights;  // of patches, at their places
  // With a model: the group's mean in the plane in which it was found.
  float* level = nullptr;
  bool finds_level = true;   // this is that plane; else the level is given
  std::ptrdiff_t pitch = 1;  // of the tile's image, if patches share noise
};

void filter_group(const FilterCall& call);

// filter_group() for noise models, without and with covariances of patches.
void filter_group_by_model(const FilterCall& call);
void filter_correlated_group(const FilterCall& call);

}  // namespace ungrain
