// Search for similar 8 x 8 patches by halves: the nearest, in two passes over the candidates.
//
//   pass 1   distances -> smallest of each class, (y mod 8, x mod 8 or 16) -> N-th smallest: threshold
//   pass 2   distances, the same bits -> those up to the threshold -> queues -> sort -> the nearest N
//
// At least N candidates pass the threshold. A queue that may overflow is cut to the nearest N, and the
// threshold with it; the result does not depend on when. Shared memory has a queue of keys for each lane. For
// 4 products pass 1 has 13 other instructions and is bound by the tensor cores; pass 2 has 15, and about 35
// more per hit, and is bound by instruction issue. The sorts add about a tenth.
#include "groups/cuda_match_octet.cuh"
#include "groups/cuda_match_rank.cuh"

namespace ungrain::cuda::halves_match {
namespace {

constexpr float no_threshold = -1e38F;

// A lane's state for one of its references.
struct ReferenceState {
  bool wanted;      // whether it belongs to the call
  bool left_out;    // whether this kernel leaves it to the search by floats
  float threshold;  // half the distance, with the bias
  float scale;      // factor to fixed point, a power of two
  unsigned limit;   // exclusive upper bound of keys
};

// Pass 1: finds the thresholds.
template <int Classes, int Pitch>
__device__ void find_thresholds(const HalvesCall& halves, Octet<Pitch>& candidates,
                                ReferenceState (&references)[2]) {
  float smallest[2][Classes];
#pragma unroll
  for (int i = 0; i < Classes; ++i) smallest[0][i] = smallest[1][i] = outside;
  const auto keep_smallest = [&](int first_row, const float(&distances)[rows_in_flight][4]) {
#pragma unroll
    for (int k = 0; k < rows_in_flight; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = first_row + k;
        float& least = smallest[i % 2][Classes == many_classes ? 2 * row + i / 2 : row];
        least = fminf(least, distances[k][i]);
      }
    }
  };
  const int tiles = candidates.tiles();
  const int rows = candidates.rows();
  for (int tile = 0; tile < tiles; ++tile) {
    candidates.begin_tile(tile);
    for (int row = 0; row < rows; row += side) {
      if (candidates.all_have(row, side)) {
        candidates.template take_rows<side, false, 0>(row, keep_smallest);
      } else {
        candidates.template take_rows<side, true, 0>(row, keep_smallest);
      }
    }
  }

  // Not unrolled, here and in the sort of keys: the code of both references and of the passes would exceed
  // the instruction cache.
#pragma unroll 1
  for (int which = 0; which < 2; ++which) {
    float own[Classes];
#pragma unroll
    for (int i = 0; i < Classes; ++i) own[i] = which == 0 ? smallest[0][i] : smallest[1][i];
    float least = 0;
    float enough = 0;
    find_least_and_nth(own, halves.call.count, least, enough);
    ReferenceState of;
    of.wanted = halves.has(candidates.i_of(which), candidates.j_of(which));
    of.left_out = least < -far_beyond || (enough > far_beyond && halves.farthest > largest_half_distance);
    of.threshold = of.wanted && !of.left_out ? fminf(enough, halves.farthest) : no_threshold;
    // Thresholds become numbers of exactly the bits available.
    const unsigned bits = 32 - halves.position_bits;
    const unsigned exponent = __float_as_uint(fmaxf(of.threshold, two_pass_bias)) >> 23;
    of.scale = __uint_as_float((bits - 1 + 254 - exponent) << 23);
    of.limit = ~0U;
    if (which == 0) {
      references[0] = of;
    } else {
      references[1] = of;
    }
  }
}

// Pass 2: queues the candidates below the thresholds.
template <int Pitch, int Length>
__device__ void queue_nearest(const HalvesCall& halves, Octet<Pitch>& candidates,
                              ReferenceState (&references)[2], LaneQueue<Length>& queue) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  unsigned positions = 1U << halves.position_bits;
  const unsigned position_mask = positions - 1;
  // Hides from the compiler that the number is a power of two: multiply-add is one instruction, shift and add
  // are two.
  asm("" : "+r"(positions));
  if (lane / 4 == 0) {  // the reference itself
    queue.push(0, 0);
    queue.push(1, 0);
  }

