// The noise of groups by their levels, for a noise model. A group's level is the mean of its patches, and a
// patch belongs to many groups: one kernel sums the pixels of all patches, another runs one thread a group.
#include "cuda/launch.cuh"
#include "methods/bm3d/cuda_filter.h"

namespace ungrain::cuda {
namespace {

constexpr int patch = 8;
constexpr int block_columns = 32;
constexpr int block_rows = 8;
constexpr int threads = 128;

// One sum for each place of a patch's first pixel; the last 7 rows and columns have none.
__global__ void __launch_bounds__(block_columns* block_rows)
    patch_sums_kernel(const ConstPlanes plane, float* const sums) {
  constexpr int rows = block_rows + patch - 1;
  constexpr int columns = block_columns + patch - 1;
  __shared__ float pixels[rows][columns];
  __shared__ float along_rows[rows][block_columns];
  const Rect& rect = plane.rect;
  const auto column = static_cast<int>(threadIdx.x);
  const auto row = static_cast<int>(threadIdx.y);
  const int x0 = static_cast<int>(blockIdx.x) * block_columns;
  const int y0 = block_row() * block_rows;
  for (int r = row; r < rows; r += block_rows) {
    for (int c = column; c < columns; c += block_columns) {
      // Clamped: pixels beyond the plane are read only for places without a sum.
      pixels[r][c] = plane.at(0, min(rect.x0 + x0 + c, rect.x1 - 1), min(rect.y0 + y0 + r, rect.y1 - 1));
    }
  }
  __syncthreads();
  for (int r = row; r < rows; r += block_rows) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < patch; ++i) sum += pixels[r][column + i];
    along_rows[r][column] = sum;
  }
  __syncthreads();
  const int x = x0 + column;
  const int y = y0 + row;
  if (x >= rect.width() || y >= rect.height()) return;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < patch; ++i) sum += along_rows[row + i][column];
  sums[static_cast<std::size_t>(y) * rect.width() + x] = sum;
}

// Device version of PlaneNoise::variance().
__device__ float variance_at(const Bm3dLevels& of, const float* table, float level) {
  const float* const levels = table + of.levels;
  const float* const variances = table + of.variances;
  int above = 0;
  while (above < of.count && !(level < levels[above])) ++above;
  if (above == 0) return variances[0];
  if (above == of.count) return variances[of.count - 1];
  const float part = (level - levels[above - 1]) / (levels[above] - levels[above - 1]);
  return fmaf(part, variances[above] - variances[above - 1], variances[above - 1]);
}

__global__ void __launch_bounds__(threads)
    deviations_kernel(const __grid_constant__ Bm3dDeviationsCall call) {
  const ReferenceGrid& grid = call.grid;
  const int references = grid.references();
  const int reference = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (reference >= references) return;
  const int found = min(static_cast<int>(call.found[reference]), call.count);
  const int size = call.any_size ? found : 1 << (31 - __clz(found));
  const Rect& rect = call.plane.rect;
  const int x = grid.x(grid.first_i + reference % grid.count_i) - rect.x0;
  const int y = grid.y(grid.first_j + reference / grid.count_i) - rect.y0;
  const auto* const offsets =
      reinterpret_cast<const char2*>(call.offsets) + static_cast<std::size_t>(reference) * call.count;
  float sum = 0;
  for (int n = 0; n < size; ++n)
    sum += call.sums[static_cast<std::size_t>(y + offsets[n].y) * rect.width() + x + offsets[n].x];
  const float level = sum / static_cast<float>(patch * patch * size);
  for (int plane = 0; plane < call.plane_count; ++plane) {
    call.deviations[static_cast<std::size_t>(plane) * references + reference] =
        sqrtf(variance_at(call.planes[plane], call.table, level));
  }
}

}  // namespace

void launch_bm3d_deviations(const Bm3dDeviationsCall& call, Stream stream) {
  const Rect& rect = call.plane.rect;
  const dim3 blocks =
      tall_grid(blocks_for(rect.width(), block_columns), blocks_for(rect.height(), block_rows));
  launch(patch_sums_kernel, blocks, dim3(block_columns, block_rows), 0, stream, call.plane, call.sums);
  launch(deviations_kernel, dim3(static_cast<unsigned>(blocks_for(call.grid.references(), threads))),
         dim3(threads), 0, stream, call);
}

}  // namespace ungrain::cuda
