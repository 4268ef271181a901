// Median on a GPU. Radius 1 and 2: a window in registers, of which the smallest and the largest are dropped
// until the middle is left. Larger ones: the middle is found bit by bit, by counting how many of the window
// lie below, over a tile in shared memory.
#include "core/sample_types.h"
#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/samples.cuh"
#include "methods/median/median.h"

namespace ungrain {
namespace {

using cuda::BorderedPlane;

constexpr int tile = 16;

struct Medians {
  BorderedPlane in;
  Planes out;
  int radius;
};

struct DirectMedians {
  cuda::SampleImage samples;
  int channels;
};

__device__ void sort_pair(float& a, float& b) {
  const float low = fminf(a, b);
  b = fmaxf(a, b);
  a = low;
}

// The middle of the window's pixels, which come one by one. The extremes of one more than half of them cannot
// be the middle.
template <int Radius, class Pixel>
__device__ float middle_of(Pixel pixel) {
  constexpr int count = (2 * Radius + 1) * (2 * Radius + 1);
  constexpr int held = count / 2 + 2;
  float values[held];
#pragma unroll
  for (int i = 0; i < held; ++i) values[i] = pixel(i);
#pragma unroll
  for (int last = held - 1; last >= 2; --last) {
    // Moves the smallest to the front and the largest to the end; both are dropped, and the next pixel takes
    // the front.
#pragma unroll
    for (int i = 0; i < last; ++i) sort_pair(values[i], values[last]);
#pragma unroll
    for (int i = 1; i < last; ++i) sort_pair(values[0], values[i]);
    const int next = held + (held - 1 - last);
    if (next < count) values[0] = pixel(next);
  }
  return values[1];
}

// The median around (x, y). Pixels are read as Reader does (cuda/load.cuh, cuda/samples.cuh); `finite`
// becomes false where one of them is not.
template <int Radius, class Reader>
__device__ float median_at(const Reader& reader, int channel, int x, int y, bool& finite) {
  constexpr int side = 2 * Radius + 1;
  const bool whole = reader.holds(x - Radius, y - Radius, x + Radius + 1, y + Radius + 1);
  return middle_of<Radius>([&](int i) {
    const int px = x - Radius + i % side;
    const int py = y - Radius + i / side;
    const float value = whole ? reader.inside(channel, px, py) : reader.at(channel, px, py, 0.0F);
    if constexpr (Reader::may_be_nonfinite) finite = finite && isfinite(value);
    return value;
  });
}

constexpr int block_width = 32;
constexpr int block_height = 8;

template <int Radius>
__global__ void small_median(const __grid_constant__ Medians m) {
  const Rect& area = m.out.rect;
  const int x = area.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int y = area.y0 + cuda::block_row() * block_height + static_cast<int>(threadIdx.y);
  if (x >= area.x1 || y >= area.y1) return;
  bool finite = true;
  for (int plane = 0; plane < m.out.count; ++plane) {
    m.out.at(plane, x, y) = median_at<Radius>(m.in, plane, x, y, finite);
  }
}

template <PixelType Type, int Radius>
__global__ void direct_median(const __grid_constant__ DirectMedians m) {
  const Rect& area = m.samples.out.rect;
  const int x = area.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int y = area.y0 + cuda::block_row() * block_height + static_cast<int>(threadIdx.y);
  if (x >= area.x1 || y >= area.y1) return;
  cuda::SampleReader<Type> reader{m.samples};
  for (;;) {
    bool finite = true;
    const cuda::SampleWriter<Type> writer{m.samples, reader.filling};
    for (int channel = 0; channel < m.channels; ++channel) {
      writer.write(channel, x, y, median_at<Radius>(reader, channel, x, y, finite));
    }
    if (finite) {
      writer.finish_pixel(x, y, 0, m.channels);
      return;
    }
    reader.filling = true;  // then all are finite
  }
}

// Maps floats to integers of the same order.
__device__ unsigned ordered(float value) {
  const unsigned bits = __float_as_uint(value);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}
__device__ float from_ordered(unsigned key) {
  return __uint_as_float((key & 0x80000000U) != 0 ? key & 0x7fffffffU : ~key);
}

constexpr unsigned no_key = 0xffffffffU;  // above every number: excluded pixels

// The rank-th smallest (from 0) of the window.
__device__ unsigned select(const unsigned* window, int pitch, int side, int rank) {
  unsigned found = 0;
  for (unsigned bit = 0x80000000U; bit != 0; bit >>= 1U) {
    const unsigned trial = found | bit;
    int below = 0;
    for (int row = 0; row < side; ++row) {
      for (int column = 0; column < side; ++column) below += window[row * pitch + column] < trial ? 1 : 0;
    }
    if (below <= rank) found = trial;
  }
  return found;
}

__global__ void large_median(const __grid_constant__ Medians m) {
  extern __shared__ unsigned keys[];
  const int side = 2 * m.radius + 1;
  const int pitch = tile + 2 * m.radius;
  const Rect& area = m.out.rect;
  const int left = area.x0 + static_cast<int>(blockIdx.x) * tile;
  const int top = area.y0 + cuda::block_row() * tile;
  const int x = left + static_cast<int>(threadIdx.x);
  const int y = top + static_cast<int>(threadIdx.y);
  const bool shrink = m.in.border == Border::shrink;
  for (int plane = 0; plane < m.out.count; ++plane) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.y * tile + threadIdx.x); i < pitch * pitch; i += tile * tile) {
      const int px = left - m.radius + i % pitch;
      const int py = top - m.radius + i / pitch;
      const bool counts = !shrink || (px >= 0 && py >= 0 && px < m.in.image.width && py < m.in.image.height);
      keys[i] = counts ? ordered(m.in.at(plane, px, py, 0.0F)) : no_key;
    }
    __syncthreads();
    if (x >= area.x1 || y >= area.y1) continue;
    int count = side * side;
    if (shrink) {
      const int columns = min(x + m.radius, m.in.image.width - 1) - max(x - m.radius, 0) + 1;
      count = columns * (min(y + m.radius, m.in.image.height - 1) - max(y - m.radius, 0) + 1);
    }
    const unsigned* window = keys + threadIdx.y * pitch + threadIdx.x;
    float middle = from_ordered(select(window, pitch, side, count / 2));
    if (count % 2 == 0) {
      const float before = from_ordered(select(window, pitch, side, count / 2 - 1));
      middle = static_cast<float>((static_cast<double>(before) + middle) / 2);
    }
    m.out.at(plane, x, y) = middle;
  }
}

