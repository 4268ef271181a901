#include "cuda/separable.h"

#include "core/sample_types.h"
#include "cuda/launch.cuh"
#include "cuda/load.cuh"
#include "cuda/samples.cuh"

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
template <class Mean>
__device__ float inside(const Mean& m, int i, int n) {
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

// Both passes over samples: a tile and its surroundings in shared memory, their means along rows beside them.
constexpr int most_direct_radius = 16;
constexpr int tile = 32;
constexpr int tile_rows_each = tile / block_height;  // of a thread

struct DirectMeans {
  SampleImage samples;
  int channels;
  int radius;
  float weights[most_direct_radius + 1];
};

std::size_t direct_shared_bytes(int radius) {
  const std::size_t side = static_cast<std::size_t>(tile + 2 * radius);
  return sizeof(float) * side * (side + tile);
}

class MeanTile {
 public:
  __device__ MeanTile(const DirectMeans& means, float* shared)
      : m_(means),
        side_(tile + 2 * means.radius),
        lane_(static_cast<int>(threadIdx.x)),
        row_(static_cast<int>(threadIdx.y)),
        left_(means.samples.out.rect.x0 + static_cast<int>(blockIdx.x) * tile),
        top_(means.samples.out.rect.y0 + block_row() * tile),
        pixels_(shared),
        row_means_(shared + side_ * side_) {}

  template <class Reader>
  __device__ void filter(Reader reader) {
    bool filling = false;
    for (int channel = 0; channel < m_.channels; ++channel) {
      __syncthreads();  // the tile of the channel before has been read
      reader.filling = filling;
      const bool finite = load(reader, channel);
      if constexpr (Reader::may_be_nonfinite) {
        if (__syncthreads_and(finite ? 1 : 0) == 0) {
          reader.filling = true;
          load(reader, channel);
        }
      }
      __syncthreads();
      along_rows();
      __syncthreads();
      along_columns(channel, SampleWriter<Reader::type>{m_.samples, reader.filling});
      filling = filling || reader.filling;
    }
    const SampleWriter<Reader::type> writer{m_.samples, filling};
    for_own_rows([&](int, int y) { writer.finish_pixel(left_ + lane_, y, 0, m_.channels); });
  }

 private:
  // Returns whether what the thread has read is finite.
  template <class Reader>
  __device__ bool load(const Reader& reader, int channel) {
    const int x0 = left_ - m_.radius;
    const int y0 = top_ - m_.radius;
    const bool held = reader.holds(x0, y0, x0 + side_, y0 + side_);
    bool finite = true;
    for (int x = lane_; x < side_; x += tile) {
      const int column = held ? x0 + x : reader.column_for(x0 + x);
      const auto from = reader.column(channel, held ? x0 + x : reader.image.in.rect.x0,
                                      held ? y0 : reader.image.in.rect.y0);
#pragma unroll 4
      for (int y = row_; y < side_; y += block_height) {
        const float value = held ? from[y] : reader.at_found(channel, column, reader.row_for(y0 + y), 0.0F);
        if constexpr (Reader::may_be_nonfinite) finite = finite && isfinite(value);
        pixels_[y * side_ + x] = value;
      }
    }
    return finite;
  }

  __device__ void along_rows() {
    const bool shrink = m_.samples.border == Border::shrink;
    for (int y = row_; y < side_; y += block_height) {
      const float* centre = pixels_ + y * side_ + lane_ + m_.radius;
      float sum = 0;
      for (int k = -m_.radius; k <= m_.radius; ++k) sum = fmaf(m_.weights[abs(k)], centre[k], sum);
      row_means_[y * tile + lane_] = shrink ? sum / inside(m_, left_ + lane_, m_.samples.image.width) : sum;
    }
  }

  template <class Writer>
  __device__ void along_columns(int channel, const Writer& writer) {
    const bool shrink = m_.samples.border == Border::shrink;
    const float* first = row_means_ + (row_ * tile_rows_each + m_.radius) * tile + lane_;
    float sums[tile_rows_each] = {};
    for (int k = -m_.radius; k < m_.radius + tile_rows_each; ++k) {
      const float value = first[k * tile];
#pragma unroll
      for (int row = 0; row < tile_rows_each; ++row) {
        const int distance = abs(k - row);
        if (distance <= m_.radius) sums[row] = fmaf(m_.weights[distance], value, sums[row]);
      }
    }
    for_own_rows([&](int row, int y) {
      const float mean = shrink ? sums[row] / inside(m_, y, m_.samples.image.height) : sums[row];
      writer.write(channel, left_ + lane_, y, mean);
    });
  }

  // Calls use(row, y) for the thread's rows that are in the image.
  template <class Use>
  __device__ void for_own_rows(Use use) const {
    const Rect& area = m_.samples.out.rect;
    if (left_ + lane_ >= area.x1) return;
#pragma unroll
    for (int row = 0; row < tile_rows_each; ++row) {
      const int y = top_ + row_ * tile_rows_each + row;
      if (y < area.y1) use(row, y);
    }
  }

  const DirectMeans& m_;
  int side_;
  int lane_;
  int row_;
  int left_;
  int top_;
  float* pixels_;     // [row][column], with the radius around
  float* row_means_;  // [row, with the radius above and below][column]
};

template <PixelType Type>
__global__ void __launch_bounds__(tile* block_height, 4)
    direct_means(const __grid_constant__ DirectMeans means) {
  extern __shared__ float shared[];
  MeanTile(means, shared).filter(SampleReader<Type>{means.samples});
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
  if (radius <= most_direct_radius && border != Border::wrap) {
    DirectMeans direct{};
    direct.channels = planes;
    direct.radius = radius;
    std::copy_n(means.weights, radius + 1, direct.weights);
    pipeline.direct.launch = [direct, border](const DeviceDirectCall& call) {
      DirectMeans of_call = direct;
      of_call.samples = sample_image(call, border);
      const Rect& area = of_call.samples.out.rect;
      const dim3 grid = tall_grid(blocks_for(area.width(), tile), blocks_for(area.height(), tile));
      with_pixel_type(of_call.samples.type, [&](auto type) {
        launch(direct_means<decltype(type)::value>, grid, {tile, block_height},
               direct_shared_bytes(direct.radius), call.stream, of_call);
      });
    };
  }
  return pipeline;
}

}  // namespace ungrain::cuda
