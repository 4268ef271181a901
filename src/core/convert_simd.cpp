// Conversion of packed samples. Bound by memory.
#include "core/convert_simd.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ungrain/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/convert_simd.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come before what it includes again.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class Sample>
void FloatsFromIntegers(const Sample* samples, std::ptrdiff_t count, float* out) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<Sample, decltype(d)> narrow;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  std::ptrdiff_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(narrow, samples + i))), d, out + i);
  }
  for (; i < count; ++i) out[i] = static_cast<float>(samples[i]);
}

// As half_to_float(): by bits, so that every platform gives the same.
void FloatsFromHalves(const std::uint16_t* samples, std::ptrdiff_t count, float* out) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<std::uint16_t, decltype(d)> narrow;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  std::ptrdiff_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bits = hn::PromoteTo(du, hn::LoadU(narrow, samples + i));
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000U)));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffU));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto scaled = hn::BitCast(du, hn::Mul(hn::BitCast(d, shifted), hn::Set(d, 0x1p112F)));
    const auto not_finite = hn::Gt(magnitude, hn::Set(du, 0x7bffU));
    const auto value = hn::IfThenElse(not_finite, hn::Or(shifted, hn::Set(du, 0x7f800000U)), scaled);
    hn::StoreU(hn::BitCast(d, hn::Or(value, sign)), d, out + i);
  }
  for (; i < count; ++i) out[i] = half_to_float(samples[i]);
}

template <class Sample>
void IntegersFrom(const float* values, std::ptrdiff_t count, float scale, Sample* out) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<Sample, decltype(d)> narrow;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  constexpr float most = std::numeric_limits<Sample>::max();
  const auto top = hn::Set(d, most);
  std::ptrdiff_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::Mul(hn::LoadU(d, values + i), factor);
    const auto bounded = hn::IfThenElseZero(hn::Gt(value, hn::Zero(d)), hn::Min(value, top));  // not for NaN
    hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(bounded)), narrow, out + i);
  }
  for (; i < count; ++i) {
    const float value = values[i] * scale;
    out[i] = static_cast<Sample>(std::nearbyint(value > 0 ? std::min(value, most) : 0.0F));
  }
}

// As float_to_half(): by bits, rounded half to even.
void HalvesFrom(const float* values, std::ptrdiff_t count, float scale, std::uint16_t* out) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::uint16_t, decltype(d)> narrow;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  std::ptrdiff_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bits = hn::BitCast(di, hn::Mul(hn::LoadU(d, values + i), hn::Set(d, scale)));
    const auto magnitude = hn::And(bits, hn::Set(di, 0x7fffffff));
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(di, 0x8000));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(di, 1));
    const auto normal = hn::ShiftRight<13>(hn::Add(magnitude, hn::Add(odd, hn::Set(di, 0xfff - 0x38000000))));
    const auto shifted = hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5F));
    const auto subnormal = hn::Sub(hn::BitCast(di, shifted), hn::Set(di, 0x3f000000));
    auto half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x38800000)), subnormal, normal);
    half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x477fffff)), hn::Set(di, 0x7c00), half);
    half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7f800000)), hn::Set(di, 0x7e00), half);
    hn::StoreU(hn::DemoteTo(narrow, hn::Or(half, sign)), narrow, out + i);
  }
  for (; i < count; ++i) out[i] = float_to_half(values[i] * scale);
}

void FloatsFromFloats(const float* values, std::ptrdiff_t count, float scale, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  std::ptrdiff_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, values + i), hn::Set(d, scale)), d, out + i);
  }
  for (; i < count; ++i) out[i] = values[i] * scale;
}

void FloatsFrom(PixelType type, const void* samples, std::ptrdiff_t count, float* out) {
  switch (type) {
    case PixelType::u8:
      return FloatsFromIntegers(static_cast<const std::uint8_t*>(samples), count, out);
    case PixelType::u16:
      return FloatsFromIntegers(static_cast<const std::uint16_t*>(samples), count, out);
    case PixelType::f16:
      return FloatsFromHalves(static_cast<const std::uint16_t*>(samples), count, out);
    case PixelType::f32:
      std::memcpy(out, samples, static_cast<std::size_t>(count) * sizeof(float));
  }
}

void SamplesFrom(PixelType type, const float* values, std::ptrdiff_t count, float scale, void* out) {
  switch (type) {
    case PixelType::u8:
      return IntegersFrom(values, count, scale, static_cast<std::uint8_t*>(out));
    case PixelType::u16:
      return IntegersFrom(values, count, scale, static_cast<std::uint16_t*>(out));
    case PixelType::f16:
      return HalvesFrom(values, count, scale, static_cast<std::uint16_t*>(out));
    case PixelType::f32:
      return FloatsFromFloats(values, count, scale, static_cast<float*>(out));
  }
}

