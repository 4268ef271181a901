// Search for similar 8 x 8 patches by halves: the kernel, on tensor cores.
//
//   block   16 columns x 4 ... 16 rows of references, 8 warps, or 16
//           shared memory: pixels | pixels, shifted by one | half norms | a queue of keys for each lane
//   warp    8 references (an octet) at a time; candidates in tiles of 16 columns, row by row downwards
//   lane    4 g + t: references 2 t and 2 t + 1, candidate columns g and g + 8 of the tile
//
//   product     16 candidates side by side      8 references
//               [2 rows of 8 pixels: 16 x 16] x [the same rows, negated: 16 x 8]; 4 products are 8 rows
//   distances   sums start as the norms, |a|²/2 + |b|²/2; 4 products subtract a b: 16 x 8 half distances
//
//   pass 1   distances -> smallest of each class, (y mod 8, x mod 8 or 16) -> N-th smallest: threshold
//   pass 2   distances, the same bits -> those up to the threshold -> queues -> sort -> the nearest N
//
// At least N candidates pass the threshold. A queue that may overflow is cut to the nearest N, and the
// threshold with it; the result does not depend on when. The shifted copy makes two pixels at any x one
// aligned word. A lane keeps 8 rows of its columns in registers: one row further down loads 2 words and 2
// norms. For 4 products pass 1 has 13 other instructions and is bound by the tensor cores; pass 2 has 15, and
// about 35 more per hit, and is bound by instruction issue. The sorts add about a tenth.
#include "cuda/async_copy.cuh"
#include "cuda/launch.cuh"
#include "cuda/products.cuh"
#include "groups/cuda_match_rank.cuh"

namespace ungrain::cuda::halves_match {
namespace {

constexpr int tile_columns = 16;                    // of candidates
constexpr float largest_half_distance = 134217728;  // 2^27, see largest_pixel in cuda_match_prepare.cu
constexpr float no_threshold = -1e38F;

// ---- Distances ----

// A block's part of the image.
struct SharedArea {
  const std::uint32_t* words;
  const float* norms;
  int x0;  // even
  int y0;
};

// The 8 references of an octet and the candidates around them, 16 columns (a tile) at a time. Lane 4 g + t
// ranks candidates for references 2 t and 2 t + 1; its candidates are those of columns g and g + 8. Pitch is
// that of the shared words, or 0 if it is known only at run time.
template <int Pitch>
class Octet {
 public:
  static constexpr int columns = octet_columns_of(Pitch);
  static constexpr int rows_of_references = octet / columns;

  __device__ Octet(const HalvesCall& halves, const SharedArea& area, int first_i, int j)
      : halves_(halves),
        area_(area),
        lane_(static_cast<int>(threadIdx.x) % warp_size),
        first_i_(first_i),
        first_j_(j),
        y_(halves.call.grid.y(j)) {
    const ReferenceGrid& grid = halves.call.grid;
    rows_down_ = rows_of_references > 1 ? grid.y(j + 1) - y_ : 0;
    own_down_ = j_of(0) > j ? rows_down_ : 0;
#pragma unroll
    for (int which = 0; which < 2; ++which)
      norms_[which] = *norms_at(grid.x(i_of(which)), y_ + own_down_) + bias;
    const int g = lane_ / 4;
    const std::uint32_t* const from =
        words_at(grid.x(first_i + g % columns) + 2 * (lane_ % 4), grid.y(j + g / columns));
    constexpr std::uint32_t both_signs = 0x80008000U;
#pragma unroll
    for (int row = 0; row < side; ++row) {
      pairs_[0][row / 2][row % 2] = from[row * word_pitch()] ^ both_signs;
      // Products take pairs of registers, and each row belongs to two pairs. It is read twice as volatile, so
      // that the compiler does not copy the first value before each product.
      const volatile std::uint32_t& again = from[row * word_pitch()];
      pairs_[1][(row + 7) % side / 2][(row + 1) % 2] = again ^ both_signs;
    }
  }

