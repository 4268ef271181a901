#include "cuda/window.h"

#include <algorithm>
#include <cmath>

#include "core/colour.h"
#include "core/window.h"
#include "cpu/exp.h"
#include "cuda/launch.cuh"

namespace ungrain::cuda {
namespace {

constexpr int block_width = 32;
constexpr int block_height = 8;

__global__ void to_lab_kernel(ConstPlanes in, Planes out, double white) {
  const int x = out.rect.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int y = out.rect.y0 + block_row() * block_height + static_cast<int>(threadIdx.y);
  if (x >= out.rect.x1 || y >= out.rect.y1) return;
  const Triple lab = rgb_to_lab({in.at(0, x, y) / white, in.at(1, x, y) / white, in.at(2, x, y) / white});
  for (int c = 0; c < 3; ++c) out.at(c, x, y) = static_cast<float>(lab[c]);
}

__global__ void from_lab_kernel(ConstPlanes in, Planes out, double white) {
  const int x = out.rect.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int y = out.rect.y0 + block_row() * block_height + static_cast<int>(threadIdx.y);
  if (x >= out.rect.x1 || y >= out.rect.y1) return;
  const Triple rgb = lab_to_rgb({in.at(0, x, y), in.at(1, x, y), in.at(2, x, y)});
  for (int c = 0; c < 3; ++c) out.at(c, x, y) = static_cast<float>(rgb[c] * white);
}

template <class Kernel>
Stage pixel_stage(const char* name, Kernel kernel, double white) {
  return {.name = name, .planes = 3, .launch = [=](const DeviceStageCall& call) {
            const Rect& area = call.out.rect;
            const dim3 grid =
                tall_grid(blocks_for(area.width(), block_width), blocks_for(area.height(), block_height));
            launch(kernel, grid, dim3(block_width, block_height), 0, call.stream, call.in[0], call.out,
                   white);
          }};
}

}  // namespace

WindowWeights::WindowWeights(Window window, int radius, const Reach& reach, double sigma_space,
                             double sigma_range, int divisor)
    : reach_x(reach.x), reach_y(reach.y), square(window == Window::square), space{}, height{} {
  // Bounds that keep every scaled value and every square finite; beyond them the weights are 0 or 1 anyway.
  constexpr double weakest = 1e-15;
  constexpr double strongest = 1e15;
  constexpr double beyond_all = 1e18;
  const double wanted = std::sqrt(log2_e / (2.0 * divisor)) / sigma_range;
  scale = static_cast<float>(std::clamp(wanted, weakest, strongest));
  unscale = 1 / scale;
  nothing = static_cast<float>(beyond_all / scale);
  constexpr double lowest = -1e30;
  for (int d = 0; d <= radius; ++d) {
    space[d] = static_cast<float>(std::max(-std::pow(d / sigma_space, 2) / 2 * log2_e, lowest));
    height[d] = -1;
    for (int dy = 0; dy <= reach.y; ++dy) {
      if (in_window(window, radius, d, dy)) height[d] = static_cast<short>(dy);
    }
  }
}

Pipeline in_colour_mode(ColourMode mode, std::vector<Stage> passes, double white, bool wraps) {
  if (mode == ColourMode::lab) {
    passes.insert(passes.begin(), pixel_stage("to Lab", to_lab_kernel, white));
    passes.push_back(pixel_stage("from Lab", from_lab_kernel, white));
  }
  return {.stages = std::move(passes), .wraps = wraps};
}

}  // namespace ungrain::cuda
