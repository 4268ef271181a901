// Small square windows, through registers: a thread owns a few columns and rows, reads the rows that they
// need one after the other and compares each row with those before it, so that the weight between two of the
// thread's own pixels is computed once. Every pixel adds its neighbours in the order of the window's rows and
// columns, in any thread, from planes or from samples. Bound by memory: each pixel is read once and written
// once; other reads come from the first-level cache or from shared memory.
#include "methods/bilateral/streamed.h"

#include <algorithm>
#include <cstdint>

#include "core/sample_types.h"
#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/window.cuh"

namespace ungrain {
namespace {

using cuda::BorderedPlane;
using cuda::SampleImage;
using cuda::SampleReader;
using cuda::Stored;

constexpr int radius = 1;
constexpr int block_width = 32;
constexpr int block_height = 4;

struct StreamedWeights {
  StreamedWeights(const cuda::WindowWeights& weights)
      : scale(weights.scale), unscale(weights.unscale), nothing(weights.nothing) {
    std::copy_n(weights.space, radius + 1, space);
  }

  float scale;
  float unscale;
  float nothing;
  float space[radius + 1];
};

struct StreamedCall {
  BorderedPlane in;
  Planes out;
  int first_channel;
  int left;  // first column of the first thread, aligned in memory
  StreamedWeights weights;
};

struct DirectStreamedCall {
  SampleImage samples;
  int first_channel;
  int left;
  StreamedWeights weights;
};

// N neighbouring samples, read and written at once.
template <PixelType Type, int N>
struct alignas(N * sizeof(Stored<Type>)) Run {
  Stored<Type> samples[N];
};

template <PixelType Type, int N>
__device__ void read_run(const unsigned char* from, float* to) {
  const auto run = *reinterpret_cast<const Run<Type, N>*>(from);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = cuda::to_float<Type>(run.samples[i]);
}

template <PixelType Type, int N>
__device__ void write_run(unsigned char* to, const float* values) {
  Run<Type, N> run;
#pragma unroll
  for (int i = 0; i < N; ++i) run.samples[i] = cuda::from_float<Type>(values[i]);
  *reinterpret_cast<Run<Type, N>*>(to) = run;
}

__device__ inline unsigned char* bytes_of(const float* floats) {
  return const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(floats));
}

// What a thread reads its rows from and writes its results to: planes, samples, or a tile in shared memory.
// read<Held>() gives pixels [x - radius, x + Columns + radius) of row y; Held: they are held, and aligned.
template <int Channels, int Columns>
struct PlaneImage {
  const StreamedCall& call;

  template <bool Held, int Side>
  __device__ void read(int x, int y, float (&to)[Channels][Side]) const {
    constexpr int around = (Side - Columns) / 2;
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      const int plane = call.first_channel + c;
      if constexpr (Held) {
        const float* from = &call.in.planes.at(plane, x, y);
        read_run<PixelType::f32, Columns>(bytes_of(from), to[c] + around);
#pragma unroll
        for (int i = 1; i <= around; ++i) {
          to[c][around - i] = from[-i];
          to[c][around + Columns - 1 + i] = from[Columns - 1 + i];
        }
      } else {
#pragma unroll
        for (int i = 0; i < Side; ++i) {
          to[c][i] = call.in.at(plane, x + i - around, y, call.weights.nothing);
        }
      }
    }
  }

  __device__ void write(int x, int y, const float (&results)[Channels][Columns]) const {
    const Rect& area = call.out.rect;
    if (y >= area.y1) return;
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      float* to = call.out.row(call.first_channel + c, y) + (x - area.x0);
      const bool whole = x >= area.x0 && x + Columns <= area.x1;
      if (whole && reinterpret_cast<std::uintptr_t>(to) % (Columns * sizeof(float)) == 0) {
        write_run<PixelType::f32, Columns>(bytes_of(to), results[c]);
      } else {
#pragma unroll
        for (int i = 0; i < Columns; ++i) {
          if (x + i >= area.x0 && x + i < area.x1) to[i] = results[c][i];
        }
      }
    }
  }
};

template <PixelType Type, int Channels, int Columns>
struct SamplesAsTheyLie {
  const DirectStreamedCall& call;
  SampleReader<Type> reader;

