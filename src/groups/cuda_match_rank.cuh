// Search for similar patches by halves: order among the candidates of a reference.
//
//   32 lanes = 4 columns t of 8 lanes g          lane 4 g + t
//   numbers of column t:  g = 0 | 1 | ... | 7    number g * Each + i is register i of lane g
//
//   one pass      keys -> sort_eight() -> sort_some_lanes() -> sort_nearest_of_two() -> store()
//   of two passes
//     the first   distances -> find_least_and_nth() -> threshold of a reference
//     the second  keys      -> LaneQueue            -> sort_keys() -> store()
//
// A key is 32 bits: the half distance (for two passes as a fixed-point number), below it the candidate's
// place. No two keys are equal, so the result does not depend on the order in which candidates come.
#pragma once

#include "groups/cuda_match_halves.cuh"

namespace ungrain::cuda::halves_match {

// ---- Sorting ----

__device__ inline float smaller(float a, float b) { return fminf(a, b); }
__device__ inline float larger(float a, float b) { return fmaxf(a, b); }
__device__ inline unsigned smaller(unsigned a, unsigned b) { return min(a, b); }
__device__ inline unsigned larger(unsigned a, unsigned b) { return max(a, b); }

// Of a lane's numbers i and i ^ Apart the smaller goes to the lower place.
template <int Apart, int Each, class T>
__device__ void order_within(T (&numbers)[Each]) {
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    const int other = i ^ Apart;
    if (other < i) continue;
    const T low = smaller(numbers[i], numbers[other]);
    numbers[other] = larger(numbers[i], numbers[other]);
    numbers[i] = low;
  }
}

// The same between lanes g and g ^ Apart; Reversed: number i meets number Each - 1 - i.
template <int Apart, bool Reversed, int Each, class T>
__device__ void order_across(T (&numbers)[Each]) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  constexpr int highest = Apart >= 4 ? 4 : Apart >= 2 ? 2 : 1;
  const bool upper = (lane / 4 & highest) != 0;
  T others[Each];
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    others[i] = __shfl_xor_sync(all_lanes, numbers[Reversed ? Each - 1 - i : i], 4 * Apart);
  }
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    numbers[i] = upper ? larger(numbers[i], others[i]) : smaller(numbers[i], others[i]);
  }
}

// Number i is in order with i ^ Apart, and so on down to i ^ 1.
template <int Apart, int Each, class T>
__device__ void order_all_within(T (&numbers)[Each]) {
  if constexpr (Apart > 0) {
    order_within<Apart>(numbers);
    order_all_within<Apart / 2>(numbers);
  }
}

// Sorts the numbers of Lanes lanes, which form a bitonic sequence, in ascending order.
template <int Lanes, int Each, class T>
__device__ void merge(T (&numbers)[Each]) {
  if constexpr (Lanes > 1) {
    order_across<Lanes / 2, false>(numbers);
    merge<Lanes / 2>(numbers);
  } else {
    order_all_within<Each / 2>(numbers);
  }
}

// Merges ascending runs of Size numbers until all numbers of a lane ascend.
template <int Size, int Each, class T>
__device__ void sort_within(T (&numbers)[Each]) {
  if constexpr (Size < Each) {
    order_within<2 * Size - 1>(numbers);
    order_all_within<Size / 2>(numbers);
    sort_within<2 * Size>(numbers);
  }
}

template <int Each, class T>
__device__ void sort(T (&numbers)[Each]) {
  sort_within<1>(numbers);
  order_across<1, true>(numbers);
  merge<1>(numbers);
  order_across<3, true>(numbers);
  merge<2>(numbers);
  order_across<7, true>(numbers);
  merge<4>(numbers);
}

// Number `index` of a lane, among Count from First on.
template <int First, int Count, int Each, class T>
__device__ T pick(const T (&numbers)[Each], int index) {
  if constexpr (Count == 1) {
    return numbers[First];
  } else {
    const T lower = pick<First, Count / 2>(numbers, index);
    const T upper = pick<First + Count / 2, Count / 2>(numbers, index);
    return (index & Count / 2) != 0 ? upper : lower;
  }
}

template <int Each, class T>
__device__ T number_at(const T (&numbers)[Each], int place) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  return __shfl_sync(all_lanes, pick<0, Each>(numbers, place), place / Each * 4 + lane % 4);
}

