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

constexpr int most_images = 2 * 16 + 1;

struct Medians {
  BorderedPlane in;  // the image that is filtered
  Planes out;
  int radius;
  // The images whose windows take part, which lie like `in`; null: all zeros.
  int images = 0;
  const float* image_data[most_images] = {};
  int images_at_once = 1;  // that large_median holds in shared memory

  __device__ float at(int image, int plane, int x, int y) const {
    if (image_data[image] == nullptr) return 0;
    BorderedPlane from = in;
    from.planes.data = image_data[image];
    return from.at(plane, x, y, 0.0F);
  }
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
template <int count, class Pixel>
__device__ float middle_of(Pixel pixel) {
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
  return middle_of<side * side>([&](int i) {
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

// The same of radius 1 over three images of a sequence.
__global__ void small_median_of_images(const __grid_constant__ Medians m) {
  constexpr int side = 3;
  const Rect& area = m.out.rect;
  const int x = area.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int y = area.y0 + cuda::block_row() * block_height + static_cast<int>(threadIdx.y);
  if (x >= area.x1 || y >= area.y1) return;
  for (int plane = 0; plane < m.out.count; ++plane) {
    m.out.at(plane, x, y) = middle_of<side * side * side>(
        [&](int i) { return m.at(i / (side * side), plane, x - 1 + i % side, y - 1 + i / side % side); });
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

// A block's tiles of keys in shared memory, of as many images at once as fit.
class KeyTiles {
 public:
  __device__ KeyTiles(const Medians& medians, unsigned* keys)
      : m_(medians),
        keys_(keys),
        pitch_(tile + 2 * medians.radius),
        left_(medians.out.rect.x0 + static_cast<int>(blockIdx.x) * tile),
        top_(medians.out.rect.y0 + cuda::block_row() * tile) {}

  __device__ int x() const { return left_ + static_cast<int>(threadIdx.x); }
  __device__ int y() const { return top_ + static_cast<int>(threadIdx.y); }

  // How many values the windows of the thread's pixel have.
  __device__ int count() const {
    const int side = 2 * m_.radius + 1;
    if (m_.in.border != Border::shrink) return side * side * m_.images;
    const int columns = min(x() + m_.radius, m_.in.image.width - 1) - max(x() - m_.radius, 0) + 1;
    const int rows = min(y() + m_.radius, m_.in.image.height - 1) - max(y() - m_.radius, 0) + 1;
    return columns * rows * m_.images;
  }

  __device__ void start_plane(int plane) {
    plane_ = plane;
    if (all_at_once()) load(0);
  }

  // The rank-th smallest (from 0) of the thread's windows. Called by all threads of the block.
  __device__ unsigned select(int rank) {
    unsigned found = 0;
    for (unsigned bit = 0x80000000U; bit != 0; bit >>= 1U) {
      const unsigned trial = found | bit;
      int below = 0;
      for (int image = 0; image < m_.images; image += m_.images_at_once) {
        if (!all_at_once()) load(image);
        below += count_below(min(m_.images_at_once, m_.images - image), trial);
      }
      if (below <= rank) found = trial;
    }
    return found;
  }

 private:
  __device__ bool all_at_once() const { return m_.images_at_once >= m_.images; }

  __device__ void load(int first_image) {
    const bool shrink = m_.in.border == Border::shrink;
    const int size = pitch_ * pitch_;
    const int images = min(m_.images_at_once, m_.images - first_image);
    __syncthreads();
    for (int image = 0; image < images; ++image) {
      for (int i = static_cast<int>(threadIdx.y * tile + threadIdx.x); i < size; i += tile * tile) {
        const int px = left_ - m_.radius + i % pitch_;
        const int py = top_ - m_.radius + i / pitch_;
        const bool counts =
            !shrink || (px >= 0 && py >= 0 && px < m_.in.image.width && py < m_.in.image.height);
        keys_[image * size + i] = counts ? ordered(m_.at(first_image + image, plane_, px, py)) : no_key;
      }
    }
    __syncthreads();
  }

  __device__ int count_below(int images, unsigned trial) const {
    const int side = 2 * m_.radius + 1;
    const unsigned* window = keys_ + threadIdx.y * pitch_ + threadIdx.x;
    int below = 0;
    for (int image = 0; image < images; ++image, window += pitch_ * pitch_) {
      for (int row = 0; row < side; ++row) {
        for (int column = 0; column < side; ++column) below += window[row * pitch_ + column] < trial ? 1 : 0;
      }
    }
    return below;
  }

  const Medians& m_;
  unsigned* keys_;
  int pitch_;
  int left_;
  int top_;
  int plane_ = 0;
};

__global__ void large_median(const __grid_constant__ Medians m) {
  extern __shared__ unsigned keys[];
  KeyTiles tiles(m, keys);
  const Rect& area = m.out.rect;
  const bool is_mine = tiles.x() < area.x1 && tiles.y() < area.y1;
  // Threads beyond the area and those whose window has an odd number of values take the same steps as all.
  const int count = tiles.count();
  const bool averages = __syncthreads_or(is_mine && count % 2 == 0 ? 1 : 0) != 0;
  for (int plane = 0; plane < m.out.count; ++plane) {
    tiles.start_plane(plane);
    float middle = from_ordered(tiles.select(count / 2));
    if (averages) {
      const float before = from_ordered(tiles.select(count / 2 - 1));
      if (count % 2 == 0) middle = static_cast<float>((static_cast<double>(before) + middle) / 2);
    }
    if (is_mine) m.out.at(plane, tiles.x(), tiles.y()) = middle;
  }
}

// Windows of one image that are held in registers.
bool is_small(const MedianParams& params) {
  return params.radius_t == 0 && params.radius <= 2 && params.border != Border::shrink;
}

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

Medians medians_of(const MedianParams& params, const DeviceStageCall& call) {
  Medians medians{{call.at(0, 0), call.image, params.border}, call.out, params.radius};
  for (int offset = -call.reach.before; offset <= call.reach.after; ++offset) {
    const float* const data = call.at(0, offset).data;
    if (data != nullptr || params.border != Border::shrink) medians.image_data[medians.images++] = data;
  }
  return medians;
}

void launch_median(const MedianParams& params, const DeviceStageCall& call) {
  Medians medians = medians_of(params, call);
  const Rect& area = call.out.rect;
  if (is_small(params)) {
    cuda::launch(params.radius == 1 ? small_median<1> : small_median<2>, small_grid(area),
                 {block_width, block_height}, 0, call.stream, medians);
    return;
  }
  if (params.radius == 1 && params.radius_t == 1 && params.border != Border::shrink) {
    cuda::launch(small_median_of_images, small_grid(area), {block_width, block_height}, 0, call.stream,
                 medians);
    return;
  }
  const std::size_t pitch = static_cast<std::size_t>(tile + 2 * params.radius);
  const std::size_t bytes = pitch * pitch * sizeof(unsigned);  // of one image: at most 81 KB
  constexpr std::size_t most_bytes = 96 * 1024;
  medians.images_at_once = std::min(medians.images, static_cast<int>(most_bytes / bytes));
  const dim3 grid =
      cuda::tall_grid(cuda::blocks_for(area.width(), tile), cuda::blocks_for(area.height(), tile));
  cuda::launch(large_median, grid, dim3(tile, tile), bytes * static_cast<std::size_t>(medians.images_at_once),
               call.stream, medians);
}

}  // namespace

Pipeline median_cuda(const MedianParams& params, const ImageSpec& spec) {
  if (params.radius == 0 && params.radius_t == 0) return {};
  Pipeline pipeline{
      .stages = {{.name = "median",
                  .reach = {.x = params.radius,
                            .y = params.radius,
                            .before = params.radius_t,
                            .after = params.radius_t},
                  .planes = spec.colour_channels(),
                  .launch = [params](const DeviceStageCall& call) { launch_median(params, call); }}},
      .wraps = params.border == Border::wrap,
      .slow_border = params.border};
  if (is_small(params) && !pipeline.wraps) {
    pipeline.direct.launch = [params, channels = spec.colour_channels()](const DeviceDirectCall& call) {
      launch_direct(params, channels, call);
    };
  }
  return pipeline;
}

}  // namespace ungrain
