// The fast filter of groups of 8 x 8 patches on a GPU: a block's tile on its way from and to global memory.
//
// All threads of a block go through the tile's rows one after the other. Most tiles lie inside the planes:
// they skip the comparisons with the planes' ends.
#pragma once

#include <cstddef>

#include "cuda/async_copy.cuh"
#include "methods/bm3d/cuda_filter.h"

namespace ungrain::cuda::bm3d_fast {

// Calls use(x, y, at) for every pixel of the first `rows` rows of a tile; `at` = y pitch + x.
template <int Threads, class Use>
__device__ void for_pixels(int pitch, int rows, const Use& use) {
  const auto thread = static_cast<int>(threadIdx.x);
  const int down = Threads / pitch;
  const int across = Threads - down * pitch;
  int y = thread / pitch;
  int x = thread - y * pitch;
#pragma unroll 4
  for (int at = thread; at < rows * pitch; at += Threads) {
    use(x, y, at);
    const bool wraps = x + across >= pitch;
    x += across - (wraps ? pitch : 0);
    y += down + (wraps ? 1 : 0);
  }
}

// One plane in the coordinates of a tile.
struct TilePlane {
  const float* first;  // the tile's first pixel, or where it would lie
  int stride;
  Rect there;  // the part of the tile's coordinates that the plane has

  __device__ TilePlane(const ConstPlanes& planes, int plane, int left, int top)
      : first(planes.data + plane * planes.plane_stride + (top - planes.rect.y0) * planes.row_stride +
              (left - planes.rect.x0)),
        stride(static_cast<int>(planes.row_stride)),
        there{planes.rect.x0 - left, planes.rect.y0 - top, planes.rect.x1 - left, planes.rect.y1 - top} {}

  __device__ bool has(int x, int y) const {
    return x >= there.x0 && x < there.x1 && y >= there.y0 && y < there.y1;
  }
  __device__ const float* at(int x, int y) const { return first + (y * stride + x); }
  // Inside: the plane has the pixel; else it is 0 where it has not.
  template <bool Inside>
  __device__ float pixel(int x, int y) const {
    return Inside || has(x, y) ? __ldg(at(x, y)) : 0.0F;
  }
  template <bool Inside>
  __device__ void copy_pixel(int x, int y, float* to) const {
    const bool is_there = Inside || has(x, y);
    copy_async(to, is_there ? at(x, y) : at(there.x0, there.y0), is_there);
  }
};

// One array of the sums in the coordinates of a tile.
struct TileSums {
  unsigned long long* first;
  int stride;
  Rect there;

  __device__ TileSums(unsigned long long* sums, const Rect& rect, int plane, int left, int top)
      : first(sums + (static_cast<std::ptrdiff_t>(plane) * rect.height() + (top - rect.y0)) * rect.width() +
              (left - rect.x0)),
        stride(rect.width()),
        there{rect.x0 - left, rect.y0 - top, rect.x1 - left, rect.y1 - top} {}

  template <bool Inside>
  __device__ void add(int value, int x, int y) const {
    if (value == 0) return;
    if (!Inside && !(x >= there.x0 && x < there.x1 && y >= there.y0 && y < there.y1)) return;
    atomicAdd(first + (y * stride + x), static_cast<unsigned long long>(static_cast<long long>(value)));
  }
};

}  // namespace ungrain::cuda::bm3d_fast
