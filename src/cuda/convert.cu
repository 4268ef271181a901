#include "cuda/convert.h"

#include "core/sample_types.h"
#include "cuda/launch.cuh"
#include "cuda/samples.cuh"

namespace ungrain::cuda {
namespace {

constexpr int block_width = 32;
constexpr int block_height = 8;

template <PixelType Type>
__global__ void load_kernel(Samples raw, Planes planes, int count_from, int count_to, NonFiniteStats* stats) {
  const int x = planes.rect.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int y = planes.rect.y0 + block_row() * block_height + static_cast<int>(threadIdx.y);
  if (x >= planes.rect.x1 || y >= planes.rect.y1) return;
  bool finite = true;
  for (int channel = 0; channel < planes.count; ++channel) {
    float value = read_sample<Type>(raw.at(x, y, channel));
    if constexpr (Type == PixelType::f16 || Type == PixelType::f32) {
      if (!isfinite(value)) {
        finite = false;
        value = filled<Type>(raw, x, y, channel);
      }
    }
    planes.at(channel, x, y) = value;
  }
  if (!finite && y >= count_from && y < count_to) {
    count_nonfinite(stats, x, y);
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
__global__ void store_kernel(StoreArguments s) {
  const int x = s.out.rect.x0 + static_cast<int>(blockIdx.x * block_width + threadIdx.x);
  const int y = s.out.rect.y0 + block_row() * block_height + static_cast<int>(threadIdx.y);
  if (x >= s.out.rect.x1 || y >= s.out.rect.y1) return;
  for (int channel = 0; channel < s.planes.count; ++channel) {
    float value = __fmul_rn(s.planes.at(channel, x, y), s.scale);
    if constexpr (In == PixelType::f16 || In == PixelType::f32) {
      if (s.keep) {
        const float before = read_sample<In>(s.raw.at(x, y, channel));
        if (!isfinite(before)) value = before;
      }
    }
    write_sample<Out>(s.out.at(x, y, channel), value);
  }
  if (s.alpha < 0) return;
  if constexpr (In == Out) {
    copy_sample<In>(s.out.at(x, y, s.alpha), s.raw.at(x, y, s.alpha));
  } else {
    const float value = read_sample<In>(s.raw.at(x, y, s.alpha));
    write_sample<Out>(s.out.at(x, y, s.alpha), __fmul_rn(value, s.alpha_scale));
  }
}

dim3 grid_over(const Rect& rect) {
  return tall_grid(blocks_for(rect.width(), block_width), blocks_for(rect.height(), block_height));
}

}  // namespace

void load_planes(const LoadCall& call, Stream stream) {
  with_pixel_type(call.raw.spec.type, [&](auto type) {
    launch(load_kernel<decltype(type)::value>, grid_over(call.planes.rect), {block_width, block_height}, 0,
           stream, samples_of(call.raw), call.planes, call.counted.begin, call.counted.end, call.stats);
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