  template <bool Held, int Side>
  __device__ void read(int x, int y, float (&to)[Channels][Side]) const {
    constexpr int around = (Side - Columns) / 2;
    constexpr int size = bytes_per_sample(Type);
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      const int channel = call.first_channel + c;
      if constexpr (Held) {
        const unsigned char* from = call.samples.in.at(x, y, channel);
        read_run<Type, Columns>(from, to[c] + around);
#pragma unroll
        for (int i = 1; i <= around; ++i) {
          to[c][around - i] = cuda::read_sample<Type>(from - i * size);
          to[c][around + Columns - 1 + i] = cuda::read_sample<Type>(from + (Columns - 1 + i) * size);
        }
      } else {
#pragma unroll
        for (int i = 0; i < Side; ++i) {
          to[c][i] = reader.at(channel, x + i - around, y, call.weights.nothing);
        }
      }
    }
  }

  __device__ void write(int x, int y, const float (&results)[Channels][Columns]) const {
    const cuda::Samples& out = call.samples.out;
    if (y >= out.rect.y1) return;
    const bool whole = x >= out.rect.x0 && x + Columns <= out.rect.x1 && !reader.filling &&
                       out.strides.x == bytes_per_sample(Type);
    const cuda::SampleWriter<Type> writer{call.samples, reader.filling};
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      unsigned char* to = out.at(x, y, call.first_channel + c);
      if (whole && reinterpret_cast<std::uintptr_t>(to) % sizeof(Run<Type, Columns>) == 0) {
        write_run<Type, Columns>(to, results[c]);
      } else {
#pragma unroll
        for (int i = 0; i < Columns; ++i) {
          if (x + i >= out.rect.x0 && x + i < out.rect.x1) {
            writer.write(call.first_channel + c, x + i, y, results[c][i]);
          }
        }
      }
    }
  }
};

template <PixelType Type, int Channels, int Columns, int Rows>
__device__ void finish_pixels(const DirectStreamedCall& call, bool filling, int x0, int y0) {
  const Rect& area = call.samples.out.rect;
  const cuda::SampleWriter<Type> writer{call.samples, filling};
  for (int y = y0; y < min(y0 + Rows, area.y1); ++y) {
    for (int x = max(x0, area.x0); x < min(x0 + Columns, area.x1); ++x) {
      writer.finish_pixel(x, y, call.first_channel, Channels);
    }
  }
}

template <int Radius, int Channels, int Columns, int Rows, class Image>
class StreamedThread {
 public:
  __device__ StreamedThread(const StreamedWeights& weights, const Image& image, int x0, int y0)
      : space_weights_(weights), image_(image), x0_(x0), y0_(y0) {}

  // Returns whether all results are finite: of finite pixels they are, of others they are not.
  template <bool Held>
  __device__ bool filter() {
    float probe = 0;
#pragma unroll
    for (int row = -Radius; row < Rows + Radius; ++row) {
      load<Held>(row);
#pragma unroll
      for (int before = row - Radius; before < row; ++before) {
        if (before >= -Radius) meet(before, row);
      }
      if (row >= 0 && row < Rows) start_own_row(row);
      if (row - Radius >= 0) store(row - Radius, probe);
    }
    return probe == 0;
  }

 private:
  static constexpr int side = Columns + 2 * Radius;
  __device__ static constexpr bool is_own(int row, int column) {
    return row >= 0 && row < Rows && column >= 0 && column < Columns;
  }