bool is_small(const MedianParams& params) { return params.radius <= 2 && params.border != Border::shrink; }

dim3 small_grid(const Rect& area) {
  return cuda::tall_grid(cuda::blocks_for(area.width(), block_width),
                         cuda::blocks_for(area.height(), block_height));
}

void launch_direct(const MedianParams& params, int channels, const DeviceDirectCall& call) {
  const DirectMedians medians{cuda::sample_image(call, params.border), channels};
  with_pixel_type(medians.samples.type, [&](auto type) {
    cuda::launch(params.radius == 1 ? direct_median<decltype(type)::value, 1>
                                    : direct_median<decltype(type)::value, 2>,
                 small_grid(medians.samples.out.rect), {block_width, block_height}, 0, call.stream, medians);
  });
}

void launch_median(const MedianParams& params, const DeviceStageCall& call) {
  const Medians medians{{call.in[0], call.image, params.border}, call.out, params.radius};
  const Rect& area = call.out.rect;
  if (is_small(params)) {
    cuda::launch(params.radius == 1 ? small_median<1> : small_median<2>, small_grid(area),
                 {block_width, block_height}, 0, call.stream, medians);
    return;
  }
  const std::size_t pitch = static_cast<std::size_t>(tile + 2 * params.radius);
  const dim3 grid =
      cuda::tall_grid(cuda::blocks_for(area.width(), tile), cuda::blocks_for(area.height(), tile));
  cuda::launch(large_median, grid, dim3(tile, tile), pitch * pitch * sizeof(unsigned), call.stream, medians);
}

}  // namespace

Pipeline median_cuda(const MedianParams& params, const ImageSpec& spec) {
  if (params.radius == 0) return {};
  Pipeline pipeline{
      .stages = {{.name = "median",
                  .reach = {.x = params.radius, .y = params.radius},
                  .planes = spec.colour_channels(),
                  .launch = [params](const DeviceStageCall& call) { launch_median(params, call); }}},
      .wraps = params.border == Border::wrap};
  if (is_small(params) && !pipeline.wraps) {
    pipeline.direct.launch = [params, channels = spec.colour_channels()](const DeviceDirectCall& call) {
      launch_direct(params, channels, call);
    };
  }
  return pipeline;
}

}  // namespace ungrain
