// A block's tile of the bilateral family, and its loop over the window.
//
// A lane is a column, and a thread owns `rows_each` rows of it; the tile and its halo lie in shared memory,
// scaled so that a squared difference is an exponent. The loop goes over the window's columns; within one,
// every pixel that is read serves all of the thread's rows that it is near.
#pragma once

#include <type_traits>
#include <utility>

#include "cuda/exp2.cuh"
#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/samples.cuh"
#include "cuda/window.h"

namespace ungrain::cuda {

inline constexpr int tile_width = 32;
inline constexpr int rows_each = 8;
inline constexpr int tile_warps = 4;
inline constexpr int tile_height = rows_each * tile_warps;
inline constexpr int tile_threads = tile_width * tile_warps;

// Scaled values are kept below this, so that sums of their squared differences stay finite. A pixel beyond it
// has no neighbour that counts, or only such neighbours: it stays as it is.
inline constexpr float most_scaled = 1e18F;

inline constexpr int most_other_images = 2 * 16;

// From planes to planes.
struct WindowCall {
  BorderedPlane in;
  Planes out;
  int first_channel;
  WindowWeights weights;
  // Images of a sequence beside `in` whose windows take part; they lie like it.
  int other_images = 0;
  const float* other_data[most_other_images] = {};
  float other_exponents[most_other_images] = {};  // of 2, of their weights

  struct Writer {
    const Planes& out;
    __device__ void write(int channel, int x, int y, float value) const { out.at(channel, x, y) = value; }
    __device__ void finish_pixel(int, int, int, int) const {}
  };
  __device__ const Rect& area() const { return out.rect; }
  __device__ float exponent(int image) const { return image > 0 ? other_exponents[image - 1] : 0; }
  __device__ float pixel(int channel, int x, int y) const { return in.inside(channel, x, y); }
  // image: 0 is `in`, k the k-th other image.
  template <class Use>
  __device__ void with_reader(int image, Use use) const {
    BorderedPlane from = in;
    if (image > 0) from.planes.data = other_data[image - 1];
    use(from);
  }
  template <class Use>
  __device__ void with_writer(bool, Use use) const {
    use(Writer{out});
  }
};

// From samples to samples of a type.
template <PixelType Type>
struct DirectWindowCall {
  SampleImage samples;
  int first_channel;
  WindowWeights weights;
  static constexpr int other_images = 0;

  __device__ const Rect& area() const { return samples.out.rect; }
  // In the middle of the window: it is held.
  __device__ float pixel(int channel, int x, int y) const {
    return SampleReader<Type>{samples, true}.inside(channel, x, y);
  }
  template <class Use>
  __device__ void with_reader(int, Use use) const {
    use(SampleReader<Type>{samples});
  }
  template <class Use>
  __device__ void with_writer(bool filling, Use use) const {
    use(SampleWriter<Type>{samples, filling});
  }
};

// One block's part of the image. Channels share a weight; Rows of the window are in shared memory at a time;
// Bounded keeps scaled values below most_scaled. Call: WindowCall or DirectWindowCall.
template <int Channels, int Rows, bool Bounded, class Call = WindowCall>
class WindowBlock {
 public:
  __device__ WindowBlock(const Call& call, float* shared)
      : call_(call),
        shared_(shared),
        lane_(static_cast<int>(threadIdx.x) % tile_width),
        warp_(static_cast<int>(threadIdx.x) / tile_width),
        left_(call.area().x0 + static_cast<int>(blockIdx.x) * tile_width),
        top_(call.area().y0 + block_row() * tile_height),
        pitch_(tile_width + 2 * call.weights.reach_x),
        plane_(pitch_ * loaded_rows) {}

  static std::size_t shared_bytes(int reach_x) {
    const std::size_t pixels = Channels * (tile_width + 2 * static_cast<std::size_t>(reach_x)) * loaded_rows;
    return sizeof(float) * pixels + sizeof(int) * loaded_rows;  // then the positions of its rows
  }

  __device__ int x() const { return left_ + lane_; }
  __device__ int y(int row) const { return top_ + warp_ * rows_each + row; }
  __device__ bool is_mine(int row) const { return x() < call_.area().x1 && y(row) < call_.area().y1; }

  // The thread's own pixels, scaled; undefined outside the image. Called first, by all threads of the block.
  __device__ void load_centres(float (&centre)[Channels][rows_each]) {
    if constexpr (whole_height) load(-call_.weights.reach_y);
    const float* column = shared_ + (warp_ * rows_each + Rows / 2) * pitch_ + lane_ + call_.weights.reach_x;
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
#pragma unroll
      for (int k = 0; k < rows_each; ++k) {
        if constexpr (whole_height) {
          centre[c][k] = column[c * plane_ + k * pitch_];
        } else {
          centre[c][k] = is_mine(k) ? bounded(pixel(c, k) * call_.weights.scale) : 0;
        }
      }
    }
  }