  template <bool Held>
  __device__ void load(int row) {
    float values[Channels][side];
    image_.template read<Held>(x0_, y0_ + row, values);
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
#pragma unroll
      for (int i = 0; i < side; ++i) pixels_[c][row + Radius][i] = values[c][i] * space_weights_.scale;
    }
  }

  __device__ float weight_between(int row, int column, int other_row, int other_column, int dx) const {
    float exponent = space_weights_.space[other_row - row] + space_weights_.space[dx < 0 ? -dx : dx];
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      const float difference =
          pixels_[c][other_row + Radius][other_column + Radius] - pixels_[c][row + Radius][column + Radius];
      exponent = fmaf(-difference, difference, exponent);
    }
    return cuda::exp2_fast(exponent);
  }

  __device__ void add(int row, int column, int other_row, int other_column, float weight) {
    weights_[row][column] += weight;
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      sums_[c][row][column] =
          fmaf(weight, pixels_[c][other_row + Radius][other_column + Radius], sums_[c][row][column]);
    }
  }

  // Compares the pixels of two rows, the second below the first. Columns come in order, so that each pixel's
  // sums do.
  __device__ void meet(int above, int below) {
    if (below >= 0 && below < Rows && above == below - Radius) clear(below);
#pragma unroll
    for (int column = -Radius; column < Columns + Radius; ++column) {
#pragma unroll
      for (int dx = -Radius; dx <= Radius; ++dx) {
        const int other = column + dx;
        if (other < -Radius || other >= Columns + Radius) continue;
        if (!is_own(above, column) && !is_own(below, other)) continue;
        const float weight = weight_between(above, column, below, other, dx);
        if (is_own(above, column)) add(above, column, below, other, weight);
        if (is_own(below, other)) add(below, other, above, column, weight);
      }
    }
  }

  __device__ void clear(int row) {
#pragma unroll
    for (int column = 0; column < Columns; ++column) {
      weights_[row][column] = 0;
#pragma unroll
      for (int c = 0; c < Channels; ++c) sums_[c][row][column] = 0;
    }
  }

  // Compares the row's pixels with each other: left neighbours, the pixel itself, right neighbours.
  __device__ void start_own_row(int row) {
    float weights[side][Radius];  // of each pixel and those to its right
#pragma unroll
    for (int i = 0; i < side; ++i) {
#pragma unroll
      for (int dx = 1; dx <= Radius; ++dx) {
        const int column = i - Radius;
        const bool counts =
            column + dx < Columns + Radius && (is_own(row, column) || is_own(row, column + dx));
        weights[i][dx - 1] = counts ? weight_between(row, column, row, column + dx, dx) : 0;
      }
    }
#pragma unroll
    for (int column = 0; column < Columns; ++column) {
#pragma unroll
      for (int dx = -Radius; dx <= Radius; ++dx) {
        const int left = dx < 0 ? column + dx : column;
        const float weight = dx == 0 ? 1.0F : weights[left + Radius][(dx < 0 ? -dx : dx) - 1];
        add(row, column, row, column + dx, weight);
      }
    }
  }

  __device__ void store(int row, float& probe) const {
    float results[Channels][Columns];
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        results[c][i] = __fdividef(sums_[c][row][i], weights_[row][i]) * space_weights_.unscale;
        probe = fmaf(results[c][i], 0.0F, probe);
      }
    }
    image_.write(x0_, y0_ + row, results);
  }

  const StreamedWeights& space_weights_;
  const Image& image_;
  int x0_;
  int y0_;
  // Every index is a compile-time constant: all of it lies in registers, only as long as it is used.
  float pixels_[Channels][Rows + 2 * Radius][side];
  float weights_[Rows][Columns];
  float sums_[Channels][Rows][Columns];
};

template <int Radius, int Channels, int Columns, int Rows>
__global__ void __launch_bounds__(block_width* block_height)
    streamed_kernel(const __grid_constant__ StreamedCall call) {
  const Rect& area = call.out.rect;
  const int x0 = call.left + static_cast<int>(blockIdx.x * block_width + threadIdx.x) * Columns;
  const int y0 = area.y0 + (cuda::block_row() * block_height + static_cast<int>(threadIdx.y)) * Rows;
  if (x0 >= area.x1 || y0 >= area.y1) return;
  const PlaneImage<Channels, Columns> image{call};
  StreamedThread<Radius, Channels, Columns, Rows, PlaneImage<Channels, Columns>> thread(call.weights, image,
                                                                                        x0, y0);
  const bool aligned = reinterpret_cast<std::uintptr_t>(&call.in.planes.at(call.first_channel, x0, y0)) %
                               (Columns * sizeof(float)) ==
                           0 &&
                       call.in.planes.row_stride % Columns == 0 && call.in.planes.plane_stride % Columns == 0;
  if (aligned && call.in.holds(x0 - Radius, y0 - Radius, x0 + Columns + Radius, y0 + Rows + Radius)) {
    thread.template filter<true>();
  } else {
    thread.template filter<false>();
  }
}

