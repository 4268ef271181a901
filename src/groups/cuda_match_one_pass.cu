// Search for similar 8 x 8 patches by halves: nearly the nearest, in one pass over the candidates.
//
//   distances -> keys of 16 bits, those of two references in a word
//             -> of each of 128 classes of candidates the two nearest
//             -> keys of 32 bits, of each of 64 classes the two nearest -> of each lane's 16 the nearest 8
//             -> sort -> the nearest N
//
//   key      11 bits of the distance as a half, 6 of them of the fraction, above the place: tile, half of the
//            tile, block of 16 rows; once all candidates are ranked, also register and lane. Then no two are
//            equal, so the result does not depend on the order.
//   class    a lane, by x mod 8, and one of its 16 registers, by y mod 16. Patches along an edge, or of a
//            pattern that repeats, must not all be of few classes: halves of a tile swap rows in pairs, every
//            second tile counts its rows from 8 on, and where two registers become one, lanes and rows of the
//            second are swapped.
//
// A third patch of one class among the nearest is lost, and the next nearest takes part instead. The kernel
// is bound by instruction issue: on an H200 a product occupies its scheduler for 6.4 clocks, any other
// instruction for one. For 4 products there are 19 others; all the rest of an octet is about 1500.
#include "groups/cuda_match_octet.cuh"
#include "groups/cuda_match_rank.cuh"

namespace ungrain::cuda::halves_match {
namespace {

constexpr int rows_of_block = 16;           // of candidates: a register each
constexpr unsigned both = 0x00010001U;      // a number in both halves of a word
constexpr unsigned place_mask = 31 * both;  // of a key of 16 bits
// Where two registers become one, the second takes its place among rows and lanes so far apart, an exclusive
// or.
constexpr int rows_swapped = 2;
constexpr int lanes_swapped = 4;

// The place of a candidate among all those of an octet.
//
//   key of 16 bits   distance 15 ... 5 | tile 4, 3 | half of it 2 | block of 16 rows 1, 0
//   of 32 bits       distance 31 ... 21 | tile, half, block 20 ... 16 | row in it 15 ... 12 | lane 2 ... 0
class Places {
 public:
  static constexpr unsigned all = (1U << 21) - 1;
  static constexpr int row_bit = 12;
  static constexpr int column_bit = 18;

  static __device__ int rows_before(int tile) { return tile % 2 * side; }
  static __device__ unsigned of_block(int tile, int half, int block) {
    return static_cast<unsigned>(tile << 3 | half << 2 | block) * both;
  }
  static __device__ unsigned of_register(int index, int lane) {
    return static_cast<unsigned>(index << row_bit | lane);
  }
  static __device__ unsigned of(int column, int row) {
    const int row_of_tile = (row + rows_before(column / tile_columns)) ^ (column / octet % 2);
    return static_cast<unsigned>(column / octet << column_bit | row_of_tile << row_bit | column % octet);
  }
  static __device__ int column(unsigned key) {
    return static_cast<int>((key >> column_bit & 7) * octet + (key & 7));
  }
  static __device__ int row(unsigned key) {
    return static_cast<int>((key >> row_bit & 63) ^ (key >> column_bit & 1)) -
           static_cast<int>(key >> (column_bit + 1) & 1) * side;
  }
};

// Keys of two references in a word. Those of halves lack their places: the least exponent is subtracted,
// which makes room for another bit. Multiply-adds leave the integer units alone; `two` is HalvesCall::two.
// Before compute capability 9.0 keys of 16 bits are compared as halves, without that bit.
#if __CUDA_ARCH__ >= 900
constexpr unsigned no_candidates = ~0U;  // larger than any key
__device__ inline unsigned keys_of(unsigned halves, unsigned two) {
  return halves * two - 2 * (least_exponent << 10) * both;
}
__device__ inline unsigned smaller_keys(unsigned a, unsigned b) { return __vminu2(a, b); }
__device__ inline unsigned larger_keys(unsigned a, unsigned b) { return __vmaxu2(a, b); }
#else
constexpr unsigned no_candidates = 0x7BFF7BFFU;
__device__ inline unsigned keys_of(unsigned halves, unsigned) {
  return halves - (least_exponent << 10) * both;
}
__device__ inline unsigned smaller_keys(unsigned a, unsigned b) {
  const __half2 least = __hmin2(reinterpret_cast<const __half2&>(a), reinterpret_cast<const __half2&>(b));
  return reinterpret_cast<const unsigned&>(least);
}
__device__ inline unsigned larger_keys(unsigned a, unsigned b) {
  const __half2 most = __hmax2(reinterpret_cast<const __half2&>(a), reinterpret_cast<const __half2&>(b));
  return reinterpret_cast<const unsigned&>(most);
}
#endif

// Keys of the two nearest candidates of each class, of a lane's two references.
struct NearestOfClasses {
  unsigned first[rows_of_block];
  unsigned second[rows_of_block];