// The largest number of Lanes lanes.
template <int Lanes, int Each>
__device__ float largest_of(const float (&numbers)[Each]) {
  float largest = numbers[0];
#pragma unroll
  for (int i = 1; i < Each; ++i) largest = fmaxf(largest, numbers[i]);
#pragma unroll
  for (int apart = 1; apart < Lanes; apart *= 2)
    largest = fmaxf(largest, __shfl_xor_sync(all_lanes, largest, 4 * apart));
  return largest;
}

// Of two sorted halves, in lanes g and g ^ Apart of runs of lanes, keeps the smaller numbers, in both lanes,
// as a bitonic sequence.
template <int Apart, int Each, class T>
__device__ void keep_smaller_half(T (&numbers)[Each]) {
  T others[Each];
#pragma unroll
  for (int i = 0; i < Each; ++i) others[i] = __shfl_xor_sync(all_lanes, numbers[Each - 1 - i], 4 * Apart);
#pragma unroll
  for (int i = 0; i < Each; ++i) numbers[i] = smaller(numbers[i], others[i]);
}

// Sorts a lane's numbers with the fewest comparisons.
template <class T>
__device__ void sort_eight(T (&numbers)[8]) {
  constexpr int pairs[19][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 2}, {1, 3}, {4, 6},
                                {5, 7}, {1, 2}, {5, 6}, {0, 4}, {1, 5}, {2, 6}, {3, 7},
                                {2, 4}, {3, 5}, {1, 2}, {3, 4}, {5, 6}};
#pragma unroll
  for (int i = 0; i < 19; ++i) {
    T& low = numbers[pairs[i][0]];
    T& high = numbers[pairs[i][1]];
    const T least = smaller(low, high);
    high = larger(low, high);
    low = least;
  }
}

// The smallest `n` numbers, at most 32, of each of two sets, of both of which 8 lanes hold 8 numbers that
// ascend. First each set by itself: sorts those of 2 lanes, or of 4 where n is more than 16.
template <class T>
__device__ void sort_some_lanes(T (&numbers)[8], int n) {
  order_across<1, true>(numbers);
  merge<1>(numbers);
  if (n <= 16) return;
  order_across<3, true>(numbers);
  merge<2>(numbers);
}
// Of two sorted halves of each set, in lanes g and g ^ Apart of runs of lanes, keeps the smaller numbers as a
// bitonic sequence: the lower lanes those of a, the upper ones those of b.
template <int Apart, class T>
__device__ void keep_smaller_half_of_two(T (&a)[8], const T (&b)[8]) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const bool upper = (lane / 4 & (Apart + 1) / 2) != 0;
  T others[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    others[i] = __shfl_xor_sync(all_lanes, upper ? a[7 - i] : b[7 - i], 4 * Apart);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) a[i] = smaller(upper ? b[i] : a[i], others[i]);
}
// Then both, each in half of the lanes: the smallest of a end up in the first 2 (or 4) lanes, those of b in
// the next.
template <class T>
__device__ void sort_nearest_of_two(T (&a)[8], const T (&b)[8], int n) {
  if (n <= 16) {
    keep_smaller_half_of_two<3>(a, b);
    merge<2>(a);
    keep_smaller_half<5>(a);
    merge<2>(a);
    return;
  }
  keep_smaller_half_of_two<7>(a, b);
  merge<4>(a);
}

// The smallest and the n-th smallest number of 8 lanes. For the usual n and 8 numbers a lane this is cheaper
// than a sort: numbers that cannot be among the n are dropped on the way, and the n are not sorted.
template <int Each>
__device__ void find_least_and_nth(float (&numbers)[Each], int n, float& least, float& nth) {
  sort_within<1>(numbers);
  least = numbers[0];
#pragma unroll
  for (int apart = 1; apart < 8; apart *= 2)
    least = fminf(least, __shfl_xor_sync(all_lanes, least, 4 * apart));
  order_across<1, true>(numbers);
  merge<1>(numbers);
  if (Each == 8 && n == 2 * Each) {
    keep_smaller_half<3>(numbers);
    merge<2>(numbers);
    keep_smaller_half<7>(numbers);
    nth = largest_of<2>(numbers);
    return;
  }
  order_across<3, true>(numbers);
  merge<2>(numbers);
  if (Each == 8 && n == 4 * Each) {
    keep_smaller_half<7>(numbers);
    nth = largest_of<4>(numbers);
    return;
  }
  order_across<7, true>(numbers);
  merge<4>(numbers);
  nth = number_at(numbers, n - 1);
}

