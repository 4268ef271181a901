// What the kernels that combine a group share: what is known of the group, and the sums.
#pragma once

#include "cuda/launch.cuh"
#include "cuda/warp.cuh"
#include "methods/ridge/cuda_combine.h"

namespace ungrain::cuda {

constexpr int warp_size = 32;
constexpr int most_of_lane = 2;              // patches: groups have at most 64
constexpr float largest_difference = 1e17F;  // its square, and sums of squares, are finite

// Device version of PlaneNoise::variance().
__device__ inline float variance_at(const RidgeLevels& of, float level) {
  int above = 0;
  while (above < of.count && !(level < of.levels[above])) ++above;
  if (above == 0) return of.variances[0];
  if (above == of.count) return of.variances[of.count - 1];
  const float part = (level - of.levels[above - 1]) / (of.levels[above] - of.levels[above - 1]);
  return fmaf(part, of.variances[above] - of.variances[above - 1], of.variances[above - 1]);
}

// A group, seen by a warp. Lane l knows patches l and l + 32.
struct Group {
  int count;
  int x;  // of the reference
  int y;
  char2 offsets[most_of_lane];  // (0, 0) beyond the last patch
  float precisions[most_of_lane];
  float all_precisions;
  float variance;
  float noise;   // that combinations are made for: its variance times pixels and factors
  float step;    // of the partly denoised image towards the estimate
  float weight;  // factor on the weights of its patches

  // With a map: the patches' precisions.
  __device__ Group(const RidgeCombineCall& call, int reference) {
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    const ReferenceGrid& grid = call.grid;
    count = min(static_cast<int>(call.found[reference]), call.count);
    x = grid.x(grid.first_i + reference % grid.count_i);
    y = grid.y(grid.first_j + reference / grid.count_i);
    const auto* const list =
        reinterpret_cast<const char2*>(call.offsets) + static_cast<std::size_t>(reference) * call.count;
    const float pixels = static_cast<float>(call.patch * call.patch);
    const auto entries = static_cast<float>(count);
    float2 removed = make_float2(0, 0);
    float noise_sum = 0;
    float own[most_of_lane] = {};
#pragma unroll
    for (int i = 0; i < most_of_lane; ++i) {
      const int patch = lane + i * warp_size;
      offsets[i] = make_char2(0, 0);
      precisions[i] = 1;
      if (patch >= count) continue;
      offsets[i] = list[patch];
      const std::size_t place = RidgeSums::index(call.guide.rect, x + offsets[i].x, y + offsets[i].y);
      if (call.removed != nullptr) {
        const float2 more = call.removed[place];
        removed.x += more.x;
        removed.y += more.y;
      }
      if (call.variances != nullptr) own[i] = call.variances[place] / pixels;
      noise_sum += call.variances != nullptr    ? own[i]
                   : call.level_sums != nullptr ? call.level_sums[place] / pixels
                                                : 0.0F;
    }
    variance = call.variance;
    if (call.variances != nullptr || call.level_sums != nullptr) {
      const float mean = warp_sum(noise_sum) / entries;
      variance = call.variances != nullptr ? mean : variance_at(call.levels, mean);
    }
    constexpr float most_weight = 1024;  // see weight_by_noise()
    weight = variance * most_weight > call.variance ? call.variance / variance : most_weight;
    all_precisions = entries;
    if (call.variances != nullptr) {
      float all = 0;
#pragma unroll
      for (int i = 0; i < most_of_lane; ++i) {
        precisions[i] = variance / fmaxf(own[i], call.least_noise_share * variance);
        all += lane + i * warp_size < count ? precisions[i] : 0.0F;
      }
      all_precisions = warp_sum(all);
    }
    float share = 1;
    if (call.removed != nullptr) {
      const float numbers = entries * pixels;
      const float mean = warp_sum(removed.x) / numbers;
      const float deviation = sqrtf(fmaxf(0.0F, warp_sum(removed.y) / numbers - mean * mean));
      share = fmaxf(fmaxf(1 - deviation / sqrtf(variance), call.kept), call.least_left);
    }
    noise = call.noise_factor * pixels * variance * share * share;
    step = 1 - call.kept / share;
  }

  __device__ bool has_noise() const { return variance > 0; }
};

// Whether all patches that a group may have lie within a rectangle.
__device__ inline bool group_is_inside(const Group& group, const Rect& rect) {
  constexpr int reach = 24;  // of the widest search
  constexpr int side = 8;    // of the largest patch
  return group.x - reach >= rect.x0 && group.x + reach + side <= rect.x1 && group.y - reach >= rect.y0 &&
         group.y + reach + side <= rect.y1;
}

// Adds the weight of a patch that begins at x, y.
__device__ inline void add_weight(const RidgeSums& sums, int x, int y, float weight) {
  const Rect rect = sums.weight_rect();
  if (x < rect.x0 || x >= rect.x1 || y < rect.y0 || y >= rect.y1) return;
  const auto steps = static_cast<unsigned long long>(__float2ll_rn(weight * sums.weight_steps));
  atomicAdd(sums.weights + RidgeSums::index(rect, x, y), steps);
}

// Adds a number of steps, of at most 21 bits and a sign, to the guide's sum, and `step` times it to the
// other.
__device__ inline void add_small_value(unsigned long long* sum, float steps, float step) {
  // Adding 1.5 * 2^23 rounds to a whole number, which the lower bits then are.
  constexpr float whole = 12582912;
  constexpr int whole_bits = 0x4B400000;
  const int guide = __float_as_int(steps + whole) - whole_bits;
  const int partly = __float_as_int(fmaf(steps, step, whole)) - whole_bits;
  // The lower half borrows from the upper one where it is negative.
  const auto upper = static_cast<unsigned>(guide + (partly >> 31));
  // As atomicAdd(), without the old value even where the compiler does not see that nobody reads it.
  asm volatile("red.global.add.u64 [%0], %1;" ::"l"(sum),
               "l"(static_cast<unsigned long long>(upper) << 32 | static_cast<unsigned>(partly))
               : "memory");
}

// The same for any number.
__device__ inline void add_value(const RidgeSums& sums, std::size_t place, float value, float step) {
  if (fabsf(value) <= sums.limit) {
    add_small_value(sums.values + place, value * sums.value_steps, step);
    return;
  }
  const std::size_t pixels = static_cast<std::size_t>(sums.rect.width()) * sums.rect.height();
  const auto steps = [&](float number) {
    return static_cast<unsigned long long>(__float2ll_rn(number * sums.value_steps));
  };
  atomicAdd(sums.large + place, steps(value));
  atomicAdd(sums.large + pixels + place, steps(value * step));
}

}  // namespace ungrain::cuda
