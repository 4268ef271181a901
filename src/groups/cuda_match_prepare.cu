// Search for similar patches by halves: the plan of a call, and the kernel that rounds pixels once.
//
//   warp    25 columns x 8 rows of positions; lanes 25 ... 31 only hold neighbours' pixels
//   lane    15 pixels of one column -> 15 sums of a row of 8 squares (shuffles) -> 8 norms of patches
//
//   writes  words[0]  pixels as halves, 2 a word          norms  |patch|²/2, `outside` or `unfit`
//           words[1]  the same, one pixel later
#include <algorithm>
#include <cmath>

#include "core/scratch.h"
#include "cuda/launch.cuh"
#include "groups/cuda_match_halves.cuh"

namespace ungrain::cuda::halves_match {
namespace {

constexpr int most_rows_of_block = 16;
constexpr int fewest_rows_of_block = 4;
constexpr int rows_step = 4;        // gives all warps the same number of octets
constexpr int widest_search = 127;  // divided by with a multiplication, see HalvesCall::offset()
// Half distances are then at most 2^27: (2 x largest pixel)² x 64 / 2.
constexpr float largest_pixel = 1024;

constexpr int prepared_rows = 8;                        // of a thread
constexpr int prepared_columns = warp_size - side + 1;  // of a warp: its last lanes only have neighbours
constexpr int preparing_warps = 4;

struct PreparedPixel {
  __half value = __half(0.0F);
  bool fits = true;

