// [000] §7.1.3: the GPU launches the kernels. One thread for each quarter of a rectangle launches a kernel on
// it, and so on until the pieces are small; each of those is filtered by a grid of its own. The only file of
// the study that is compiled to relocatable device code.
#include <algorithm>

#include "study/bilateral/rungs.h"
#include "study/kernels.cuh"

namespace ungrain::study {
namespace {

// Pieces are at most this wide and high, unless that takes more levels than there is room for launches that
// wait for their turn (2048): five levels make 1024 pieces and 341 kernels that only launch.
constexpr int piece_side = 256;
constexpr int most_levels = 5;

__constant__ float spatial_weights[most_spatial_entries];

struct Piece {
  int x;
  int y;
  int width;
  int height;
};

struct Filter {
  int radius;
  float range_factor;
  int block_side;
};

// As version 2, on a piece of the picture.
__global__ void piece_kernel(Picture picture, Piece piece, Filter filter) {
  const int x = first_column() + thread_x();
  const int y = first_row() + thread_y();
  if (x >= piece.width || y >= piece.height) return;
  const int side = 2 * filter.radius + 1;
  const float centre = pixel(picture, piece.x + x, piece.y + y);
  WeightedMean mean;
  for (int dy = -filter.radius; dy <= filter.radius; ++dy) {
    for (int dx = -filter.radius; dx <= filter.radius; ++dx) {
      const float value = pixel(picture, piece.x + x + dx, piece.y + y + dy);
      const float spatial = spatial_weights[(dy + filter.radius) * side + dx + filter.radius];
      mean.add(spatial * gaussian(value - centre, filter.range_factor), value);
    }
  }
  picture.out[(piece.y + y) * picture.width + piece.x + x] = mean.value();
}

__device__ Piece quarter_of(const Piece& piece, int number) {
  const int left = piece.width / 2;
  const int top = piece.height / 2;
  const bool right = (number & 1) != 0;
  const bool below = (number & 2) != 0;
  return {piece.x + (right ? left : 0), piece.y + (below ? top : 0), right ? piece.width - left : left,
          below ? piece.height - top : top};
}

// Four threads, a quarter each. Launches that nobody waits for run side by side; the grid is done when they
// are.
__global__ void quarters_kernel(Picture picture, Piece piece, Filter filter, int levels) {
  const Piece quarter = quarter_of(piece, thread_x());
  if (quarter.width == 0 || quarter.height == 0) return;
  if (levels > 1) {
    quarters_kernel<<<1, 4, 0, cudaStreamFireAndForget>>>(picture, quarter, filter, levels - 1);
    return;
  }
  const int side = filter.block_side;
  const dim3 grid((quarter.width + side - 1) / side, (quarter.height + side - 1) / side);
  piece_kernel<<<grid, dim3(side, side), 0, cudaStreamFireAndForget>>>(picture, quarter, filter);
}

int levels_for(const Picture& picture) {
  int levels = 1;
  for (int side = std::max(picture.width, picture.height); side > 2 * piece_side && levels < most_levels;
       side /= 2)
    ++levels;
  return levels;
}

std::optional<Prepared> prepare(const RungCall& call) {
  const std::optional<KernelUse> use = kernel_use(piece_kernel, call.shape.side * call.shape.side, 0);
  if (!use) return {};
  upload_constant(spatial_weights, spatial_table(call.strengths));
  const Filter filter{call.strengths.radius, gaussian_factor(call.strengths.sigma_range), call.shape.side};
  const auto enqueue = [picture = call.device, filter] {
    const Piece whole{0, 0, picture.width, picture.height};
    cuda::launch(quarters_kernel, dim3(1), dim3(4), 0, Stream{}, picture, whole, filter, levels_for(picture));
  };
  return Prepared{.enqueue = enqueue, .use = use};
}

}  // namespace

Rung bilateral_dynamic_parallelism() {
  return {.name = "dynamic parallelism",
          .paper = "[000] discussion",
          .idea = "2 in pieces that the GPU itself launches, quarter by quarter",
          .prepare = prepare};
}

}  // namespace ungrain::study
