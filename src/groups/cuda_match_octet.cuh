// Search for similar 8 x 8 patches by halves: the distances, on tensor cores.
//
//   block   16 columns x 4 ... 16 rows of references, 8 warps, or 16
//           shared memory: pixels | pixels, shifted by one | half norms | what the ranking needs
//   warp    8 references (an octet) at a time; candidates in tiles of 16 columns, row by row downwards
//   lane    4 g + t: references 2 t and 2 t + 1, candidate columns g and g + 8 of the tile
//
//   product     16 candidates side by side      8 references
//               [2 rows of 8 pixels: 16 x 16] x [the same rows, negated: 16 x 8]; 4 products are 8 rows
//   distances   sums start as the norms, |a|²/2 + |b|²/2; 4 products subtract a b: 16 x 8 half distances
//
// The shifted copy makes two pixels at any x one aligned word. A lane keeps 8 rows of its columns in
// registers: one row further down loads 2 words and 2 norms.
#pragma once

#include "cuda/async_copy.cuh"
#include "cuda/launch.cuh"
#include "cuda/products.cuh"
#include "groups/cuda_match_halves.cuh"

namespace ungrain::cuda::halves_match {

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
    const int g = lane_ / 4;
    const int x = grid.x(first_i) - halves.reach() + g;
    first_words_ = words_at(x + 2 * (lane_ % 4), y_ - halves.reach());
    first_norms_ = norms_at(x, y_ - halves.reach());
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      first_dx_[which] = x - grid.x(i_of(which));
      norms_[which] = *own_norm(which) + halves.bias;
    }
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
  // Whether the next `count` rows from `row` on lie in all windows.
  __device__ bool all_have(int row, int count) const {
    return row >= rows_down_ && row + count <= halves_.call.search;
  }

  // The references of this lane.
  __device__ int i_of(int which) const { return first_i_ + (2 * (lane_ % 4) + which) % columns; }
  __device__ int j_of(int which) const { return first_j_ + (2 * (lane_ % 4) + which) / columns; }

  // A reference's own column and row among the candidates.
  __device__ int own_column(int which) const {
    return halves_.call.grid.x(i_of(which)) - halves_.call.grid.x(first_i_) + halves_.reach();
  }
  __device__ int own_row() const { return own_down_ + halves_.reach(); }

  // The norm of a reference of this lane, and from one row to the next.
  __device__ const float* own_norm(int which) const {
    return norms_at(halves_.call.grid.x(i_of(which)), y_ + own_down_);
  }
  __device__ int norm_pitch() const { return norm_pitch_of(word_pitch()); }

  __device__ void begin_tile(int tile) {
    next_words_ = first_words_ + tile * (tile_columns / 2);
    next_norms_ = first_norms_ + tile * tile_columns;
#pragma unroll
    for (int row = 0; row < side; ++row) load_row(row, row);
    next_words_ += side * word_pitch();
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const int dx = first_dx_[which] + tile * tile_columns;
      columns_[which] = dx + halves_.reach() + 1 - own_down_ * halves_.call.search;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        starts_[half][which] = abs(dx + 8 * half) <= halves_.reach() ? norms_[which] : outside;
      }
    }
  }

  // Column g of the tile in the octet's first row, as a position in the window of a reference.
  __device__ int column(int which) const { return columns_[which]; }

  // Half the distances of the lane's candidates in a row: of column g, then of g + 8, for the lane's two
  // references each. `top`: the row in the tile, modulo 8; `next`: behind those passed. `Partial`: the row
  // may lie outside a window.
  template <bool Partial>
  __device__ void take_row(int row, int top, int next, float (&distances)[4]) {
    const bool mine =
        !Partial || static_cast<unsigned>(row - own_down_) < static_cast<unsigned>(halves_.call.search);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float norm = next_norms_[next * norm_pitch() + 8 * half];
      if (!mine) norm = outside;
      distances[2 * half] = norm + starts_[half][0];
      distances[2 * half + 1] = norm + starts_[half][1];
    }
    // The patches' rows begin here in the ring; the next row replaces the first.
