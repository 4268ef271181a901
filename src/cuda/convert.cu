#include "cuda/convert.h"

#include "core/sample_types.h"
#include "cuda/launch.cuh"
#include "cuda/samples.cuh"

namespace ungrain::cuda {
namespace {

constexpr int block_width = 32;
constexpr int block_height = 8;
constexpr int rows_each = 4;  // of a thread, a block's height apart: their reads wait together

struct LoadArguments {
  Samples raw;
  Planes planes;
  RowRange counted;
  NonFiniteStats* stats;
  Subsampling step;
};

// A pixel with a sample that is not finite, which is rare.
template <PixelType Type>
__device__ __noinline__ void load_filled(const LoadArguments& l, int x, int y) {
  for (int channel = 0; channel < l.planes.count; ++channel) {
    const float value = read_sample<Type>(l.raw.at(x, y, channel));
    l.planes.at(channel, x, y) = isfinite(value) ? value : filled<Type>(l.raw, x, y, channel);
  }
  if (y >= l.counted.begin && y < l.counted.end) count_nonfinite(l.stats, x * l.step.x, y * l.step.y);
}

template <PixelType Type>
__global__ void load_kernel(const __grid_constant__ LoadArguments l) {
  const int x = l.planes.rect.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int first = l.planes.rect.y0 + block_row() * block_height * rows_each + static_cast<int>(threadIdx.y);
  if (x >= l.planes.rect.x1) return;
  bool finite[rows_each];
#pragma unroll
  for (int k = 0; k < rows_each; ++k) finite[k] = true;
  for (int channel = 0; channel < l.planes.count; ++channel) {
    const unsigned char* from = l.raw.at(x, first, channel);
    float values[rows_each];
#pragma unroll
    for (int k = 0; k < rows_each; ++k) {
      if (first + k * block_height >= l.planes.rect.y1) break;
      values[k] = read_sample<Type>(from + k * block_height * l.raw.strides.y);
    }
#pragma unroll
    for (int k = 0; k < rows_each; ++k) {
      if (first + k * block_height >= l.planes.rect.y1) break;
      if constexpr (is_float(Type)) finite[k] = finite[k] && isfinite(values[k]);
      l.planes.at(channel, x, first + k * block_height) = values[k];
    }
  }
  if constexpr (is_float(Type)) {
#pragma unroll
    for (int k = 0; k < rows_each; ++k) {
      if (!finite[k]) load_filled<Type>(l, x, first + k * block_height);
    }
  }
}

struct StoreArguments {
  ConstPlanes planes;
  Samples raw;
  Samples out;
  int alpha;  // its channel, or -1
  bool keep;
  float scale;
  float alpha_scale;
};

template <PixelType In, PixelType Out>
__device__ void store_alpha(const StoreArguments& s, int x, int y) {
  if constexpr (In == Out) {
    copy_sample<In>(s.out.at(x, y, s.alpha), s.raw.at(x, y, s.alpha));
  } else {
    const float value = read_sample<In>(s.raw.at(x, y, s.alpha));
    write_sample<Out>(s.out.at(x, y, s.alpha), __fmul_rn(value, s.alpha_scale));
  }
}

template <PixelType In, PixelType Out>
__global__ void store_kernel(const __grid_constant__ StoreArguments s) {
  const int x = s.out.rect.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int first = s.out.rect.y0 + block_row() * block_height * rows_each + static_cast<int>(threadIdx.y);
  if (x >= s.out.rect.x1) return;
  for (int channel = 0; channel < s.planes.count; ++channel) {
    float values[rows_each];
#pragma unroll
    for (int k = 0; k < rows_each; ++k) {
      const int y = first + k * block_height;
      if (y < s.out.rect.y1) values[k] = __fmul_rn(s.planes.at(channel, x, y), s.scale);
    }
#pragma unroll
    for (int k = 0; k < rows_each; ++k) {
      const int y = first + k * block_height;
      if (y >= s.out.rect.y1) break;
      if constexpr (is_float(In)) {
        const unsigned char* raw = s.raw.at(x, y, channel);
        if (s.keep && !isfinite(read_sample<In>(raw))) {
          if constexpr (In == Out) {
            copy_sample<In>(s.out.at(x, y, channel), raw);
            continue;
          }
          values[k] = read_sample<In>(raw);
        }
      }
      write_sample<Out>(s.out.at(x, y, channel), values[k]);
    }
  }
  if (s.alpha < 0) return;
  for (int y = first; y < min(first + rows_each * block_height, s.out.rect.y1); y += block_height) {
    store_alpha<In, Out>(s, x, y);
  }
}

dim3 grid_over(const Rect& rect) {
  return tall_grid(blocks_for(rect.width(), block_width),
                   blocks_for(rect.height(), block_height * rows_each));
}

}  // namespace

void load_planes(const LoadCall& call, Stream stream) {
  with_pixel_type(call.raw.spec.type, [&](auto type) {
    launch(load_kernel<decltype(type)::value>, grid_over(call.planes.rect), {block_width, block_height}, 0,
           stream, LoadArguments{samples_of(call.raw), call.planes, call.counted, call.stats, call.step});
  });
}

void store_planes(const StoreCall& call, Stream stream) {
  const Samples to = samples_of(call.out);
  const StoreArguments storing{call.planes,
                               samples_of(call.raw),
                               to,
                               call.out.spec.alpha ? call.out.spec.channels - 1 : -1,
                               call.keep,
                               static_cast<float>(call.scale),
                               static_cast<float>(call.alpha_scale)};
  with_pixel_type(call.raw.spec.type, [&](auto in_type) {
    with_pixel_type(call.out.spec.type, [&](auto out_type) {
      launch(store_kernel<decltype(in_type)::value, decltype(out_type)::value>, grid_over(to.rect),
             {block_width, block_height}, 0, stream, storing);
    });
  });
}

}  // namespace ungrain::cuda