// A thread's part of an image of samples, at the image's border or with samples that are not finite.
template <PixelType Type, int Radius, int Channels, int Columns, int Rows>
__device__ __noinline__ void filter_slowly(const DirectStreamedCall& call, int x0, int y0) {
  using Image = SamplesAsTheyLie<Type, Channels, Columns>;
  Image image{call, {call.samples}};
  StreamedThread<Radius, Channels, Columns, Rows, Image> thread(call.weights, image, x0, y0);
  for (;;) {
    if (thread.template filter<false>() || image.reader.filling) break;
    image.reader.filling = true;
  }
  finish_pixels<Type, Channels, Columns, Rows>(call, image.reader.filling, x0, y0);
}

// Samples as they lie, best where those of a channel are neighbours.
template <PixelType Type, int Radius, int Channels, int Columns, int Rows>
__global__ void __launch_bounds__(block_width* block_height, Channels == 1 ? 9 : 8)
    direct_streamed_kernel(const __grid_constant__ DirectStreamedCall call) {
  const cuda::Samples& in = call.samples.in;
  const Rect& area = call.samples.out.rect;
  const int x0 = call.left + static_cast<int>(blockIdx.x * block_width + threadIdx.x) * Columns;
  const int y0 = area.y0 + (cuda::block_row() * block_height + static_cast<int>(threadIdx.y)) * Rows;
  if (x0 >= area.x1 || y0 >= area.y1) return;
  using Image = SamplesAsTheyLie<Type, Channels, Columns>;
  const Image image{call, {call.samples}};
  constexpr int bytes = sizeof(Run<Type, Columns>);
  const bool aligned = in.strides.x == bytes_per_sample(Type) && in.strides.y % bytes == 0 &&
                       (Channels == 1 || in.strides.channel % bytes == 0) &&
                       reinterpret_cast<std::uintptr_t>(in.at(x0, y0, call.first_channel)) % bytes == 0;
  if (aligned && image.reader.holds(x0 - Radius, y0 - Radius, x0 + Columns + Radius, y0 + Rows + Radius)) {
    StreamedThread<Radius, Channels, Columns, Rows, Image> thread(call.weights, image, x0, y0);
    if (thread.template filter<true>() || !is_float(Type)) {
      if (call.samples.alpha >= 0) finish_pixels<Type, Channels, Columns, Rows>(call, false, x0, y0);
      return;
    }
  }
  filter_slowly<Type, Radius, Channels, Columns, Rows>(call, x0, y0);
}

// Samples of a row that lie side by side, gray or interleaved RGB: rows go to shared memory and back in the
// order in which they lie, so that neither width nor alignment matters.
template <int Channels, int Columns, int Rows>
struct PackedTile {
  static constexpr int around = radius;
  static constexpr int columns = block_width * Columns;
  static constexpr int rows = block_height * Rows;
  static constexpr int pitch = Channels * (columns + 2 * around);
  static constexpr int row_out = Channels * columns;
  static constexpr int side = Columns + 2 * around;
  static_assert(pitch % 2 == 0 && Channels * Columns % 2 == 0 && Channels * side % 2 == 0,
                "threads read and write pairs");

  float in[(rows + 2 * around) * pitch];
  float out[rows * row_out];
  int left;
  int top;

  template <bool Held, int Side>
  __device__ void read(int x, int y, float (&to)[Channels][Side]) const {
    static_assert(Side == side);
    const auto* pairs =
        reinterpret_cast<const float2*>(in + (y + around - top) * pitch + Channels * (x - left));
#pragma unroll
    for (int i = 0; i < Channels * side; i += 2) {
      const float2 pair = pairs[i / 2];
      to[i % Channels][i / Channels] = pair.x;
      to[(i + 1) % Channels][(i + 1) / Channels] = pair.y;
    }
  }

  __device__ void write(int x, int y, const float (&results)[Channels][Columns]) const {
    auto* pairs =
        reinterpret_cast<float2*>(const_cast<float*>(out) + (y - top) * row_out + Channels * (x - left));
#pragma unroll
    for (int i = 0; i < Channels * Columns; i += 2) {
      pairs[i / 2] =
          make_float2(results[i % Channels][i / Channels], results[(i + 1) % Channels][(i + 1) / Channels]);
    }
  }

