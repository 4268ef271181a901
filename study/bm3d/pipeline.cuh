// [002] §4.2: batch after batch of reference patches goes through the same buffers. What changes from rung to
// rung is how groups are found and how they are filtered; they are assembled and aggregated as in §4.4.1 and
// §4.5.
#pragma once

#include "study/bm3d/bm3d.cuh"
#include "study/bm3d/matching.cuh"

namespace ungrain::study::bm3d {

// What the kernels of a batch are given. Patch n of group g begins at groups[(g * most_patches + n) * patch *
// pitch], rows lie `pitch` floats apart.
struct GroupCall {
  Picture picture;
  References references;
  Batch batch;
  const Key* lists;
  const int* sizes;
  float* weights;
  float* groups;
  int pitch;
  float* numerator;    // [row][column] of the picture
  float* denominator;  // the same
  float threshold;     // squared, of an orthonormal transform

  __device__ float* patch_of(int group, int n) const {
    return groups + (static_cast<std::ptrdiff_t>(group) * most_patches + n) * patch * pitch;
  }
};

struct BatchVersion {
  std::function<void(const MatchCall&)> match;
  // Transforms, shrinks and transforms back every group; writes their weights.
  std::function<void(const GroupCall&, const PartBegins&)> filter;
  int pitch = patch;
  std::optional<KernelUse> use = {};  // of the search
  bool quads = false;                 // the search reads MatchCall::quads
};

// The batch that a rung is asked for, no larger than the picture's reference patches are.
Size batch_of(const RungCall& call);
std::optional<Prepared> in_batches(const RungCall& call, const BatchVersion& version);

// The same as a Prepared, and as its parts.
Prepared prepared_parts(std::function<void(const PartBegins&)> parts, const std::optional<KernelUse>& use);

// A thread transforms the numbers of one place in all patches along the group, sets what is up to the
// threshold to 0 and transforms back; how many are left. `matrix` is a square of cosine_table().
__device__ inline int shrink_along(const float* matrix, int size, float threshold,
                                   const float (&values)[most_patches], float (&estimates)[most_patches]) {
#pragma unroll
  for (int n = 0; n < most_patches; ++n) estimates[n] = 0;
  int count = 0;
#pragma unroll 1
  for (int u = 0; u < size; ++u) {
    const float* row = matrix + u * most_patches;  // 0 past the group's size
    float sum = 0;
#pragma unroll
    for (int n = 0; n < most_patches; ++n) sum += row[n] * values[n];
    const bool keep = sum * sum > threshold;
    count += keep ? 1 : 0;
    const float kept = keep ? sum : 0.0F;
#pragma unroll
    for (int n = 0; n < most_patches; ++n) estimates[n] += row[n] * kept;
  }
  return count;
}

// With cosine transforms (05_dct.cu).
BatchVersion dct_version(std::function<void(const MatchCall&)> match, const std::optional<KernelUse>& use);

}  // namespace ungrain::study::bm3d
