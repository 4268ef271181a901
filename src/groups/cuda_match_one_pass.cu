// Search for similar 8 x 8 patches by halves: nearly the nearest, in one pass over the candidates.
//
//   distances -> keys -> of each of 64 classes of candidates the two nearest
//             -> of each lane's 16 keys the nearest 8 -> sort -> the nearest N
//
//   key      bits of the distance, the last of which are replaced by the place: tile, block of 8 rows, half
//            of the tile; and, once all candidates are ranked, register and lane. No two are equal, so the
//            result does not depend on the order.
//   class    a lane, by x mod 8, and one of its 8 registers, by y mod 8. Patches along an edge, or of a
//            pattern that repeats, must not all be of few classes: halves of a tile swap rows in pairs, every
//            second tile begins 2 rows higher, and in the lower half of the rows lanes swap columns.
//
// A third patch of one class among the nearest is lost, and the next nearest takes part instead: in the mean
// 0.05 of 16 patches, 0.3 of 32. For 4 products there are 22 other instructions, 14 of them of the integer
// units, which take one in two clocks: they bound the kernel. The sort is a quarter of it.
#include "groups/cuda_match_octet.cuh"
#include "groups/cuda_match_rank.cuh"

namespace ungrain::cuda::halves_match {
namespace {

constexpr int no_candidate = 0x7FFFFFFF;

// The place of a candidate among all those of an octet, in the last bits of a key:
// block of rows | register | tile | half of the tile | lane. The first two are almost its row, the others
// almost its column.
class Places {
 public:
  static constexpr int all = (1 << 2 * place_bits) - 1;
  static constexpr int columns = (1 << place_bits) - 1;

  // `rows`: of the candidates
  __device__ explicit Places(int rows) : upper_rows_((rows / 2 + side - 1) / side * side) {}

  // Rows of a tile before those in which lanes swap columns.
  __device__ int upper_rows() const { return upper_rows_; }
  static __device__ int rows_before(int tile) { return tile % 2 * most_rows_before; }
  __device__ int swapped_in(int row_of_tile) const { return row_of_tile >= upper_rows_ ? octet / 2 : 0; }

  static __device__ int of_register(int row_of_tile) { return row_of_tile << place_bits; }
  static __device__ int of_tile(int tile) { return tile * tile_columns; }
  __device__ int of(int column, int row) const {
    const int row_of_tile = row + rows_before(column / tile_columns);
    return of_register(row_of_tile ^ half(column)) | (column ^ swapped_in(row_of_tile));
  }
  __device__ int row(int place) const {
    const int column = place & columns;
    return ((place >> place_bits) ^ half(column)) - rows_before(column / tile_columns);
  }
  __device__ int column(int place) const { return (place & columns) ^ swapped_in(place >> place_bits); }

 private:
  static __device__ int half(int column) { return column / octet % 2; }

  int upper_rows_;
};

// Keys of the two nearest candidates of each class, of a lane's two references.
struct NearestOfClasses {
  int first[2][few_classes];
  int second[2][few_classes];

  __device__ NearestOfClasses() {
#pragma unroll
    for (int i = 0; i < few_classes; ++i)
      first[0][i] = first[1][i] = second[0][i] = second[1][i] = no_candidate;
  }