#pragma unroll
    for (int product = 0; product < 4; ++product) {
      const std::uint32_t(&rows)[4] = ring_[((top + 1) / 2 + product) % 4];
      const std::uint32_t(&references)[2] = pairs_[top % 2][product];
      add_product(distances, rows[0], rows[1], rows[2], rows[3], references[0], references[1]);
    }
    load_row(top % side, next);
  }
  __device__ void pass_rows(int rows) {
    next_words_ += rows * word_pitch();
    next_norms_ += rows * norm_pitch();
  }

  // Computes half the distances of the lane's candidates in `Rows` rows from `first` on, which lies Phase
  // rows modulo 8 below the tile's first row. Calls visit(row - first, distances) for every few rows.
  template <int Rows, bool Partial, int Phase, class Visit>
  __device__ void take_rows(int first, const Visit& visit) {
#pragma unroll
    for (int i = 0; i < Rows; i += rows_in_flight) {
      if (Partial && first + i >= rows()) break;
      float distances[rows_in_flight][4];
#pragma unroll
      for (int k = 0; k < rows_in_flight; ++k) {
        take_row<Partial>(first + i + k, Phase + i + k, i + k, distances[k]);
      }
      visit(i, distances);
    }
    pass_rows(Rows);
  }

 private:
  __device__ int word_pitch() const { return Pitch > 0 ? Pitch : halves_.word_pitch; }
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
  int y_;          // of the first row of references
  int rows_down_;  // from there to the last row
  int own_down_;   // from there to this lane's row
  // Of the lane's first candidate in the first tile.
  const std::uint32_t* first_words_;
  const float* first_norms_;
  int first_dx_[2];
  float norms_[2];  // with the bias
  // Pixels 2 t and 2 t + 1 of the rows of reference g, negated, in pairs of rows as the products take them: 0
  // and 1, 2 and 3 ...; and 1 and 2, 3 and 4 ..., 7 and 0.
  std::uint32_t pairs_[2][4][2];
  const std::uint32_t* next_words_;
  const float* next_norms_;
  // Pixels of the lane's columns in the 8 rows of its candidates, a ring: the n-th row of the tile
  // at n mod 8, in pairs of rows.
  std::uint32_t ring_[4][4];
  float starts_[2][2];
  int columns_[2];
};

// A block's references, and its part of the image in shared memory.
template <int Pitch>
class BlockOfReferences {
 public:
  static constexpr int octet_columns = Octet<Pitch>::columns;
  static constexpr int octet_rows = Octet<Pitch>::rows_of_references;

  // Fills the shared memory.
  __device__ BlockOfReferences(const HalvesCall& halves, std::uint32_t* shared)
      : halves_(halves), warp_(static_cast<int>(threadIdx.x) / warp_size) {
    const ReferenceGrid& grid = halves.call.grid;
    first_i_ = halves.first_octet() + static_cast<int>(blockIdx.x) * columns_of_block;
    first_j_ = grid.first_j / octet_rows * octet_rows + block_row() * halves.rows_of_block;
    // Start of a row of 16-byte pieces. References beyond the last one coincide with it: then its window
    // begins within a piece, and the block needs less than others.
    const int column = (grid.grid_x(first_i_) - halves.reach() - halves.x0) / columns_step * columns_step;
    auto* const norms = reinterpret_cast<float*>(shared + 2 * halves.copy_words);
    area_ = {shared, norms, halves.x0 + column, grid.y(first_j_) - halves.reach()};
    const int row = area_.y0 - halves.y0;
    const int word_pitch = Pitch > 0 ? Pitch : halves.word_pitch;
    copy<2>({halves.words[0], halves.words[1]}, {shared, shared + halves.copy_words}, 2, column, row,
            word_pitch, halves.word_rows);
    copy<1>({reinterpret_cast<const std::uint32_t*>(halves.norms)}, {shared + 2 * halves.copy_words}, 1,
            column, row, norm_pitch_of(word_pitch), halves.norm_rows);
    wait_for_all_copies();
    __syncthreads();
  }

  // Calls rank(candidates) for each octet of this warp.
  template <class Rank>
  __device__ void for_each_octet(const Rank& rank) const {
    constexpr int octets_across = columns_of_block / octet_columns;
    const int octets = 2 * halves_.rows_of_block;
    for (int index = warp_; index < octets; index += warps) {
      const int i = first_i_ + index % octets_across * octet_columns;
      const int j = first_j_ + index / octets_across * octet_rows;
      if (j >= halves_.end_j()) break;
      if (i >= halves_.end_i()) continue;
      Octet<Pitch> candidates(halves_, area_, i, j);
      rank(candidates);
    }
  }

 private:
  static constexpr int warps = warps_of(Pitch);

  // Copies the same part of several arrays, in pieces of 16 bytes: neighbouring threads have neighbouring
  // pieces. It begins at `column` and `row`.
  template <int Arrays>
  __device__ void copy(const std::uint32_t* const (&from)[Arrays], std::uint32_t* const (&to)[Arrays],
                       int columns_a_word, int column, int row, int pitch, int rows) const {
    const int row_words = halves_.width / columns_a_word;
    const int first_word = column / columns_a_word;
    const int pieces_of_row = pitch / piece_words;
    const int pieces_that_exist = (row_words - first_word) / piece_words;
    const int pieces = min(rows, halves_.rows - row) * pieces_of_row;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < pieces; i += warps * warp_size) {
      const int y = i / pieces_of_row;
      const int piece = i % pieces_of_row;
      const std::ptrdiff_t at =
          static_cast<std::ptrdiff_t>(row + y) * row_words + first_word + piece * piece_words;
      if (piece >= pieces_that_exist) continue;
#pragma unroll
      for (int array = 0; array < Arrays; ++array) copy_async(to[array] + i * piece_words, from[array] + at);
    }
  }

  const HalvesCall& halves_;
  int warp_;
  int first_i_;
  int first_j_;
  SharedArea area_;
};

}  // namespace ungrain::cuda::halves_match
