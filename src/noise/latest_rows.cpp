#include "noise/latest_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/convert.h"
#include "core/half.h"

namespace ungrain {
namespace {

constexpr int side = 8;

struct Half {
  std::uint16_t bits;
};

template <class Sample>
float value_at(const std::byte* at) {
  Sample sample;
  std::memcpy(&sample, at, sizeof sample);
  if constexpr (std::is_same_v<Sample, Half>) {
    return half_to_float(sample.bits);
  } else {
    return static_cast<float>(sample);
  }
}

// Calls with a value of the type that the samples have.
template <class Call>
auto with_sample_type(PixelType type, const Call& call) {
  switch (type) {
    case PixelType::u8:
      return call(std::uint8_t{});
    case PixelType::u16:
      return call(std::uint16_t{});
    case PixelType::f16:
      return call(Half{});
    case PixelType::f32:
      break;
  }
  return call(float{});
}

}  // namespace

float sample_at(const LatestRows& rows, int x, int y, int channel) {
  return with_sample_type(rows.spec().type,
                          [&]<class Sample>(Sample) { return value_at<Sample>(rows.sample(x, y, channel)); });
}

void copy_block(const LatestRows& rows, int channel, int x, int y, float scale, float* to, int stride) {
  with_sample_type(rows.spec().type, [&]<class Sample>(Sample) {
    for (int dy = 0; dy < side; ++dy) {
      const std::byte* from = rows.sample(x, y + dy, channel);
      const std::ptrdiff_t step = rows.stride_x(y + dy);
      for (int dx = 0; dx < side; ++dx) {
        to[(dy * side + dx) * stride] = scale * value_at<Sample>(from + dx * step);
      }
    }
  });
}

bool is_constant_block(const LatestRows& rows, int channel, int x, int y) {
  return with_sample_type(rows.spec().type, [&]<class Sample>(Sample) {
    const float first = value_at<Sample>(rows.sample(x, y, channel));
    for (int dy = 0; dy < side; ++dy) {
      const std::byte* from = rows.sample(x, y + dy, channel);
      const std::ptrdiff_t step = rows.stride_x(y + dy);
      for (int dx = 0; dx < side; ++dx) {
        if (value_at<Sample>(from + dx * step) != first) return false;
      }
    }
    return true;
  });
}

RowCollector::RowCollector(const ImageSpec& image) : height_(image.height) {
  ImageSpec spec = image;
  spec.height = std::min(reach - 1 + thick, image.height);
  kept_ = Image(spec);
}

void RowCollector::keep(const ConstImageView& band, int wanted) {
  const int from_band = std::min(band.spec.height, wanted);
  const int from_kept = std::min(kept_rows_, wanted - from_band);
  const ImageView to = kept_.view();
  if (from_kept < kept_rows_) {
    for (int y = 0; y < from_kept; ++y) copy_pixels(to, kept_rows_ - from_kept + y, to, y);
  }
  for (int y = 0; y < from_band; ++y) {
    copy_pixels(band, band.spec.height - from_band + y, to, from_kept + y);
  }
  kept_rows_ = from_kept + from_band;
}

}  // namespace ungrain
