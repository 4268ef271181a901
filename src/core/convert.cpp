#include "core/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/convert_simd.h"
#include "core/sample_types.h"
#include "core/samples.h"

namespace ungrain {
namespace {

template <class Sample>
Sample read_at(const std::byte* p) {
  Sample sample;
  std::memcpy(&sample, p, sizeof sample);
  return sample;
}

template <class Sample, class Real>
Sample from_real(Real value) {
  if constexpr (std::is_same_v<Sample, Half>) {
    return Half{float_to_half(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<Sample, float>) {
    return static_cast<float>(value);
  } else {
    constexpr Real top = std::numeric_limits<Sample>::max();
    const Real bounded = value > 0 ? std::min(value, top) : Real(0);  // false for NaN
    return static_cast<Sample>(std::nearbyint(bounded));
  }
}

const std::byte* row_of(const ConstImageView& view, int y, int channel) {
  return static_cast<const std::byte*>(view.data) + y * view.strides.y + channel * view.strides.channel;
}
std::byte* row_of(const ImageView& view, int y, int channel) {
  return static_cast<std::byte*>(view.data) + y * view.strides.y + channel * view.strides.channel;
}

// The loop itself: compiled once with a sample distance that the compiler knows, so that it vectorises.
template <class Sample, class Step>
void for_samples(int width, std::ptrdiff_t stride, Step step) {
  constexpr std::ptrdiff_t packed = sizeof(Sample);
  if (stride == packed) {
    for (int x = 0; x < width; ++x) step(x, x * packed);
  } else {
    for (int x = 0; x < width; ++x) step(x, x * stride);
  }
}

}  // namespace

template <class Real>
void load_row(const ConstImageView& view, int y, int channel, Real* out) {
  const std::byte* row = row_of(view, y, channel);
  if constexpr (std::is_same_v<Real, float>) {
    if (lies_planar(view)) return floats_from(view.spec.type, row, view.spec.width, out);
  }
  with_sample_type(view.spec.type, [&]<class Sample>(Sample) {
    for_samples<Sample>(view.spec.width, view.strides.x,
                        [&](int x, std::ptrdiff_t at) { out[x] = to_real<Real>(read_at<Sample>(row + at)); });
  });
}

template <class Real>
void store_row(const ImageView& view, int y, int channel, const Real* values, double scale) {
  std::byte* row = row_of(view, y, channel);
  const auto factor = static_cast<Real>(scale);
  if constexpr (std::is_same_v<Real, float>) {
    if (lies_planar(view)) return samples_from(view.spec.type, values, view.spec.width, factor, row);
  }
  with_sample_type(view.spec.type, [&]<class Sample>(Sample) {
    for_samples<Sample>(view.spec.width, view.strides.x, [&](int x, std::ptrdiff_t at) {
      const auto sample = from_real<Sample>(values[x] * factor);
      std::memcpy(row + at, &sample, sizeof sample);
    });
  });
}

template void load_row(const ConstImageView&, int, int, float*);
template void load_row(const ConstImageView&, int, int, double*);
template void store_row(const ImageView&, int, int, const float*, double);
template void store_row(const ImageView&, int, int, const double*, double);

namespace {

// Interleaved pixels are split into channels in pieces of this many, which stay in a core's first-level
// cache.
constexpr int piece_pixels = 512;

struct PieceOfChannels {
  alignas(64) std::byte samples[max_channels][piece_pixels * sizeof(float)];
};

}  // namespace

void load_channels(const ConstImageView& view, int y, int count, float* const* out) {
  const int channels = view.spec.channels;
  if (channels == 1 || !lies_interleaved(view)) {
    for (int channel = 0; channel < count; ++channel) load_row(view, y, channel, out[channel]);
    return;
  }
  const int bytes = bytes_per_sample(view.spec.type);
  PieceOfChannels piece;
  for (int x = 0; x < view.spec.width; x += piece_pixels) {
    const int pixels = std::min(piece_pixels, view.spec.width - x);
    void* rows[max_channels];
    for (int channel = 0; channel < channels; ++channel) {
      const bool as_it_is = view.spec.type == PixelType::f32 && channel < count;
      rows[channel] = as_it_is ? static_cast<void*>(out[channel] + x) : piece.samples[channel];
    }
    split_channels(bytes, channels, row_of(view, y, 0) + x * view.strides.x, pixels, rows);
    if (view.spec.type == PixelType::f32) continue;
    for (int channel = 0; channel < count; ++channel) {
      floats_from(view.spec.type, rows[channel], pixels, out[channel] + x);
    }
  }
}

void store_channels(const ImageView& view, int y, int count, const float* const* values, double scale) {
  const int channels = view.spec.channels;
  if (channels == 1 || !lies_interleaved(view)) {
    for (int channel = 0; channel < count; ++channel) store_row(view, y, channel, values[channel], scale);
    return;
  }
  const int bytes = bytes_per_sample(view.spec.type);
  const bool as_it_is = view.spec.type == PixelType::f32 && scale == 1;
  PieceOfChannels piece;
  for (int x = 0; x < view.spec.width; x += piece_pixels) {
    const int pixels = std::min(piece_pixels, view.spec.width - x);
    const void* rows[max_channels];
    for (int channel = 0; channel < channels; ++channel) {
      const float* from = values[std::min(channel, count - 1)] + x;
      rows[channel] = as_it_is ? static_cast<const void*>(from) : piece.samples[channel];
      if (!as_it_is && channel < count) {
        samples_from(view.spec.type, from, pixels, static_cast<float>(scale), piece.samples[channel]);
      }
    }
    if (!as_it_is) {
      for (int channel = count; channel < channels; ++channel) rows[channel] = rows[0];
    }
    join_channels(bytes, channels, rows, pixels, row_of(view, y, 0) + x * view.strides.x);
  }
}

void copy_row(const ConstImageView& in, int in_y, const ImageView& out, int out_y, int channel) {
  const std::byte* from = row_of(in, in_y, channel);
  std::byte* to = row_of(out, out_y, channel);
  const std::ptrdiff_t sample = bytes_per_sample(in.spec.type);
  if (in.strides.x == sample && out.strides.x == sample) {
    std::memmove(to, from, static_cast<std::size_t>(in.spec.width) * static_cast<std::size_t>(sample));
    return;
  }
  with_sample_type(in.spec.type, [&]<class Sample>(Sample) {
    for (int x = 0; x < in.spec.width; ++x) {
      std::memmove(to + x * out.strides.x, from + x * in.strides.x, sizeof(Sample));
    }
  });
}

void copy_pixels(const ConstImageView& in, int in_y, const ImageView& out, int out_y) {
  if (lies_interleaved(in) && lies_interleaved(out)) {
    std::memmove(row_of(out, out_y, 0), row_of(in, in_y, 0),
                 static_cast<std::size_t>(in.spec.width) * static_cast<std::size_t>(in.strides.x));
    return;
  }
  for (int channel = 0; channel < in.spec.channels; ++channel) copy_row(in, in_y, out, out_y, channel);
}

std::int64_t fill_nonfinite(const ConstImageView& view, int y, int channel, float* values, int first,
                            std::optional<int> count) {
  std::int64_t replaced = 0;
  const int width = view.spec.width;
  const SliceShape& slice = view.spec.slice;
  const auto sample_at = [&](int px, int py) {
    const std::byte* at = row_of(view, py, channel) + px * view.strides.x;
    return view.spec.type == PixelType::f32 ? read_at<float>(at) : half_to_float(read_at<std::uint16_t>(at));
  };
  for (int x = first; x < first + count.value_or(width); ++x) {
    float& value = values[x - first];
    if (std::isfinite(value)) continue;
    ++replaced;
    value = 0;
    for (int radius = 1; radius <= fill_radius; ++radius) {
      double sum = 0;
      int finite = 0;
      const auto add = [&](float sample) {
        if (!std::isfinite(sample)) return;
        sum += sample;
        ++finite;
      };
      if (view.spec.is_volume()) {  // from the same slice, whose lines are one row
        const int column = x % slice.width;
        const int line = x / slice.width;
        for (int py = std::max(0, line - radius); py <= std::min(slice.height - 1, line + radius); ++py) {
          for (int px = std::max(0, column - radius); px <= std::min(slice.width - 1, column + radius); ++px)
            add(sample_at(py * slice.width + px, y));
        }
      } else {
        for (int py = std::max(0, y - radius); py <= std::min(view.spec.height - 1, y + radius); ++py) {
          for (int px = std::max(0, x - radius); px <= std::min(width - 1, x + radius); ++px)
            add(sample_at(px, py));
        }
      }
      if (finite > 0) {
        value = static_cast<float>(sum / finite);
        break;
      }
    }
  }
  return replaced;
}

}  // namespace ungrain