  __device__ NearestOfClasses() {
#pragma unroll
    for (int i = 0; i < rows_of_block; ++i) first[i] = second[i] = no_candidates;
  }

  __device__ void keep(int index, unsigned one, unsigned other) {
    const unsigned nearer = smaller_keys(one, other);
    const unsigned farther = larger_keys(one, other);
    second[index] = smaller_keys(smaller_keys(second[index], farther), larger_keys(first[index], nearer));
    first[index] = smaller_keys(first[index], nearer);
  }
};

// Two distances as halves, a negative one as 0.
__device__ inline unsigned as_halves(float low, float high) {
  unsigned halves = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(high), "f"(low));
#endif
  return halves;
}

// Ranks the candidates of a few rows from `row` on, those of the registers from First on. While two rows are
// ranked, the products of the next two are under way.
template <int First, int Rows, bool Partial, int Pitch>
__device__ void keep_rows(int row, const unsigned (&places)[2], unsigned two, Octet<Pitch>& candidates,
                          NearestOfClasses& nearest) {
  float distances[2][2][4];
#pragma unroll
  for (int i = 0; i <= Rows; i += 2) {
    if (i < Rows) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        candidates.template take_row<Partial>(row + i + k, i + k, i + k, distances[i / 2 % 2][k]);
      }
    }
    if (i == 0) continue;
    const auto key = [&](int k, int half) {
      const float(&own)[4] = distances[(i / 2 + 1) % 2][k];
      return (keys_of(as_halves(own[2 * half], own[2 * half + 1]), two) & ~place_mask) | places[half];
    };
#pragma unroll
    for (int k = 0; k < 2; ++k) nearest.keep(First + i - 2 + k, key(k, 0), key(k ^ 1, 1));
  }
  candidates.pass_rows(Rows);
}

// The next 8 rows, or as many as there are.
template <int First, int Pitch>
__device__ void keep_eight_rows(int row, const unsigned (&places)[2], unsigned two, Octet<Pitch>& candidates,
                                NearestOfClasses& nearest) {
  if (candidates.all_have(row, side)) {
    keep_rows<First, side, false>(row, places, two, candidates, nearest);
  } else if (candidates.rows() - row > side / 2) {
    keep_rows<First, side, true>(row, places, two, candidates, nearest);
  } else {
    keep_rows<First, side / 2, true>(row, places, two, candidates, nearest);
  }
}

template <int Pitch>
__device__ void find_nearest_of_classes(unsigned two, Octet<Pitch>& candidates, NearestOfClasses& nearest) {
  const int tiles = candidates.tiles();
  const int end = candidates.rows();
  int tile = 0;
  do {
    candidates.begin_tile(tile);
    unsigned places[2] = {Places::of_block(tile, 0, 0), Places::of_block(tile, 1, 0)};
    bool second = Places::rows_before(tile) > 0;
    int row = 0;
    do {
      if (second) {
        keep_eight_rows<side>(row, places, two, candidates, nearest);
        places[0] += both;
        places[1] += both;
      } else {
        keep_eight_rows<0>(row, places, two, candidates, nearest);
      }
      second = !second;
      row += side;
    } while (row < end);
  } while (++tile < tiles);
}

// Whether the window of a lane's reference has a patch with pixels too large for halves. Slow.
template <int Pitch>
__device__ bool has_unfit(const HalvesCall& halves, const Octet<Pitch>& candidates, int which) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const float* const first = candidates.own_norm(which) - halves.reach() * (candidates.norm_pitch() + 1);
  bool found = false;
  for (int y = lane / 4; y < halves.call.search; y += octet) {
    for (int x = 0; x < halves.call.search; ++x) found = found || first[y * candidates.norm_pitch() + x] < 0;
  }
  return found;
}

