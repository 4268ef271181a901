// For one shift the patches of neighbouring pixels share most of their differences: they are summed along
// rows first, then the sums along columns, 14 terms instead of 49. The block goes from shift to shift
// together and waits between the stages.
#include "study/nlm/row_sums.cuh"
#include "study/nlm/rungs.h"

namespace ungrain::study {
namespace {

__global__ void separable_sums_kernel(Picture picture, NlmFactors factors) {
  extern __shared__ float tile[];
  const int radius = factors.radius;
  const int reach = radius + patch_reach;
  const int stride = block_side() + 2 * reach;
  float* sums = tile + stride * stride;
  load_tile(picture, first_column() - reach, first_row() - reach, stride, stride, tile, stride);
  __syncthreads();
  const float* corner = tile + radius * stride + radius;
  const float* middle = tile + (thread_y() + reach) * stride + thread_x() + reach;
  SearchMean mean;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      if (dx == 0 && dy == 0) continue;
      const int shift = dy * stride + dx;
      sum_rows(corner, stride, shift, sums);
      __syncthreads();
      mean.add(factors.weight(sum_of_rows(sums)), middle[shift]);
      __syncthreads();
    }
  }
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (in_picture(picture, x, y)) picture.out[y * picture.width + x] = mean.value(*middle);
}

}  // namespace

Rung nlm_separable_sums() {
  return {.name = "separable sums",
          .paper = "ours",
          .idea = "patch sums along rows, then along columns, shared by the block's pixels",
          .prepare = [](const RungCall& call) {
            const int reach = search_reach(call.strengths);
            const int side = call.shape.side;
            return one_launch(separable_sums_kernel, call,
                              tile_bytes(plain_stride(side, 1, reach), side, reach) + row_sums_bytes(side),
                              {}, NlmFactors(call.strengths));
          }};
}

}  // namespace ungrain::study
