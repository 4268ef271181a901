// Patches of reference patches below each other overlap too: a block searches for several rows of them, and a
// column's squared differences serve all. With a spacing of 3 a patch's column is three rows, three rows and
// two: a running sum of each three rows and of its first two is all that is kept.
#include "study/bm3d/pipeline.cuh"
#include "study/bm3d/rungs.h"

namespace ungrain::study {
namespace bm3d {
namespace {

// The last row of reference patches need not lie three pixels below the one before: it has blocks of its own.
struct RowBlocks {
  int regular;  // rows of the batch that are three pixels apart
  int blocks;

  __host__ __device__ RowBlocks(const MatchCall& call, int rows_a_block) {
    const bool has_last = call.batch.j + call.batch.rows == call.references.rows;
    const bool apart = has_last && call.references.last_y % spacing != 0;
    regular = call.batch.rows - (apart ? 1 : 0);
    blocks = (regular + rows_a_block - 1) / rows_a_block + (apart ? 1 : 0);
  }
};

template <int Rows>
__global__ void match_rows_kernel(MatchCall call) {
  constexpr int triples = Rows + 2;
  constexpr int area_rows = (Rows - 1) * spacing + patch;
  extern __shared__ unsigned match_memory[];
  // The stacks of the rows' reference patches one after the other.
  Key* keys = match_memory;
  constexpr int row_keys = most_patches * match_threads;
  auto* counts = reinterpret_cast<int*>(keys + Rows * row_keys);
  unsigned* all_columns = match_memory + Rows * (row_keys + match_threads);
  auto* own = reinterpret_cast<std::uint8_t*>(all_columns + match_warps * Rows * area_pitch);

  const Picture& picture = call.picture;
  const References& references = call.references;
  const int thread = thread_x();
  const int lane = thread % warp_lanes;
  const int warp = thread / warp_lanes;
  const int first_of_block = static_cast<int>(blockIdx.x) * warp_lanes;
  const int column = min(first_of_block + lane, call.batch.columns - 1);
  const RowBlocks row_blocks(call, Rows);
  const int first_row = min(static_cast<int>(blockIdx.y) * Rows, row_blocks.regular);
  const int rows = first_row < row_blocks.regular ? min(Rows, row_blocks.regular - first_row) : 1;
  const int x0 = references.x(call.batch.i + first_of_block);
  const int x = references.x(call.batch.i + column);
  const int y0 = references.y(call.batch.j + first_row);
  unsigned* columns = all_columns + warp * Rows * area_pitch;

  for (int i = thread; i < area_rows * area_columns; i += match_threads) {
    const int c = i % area_columns;
    const int r = i / area_columns;
    const bool inside = x0 + c < picture.width && y0 + r < picture.height;
    own[r * area_pitch + c] = inside ? picture.bytes[(y0 + r) * picture.stride + x0 + c] : 0;
  }
  __syncthreads();

  Stack stacks[Rows];
#pragma unroll
  for (int row = 0; row < Rows; ++row) stacks[row] = {keys + row * row_keys + thread, match_threads};
  for (int dy = -call.reach; dy <= call.reach; ++dy) {
    if (y0 + dy > references.last_y || y0 + (rows - 1) * spacing + dy < 0) continue;
    for (int dx = warp - call.reach; dx <= call.reach; dx += match_warps) {
      for (int c = lane; c < area_columns; c += warp_lanes) {
        const int other_x = x0 + c + dx;
        unsigned two[triples] = {};
        unsigned three[triples] = {};
        if (x0 + c < picture.width && other_x >= 0 && other_x < picture.width) {
#pragma unroll
          for (int r = 0; r < area_rows; ++r) {
            // Rows outside the picture belong to no patch that counts.
            const int other_y = min(max(y0 + dy + r, 0), picture.height - 1);
            const int difference =
                own[r * area_pitch + c] - picture.bytes[other_y * picture.stride + other_x];
            const auto squared = static_cast<unsigned>(difference * difference);
            three[r / spacing] += squared;
            if (r % spacing < 2) two[r / spacing] += squared;
          }
        }
#pragma unroll
        for (int row = 0; row < Rows; ++row)
          columns[row * area_pitch + c] = three[row] + three[row + 1] + two[row + 2];
      }
      __syncwarp();
      const bool inside = x + dx >= 0 && x + dx <= references.last_x;
#pragma unroll
      for (int row = 0; row < Rows; ++row) {
        const unsigned distance = sum_of_columns(columns + row * area_pitch + x - x0);
        const int y = y0 + row * spacing + dy;
        if (row < rows && inside && y >= 0 && y <= references.last_y && distance <= most_distance)
          stacks[row].add(key_of(distance, dx, dy));
      }
      __syncwarp();
    }
  }
#pragma unroll
  for (int row = 0; row < Rows; ++row) counts[row * match_threads + thread] = stacks[row].count;
  __syncthreads();
  // A warp merges the stacks of one row.
  if (warp < rows && first_of_block + lane < call.batch.columns) {
    const int group = (first_row + warp) * call.batch.columns + column;
    call.sizes[group] =
        merge_stacks(keys + warp * row_keys + lane, match_threads, counts + warp * match_threads + lane,
                     match_warps, call.lists + group * most_patches);
  }
}

template <int Rows>
constexpr std::size_t match_rows_bytes = sizeof(unsigned) * (Rows * (most_patches + 1) * match_threads +
                                                             match_warps * Rows * area_pitch) +
                                         static_cast<std::size_t>((Rows - 1) * spacing + patch) * area_pitch;

template <int Rows>
void launch_rows(const MatchCall& call) {
  const dim3 grid(static_cast<unsigned>(cuda::blocks_for(call.batch.columns, warp_lanes)),
                  static_cast<unsigned>(RowBlocks(call, Rows).blocks));
  cuda::launch(match_rows_kernel<Rows>, grid, dim3(match_threads), match_rows_bytes<Rows>, Stream{}, call);
}

}  // namespace

void launch_match_rows(const MatchCall& call, int rows_a_block) {
  rows_a_block == 2 ? launch_rows<2>(call) : launch_rows<4>(call);
}
std::optional<KernelUse> match_rows_use(int rows_a_block) {
  return rows_a_block == 2 ? kernel_use(match_rows_kernel<2>, match_threads, match_rows_bytes<2>)
                           : kernel_use(match_rows_kernel<4>, match_threads, match_rows_bytes<4>);
}

}  // namespace bm3d

std::vector<Rung> bm3d_shared_distances() {
  using namespace bm3d;
  const auto rung = [](int rows) {
    return Rung{
        .name = "6 shared distances, " + std::to_string(rows) + " rows",
        .paper = "ours",
        .idea = "5 with squared differences shared by " + std::to_string(rows) + " rows of reference patches",
        .shapes = Shapes::batches,
        .computes = "dct",
        .prepare = [rows](const RungCall& call) {
          const auto match = [rows](const MatchCall& of_batch) { launch_match_rows(of_batch, rows); };
          return in_batches(call, dct_version(match, match_rows_use(rows)));
        }};
  };
  return {rung(2), rung(4)};
}

}  // namespace ungrain::study