// Of a register, the one that becomes one with it.
__device__ constexpr int joined_with(int index) {
  return (index + few_classes) % rows_of_block ^ rows_swapped;
}

// A lane's keys go to 8 lanes. Patches along any line are then spread evenly. Two registers that become one
// go to the same lane, from lanes that are `lanes_swapped` apart.
__device__ constexpr int lanes_apart(int index) {
  constexpr int apart[few_classes] = {0, 1, 5, 4, 7, 6, 2, 3};
  return index < few_classes ? apart[index] : apart[joined_with(index)] ^ lanes_swapped;
}
__device__ inline void spread_over_lanes(unsigned (&keys)[rows_of_block]) {
#pragma unroll
  for (int i = 1; i < rows_of_block; ++i) keys[i] = __shfl_xor_sync(all_lanes, keys[i], 4 * lanes_apart(i));
}

// The 8 nearest of a lane's keys for one of its references, with their whole places: of two registers that
// become one the two nearest, and the 8 nearest of those.
__device__ inline void take_nearest_of_lane(const NearestOfClasses& of, int which, unsigned (&keys)[8]) {
  const int g = static_cast<int>(threadIdx.x) % warp_size / 4;
  const unsigned take = which == 0 ? 0x1054 : 0x3254;
  unsigned more[8];
#pragma unroll
  for (int i = 0; i < few_classes; ++i) {
    const int other = joined_with(i);
    const unsigned own = Places::of_register(i, g ^ lanes_apart(i));
    const unsigned of_other = Places::of_register(other, g ^ lanes_apart(other));
    const unsigned a = __byte_perm(of.first[i], own, take);
    const unsigned b = __byte_perm(of.first[other], of_other, take);
    const unsigned next_a = __byte_perm(of.second[i], own, take);
    const unsigned next_b = __byte_perm(of.second[other], of_other, take);
    keys[i] = min(a, b);
    more[i] = min(max(a, b), min(next_a, next_b));
  }
  sort_eight(keys);
  sort_eight(more);
#pragma unroll
  for (int i = 0; i < 8; ++i) keys[i] = min(keys[i], more[7 - i]);
  order_all_within<4>(keys);
}

// Where the lanes hold the groups of the two references of their column: a lane has 8 keys of one of them.
struct LanesOfGroup {
  int which;
  int first_place;
  bool active;

  __device__ explicit LanesOfGroup(int wanted) {
    const int g = static_cast<int>(threadIdx.x) % warp_size / 4;
    const int bits = wanted <= 16 ? 1 : 2;  // 2 lanes or 4
    which = g >> bits & 1;
    first_place = (g & ((1 << bits) - 1)) * 8;
    active = g < 2 << bits;
  }
};

// Moves the reference, whose place is `own`, to the front of its group; from behind the end, if it is not
// there: then as many others look the same.
__device__ inline void move_to_front(unsigned (&keys)[8], unsigned own, const LanesOfGroup& lanes) {
  int index = 8;
#pragma unroll
  for (int k = 7; k >= 0; --k) {
    if (((keys[k] ^ own) & Places::all) == 0) index = k;
  }
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const unsigned with_it = __ballot_sync(all_lanes, index < 8);
  const int before = lanes.first_place / 8;  // lanes of the group
  bool passed = false;
  for (int g = 1; g <= before; ++g) passed = passed || (with_it >> (lane - 4 * g) & 1) != 0;
  const unsigned last_before = __shfl_up_sync(all_lanes, keys[7], 4);
  if (passed) return;
#pragma unroll
  for (int k = 7; k > 0; --k) {
    if (k <= index) keys[k] = keys[k - 1];
  }
  keys[0] = last_before;
}