  // Stores the results of the thread's pixels from their sums; `centre` comes from load_centres().
  __device__ void store(const float (&centre)[Channels][rows_each], const float (&sums)[Channels][rows_each],
                        const float (&weights)[rows_each]) const {
    call_.with_writer(filling_, [&](auto writer) {
#pragma unroll
      for (int k = 0; k < rows_each; ++k) {
        if (is_mine(k)) store_row(writer, k, centre, sums, weights[k]);
      }
    });
  }

  // Calls visit(k, values, exponent) for every row k of the thread and every pixel of its window: the pixel's
  // scaled channels, and the exponent of its distance. Called by all threads of the block.
  template <class Visit>
  __device__ void for_window(Visit visit) {
    const WindowWeights& w = call_.weights;
    for (int first = -w.reach_y; first <= w.reach_y; first += Rows) {
      if constexpr (!whole_height) load(first);
      for (int dx = -w.reach_x; dx <= w.reach_x; ++dx) {
        float exponents[Rows];
        find_exponents(first, dx, exponents);
        const float* column = shared_ + warp_ * rows_each * pitch_ + lane_ + dx + w.reach_x;
#pragma unroll
        for (int j = 0; j < rows_each + Rows - 1; ++j) {
          float values[Channels];
#pragma unroll
          for (int c = 0; c < Channels; ++c) values[c] = column[c * plane_ + j * pitch_];
#pragma unroll
          for (int k = 0; k < rows_each; ++k) {
            if (j - k >= 0 && j - k < Rows) visit(k, values, exponents[j - k]);
          }
        }
      }
    }
  }

  // The same, where the window is the square for whose height the kernel was compiled. The exponents are of
  // the distances along columns only, constants for the compiler; visit(k, row, values, exponent) also takes
  // the window's row. After each column of the window end_column(weight) takes the weight of its distance.
  template <class Visit, class EndColumn>
  __device__ void for_square_window(Visit visit, EndColumn end_column) {
    static_assert(whole_height);
    constexpr int reach = Rows / 2;
    constexpr int pitch = tile_width + 2 * reach;
    const float* column = shared_ + warp_ * rows_each * pitch + lane_;
#pragma unroll 1
    for (int dx = -reach; dx <= reach; ++dx, ++column) {
#pragma unroll
      for (int j = 0; j < rows_each + Rows - 1; ++j) {
        float values[Channels];
#pragma unroll
        for (int c = 0; c < Channels; ++c) values[c] = column[c * plane_ + j * pitch];
#pragma unroll
        for (int k = 0; k < rows_each; ++k) {
          const int row = j - k;
          if (row >= 0 && row < Rows) visit(k, row, values, call_.weights.space[abs(row - reach)]);
        }
      }
      end_column(exp2_fast(call_.weights.space[abs(dx)]));
    }
  }

  // for_window() for the windows of all images.
  template <class Visit>
  __device__ void for_window_of_images(Visit visit) {
    for (image_ = 0; image_ <= call_.other_images; ++image_) {
      if constexpr (whole_height) {
        if (image_ > 0) load(-call_.weights.reach_y);  // load_centres() has loaded the first
      }
      const float exponent_of_image = call_.exponent(image_);
      for_window([&](int k, const float(&values)[Channels], float exponent) {
        visit(k, values, exponent + exponent_of_image);
      });
    }
  }

 private:
  __device__ float pixel(int c, int k) const { return call_.pixel(call_.first_channel + c, x(), y(k)); }