  __device__ void keep(int which, int index, int one, int other) {
    const int nearer = min(one, other);
    const int farther = max(one, other);
    int& least = first[which][index];
    second[which][index] = __vimin3_s32(second[which][index], farther, max(least, nearer));
    least = min(least, nearer);
  }
};

template <int Pitch>
__device__ void find_nearest_of_classes(const Places& places, Octet<Pitch>& candidates,
                                        NearestOfClasses& nearest) {
  const int tiles = candidates.tiles();
  for (int part = 0; part < 2 * tiles; ++part) {
    const int tile = part / 2;
    const bool lower = part % 2 == 1;
    const int row_of_tile = lower ? places.upper_rows() : 0;
    int row = row_of_tile - Places::rows_before(tile);
    const int end = lower ? candidates.rows() : places.upper_rows() - Places::rows_before(tile);
    if (row >= end) continue;
    candidates.begin_tile(tile, row, places.swapped_in(row_of_tile));
    int place = Places::of_register(row_of_tile) | Places::of_tile(tile);
    const auto keep_two = [&](int first_row, const float(&distances)[rows_in_flight][4]) {
      const auto key = [&](int row_in_flight, int half, int which) {
        const int distance = __float_as_int(distances[row_in_flight][2 * half + which]);
        return (distance & ~Places::all) | (place + octet * half);
      };
#pragma unroll
      for (int k = 0; k < rows_in_flight; ++k) {
#pragma unroll
        for (int which = 0; which < 2; ++which)
          nearest.keep(which, first_row + k, key(k, 0, which), key(k ^ 1, 1, which));
      }
    };
    for (; row < end; row += side) {
      if (candidates.all_have(row)) {
        candidates.template take_rows<side, false, 0>(row, keep_two);
      } else {
        candidates.template take_rows<side, true, 0>(row, keep_two);
      }
      place += Places::of_register(side);
    }
  }
}

// Whether it holds for any lane of the same references.
__device__ inline bool any_of_references(bool mine) {
  const unsigned lanes = 0x11111111U << (threadIdx.x % 4);
  return (__ballot_sync(all_lanes, mine) & lanes) != 0;
}

// A lane's keys go to 8 lanes. Patches along any line are then spread evenly.
__device__ inline void spread_over_lanes(int (&keys)[few_classes]) {
  constexpr int apart[few_classes] = {0, 1, 5, 4, 7, 6, 2, 3};
#pragma unroll
  for (int i = 0; i < few_classes; ++i) keys[i] = __shfl_xor_sync(all_lanes, keys[i], 4 * apart[i]);
}

template <int Pitch>
__device__ void store_nearest(const HalvesCall& halves, const Places& places, const Octet<Pitch>& candidates,
                              const NearestOfClasses& nearest) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  // Distances within one step of the keys are not told apart.
  const int farthest = __float_as_int(fminf(halves.farthest, far_beyond)) | Places::all;
  // Not unrolled: the code of both references would exceed the instruction cache.
#pragma unroll 1
  for (int which = 0; which < 2; ++which) {
    int keys[few_classes];
    int more[few_classes];
    const int own_column = candidates.own_column(which);
    const int own_row = candidates.own_row();
    const int own_place = places.of(own_column, own_row);
    bool has_unfit = false;
    bool has_itself = false;
    // The reference itself becomes nearer than any other.
    const auto with_own_place = [&](int key, int own) {
      key |= own;
      const bool is_itself = ((key ^ own_place) & Places::all) == 0;
      has_itself = has_itself || is_itself;
      return is_itself ? own_place : key;
    };
#pragma unroll
    for (int i = 0; i < few_classes; ++i) {
      const int own = Places::of_register(i) | lane / 4;
      keys[i] = with_own_place(which == 0 ? nearest.first[0][i] : nearest.first[1][i], own);
      more[i] = with_own_place(which == 0 ? nearest.second[0][i] : nearest.second[1][i], own);
      has_unfit = has_unfit || keys[i] < 0;
    }
    // It is missing where two others of its class look the same.
    if (!any_of_references(has_itself) && lane / 4 == 0) more[0] = own_place;
    spread_over_lanes(keys);
    spread_over_lanes(more);
    sort_within<1>(keys);
    sort_within<1>(more);
#pragma unroll
    for (int i = 0; i < few_classes; ++i) keys[i] = min(keys[i], more[few_classes - 1 - i]);
    order_all_within<few_classes / 2>(keys);
    sort_nearest(keys, halves.call.count);

    // Too few where every distance is allowed: pixels are too far apart for halves.
    const bool too_few =
        number_at(keys, halves.call.count - 1) > farthest && halves.farthest > largest_half_distance;
    const bool left_out = any_of_references(has_unfit) || too_few;
    const auto offset_of = [&](int key) {
      const int dx = places.column(key & Places::all) - own_column;
      const int dy = places.row(key & Places::all) - own_row;
      return static_cast<unsigned>((dx & 0xFF) | (dy & 0xFF) << 8);
    };
    const int i = candidates.i_of(which);
    const int j = candidates.j_of(which);
    store(halves, keys, farthest, offset_of, i, j, halves.has(i, j), left_out);
  }
}

template <int Pitch>
__global__ void __launch_bounds__(warps_of(Pitch) * warp_size, 16 / warps_of(Pitch))
    one_pass_match_kernel(const HalvesCall halves) {
  extern __shared__ std::uint32_t shared[];
  const BlockOfReferences<Pitch> block(halves, shared);
  block.for_each_octet([&](Octet<Pitch>& candidates) {
    const Places places(candidates.rows());
    NearestOfClasses nearest;
    find_nearest_of_classes(places, candidates, nearest);
    store_nearest(halves, places, candidates, nearest);
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