template <int Pitch>
__device__ void store_nearest(const HalvesCall& halves, const Octet<Pitch>& candidates,
                              NearestOfClasses& nearest, bool may_be_unfit) {
  const int wanted = halves.call.count;
  spread_over_lanes(nearest.first);
  spread_over_lanes(nearest.second);

  unsigned keys[8] = {};
  unsigned keys_of_first[8] = {};
  // Not unrolled: the code of both references would exceed the instruction cache.
#pragma unroll 1
  for (int which = 0; which < 2; ++which) {
#pragma unroll
    for (int i = 0; i < 8; ++i) keys_of_first[i] = keys[i];
    take_nearest_of_lane(nearest, which, keys);
    sort_some_lanes(keys, wanted);
  }
  sort_nearest_of_two(keys_of_first, keys, wanted);

  const LanesOfGroup lanes(wanted);
  const int i = candidates.i_of(lanes.which);
  const int j = candidates.j_of(lanes.which);
  const int own_column = candidates.own_column(lanes.which);
  const int own_row = candidates.own_row();
  const unsigned own = Places::of(own_column, own_row);
  const bool is_first = lanes.first_place > 0 || ((keys_of_first[0] ^ own) & Places::all) == 0;
  if (!__all_sync(all_lanes, is_first)) move_to_front(keys_of_first, own, lanes);
  if (lanes.first_place == 0) keys_of_first[0] = own;  // at a distance of 0

  // Keys are told apart in steps: one is near enough if the middle of its step is.
  const unsigned allowed = __half_as_ushort(__float2half_rz(fminf(halves.farthest, largest_of_half)));
  const unsigned half_step = 16;
  const unsigned farthest =
      (max(keys_of(allowed, halves.two) & 0xFFFFU, half_step) - half_step) << 16 | Places::all;
  int found = wanted;
  const bool all_found = lanes.first_place + 8 <= wanted && keys_of_first[7] <= farthest;
  if (!__all_sync(all_lanes, all_found || lanes.first_place >= wanted)) {
    found = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k)
      found += keys_of_first[k] <= farthest && lanes.first_place + k < wanted ? 1 : 0;
#pragma unroll
    for (int apart = 1; apart < 4; apart *= 2) {
      if (8 * apart < wanted) found += __shfl_xor_sync(all_lanes, found, 4 * apart);
    }
  }
  // Too few where every distance is allowed: pixels are too far apart for halves.
  bool left_out = found < wanted && halves.farthest > largest_of_half;
  if (may_be_unfit) {
    const bool of_first = any_of_references(has_unfit(halves, candidates, 0));
    const bool of_second = any_of_references(has_unfit(halves, candidates, 1));
    left_out = left_out || (lanes.which == 0 ? of_first : of_second);
  }
  if (!lanes.active || !halves.has(i, j)) return;
  const auto offset_of = [&](unsigned key) {
    const int dx = Places::column(key) - own_column;
    const int dy = Places::row(key) - own_row;
    return static_cast<unsigned>((dx & 0xFF) | (dy & 0xFF) << 8);
  };
  store(halves, keys_of_first, farthest, offset_of, i, j, lanes.first_place, left_out ? 0 : found);
}

// Whether any norm of the block is that of a patch with pixels too large for halves.
template <int Pitch>
__device__ bool any_unfit(const HalvesCall& halves, const std::uint32_t* shared) {
  const auto* const norms = reinterpret_cast<const float*>(shared + 2 * halves.copy_words);
  bool found = false;
  const int count = norm_pitch_of(Pitch) * halves.norm_rows;
  for (int i = static_cast<int>(threadIdx.x) * 4; i < count; i += warps_of(Pitch) * warp_size * 4) {
    const float4 four = *reinterpret_cast<const float4*>(norms + i);
    found = found || four.x < 0 || four.y < 0 || four.z < 0 || four.w < 0;
  }
  return __syncthreads_or(found ? 1 : 0) != 0;
}

template <int Pitch>
__global__ void __launch_bounds__(warps_of(Pitch) * warp_size, 16 / warps_of(Pitch))
    one_pass_match_kernel(const HalvesCall halves) {
  extern __shared__ std::uint32_t shared[];
  const BlockOfReferences<Pitch> block(halves, shared);
  const bool may_be_unfit = any_unfit<Pitch>(halves, shared);
  block.for_each_octet([&](Octet<Pitch>& candidates) {
    NearestOfClasses nearest;
    find_nearest_of_classes(halves.two, candidates, nearest);
    store_nearest(halves, candidates, nearest, may_be_unfit);
  });
}

}  // namespace

void launch_one_pass(const HalvesCall& halves, Stream stream) {
  const int pitch = halves.kernel_pitch();
  const auto kernel = pitch == narrow_pitch   ? one_pass_match_kernel<narrow_pitch>
                      : pitch == middle_pitch ? one_pass_match_kernel<middle_pitch>
                                              : one_pass_match_kernel<wide_pitch>;
  launch(kernel, grid_of(halves), halves.warps() * warp_size, halves.shared_bytes(), stream, halves);
}

}  // namespace ungrain::cuda::halves_match
