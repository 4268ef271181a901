#include "cuda/separable.h"

#include "cuda/launch.cuh"
#include "cuda/load.cuh"

namespace ungrain::cuda {
namespace {

constexpr int block_width = 32;
constexpr int block_height = 8;
constexpr int most_weights = 1025;  // radius 1024; kernels take them as a parameter, in constant memory
constexpr int rows_each = 4;        // of a thread, along columns: a pixel that is read serves up to four

struct Means {
  BorderedPlane in;
  Planes out;
  int radius;
  float weights[most_weights];  // from the centre outwards; the sum over both sides is 1
};

// Under a shrinking border: the weights that lie inside, around position i of n.
__device__ float inside(const Means& m, int i, int n) {
  float sum = 0;
  for (int k = max(-m.radius, -i); k <= min(m.radius, n - 1 - i); ++k) sum += m.weights[abs(k)];
  return sum;
}

__global__ void mean_along_rows(const __grid_constant__ Means m) {
  const Rect& area = m.out.rect;
  const int x = area.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int y = area.y0 + block_row() * block_height + static_cast<int>(threadIdx.y);
  if (x >= area.x1 || y >= area.y1) return;
  const bool shrink = m.in.border == Border::shrink;
  const bool held = m.in.holds(x - m.radius, y, x + m.radius + 1, y + 1);
  for (int plane = 0; plane < m.out.count; ++plane) {
    float sum = 0;
    for (int k = -m.radius; k <= m.radius; ++k) {
      const float value = held ? m.in.inside(plane, x + k, y) : m.in.at(plane, x + k, y, 0.0F);
      sum = fmaf(m.weights[abs(k)], value, sum);
    }
    m.out.at(plane, x, y) = shrink ? sum / inside(m, x, m.in.image.width) : sum;
  }
}

__global__ void mean_along_columns(const __grid_constant__ Means m) {
  const Rect& area = m.out.rect;
  const int x = area.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int first = area.y0 + (block_row() * block_height + static_cast<int>(threadIdx.y)) * rows_each;
  if (x >= area.x1 || first >= area.y1) return;
  const bool shrink = m.in.border == Border::shrink;
  const bool held = m.in.holds(x, first - m.radius, x + 1, first + rows_each + m.radius);
  for (int plane = 0; plane < m.out.count; ++plane) {
    float sums[rows_each] = {};
    for (int k = -m.radius; k < m.radius + rows_each; ++k) {
      const float value = held ? m.in.inside(plane, x, first + k) : m.in.at(plane, x, first + k, 0.0F);
      for (int row = 0; row < rows_each; ++row) {
        const int distance = abs(k - row);
        if (distance <= m.radius) sums[row] = fmaf(m.weights[distance], value, sums[row]);
      }
    }
    for (int row = 0; row < rows_each && first + row < area.y1; ++row) {
      m.out.at(plane, x, first + row) =
          shrink ? sums[row] / inside(m, first + row, m.in.image.height) : sums[row];
    }
  }
}

void normalise(const std::vector<double>& half, float* weights) {
  double sum = half[0];
  for (std::size_t k = 1; k < half.size(); ++k) sum += 2 * half[k];
  for (std::size_t k = 0; k < half.size(); ++k) weights[k] = static_cast<float>(half[k] / sum);
}

}  // namespace

Pipeline separable_mean(const std::vector<double>& half, Border border, int planes) {
  const int radius = static_cast<int>(half.size()) - 1;
  Means means{};
  means.radius = radius;
  normalise(half, means.weights);
  const auto stage = [=](auto kernel, int rows, const DeviceStageCall& call) {
    const dim3 grid = tall_grid(blocks_for(call.out.rect.width(), block_width),
                                blocks_for(call.out.rect.height(), block_height * rows));
    Means of_call = means;
    of_call.in = {call.in[0], call.image, border};
    of_call.out = call.out;
    launch(kernel, grid, {block_width, block_height}, 0, call.stream, of_call);
  };
  Pipeline pipeline;
  pipeline.wraps = border == Border::wrap;
  pipeline.stages.push_back(
      {.name = "rows",
       .reach = {.x = radius, .y = 0},
       .planes = planes,
       .reads = {0},
       .launch = [=](const DeviceStageCall& call) { stage(mean_along_rows, 1, call); }});
  pipeline.stages.push_back(
      {.name = "columns",
       .reach = {.x = 0, .y = radius},
       .planes = planes,
       .reads = {1},
       .launch = [=](const DeviceStageCall& call) { stage(mean_along_columns, rows_each, call); }});
  return pipeline;
}

}  // namespace ungrain::cuda