  template <class Writer>
  __device__ void store_row(const Writer& writer, int k, const float (&centre)[Channels][rows_each],
                            const float (&sums)[Channels][rows_each], float weights) const {
    bool in_bounds = true;
    if constexpr (Bounded) {
#pragma unroll
      for (int c = 0; c < Channels; ++c) in_bounds = in_bounds && fabsf(centre[c][k]) < most_scaled;
    }
    const float inverse = 1.0F / weights;
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      const float result = in_bounds ? sums[c][k] * inverse * call_.weights.unscale : pixel(c, k);
      writer.write(call_.first_channel + c, x(), y(k), result);
    }
    writer.finish_pixel(x(), y(k), call_.first_channel, Channels);
  }

  __device__ static float bounded(float scaled) {
    return Bounded ? fminf(fmaxf(scaled, -most_scaled), most_scaled) : scaled;
  }

  // Exponents of column dx, rows [first, first + Rows) of the window.
  __device__ void find_exponents(int first, int dx, float (&exponents)[Rows]) const {
    const WindowWeights& w = call_.weights;
    const float across = w.space[abs(dx)];
    if (whole_height && w.square) {
#pragma unroll
      for (int t = 0; t <= Rows / 2; ++t) {
        exponents[t] = across + w.space[Rows / 2 - t];
        exponents[Rows - 1 - t] = exponents[t];
      }
      return;
    }
    const int height = w.height[abs(dx)];
#pragma unroll
    for (int t = 0; t < Rows; ++t) {
      const int dy = abs(first + t);
      exponents[t] = dy <= height ? across + w.space[dy] : -INFINITY;
    }
  }

  // Loads the rows that the window's rows [first, first + Rows) need.
  __device__ void load(int first) {
    call_.with_reader(image_, [&](auto reader) {
      __syncthreads();
      const bool finite = load_from(reader, first);
      if constexpr (decltype(reader)::may_be_nonfinite) {
        if (__syncthreads_and(finite ? 1 : 0) != 0) return;
        reader.filling = filling_ = true;
        load_from(reader, first);
      }
      __syncthreads();
    });
  }

  // Returns whether what the thread has read is finite.
  template <class Reader>
  __device__ bool load_from(const Reader& reader, int first) {
    const int x0 = left_ - call_.weights.reach_x;
    const int y0 = top_ + first;
    bool finite = true;
    if (reader.holds(x0, y0, x0 + pitch_, y0 + loaded_rows)) {
      for (int column = lane_; column < pitch_; column += tile_width) {
        typename Reader::Column from[Channels];
#pragma unroll
        for (int c = 0; c < Channels; ++c) from[c] = reader.column(call_.first_channel + c, x0 + column, y0);
        finite &= load_column<Reader::may_be_nonfinite>(column, [&](int c, int row) { return from[c][row]; });
      }
    } else {
      auto* found_rows = reinterpret_cast<int*>(shared_ + Channels * plane_);
      const auto thread = static_cast<int>(threadIdx.x);
      if (thread < loaded_rows) found_rows[thread] = reader.row_for(y0 + thread);
      __syncthreads();
      for (int column = lane_; column < pitch_; column += tile_width) {
        const int found = reader.column_for(x0 + column);
        finite &= load_column<Reader::may_be_nonfinite>(column, [&](int c, int row) {
          return reader.at_found(call_.first_channel + c, found, found_rows[row], call_.weights.nothing);
        });
      }
    }
    return finite;
  }

  // Loads the warp's rows of a column, several pixels at a time, so that none waits for another. Returns
  // whether they are finite, where Checked.
  template <bool Checked, class Read>
  __device__ bool load_column(int column, Read read) {
    constexpr int each = (loaded_rows + tile_warps - 1) / tile_warps;
    constexpr int pixels_at_once = 12 / Channels;
    const auto exists = [&](int i) {  // the warp's row i
      return i < each && ((i + 1) * tile_warps <= loaded_rows || warp_ + i * tile_warps < loaded_rows);
    };
    bool finite = true;
#pragma unroll
    for (int first = 0; first < each; first += pixels_at_once) {
      float values[pixels_at_once][Channels];
#pragma unroll
      for (int i = 0; i < pixels_at_once; ++i) {
#pragma unroll
        for (int c = 0; c < Channels; ++c) {
          if (exists(first + i)) values[i][c] = read(c, warp_ + (first + i) * tile_warps);
        }
      }
#pragma unroll
      for (int i = 0; i < pixels_at_once; ++i) {
        float* to = shared_ + (warp_ + (first + i) * tile_warps) * pitch_ + column;
#pragma unroll
        for (int c = 0; c < Channels; ++c) {
          if (!exists(first + i)) continue;
          if constexpr (Checked) finite = finite && isfinite(values[i][c]);
          to[c * plane_] = bounded(values[i][c] * call_.weights.scale);
        }
      }
    }
    return finite;
  }

  // An odd number of rows is the window's height: a kernel compiled for it takes all rows at once.
  static constexpr bool whole_height = Rows % 2 == 1;
  static constexpr int loaded_rows = tile_height + Rows - 1;
  static_assert(loaded_rows <= tile_threads);

  const Call& call_;
  int image_ = 0;         // that is loaded: Call::with_reader()
  bool filling_ = false;  // a sample near the block is not finite
  float* shared_;
  int lane_;
  int warp_;
  int left_;
  int top_;
  int pitch_;
  int plane_;
};

inline dim3 window_grid(const Rect& area) {
  return tall_grid(blocks_for(area.width(), tile_width), blocks_for(area.height(), tile_height));
}

// The largest radius of windows with kernels that work on samples directly: larger ones take so long that the
// conversions to planes and back hardly count.
inline constexpr int most_direct_radius = 3;

// Rows of the window that a kernel takes at a time where it was not compiled for the window's height.
inline constexpr int generic_rows = 16;

// The largest vertical reaches for which kernels are compiled, for gray and colour. Taller windows would have
// so many instructions that the generic kernel, which takes as many rows in two passes, is faster.
template <int Channels>
using CompiledReaches = std::make_integer_sequence<int, Channels == 1   ? 16
                                                        : Channels == 3 ? 14
                                                                        : 0>;

// Calls make(rows): `rows` is a constant, the window's height where its vertical reach is one of Reaches,
// else generic_rows.
template <typename Make, int... Reaches>
auto with_rows(int reach, std::integer_sequence<int, Reaches...>, Make make) {
  auto made = make(std::integral_constant<int, generic_rows>());
  ((reach == Reaches ? void(made = make(std::integral_constant<int, 2 * Reaches + 1>())) : void()), ...);
  return made;
}

}  // namespace ungrain::cuda
