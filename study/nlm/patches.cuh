// What the rungs that compare patches share.
#pragma once

#include "study/kernels.cuh"

namespace ungrain::study {

// How far from a pixel its search reads.
inline int search_reach(const Strengths& strengths) { return strengths.radius + patch_reach; }

// The sum of the squared differences of the patches around a pixel and the one (dx, dy) away. value_at(x, y)
// says where the pixels come from, counted from the first one; `reach` is the patch's.
template <class ValueAt>
__device__ float patch_distance(ValueAt value_at, int dx, int dy, int reach) {
  float sum = 0;
  for (int y = -reach; y <= reach; ++y) {
    for (int x = -reach; x <= reach; ++x) {
      const float difference = value_at(dx + x, dy + y) - value_at(x, y);
      sum += difference * difference;
    }
  }
  return sum;
}

}  // namespace ungrain::study
