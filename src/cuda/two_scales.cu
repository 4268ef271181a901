#include "cuda/two_scales.h"

#include "cuda/launch.cuh"

namespace ungrain::cuda {
namespace {

constexpr int block_width = 32;
constexpr int block_height = 8;

struct HalveCall {
  ConstPlanes in;
  Planes out;  // of half the size
  Extent image;
};

__global__ void halve(const __grid_constant__ HalveCall h) {
  const int x = h.out.rect.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int y = h.out.rect.y0 + block_row(h.out.count) * block_height + static_cast<int>(threadIdx.y);
  if (x >= h.out.rect.x1 || y >= h.out.rect.y1) return;
  const int plane = block_plane(h.out.count);
  const int right = min(2 * x + 1, h.image.width - 1);
  const int below = min(2 * y + 1, h.image.height - 1);
  const float upper = h.in.at(plane, 2 * x, 2 * y) + h.in.at(plane, right, 2 * y);
  const float lower = h.in.at(plane, 2 * x, below) + h.in.at(plane, right, below);
  h.out.at(plane, x, y) = 0.25F * (upper + lower);
}

struct Correction {
  ConstPlanes image;
  ConstPlanes before;  // of half the size, as is what follows
  ConstPlanes after;
  Planes out;
  int half_width;
  int half_height;
};

__global__ void correct(const __grid_constant__ Correction c) {
  const int x = c.out.rect.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int y = c.out.rect.y0 + block_row(c.out.count) * block_height + static_cast<int>(threadIdx.y);
  if (x >= c.out.rect.x1 || y >= c.out.rect.y1) return;
  const int plane = block_plane(c.out.count);
  const HalfNeighbours across = half_neighbours(x, c.half_width);
  const HalfNeighbours down = half_neighbours(y, c.half_height);
  const auto difference = [&](int at_x, int at_y) {
    return c.after.at(plane, at_x, at_y) - c.before.at(plane, at_x, at_y);
  };
  const auto along_rows = [&](int at_x) {
    return 0.75F * difference(at_x, down.own) + 0.25F * difference(at_x, down.other);
  };
  c.out.at(plane, x, y) =
      c.image.at(plane, x, y) + (0.75F * along_rows(across.own) + 0.25F * along_rows(across.other));
}

dim3 grid_of(const Planes& out) {
  return tall_grid(blocks_for(out.rect.width(), block_width), blocks_for(out.rect.height(), block_height),
                   out.count);
}

void launch_halve(const DeviceStageCall& call) {
  const Planes out = half_view(call.out);
  if (out.rect.width() <= 0 || out.rect.height() <= 0) return;
  const HalveCall halving{call.in[0], out, call.image};
  launch(halve, grid_of(out), dim3(block_width, block_height), 0, call.stream, halving);
}

void launch_correct(const DeviceStageCall& call) {
  const Correction correction{call.in[0], half_view(call.in[1]),      half_view(call.in[2]),
                              call.out,   (call.image.width + 1) / 2, (call.image.height + 1) / 2};
  launch(correct, grid_of(call.out), dim3(block_width, block_height), 0, call.stream, correction);
}

}  // namespace

ScalePasses scale_passes() { return {.launch_halve = launch_halve, .launch_correct = launch_correct}; }

}  // namespace ungrain::cuda
