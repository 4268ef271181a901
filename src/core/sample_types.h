// The C++ types of samples, by PixelType. Other properties of a type are in ungrain/image.h's table.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ungrain/half.h"
#include "ungrain/image.h"

namespace ungrain {

struct Half {
  std::uint16_t bits = 0;
};

template <PixelType>
struct SampleOf;
template <>
struct SampleOf<PixelType::u8> : std::type_identity<std::uint8_t> {};
template <>
struct SampleOf<PixelType::u16> : std::type_identity<std::uint16_t> {};
template <>
struct SampleOf<PixelType::f16> : std::type_identity<Half> {};
template <>
struct SampleOf<PixelType::f32> : std::type_identity<float> {};

// Calls with the type as a compile-time constant.
template <class Call>
decltype(auto) with_pixel_type(PixelType type, Call&& call) {
  switch (type) {
    case PixelType::u8:
      return call(std::integral_constant<PixelType, PixelType::u8>{});
    case PixelType::u16:
      return call(std::integral_constant<PixelType, PixelType::u16>{});
    case PixelType::f16:
      return call(std::integral_constant<PixelType, PixelType::f16>{});
    case PixelType::f32:
      break;
  }
  return call(std::integral_constant<PixelType, PixelType::f32>{});
}

// Calls with a value of the samples' type.
template <class Call>
decltype(auto) with_sample_type(PixelType type, Call&& call) {
  return with_pixel_type(type, [&](auto constant) -> decltype(auto) {
    return call(typename SampleOf<decltype(constant)::value>::type{});
  });
}

template <class Real, class Sample>
Real to_real(Sample sample) {
  if constexpr (std::is_same_v<Sample, Half>) {
    return static_cast<Real>(half_to_float(sample.bits));
  } else {
    return static_cast<Real>(sample);
  }
}

}  // namespace ungrain
