#include <cuda_fp16.h>

#include "core/convert.h"
#include "core/sample_types.h"
#include "cuda/convert.h"
#include "cuda/launch.cuh"

namespace ungrain::cuda {
namespace {

constexpr int block_width = 32;
constexpr int block_height = 8;

// A view as a kernel argument.
struct Samples {
  unsigned char* data;
  Strides strides;
  Rect rect;

  __device__ unsigned char* at(int x, int y, int channel) const {
    return data + (x - rect.x0) * strides.x + (y - rect.y0) * strides.y + channel * strides.channel;
  }
};

Samples samples_of(const ConstImageView& view) {
  const Region& region = view.region;
  return {static_cast<unsigned char*>(const_cast<void*>(view.data)),
          view.strides,
          {region.x, region.y, region.x + view.spec.width, region.y + view.spec.height}};
}

template <PixelType Type>
__device__ float read_sample(const unsigned char* at) {
  if constexpr (Type == PixelType::u8) return *at;
  if constexpr (Type == PixelType::u16) return *reinterpret_cast<const std::uint16_t*>(at);
  if constexpr (Type == PixelType::f16) return __half2float(*reinterpret_cast<const __half*>(at));
  if constexpr (Type == PixelType::f32) return *reinterpret_cast<const float*>(at);
}

template <PixelType Type>
__device__ void write_sample(unsigned char* at, float value) {
  if constexpr (Type == PixelType::u8 || Type == PixelType::u16) {
    constexpr float top = Type == PixelType::u8 ? 255.0F : 65535.0F;
    const float bounded = value > 0 ? fminf(value, top) : 0.0F;  // false for NaN
    const auto rounded = static_cast<unsigned>(rintf(bounded));
    if constexpr (Type == PixelType::u8) *at = static_cast<unsigned char>(rounded);
    if constexpr (Type == PixelType::u16)
      *reinterpret_cast<std::uint16_t*>(at) = static_cast<std::uint16_t>(rounded);
  }
  if constexpr (Type == PixelType::f16) *reinterpret_cast<__half*>(at) = __float2half_rn(value);
  if constexpr (Type == PixelType::f32) *reinterpret_cast<float*>(at) = value;
}

// The mean of the finite samples in the smallest window around that has any.
template <PixelType Type>
__device__ float filled(const Samples& raw, int x, int y, int channel) {
  for (int radius = 1; radius <= fill_radius; ++radius) {
    double sum = 0;
    int finite = 0;
    for (int py = max(raw.rect.y0, y - radius); py <= min(raw.rect.y1 - 1, y + radius); ++py) {
      for (int px = max(raw.rect.x0, x - radius); px <= min(raw.rect.x1 - 1, x + radius); ++px) {
        const float sample = read_sample<Type>(raw.at(px, py, channel));
        if (!isfinite(sample)) continue;
        sum += sample;
        ++finite;
      }
    }
    if (finite > 0) return static_cast<float>(sum / finite);
  }
  return 0;
}

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
    atomicAdd(&stats->pixels, 1ULL);
    atomicMax(&stats->inverse_first, ~(static_cast<unsigned long long>(y) << 32U | static_cast<unsigned>(x)));
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
    // Bit by bit: a NaN of a half keeps its bits.
    constexpr int bytes = bytes_per_sample(In);
    for (int byte = 0; byte < bytes; ++byte) {
      s.out.at(x, y, s.alpha)[byte] = s.raw.at(x, y, s.alpha)[byte];
    }
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
