// [000]'s cached kernels: spatial and range weights from tables, in the memory that a rung chooses.
#pragma once

#include "study/kernels.cuh"

namespace ungrain::study {
namespace {

__constant__ float constant_spatial[most_spatial_entries];
__constant__ float constant_range[range_entries];

enum class TableMemory { global, shared, constant };

inline const char* name_of(TableMemory memory) {
  switch (memory) {
    case TableMemory::global:
      return "global";
    case TableMemory::shared:
      return "shared";
    default:
      return "constant";
  }
}

// Both weights of a pair of pixels.
template <TableMemory Memory>
class Tables {
 public:
  // `place` is shared memory for shared_floats(radius) values; the block waits before it uses them.
  __device__ Tables(const float* spatial, const float* range, int radius, float* place)
      : spatial_(spatial), range_(range), side_(2 * radius + 1) {
    if constexpr (Memory == TableMemory::shared) {
      const int threads = block_side() * block_side();
      for (int i = thread_number(); i < side_ * side_; i += threads) place[i] = spatial[i];
      for (int i = thread_number(); i < range_entries; i += threads) place[side_ * side_ + i] = range[i];
      spatial_ = place;
      range_ = place + side_ * side_;
    }
  }

  __device__ float weight(int dx, int dy, float difference) const {
    const int at = dy * side_ + dx;
    const int entry = static_cast<int>(fabsf(difference));  // pixels are whole numbers from 0 to 255
    if constexpr (Memory == TableMemory::constant) return constant_spatial[at] * constant_range[entry];
    return spatial_[at] * range_[entry];
  }

  __host__ __device__ static int shared_floats(int radius) {
    if (Memory != TableMemory::shared) return 0;
    return (2 * radius + 1) * (2 * radius + 1) + range_entries;
  }

 private:
  const float* spatial_;
  const float* range_;
  int side_;
};

}  // namespace
}  // namespace ungrain::study