  __device__ int tiles() const {
    const ReferenceGrid& grid = halves_.call.grid;
    const int across = grid.x(first_i_ + columns - 1) - grid.x(first_i_) + halves_.call.search;
    return (across + tile_columns - 1) / tile_columns;
  }
  // Rows of the union of all references' windows.
  __device__ int rows() const { return halves_.call.search + rows_down_; }
  // Whether the 8 rows from there on lie in all windows.
  __device__ bool all_have(int row) const { return row >= rows_down_ && row + side <= halves_.call.search; }

  // The references of this lane.
  __device__ int i_of(int which) const { return first_i_ + (2 * (lane_ % 4) + which) % columns; }
  __device__ int j_of(int which) const { return first_j_ + (2 * (lane_ % 4) + which) / columns; }

  __device__ void begin_tile(int tile) {
    const int x = halves_.call.grid.x(first_i_) - halves_.reach() + tile_columns * tile + lane_ / 4;
    const int y = y_ - halves_.reach();
    next_words_ = words_at(x + 2 * (lane_ % 4), y);
    next_norms_ = norms_at(x, y);
#pragma unroll
    for (int row = 0; row < side; ++row) load_row(row, row);
    next_words_ += side * word_pitch();
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const int dx = x - halves_.call.grid.x(i_of(which));
      columns_[which] = dx + halves_.reach() + 1 - own_down_ * halves_.call.search;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        starts_[half][which] = abs(dx + 8 * half) <= halves_.reach() ? norms_[which] : outside;
      }
    }
  }

  // Column g of the tile in the octet's first row, as a position in the window of a reference.
  __device__ int column(int which) const { return columns_[which]; }

  // Computes half the distances of the lane's candidates in `Rows` rows from `first` on; `first` is Phase
  // modulo 8. Calls visit(row - first, distances) for every few rows, each time with those of column g and
  // then of g + 8, for the lane's two references. `Partial`: some rows may lie outside a window or the area.
  template <int Rows, bool Partial, int Phase, class Visit>
  __device__ void take_rows(int first, const Visit& visit) {
#pragma unroll
    for (int i = 0; i < Rows; i += rows_in_flight) {
      if (Partial && first + i >= rows()) break;
      float distances[rows_in_flight][4];
#pragma unroll
      for (int k = 0; k < rows_in_flight; ++k) {
        const auto own_row = static_cast<unsigned>(first + i + k - own_down_);
        const bool mine = !Partial || own_row < static_cast<unsigned>(halves_.call.search);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float norm = next_norms_[(i + k) * norm_pitch() + 8 * half];
          if (!mine) norm = outside;
          distances[k][2 * half] = norm + starts_[half][0];
          distances[k][2 * half + 1] = norm + starts_[half][1];
        }
        // The patches' rows begin here in the ring; the next row replaces the first.
        const int top = Phase + i + k;
#pragma unroll
        for (int product = 0; product < 4; ++product) {
          const std::uint32_t(&rows)[4] = ring_[((top + 1) / 2 + product) % 4];
          const std::uint32_t(&references)[2] = pairs_[top % 2][product];
          add_product(distances[k], rows[0], rows[1], rows[2], rows[3], references[0], references[1]);
        }
        load_row(top % side, i + k);
      }
      visit(i, distances);
    }
    next_words_ += Rows * word_pitch();
    next_norms_ += Rows * norm_pitch();
  }

 private:
  __device__ int word_pitch() const { return Pitch > 0 ? Pitch : halves_.word_pitch; }
  __device__ int norm_pitch() const { return norm_pitch_of(word_pitch()); }
  __device__ const std::uint32_t* words_at(int x, int y) const {
    const int column = x - area_.x0;
    return area_.words + column % 2 * halves_.copy_words + (y - area_.y0) * word_pitch() + column / 2;
  }
  __device__ const float* norms_at(int x, int y) const {
    return area_.norms + (y - area_.y0) * norm_pitch() + x - area_.x0;
  }
  __device__ void load_row(int place, int row) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      ring_[place / 2][place % 2 * 2 + half] = next_words_[row * word_pitch() + 4 * half];
    }
  }

  const HalvesCall& halves_;
  const SharedArea& area_;
  int lane_;
  int first_i_;
  int first_j_;
  int y_;           // of the first row of references
  int rows_down_;   // from there to the last row
  int own_down_;    // from there to this lane's row
  float norms_[2];  // with the bias
  // Pixels 2 t and 2 t + 1 of the rows of reference g, negated, in pairs of rows as the products take them: 0
  // and 1, 2 and 3 ...; and 1 and 2, 3 and 4 ..., 7 and 0.
  std::uint32_t pairs_[2][4][2];
  const std::uint32_t* next_words_;
  const float* next_norms_;
  // Pixels of the lane's columns in the 8 rows of its candidates, a ring: row y of the window at y mod 8, in
  // pairs of rows.
  std::uint32_t ring_[4][4];
  float starts_[2][2];
  int columns_[2];
};

