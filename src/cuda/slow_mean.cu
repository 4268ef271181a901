#include "cuda/slow_mean.h"

#include "core/slow_weights.h"
#include "cuda/launch.cuh"

namespace ungrain::cuda {
namespace {

constexpr int block_width = 32;
constexpr int block_height = 8;
constexpr int most_images = 2 * 64 + 1;

// Kernels take it as a parameter, in constant memory.
struct SlowMean {
  Planes out;
  Rect in_rect;  // of every image
  std::ptrdiff_t row_stride;
  std::ptrdiff_t plane_stride;
  int images;  // that stand somewhere, from the earliest on
  const float* data[most_images];
  float weights[most_images];
};

__global__ void mean_along_images(const __grid_constant__ SlowMean m) {
  const Rect& area = m.out.rect;
  const int x = area.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int y = area.y0 + block_row() * block_height + static_cast<int>(threadIdx.y);
  if (x >= area.x1 || y >= area.y1) return;
  for (int plane = 0; plane < m.out.count; ++plane) {
    const std::ptrdiff_t at = plane * m.plane_stride + (y - m.in_rect.y0) * m.row_stride + (x - m.in_rect.x0);
    float sum = 0;
    for (int image = 0; image < m.images; ++image) sum = fmaf(m.weights[image], m.data[image][at], sum);
    m.out.at(plane, x, y) = sum;
  }
}

void launch_mean(const std::vector<double>& half, Border border, const DeviceStageCall& call) {
  const std::vector<float> weights = slow_weights(half, border, call);
  SlowMean mean{};
  mean.out = call.out;
  for (std::size_t index = 0; index < weights.size(); ++index) {
    const ConstPlanes& planes = call.in[index];
    if (planes.data == nullptr) continue;
    // Images of one ring lie alike.
    mean.in_rect = planes.rect;
    mean.row_stride = planes.row_stride;
    mean.plane_stride = planes.plane_stride;
    mean.data[mean.images] = planes.data;
    mean.weights[mean.images] = weights[index];
    ++mean.images;
  }
  const dim3 grid = tall_grid(blocks_for(call.out.rect.width(), block_width),
                              blocks_for(call.out.rect.height(), block_height));
  launch(mean_along_images, grid, {block_width, block_height}, 0, call.stream, mean);
}

}  // namespace

Pipeline with_slow_mean(Pipeline pipeline, const std::vector<double>& half, Border border, int planes) {
  const int radius = static_cast<int>(half.size()) - 1;
  if (radius == 0) return pipeline;
  pipeline.direct = {};
  pipeline.stages.push_back(
      {.name = "images",
       .reach = {.before = radius, .after = radius},
       .planes = planes,
       .reads = {static_cast<int>(pipeline.stages.size())},
       .launch = [half, border](const DeviceStageCall& call) { launch_mean(half, border, call); }});
  pipeline.slow_border = border;
  return pipeline;
}

}  // namespace ungrain::cuda