  // Returns whether what the thread has read is finite. Called by all threads.
  template <PixelType Type>
  __device__ bool load(const SampleReader<Type>& reader, int first_channel, float nothing) {
    const int x0 = left - around;
    const int y0 = top - around;
    bool finite = true;
    if (reader.holds(x0, y0, x0 + columns + 2 * around, y0 + rows + 2 * around)) {
      constexpr int each = (pitch + block_width - 1) / block_width;
      const auto lane = static_cast<int>(threadIdx.x);
#pragma unroll(Channels == 1 ? 2 : 1)
      for (int row = static_cast<int>(threadIdx.y); row < rows + 2 * around; row += block_height) {
        const unsigned char* from =
            reader.image.in.at(x0, y0 + row, first_channel) + lane * bytes_per_sample(Type);
        float values[each];
#pragma unroll
        for (int i = 0; i < each; ++i) {
          const bool exists = (i + 1) * block_width <= pitch || i * block_width + lane < pitch;
          values[i] =
              exists ? cuda::read_sample<Type>(from + i * block_width * bytes_per_sample(Type)) : 0.0F;
        }
#pragma unroll
        for (int i = 0; i < each; ++i) {
          const bool exists = (i + 1) * block_width <= pitch || i * block_width + lane < pitch;
          if constexpr (is_float(Type)) finite = finite && isfinite(values[i]);
          if (exists) in[row * pitch + i * block_width + lane] = values[i];
        }
      }
      return finite;
    }
    constexpr int threads = block_width * block_height;
    const auto thread = static_cast<int>(threadIdx.y * block_width + threadIdx.x);
#pragma unroll 1
    for (int i = thread; i < (rows + 2 * around) * pitch; i += threads) {
      const int sample = i % pitch;
      const float value =
          reader.at(first_channel + sample % Channels, x0 + sample / Channels, y0 + i / pitch, nothing);
      if constexpr (is_float(Type)) finite = finite && isfinite(value);
      in[i] = value;
    }
    return finite;
  }

  // The warp's own rows.
  template <PixelType Type>
  __device__ void store(const cuda::SampleWriter<Type>& writer, int first_channel) const {
    const cuda::Samples& image = writer.image.out;
    const int samples = Channels * min(columns, image.rect.x1 - left);
    const auto lane = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      const int row = static_cast<int>(threadIdx.y) * Rows + k;
      const int y = top + row;
      if (y >= image.rect.y1) return;
      const float* results = out + row * row_out;
      if (writer.filling) {
#pragma unroll 1
        for (int i = lane; i < samples; i += block_width) {
          const int x = left + i / Channels;
          writer.write(first_channel + i % Channels, x, y, results[i]);
          if (i % Channels == 0) writer.finish_pixel(x, y, first_channel, Channels);
        }
        continue;
      }
      unsigned char* to = image.at(left, y, first_channel) + lane * bytes_per_sample(Type);
#pragma unroll
      for (int i = 0; i < row_out / block_width; ++i) {
        if (i * block_width + lane >= samples) continue;
        cuda::write_sample<Type>(to + i * block_width * bytes_per_sample(Type),
                                 results[i * block_width + lane]);
      }
    }
  }
};

template <PixelType Type, int Channels, int Columns, int Rows>
__global__ void __launch_bounds__(block_width* block_height)
    packed_streamed_kernel(const __grid_constant__ DirectStreamedCall call) {
  using Tile = PackedTile<Channels, Columns, Rows>;
  __shared__ alignas(8) Tile tile;
  const Rect& area = call.samples.out.rect;
  const int left = area.x0 + static_cast<int>(blockIdx.x) * Tile::columns;
  const int top = area.y0 + cuda::block_row() * Tile::rows;
  if (top >= area.y1) return;  // all threads of the block
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    tile.left = left;
    tile.top = top;
  }
  __syncthreads();
  SampleReader<Type> reader{call.samples};
  const bool finite = tile.load(reader, call.first_channel, call.weights.nothing);
  if (__syncthreads_and(finite ? 1 : 0) == 0) {
    reader.filling = true;
    tile.load(reader, call.first_channel, call.weights.nothing);
    __syncthreads();
  }
  StreamedThread<radius, Channels, Columns, Rows, Tile> thread(call.weights, tile,
                                                               left + static_cast<int>(threadIdx.x) * Columns,
                                                               top + static_cast<int>(threadIdx.y) * Rows);
  thread.template filter<true>();
  __syncwarp();
  tile.store(cuda::SampleWriter<Type>{call.samples, reader.filling}, call.first_channel);
}