  __device__ PreparedPixel(const HalvesCall& halves, int x, int y) {
    const GroupMatchCall& call = halves.call;
    const Rect& rect = call.plane.rect;
    if (x < rect.x0 || x >= rect.x1 || y < rect.y0 || y >= rect.y1) return;
    const float scaled = __fmul_rn(call.plane.at(0, x, y) - call.middle, call.scale);
    fits = fabsf(scaled) <= (call.integers.most > 0 ? call.integers.most : largest_pixel);
    if (fits) value = __float2half_rn(call.integers.most > 0 ? rintf(scaled) : scaled * halves.unit);
  }
};

// A thread makes a few rows of one column.
__global__ void __launch_bounds__(preparing_warps* warp_size) prepare_kernel(const HalvesCall halves) {
  const GroupMatchCall& call = halves.call;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(blockIdx.x * preparing_warps + threadIdx.x / warp_size);
  const int column = warp * prepared_columns + lane;
  const int first_row = block_row() * prepared_rows;
  const int x = halves.x0 + column;
  const bool mine = lane < prepared_columns && column < halves.width;
  const Rect& rect = call.plane.rect;
  const bool columns_exist = x >= max(0, rect.x0) && x + side <= min(call.image.width, rect.x1);
  const auto at = [&](int i) { return static_cast<std::ptrdiff_t>(first_row + i) * halves.width + column; };

  float sums[prepared_rows + side - 1];  // of a row of 8 squares
#pragma unroll
  for (int i = 0; i < prepared_rows + side - 1; ++i) {
    const PreparedPixel pixel(halves, x, halves.y0 + first_row + i);
    if (mine && i < prepared_rows && first_row + i < halves.rows) {
      reinterpret_cast<__half*>(halves.words[0])[at(i)] = pixel.value;
      auto* const later = reinterpret_cast<__half*>(halves.words[1]);
      if (column > 0) later[at(i) - 1] = pixel.value;
      if (column == halves.width - 1) later[at(i)] = __half(0.0F);
    }
    float sum = pixel.fits ? __half2float(pixel.value) * __half2float(pixel.value) : -unfit;
#pragma unroll
    for (int apart = 1; apart < side; apart *= 2) sum += __shfl_down_sync(all_lanes, sum, apart);
    sums[i] = sum;
  }
#pragma unroll
  for (int i = 0; i < prepared_rows; ++i) {
    const int y = halves.y0 + first_row + i;
    const bool exists = columns_exist && y >= max(0, rect.y0) && y + side <= min(call.image.height, rect.y1);
    const float sum = ((sums[i] + sums[i + 1]) + (sums[i + 2] + sums[i + 3])) +
                      ((sums[i + 4] + sums[i + 5]) + (sums[i + 6] + sums[i + 7]));
    const float half = call.integers.most > 0 ? ceilf(0.5F * sum) : 0.5F * sum;
    const float norm = !exists ? outside : sum > far_beyond ? unfit : half;
    if (mine && first_row + i < halves.rows) halves.norms[at(i)] = norm;
  }
}

// ---- The plan of a call ----

// Assigns the arrays' places in the scratch memory, if given; returns the floats that they take.
std::size_t lay_out(HalvesCall& halves, float* scratch) {
  const std::size_t pixels = static_cast<std::size_t>(halves.width) * halves.rows;
  ScratchPieces pieces(scratch, piece_words * sizeof(std::uint32_t));
  for (std::uint32_t*& words : halves.words) words = pieces.take<std::uint32_t>(pixels / 2);
  halves.norms = pieces.take<float>(pixels);
  return pieces.floats();
}

HalvesCall halves_call(const GroupMatchCall& call, int rows_of_block) {
  HalvesCall halves{};
  halves.call = call;
  const ReferenceGrid& grid = call.grid;
  const int reach = call.search / 2;
  halves.rows_of_block = rows_of_block;
  const int across = (columns_of_block - 1) * grid.spacing + 2 * reach;
  const int down = (rows_of_block - 1) * grid.spacing + 2 * reach;
  const int pitch = ((across + 23) / 2 + 2 + piece_words - 1) / piece_words * piece_words;
  halves.word_pitch = pitch <= narrow_pitch   ? narrow_pitch
                      : pitch <= middle_pitch ? middle_pitch
                      : pitch <= wide_pitch   ? wide_pitch
                                              : pitch;
  const bool one_pass = halves.one_pass();
  halves.unit = one_pass ? one_pass_unit : 1;
  halves.bias = one_pass ? least_distance : two_pass_bias;
  halves.two = 2;

  // Rows and columns beyond the windows: a full group of rows in flight, one row of read-ahead, and full
  // tiles of columns.
  const int more_rows = rows_in_flight - 1;
  const int last_i = (halves.end_i() - 1) / octet * octet + octet - 1;
  const int last_j =
      (halves.end_j() - 1) / halves.octet_rows() * halves.octet_rows() + halves.octet_rows() - 1;
  halves.x0 = (grid.grid_x(halves.first_octet()) - reach) & ~1;
  halves.y0 = grid.y(halves.first_row()) - reach;
  const int width = grid.x(last_i) + reach + 26 - halves.x0;
  halves.width = (width + columns_step - 1) / columns_step * columns_step;
  halves.rows = grid.y(last_j) + reach + more_rows + side + 1 - halves.y0;
  lay_out(halves, call.scratch);

  halves.word_rows = down + more_rows + side + 1;
  // A warp loads from 7 neighbouring banks of each copy, so the copies are 16 banks apart.
  halves.copy_words = (halves.word_pitch * halves.word_rows + 15) / 32 * 32 + 16;
  halves.norm_rows = down + more_rows + 1;

  constexpr int fewest_position_bits = 9;  // the remaining bits of a key fit a float
  halves.position_bits = fewest_position_bits;
  while (call.search * call.search >= 1 << halves.position_bits) ++halves.position_bits;
  halves.inverse_side = ((1U << 21) + call.search - 1) / call.search;
  const double scale = static_cast<double>(call.scale) * halves.unit;
  halves.farthest = static_cast<float>(0.5 * call.max_distance * scale * scale + halves.bias);
  return halves;
}

int attribute(cudaDeviceAttr which) {
  int device = 0;
  int value = 0;
  check(cudaGetDevice(&device), "asking for the GPU");
  check(cudaDeviceGetAttribute(&value, which, device), "asking for the GPU");
  return value;
}

// Rows of references a block, chosen for the least total time among those that leave room for two blocks on a
// multiprocessor, or at least for one; 0 if there is no room.
int rows_of_block(const GroupMatchCall& call) {
  constexpr int kept_back = 1024;  // shared memory that the driver reserves for each block
  const int of_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  const int of_two = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / 2 - kept_back;
  const int processors = attribute(cudaDevAttrMultiProcessorCount);
  for (const int blocks_per_processor : {2, 1}) {
    const int most_bytes = blocks_per_processor == 2 ? std::min(of_block, of_two) : of_block;
    int best = 0;
    double best_time = 0;
    for (int rows = most_rows_of_block; rows >= fewest_rows_of_block; rows -= rows_step) {
      const HalvesCall halves = halves_call(call, rows);
      if (halves.shared_bytes() > most_bytes) continue;
      const dim3 grid = grid_of(halves);
      constexpr double filling = 0.5;  // filling shared memory takes about as long as searching so many rows
      const int rows_at_a_time = halves.warps() / 2;
      // A block without a second one beside it takes little more than half as long.
      const double time = blocks_for(static_cast<int>(grid.x * grid.y * grid.z), processors) *
                          (blocks_for(rows, rows_at_a_time) * rows_at_a_time + filling);
      if (best == 0 || time < best_time) {
        best = rows;
        best_time = time;
      }
    }
    if (best > 0) return best;
  }
  return 0;
}

bool shape_suits(const GroupMatchCall& call) {
  return call.patch == side && call.search <= widest_search && call.count <= most_wanted;
}

}  // namespace

void launch_prepare(const HalvesCall& halves, Stream stream) {
  launch(prepare_kernel,
         tall_grid(blocks_for(halves.width, preparing_warps * prepared_columns),
                   blocks_for(halves.rows, prepared_rows)),
         preparing_warps * warp_size, 0, stream, halves);
}

std::size_t scratch_floats(const GroupMatchCall& call) {
  if (!shape_suits(call) || call.grid.references() == 0) return 0;
  HalvesCall halves = halves_call(call, fewest_rows_of_block);
  return lay_out(halves, nullptr);
}

bool suits(const GroupMatchCall& call) {
  constexpr int first_with_products = 8;
  return shape_suits(call) && attribute(cudaDevAttrComputeCapabilityMajor) >= first_with_products &&
         rows_of_block(call) > 0;
}

void launch_match(const GroupMatchCall& call, Stream stream) {
  const HalvesCall halves = halves_call(call, rows_of_block(call));
  launch_prepare(halves, stream);
  if (halves.one_pass()) {
    launch_one_pass(halves, stream);
  } else {
    launch_two_passes(halves, stream);
  }
}

}  // namespace ungrain::cuda::halves_match