  const int tiles = candidates.tiles();
  const int rows = candidates.rows();
  int tile = 0;
  int row = 0;
  while (true) {
    const auto push_hits = [&](int first_row, const float(&distances)[rows_in_flight][4]) {
      // All comparisons before the first result is used.
      bool hits[rows_in_flight];
#pragma unroll
      for (int k = 0; k < rows_in_flight; ++k) {
        hits[k] = __any_sync(all_lanes, distances[k][0] <= references[0].threshold ||
                                            distances[k][1] <= references[1].threshold ||
                                            distances[k][2] <= references[0].threshold ||
                                            distances[k][3] <= references[1].threshold);
      }
#pragma unroll
      for (int k = 0; k < rows_in_flight; ++k) {
        if (!hits[k]) continue;
        const int first_position = (row + first_row + k) * halves.call.search;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const ReferenceState& of = references[i % 2];
          const int position = first_position + candidates.column(i % 2) + i / 2 * 8;
          // From 2^23 on the lower bits of a float are a whole number.
          constexpr float whole = 8388608;
          const unsigned fixed = __float_as_uint(__fmaf_rz(distances[k][i], of.scale, whole));
          const unsigned key = fixed * positions + static_cast<unsigned>(position);
          if (distances[k][i] <= of.threshold && key < of.limit) queue.push(i % 2, key);
        }
      }
    };
    // Whether all queues have room for the keys of the next rows.
    const auto have_room = [&] { return !__any_sync(all_lanes, queue.may_overflow()); };
    bool room = true;
    if (row % side != 0) {  // queues were full within 8 rows
      candidates.template take_rows<rows_at_once, true, rows_at_once>(row, push_hits);
      row += rows_at_once;
      if (row >= rows) row = 0, ++tile;
      room = have_room();
    }
    while (room && tile < tiles) {
      if (row == 0) candidates.begin_tile(tile);
      if (candidates.all_have(row, side)) {
        candidates.template take_rows<rows_at_once, false, 0>(row, push_hits);
        row += rows_at_once;
        room = have_room();
        if (!room) break;
        candidates.template take_rows<rows_at_once, false, rows_at_once>(row, push_hits);
        row += rows_at_once;
        if (row >= rows) row = 0, ++tile;
      } else {
        candidates.template take_rows<rows_at_once, true, 0>(row, push_hits);
        row += rows_at_once;
        room = have_room();
        if (!room && row < rows) break;
        if (row < rows) candidates.template take_rows<rows_at_once, true, rows_at_once>(row, push_hits);
        row += rows_at_once;
        if (row >= rows) row = 0, ++tile;
      }
      room = have_room();
    }

    const bool is_end = tile == tiles;
    unsigned keys[8] = {};
    unsigned keys_of_first[8] = {};
#pragma unroll 1
    for (int which = 0; which < 2; ++which) {
#pragma unroll
      for (int i = 0; i < 8; ++i) keys_of_first[i] = keys[i];
      sort_keys(queue, which, position_mask, static_cast<unsigned>(halves.centre()), keys);
      if (is_end) {
        const auto offset_of = [&](unsigned key) { return halves.offset(key & position_mask); };
        const int first_place = lane / 4 * 8;
        int found = 0;
#pragma unroll
        for (int k = 0; k < 8; ++k) found += keys[k] < no_key && first_place + k < halves.call.count ? 1 : 0;
#pragma unroll
        for (int apart = 4; apart < warp_size; apart *= 2) found += __shfl_xor_sync(all_lanes, found, apart);
        if (which == 0 ? references[0].wanted : references[1].wanted) {
          const bool left_out = which == 0 ? references[0].left_out : references[1].left_out;
          store(halves, keys, no_key - 1, offset_of, candidates.i_of(which), candidates.j_of(which),
                first_place, left_out ? 0 : found);
        }
      }
    }
    if (is_end) return;
    queue.clear();
    const auto tighten = [&](int which, const unsigned(&nearest)[8]) {
      ReferenceState& of = references[which];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const bool stays = lane / 4 * 8 + i < halves.call.count && nearest[i] != no_key;
        if (stays) queue.push(which, nearest[i]);
      }
      of.limit = number_at(nearest, halves.call.count - 1);
      const auto beyond = static_cast<float>((of.limit >> halves.position_bits) + 1) / of.scale;
      of.threshold = fminf(of.threshold, beyond);
    };
    tighten(0, keys_of_first);
    tighten(1, keys);
  }
}

template <int Classes, int Pitch>
__global__ void __launch_bounds__(warps_of(Pitch) * warp_size, 16 / warps_of(Pitch))
    halves_match_kernel(const HalvesCall halves) {
  extern __shared__ std::uint32_t shared[];
  const BlockOfReferences<Pitch> block(halves, shared);
  block.for_each_octet([&](Octet<Pitch>& candidates) {
    ReferenceState references[2];
    find_thresholds<Classes>(halves, candidates, references);
    constexpr int length = queue_length(Classes, warps_of(Pitch));
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    LaneQueue<length> queue(shared + halves.image_words() + warp * length * warp_size + lane);
    queue_nearest(halves, candidates, references, queue);
  });
}

// ---- The launch ----

auto kernel_for(const HalvesCall& halves) {
  const int pitch = halves.kernel_pitch();
  if (halves.classes() == many_classes) {
    return pitch == long_list_pitch ? halves_match_kernel<many_classes, long_list_pitch>
           : pitch == sparse_pitch  ? halves_match_kernel<many_classes, sparse_pitch>
                                    : halves_match_kernel<many_classes, 0>;
  }
  return pitch == narrow_pitch   ? halves_match_kernel<few_classes, narrow_pitch>
         : pitch == middle_pitch ? halves_match_kernel<few_classes, middle_pitch>
         : pitch == wide_pitch   ? halves_match_kernel<few_classes, wide_pitch>
                                 : halves_match_kernel<few_classes, 0>;
}

}  // namespace

void launch_two_passes(const HalvesCall& halves, Stream stream) {
  launch(kernel_for(halves), grid_of(halves), halves.warps() * warp_size, halves.shared_bytes(), stream,
         halves);
}

}  // namespace ungrain::cuda::halves_match