// The thread that owns the first column also owns as many before it as align its columns in memory.
template <class Call>
dim3 aligned_grid(Call& call, const Rect& area, const void* first, int size, int columns, int rows) {
  const auto before = static_cast<int>(reinterpret_cast<std::uintptr_t>(first) / size % columns);
  call.left = area.x0 - before;
  return cuda::tall_grid(cuda::blocks_for(area.width() + before, block_width * columns),
                         cuda::blocks_for(area.height(), block_height * rows));
}

// Columns and rows of a thread.
constexpr int gray_columns = 4;
constexpr int gray_rows = 2;
constexpr int packed_gray_rows = 4;
constexpr int rgb_columns = 2;
constexpr int rgb_rows = 4;

template <PixelType Type, int Channels, int Columns, int Rows>
void launch_packed(const DirectStreamedCall& call, Stream stream) {
  using Tile = PackedTile<Channels, Columns, Rows>;
  const Rect& area = call.samples.out.rect;
  const dim3 grid = cuda::tall_grid(cuda::blocks_for(area.width(), Tile::columns),
                                    cuda::blocks_for(area.height(), Tile::rows));
  cuda::launch(packed_streamed_kernel<Type, Channels, Columns, Rows>, grid, dim3(block_width, block_height),
               0, stream, call);
}

template <PixelType Type, int Channels, int Columns, int Rows>
void launch_as_they_lie(DirectStreamedCall call, Stream stream) {
  const cuda::Samples& in = call.samples.in;
  const Rect& area = call.samples.out.rect;
  const unsigned char* first = in.data + (area.x0 - in.rect.x0) * in.strides.x +
                               (area.y0 - in.rect.y0) * in.strides.y +
                               call.first_channel * in.strides.channel;
  const dim3 grid = aligned_grid(call, area, first, bytes_per_sample(Type), Columns, Rows);
  cuda::launch(direct_streamed_kernel<Type, radius, Channels, Columns, Rows>, grid,
               dim3(block_width, block_height), 0, stream, call);
}

template <PixelType Type>
void launch_direct(const DirectStreamedCall& call, int channels, Stream stream) {
  constexpr int size = bytes_per_sample(Type);
  const cuda::SampleImage& samples = call.samples;
  const auto is_packed = [&](const cuda::Samples& image) {
    return image.strides.x == channels * size && (channels == 1 || image.strides.channel == size);
  };
  const bool packed = is_packed(samples.in) && is_packed(samples.out) && samples.alpha < 0;
  if (channels == 1) {
    packed ? launch_packed<Type, 1, gray_columns, packed_gray_rows>(call, stream)
           : launch_as_they_lie<Type, 1, gray_columns, gray_rows>(call, stream);
  } else {
    packed ? launch_packed<Type, 3, rgb_columns, rgb_rows>(call, stream)
           : launch_as_they_lie<Type, 3, rgb_columns, rgb_rows>(call, stream);
  }
}

}  // namespace

void launch_streamed_bilateral(const cuda::WindowWeights& weights, Border border, int first_channel,
                               int channels, const DeviceStageCall& call) {
  StreamedCall of_call{{call.in[0], call.image, border}, call.out, first_channel, 0, weights};
  const Rect& area = call.out.rect;
  const float* first = &of_call.in.planes.at(first_channel, area.x0, area.y0);
  const dim3 block(block_width, block_height);
  if (channels == 1) {
    const dim3 grid = aligned_grid(of_call, area, first, sizeof(float), gray_columns, gray_rows);
    cuda::launch(streamed_kernel<radius, 1, gray_columns, gray_rows>, grid, block, 0, call.stream, of_call);
  } else {
    const dim3 grid = aligned_grid(of_call, area, first, sizeof(float), rgb_columns, rgb_rows);
    cuda::launch(streamed_kernel<radius, 3, rgb_columns, rgb_rows>, grid, block, 0, call.stream, of_call);
  }
}

void launch_streamed_bilateral(const cuda::WindowWeights& weights, int first_channel, int channels,
                               const cuda::SampleImage& samples, Stream stream) {
  with_pixel_type(samples.type, [&](auto type) {
    launch_direct<decltype(type)::value>({samples, first_channel, 0, weights}, channels, stream);
  });
}

}  // namespace ungrain