// ---- Keys ----

constexpr unsigned no_key = ~0U;

// A lane's queue of keys: its first reference's from the lower end up, its second's from the upper end down.
template <int Length>
class LaneQueue {
 public:
  __device__ explicit LaneQueue(unsigned* places) : places_(places) { clear(); }

  __device__ void clear() {
    next_[0] = 0;
    next_[1] = highest;
  }
  __device__ void push(int which, unsigned key) {
    places_[next_[which]] = key;
    next_[which] += which == 0 ? warp_size : -warp_size;
  }
  __device__ bool may_overflow() const { return next_[1] - next_[0] < (most_added - 1) * warp_size; }
  __device__ int size(int which) const { return (which == 0 ? next_[0] : highest - next_[1]) / warp_size; }
  __device__ unsigned at(int which, int index) const {
    return places_[which == 0 ? index * warp_size : highest - index * warp_size];
  }

 private:
  static constexpr int highest = (Length - 1) * warp_size;

  unsigned* places_;  // every 32nd word is the lane's
  int next_[2];
};

// Sorts the smallest 64 keys that 8 lanes hold for a reference, without `centre`, the key of the reference
// itself as a candidate.
template <int Length>
__device__ void sort_keys(const LaneQueue<Length>& queue, int which, unsigned position_mask, unsigned centre,
                          unsigned (&keys)[8]) {
  const int size = queue.size(which);
  const auto load = [&](int first, unsigned(&to)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      to[i] = first + i < size ? queue.at(which, first + i) : no_key;
      if ((to[i] & position_mask) == centre) to[i] = no_key;
    }
  };
#pragma unroll 1
  for (int first = 0; first == 0 || __any_sync(all_lanes, first < size); first += 8) {
    unsigned more[8];
    load(first, more);
    sort(more);
    if (first == 0) {
#pragma unroll
      for (int i = 0; i < 8; ++i) keys[i] = more[i];
      continue;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      keys[i] = min(keys[i], __shfl_xor_sync(all_lanes, more[7 - i], 4 * 7));
    }
    merge<8>(keys);
  }
}

// Whether it holds for any lane of the same references.
__device__ inline bool any_of_references(bool mine) {
  const unsigned lanes = 0x11111111U << (threadIdx.x % 4);
  return (__ballot_sync(all_lanes, mine) & lanes) != 0;
}

// Stores a lane's part of the group of the reference (i, j): `keys` are those from `first_place` on, larger
// than `farthest` where there is no candidate. `offset_of(key)`: dx in the lower byte, dy in the upper one.
// `found`: of the whole group.
template <class Key, class OffsetOf>
__device__ void store(const HalvesCall& halves, const Key (&keys)[8], Key farthest, const OffsetOf& offset_of,
                      int i, int j, int first_place, int found) {
  const GroupMatchCall& call = halves.call;
  const std::ptrdiff_t reference =
      static_cast<std::ptrdiff_t>(j - call.grid.first_j) * call.grid.count_i + (i - call.grid.first_i);
  if (first_place == 0) call.found[reference] = static_cast<std::uint8_t>(found);
  if (first_place >= call.count) return;
  unsigned offsets[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const unsigned offset = offset_of(keys[k]);
    offsets[k] = keys[k] <= farthest ? offset : 0;
  }
  auto* const places = reinterpret_cast<std::uint16_t*>(call.offsets) + reference * call.count + first_place;
  if (call.count % 8 == 0) {
    *reinterpret_cast<uint4*>(places) =
        make_uint4(offsets[0] | offsets[1] << 16, offsets[2] | offsets[3] << 16,
                   offsets[4] | offsets[5] << 16, offsets[6] | offsets[7] << 16);
  } else {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (first_place + k < call.count) places[k] = static_cast<std::uint16_t>(offsets[k]);
    }
  }
}

}  // namespace ungrain::cuda::halves_match
