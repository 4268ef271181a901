// Images as they lie in memory: how kernels read and write samples of any type and layout, replace what is
// not finite, and put it back.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "core/border.h"
#include "core/convert.h"
#include "core/planes.h"
#include "device/backend.h"
#include "ungrain/image.h"

namespace ungrain::cuda {

// A view as a kernel argument.
struct Samples {
  unsigned char* data;
  Strides strides;
  Rect rect;
  Extent slice = {};  // of a volume, whose rows are slices

  __device__ unsigned char* at(int x, int y, int channel) const {
    return data + (x - rect.x0) * strides.x + (y - rect.y0) * strides.y + channel * strides.channel;
  }
};

inline Samples samples_of(const ConstImageView& view) {
  const Region& region = view.region;
  return {static_cast<unsigned char*>(const_cast<void*>(view.data)),
          view.strides,
          {region.x, region.y, region.x + view.spec.width, region.y + view.spec.height},
          {view.spec.slice.width, view.spec.slice.height}};
}

template <PixelType Type>
struct SampleOf;
template <>
struct SampleOf<PixelType::u8> {
  using Stored = std::uint8_t;
};
template <>
struct SampleOf<PixelType::u16> {
  using Stored = std::uint16_t;
};
template <>
struct SampleOf<PixelType::f16> {
  using Stored = __half;
};
template <>
struct SampleOf<PixelType::f32> {
  using Stored = float;
};
template <PixelType Type>
using Stored = typename SampleOf<Type>::Stored;

template <PixelType Type>
__device__ float to_float(Stored<Type> sample) {
  if constexpr (Type == PixelType::f16) {
    return __half2float(sample);
  } else {
    return sample;
  }
}

// Rounded half to even and saturated where the type is an integer; a NaN becomes 0 there.
template <PixelType Type>
__device__ Stored<Type> from_float(float value) {
  if constexpr (Type == PixelType::u8 || Type == PixelType::u16) {
    constexpr float top = Type == PixelType::u8 ? 255.0F : 65535.0F;
    const float bounded = value > 0 ? fminf(value, top) : 0.0F;  // false for NaN
    return static_cast<Stored<Type>>(static_cast<unsigned>(rintf(bounded)));
  } else if constexpr (Type == PixelType::f16) {
    return __float2half_rn(value);
  } else {
    return value;
  }
}

template <PixelType Type>
__device__ float read_sample(const unsigned char* at) {
  return to_float<Type>(*reinterpret_cast<const Stored<Type>*>(at));
}

template <PixelType Type>
__device__ void write_sample(unsigned char* at, float value) {
  *reinterpret_cast<Stored<Type>*>(at) = from_float<Type>(value);
}

// Bit by bit: a NaN of a half keeps its bits.
template <PixelType Type>
__device__ void copy_sample(unsigned char* to, const unsigned char* from) {
  constexpr int bytes = bytes_per_sample(Type);
  for (int byte = 0; byte < bytes; ++byte) to[byte] = from[byte];
}

// A row of a volume as the image that it is.
__device__ inline Samples slice_of(const Samples& volume, int z) {
  return {volume.at(0, z, 0),
          {volume.strides.x, volume.strides.x * volume.slice.width, volume.strides.channel},
          {0, 0, volume.slice.width, volume.slice.height}};
}

// The mean of the finite samples in the smallest window around that has any; of a volume, in the slice.
template <PixelType Type>
__device__ __noinline__ float filled(const Samples& image, int at_x, int at_y, int channel) {
  const bool volume = image.slice.width > 0;
  const Samples raw = volume ? slice_of(image, at_y) : image;
  const int x = volume ? at_x % image.slice.width : at_x;
  const int y = volume ? at_x / image.slice.width : at_y;
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

__device__ inline void count_nonfinite(NonFiniteStats* stats, int x, int y) {
  atomicAdd(&stats->pixels, 1ULL);
  atomicMax(&stats->inverse_first, ~(static_cast<unsigned long long>(y) << 32U | static_cast<unsigned>(x)));
}

// What a kernel from samples to samples takes (core/method.h, Direct).
struct SampleImage {
  Samples in;
  Samples out;
  PixelType type;
  Extent image;
  Border border;
  int alpha;  // its channel, or -1
  bool keep;
  NonFiniteStats* stats;
  Subsampling step;
};

inline SampleImage sample_image(const DeviceDirectCall& call, Border border) {
  return {samples_of(call.in),
          samples_of(call.out),
          call.in.spec.type,
          call.image,
          border,
          call.out.spec.alpha ? call.out.spec.channels - 1 : -1,
          call.keep,
          call.stats,
          call.step};
}

// Reads pixels by the border rule, as BorderedPlane does (cuda/load.cuh). A kernel that finds a sample that
// is not finite sets `filling` and reads again: from then on such samples are replaced.
template <PixelType Type>
struct SampleReader {
  static constexpr PixelType type = Type;
  static constexpr bool may_be_nonfinite = is_float(Type);

  const SampleImage& image;
  bool filling = false;

  struct Column {
    const unsigned char* from;
    std::ptrdiff_t stride;
    __device__ float operator[](int row) const { return read_sample<Type>(from + row * stride); }
  };

  // Whether every pixel of the rectangle can be read by column(): all are held, and none is to be replaced.
  __device__ bool holds(int x0, int y0, int x1, int y1) const {
    const Rect& rect = image.in.rect;
    return !filling && x0 >= rect.x0 && x1 <= rect.x1 && y0 >= rect.y0 && y1 <= rect.y1;
  }
  __device__ Column column(int channel, int x, int y) const {
    return {image.in.at(x, y, channel), image.in.strides.y};
  }
  __device__ float inside(int channel, int x, int y) const {
    const float value = read_sample<Type>(image.in.at(x, y, channel));
    if constexpr (may_be_nonfinite) {
      if (filling && !isfinite(value)) return filled<Type>(image.in, x, y, channel);
    }
    return value;
  }

  __device__ int column_for(int x) const {
    const int found = border_index(image.border, x, image.image.width);
    return found >= image.in.rect.x0 && found < image.in.rect.x1 ? found : no_pixel;
  }
  __device__ int row_for(int y) const {
    const int found = border_index(image.border, y, image.image.height);
    return found >= image.in.rect.y0 && found < image.in.rect.y1 ? found : no_pixel;
  }
  __device__ float at_found(int channel, int column, int row, float nothing) const {
    if (column == no_pixel || row == no_pixel) return image.border == Border::constant ? 0.0F : nothing;
    return inside(channel, column, row);
  }
  __device__ float at(int channel, int x, int y, float nothing) const {
    return at_found(channel, column_for(x), row_for(y), nothing);
  }
};

// Writes results. `filling` is the reader's: whether samples near the pixel are not finite.
template <PixelType Type>
struct SampleWriter {
  const SampleImage& image;
  bool filling = false;

  __device__ void write(int channel, int x, int y, float value) const {
    unsigned char* to = image.out.at(x, y, channel);
    if constexpr (is_float(Type)) {
      if (filling && image.keep) {
        const unsigned char* before = image.in.at(x, y, channel);
        if (!isfinite(read_sample<Type>(before))) return copy_sample<Type>(to, before);
      }
    }
    write_sample<Type>(to, value);
  }

  // Once for each pixel of a launch that has written the channels [first, first + count): copies alpha and
  // counts pixels that are not finite. Of several launches for the same pixels, only one counts a pixel.
  __device__ void finish_pixel(int x, int y, int first, int count) const {
    if (first == 0 && image.alpha >= 0) {
      copy_sample<Type>(image.out.at(x, y, image.alpha), image.in.at(x, y, image.alpha));
    }
    if constexpr (is_float(Type)) {
      if (!filling) return;
      const auto is_bad = [&](int channel) {
        return !isfinite(read_sample<Type>(image.in.at(x, y, channel)));
      };
      bool bad = false;
      for (int channel = first; channel < first + count; ++channel) bad = bad || is_bad(channel);
      for (int channel = 0; channel < first; ++channel) bad = bad && !is_bad(channel);
      if (bad) count_nonfinite(image.stats, x * image.step.x, y * image.step.y);
    }
  }
};

}  // namespace ungrain::cuda