template <class T>
void Split(int channels, const T* pixels, std::ptrdiff_t count, void* const* rows) {
  T* out[max_channels] = {};
  for (int c = 0; c < channels; ++c) out[c] = static_cast<T*>(rows[c]);
  std::ptrdiff_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  auto v0 = hn::Zero(d);
  auto v1 = v0;
  auto v2 = v0;
  auto v3 = v0;
  if (channels == 2) {
    for (; i + lanes <= count; i += lanes) {
      hn::LoadInterleaved2(d, pixels + 2 * i, v0, v1);
      hn::StoreU(v0, d, out[0] + i);
      hn::StoreU(v1, d, out[1] + i);
    }
  } else if (channels == 3) {
    for (; i + lanes <= count; i += lanes) {
      hn::LoadInterleaved3(d, pixels + 3 * i, v0, v1, v2);
      hn::StoreU(v0, d, out[0] + i);
      hn::StoreU(v1, d, out[1] + i);
      hn::StoreU(v2, d, out[2] + i);
    }
  } else {
    for (; i + lanes <= count; i += lanes) {
      hn::LoadInterleaved4(d, pixels + 4 * i, v0, v1, v2, v3);
      hn::StoreU(v0, d, out[0] + i);
      hn::StoreU(v1, d, out[1] + i);
      hn::StoreU(v2, d, out[2] + i);
      hn::StoreU(v3, d, out[3] + i);
    }
  }
#endif
  for (; i < count; ++i) {
    for (int c = 0; c < channels; ++c) out[c][i] = pixels[i * channels + c];
  }
}

template <class T>
void Join(int channels, const void* const* rows, std::ptrdiff_t count, T* pixels) {
  const T* in[max_channels] = {};
  for (int c = 0; c < channels; ++c) in[c] = static_cast<const T*>(rows[c]);
  std::ptrdiff_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  if (channels == 2) {
    for (; i + lanes <= count; i += lanes) {
      hn::StoreInterleaved2(hn::LoadU(d, in[0] + i), hn::LoadU(d, in[1] + i), d, pixels + 2 * i);
    }
  } else if (channels == 3) {
    for (; i + lanes <= count; i += lanes) {
      hn::StoreInterleaved3(hn::LoadU(d, in[0] + i), hn::LoadU(d, in[1] + i), hn::LoadU(d, in[2] + i), d,
                            pixels + 3 * i);
    }
  } else {
    for (; i + lanes <= count; i += lanes) {
      hn::StoreInterleaved4(hn::LoadU(d, in[0] + i), hn::LoadU(d, in[1] + i), hn::LoadU(d, in[2] + i),
                            hn::LoadU(d, in[3] + i), d, pixels + 4 * i);
    }
  }
#endif
  for (; i < count; ++i) {
    for (int c = 0; c < channels; ++c) pixels[i * channels + c] = in[c][i];
  }
}

void SplitChannels(int bytes, int channels, const void* pixels, std::ptrdiff_t count, void* const* out) {
  if (bytes == 1) return Split(channels, static_cast<const std::uint8_t*>(pixels), count, out);
  if (bytes == 2) return Split(channels, static_cast<const std::uint16_t*>(pixels), count, out);
  Split(channels, static_cast<const std::uint32_t*>(pixels), count, out);
}

void JoinChannels(int bytes, int channels, const void* const* rows, std::ptrdiff_t count, void* pixels) {
  if (bytes == 1) return Join(channels, rows, count, static_cast<std::uint8_t*>(pixels));
  if (bytes == 2) return Join(channels, rows, count, static_cast<std::uint16_t*>(pixels));
  Join(channels, rows, count, static_cast<std::uint32_t*>(pixels));
}

bool AllFinite(const float* values, std::ptrdiff_t count) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  auto largest = hn::Zero(d);
  auto other = largest;
  // With the sign cleared, non-finite floats are at least infinity, also when compared as integers. The mask
  // is not captured: lambdas cannot capture SVE vectors.
  const auto bits = [=](std::ptrdiff_t i) HWY_ATTR {
    const auto magnitude = hn::Set(d, 0x7fffffffU);
    return hn::And(hn::BitCast(d, hn::LoadU(hn::RebindToFloat<decltype(d)>(), values + i)), magnitude);
  };
  std::ptrdiff_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    largest = hn::Max(largest, bits(i));
    other = hn::Max(other, bits(i + lanes));
  }
  if (hn::GetLane(hn::MaxOfLanes(d, hn::Max(largest, other))) >= 0x7f800000U) return false;
  for (; i < count; ++i) {
    std::uint32_t rest = 0;
    std::memcpy(&rest, values + i, sizeof rest);
    if ((rest & 0x7fffffffU) >= 0x7f800000U) return false;
  }
  return true;
}

}  // namespace
}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace ungrain {
namespace {

HWY_EXPORT(FloatsFrom);
HWY_EXPORT(SamplesFrom);
HWY_EXPORT(SplitChannels);
HWY_EXPORT(JoinChannels);
HWY_EXPORT(AllFinite);

}  // namespace

void floats_from(PixelType type, const void* samples, std::ptrdiff_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(FloatsFrom)(type, samples, count, out);
}
void samples_from(PixelType type, const float* values, std::ptrdiff_t count, float scale, void* out) {
  HWY_DYNAMIC_DISPATCH(SamplesFrom)(type, values, count, scale, out);
}
void split_channels(int sample_bytes, int channels, const void* pixels, std::ptrdiff_t count,
                    void* const* out) {
  HWY_DYNAMIC_DISPATCH(SplitChannels)(sample_bytes, channels, pixels, count, out);
}
void join_channels(int sample_bytes, int channels, const void* const* rows, std::ptrdiff_t count,
                   void* pixels) {
  HWY_DYNAMIC_DISPATCH(JoinChannels)(sample_bytes, channels, rows, count, pixels);
}
bool all_finite(const float* values, std::ptrdiff_t count) {
  return HWY_DYNAMIC_DISPATCH(AllFinite)(values, count);
}

}  // namespace ungrain

#endif