// ---- The nearest ----

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
      if (candidates.all_have(row)) {
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
    const unsigned exponent = __float_as_uint(fmaxf(of.threshold, bias)) >> 23;
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
      if (candidates.all_have(row)) {
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
        store(halves, keys, position_mask, candidates.i_of(which), candidates.j_of(which),
              which == 0 ? references[0].wanted : references[1].wanted,
              which == 0 ? references[0].left_out : references[1].left_out);
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
  constexpr int warps = warps_of(Pitch);
  extern __shared__ std::uint32_t shared[];
  std::uint32_t* const words = shared;
  auto* const norms = reinterpret_cast<float*>(shared + 2 * halves.copy_words);
  const int word_pitch = halves.word_pitch;
  const int norm_pitch = norm_pitch_of(word_pitch);
  unsigned* const queues = shared + 2 * halves.copy_words + norm_pitch * halves.norm_rows;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const ReferenceGrid& grid = halves.call.grid;
  const int first_i = halves.first_octet() + static_cast<int>(blockIdx.x) * columns_of_block;
  constexpr int octet_columns = Octet<Pitch>::columns;
  constexpr int octet_rows = Octet<Pitch>::rows_of_references;
  const int first_j = grid.first_j / octet_rows * octet_rows + block_row() * halves.rows_of_block;
  // Start of a row of 16-byte pieces. References beyond the last one coincide with it: then its window begins
  // within a piece, and the block needs less than others.
  const int column = (grid.grid_x(first_i) - halves.reach() - halves.x0) / columns_step * columns_step;
  const SharedArea area{words, norms, halves.x0 + column, grid.y(first_j) - halves.reach()};
  const int row = area.y0 - halves.y0;
  const auto copy = [&](const auto* from, int columns_a_word, std::uint32_t* to, int pitch, int rows) {
    const int row_words = halves.width / columns_a_word;
    const int first_word = column / columns_a_word;
    const int pieces = min(pitch, row_words - first_word) / piece_words;
    for (int y = warp; y < min(rows, halves.rows - row); y += warps) {
      const auto* const from_row = from + static_cast<std::ptrdiff_t>(row + y) * row_words + first_word;
      for (int piece = lane; piece < pieces; piece += warp_size)
        copy_async(to + y * pitch + piece * piece_words, from_row + piece * piece_words);
    }
  };
#pragma unroll
  for (int which = 0; which < 2; ++which)
    copy(halves.words[which], 2, words + which * halves.copy_words, word_pitch, halves.word_rows);
  copy(halves.norms, 1, reinterpret_cast<std::uint32_t*>(norms), norm_pitch, halves.norm_rows);
  wait_for_all_copies();
  __syncthreads();

  constexpr int octets_across = columns_of_block / octet_columns;
  const int octets = 2 * halves.rows_of_block;
  for (int index = warp; index < octets; index += warps) {
    const int i = first_i + index % octets_across * octet_columns;
    const int j = first_j + index / octets_across * octet_rows;
    if (j >= halves.end_j()) break;
    if (i >= halves.end_i()) continue;
    Octet<Pitch> candidates(halves, area, i, j);
    ReferenceState references[2];
    find_thresholds<Classes>(halves, candidates, references);
    constexpr int length = queue_length(Classes, warps);
    LaneQueue<length> queue(queues + warp * length * warp_size + lane);
    queue_nearest(halves, candidates, references, queue);
  }
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

void launch_search(const HalvesCall& halves, Stream stream) {
  launch(kernel_for(halves), grid_of(halves), halves.warps() * warp_size, halves.shared_bytes(), stream,
         halves);
}

}  // namespace ungrain::cuda::halves_match
