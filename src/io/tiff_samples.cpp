#include "io/tiff_samples.h"

#include <fmt/format.h>
#include <tiffio.h>

#include <cmath>
#include <cstring>

namespace ungrain::io {
namespace {

template <class Stored, class Sample, class Convert>
void convert_each(const std::byte* stored, std::size_t samples, std::byte* to, Convert convert) {
  for (std::size_t i = 0; i < samples; ++i) {
    Stored value;
    std::memcpy(&value, stored + i * sizeof value, sizeof value);
    const Sample sample = convert(value);
    std::memcpy(to + i * sizeof sample, &sample, sizeof sample);
  }
}

template <class Stored>
void to_float(const std::byte* stored, std::size_t samples, std::byte* to) {
  convert_each<Stored, float>(stored, samples, to, [](Stored value) { return static_cast<float>(value); });
}

// Unpacks samples from the highest bit of each byte on.
template <class Sample>
void unpack_bits(const std::byte* stored, std::size_t samples, int bits, unsigned factor, std::byte* to) {
  const unsigned mask = (1U << static_cast<unsigned>(bits)) - 1;
  unsigned held = 0;
  int held_bits = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    while (held_bits < bits) {
      held = held << 8U | std::to_integer<unsigned>(*stored++);
      held_bits += 8;
    }
    held_bits -= bits;
    const auto sample = static_cast<Sample>(((held >> static_cast<unsigned>(held_bits)) & mask) * factor);
    std::memcpy(to + i * sizeof sample, &sample, sizeof sample);
  }
}

// Three bytes in the processor's order: 1 bit of sign, 7 of exponent (bias 63), 16 of fraction.
float float_of_24_bits(const std::byte* stored) {
  std::uint32_t bits = 0;
  constexpr std::uint16_t one = 1;
  std::uint8_t low_first = 0;
  std::memcpy(&low_first, &one, 1);
  for (unsigned i = 0; i < 3; ++i) {
    bits |= std::to_integer<std::uint32_t>(stored[i]) << (8 * (low_first == 1 ? i : 2 - i));
  }
  const bool negative = (bits >> 23U) != 0;
  const auto exponent = static_cast<int>((bits >> 16U) & 0x7fU);
  const auto fraction = static_cast<double>(bits & 0xffffU);
  double value = 0;
  if (exponent == 127) {
    value = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -62 - 16);
  } else {
    value = std::ldexp(fraction + 65536, exponent - 63 - 16);
  }
  return static_cast<float>(negative ? -value : value);
}

}  // namespace

std::optional<TiffCoding> coding_of(int bits, int sample_format) {
  const auto to_float_type = [&](TiffNumber number, double range, bool unknown, std::string_view name) {
    return TiffCoding{number, bits,    PixelType::f32,
                      range,  unknown, fmt::format("{}{} samples converted to f32", name, bits)};
  };
  switch (sample_format) {
    case SAMPLEFORMAT_UINT:
    case SAMPLEFORMAT_VOID:
      if (bits == 8) return TiffCoding{};
      if (bits == 16) return TiffCoding{.bits = 16, .type = PixelType::u16};
      if (bits == 1 || bits == 2 || bits == 4) {
        return TiffCoding{.bits = bits, .note = fmt::format("{}-bit samples converted to u8", bits)};
      }
      if (bits > 8 && bits < 16) {
        return TiffCoding{.bits = bits,
                          .type = PixelType::u16,
                          .range = std::ldexp(1, bits) - 1,
                          .note = fmt::format("{}-bit samples stored as u16", bits)};
      }
      if (bits == 24 || bits == 32)
        return to_float_type(TiffNumber::whole, std::ldexp(1, bits) - 1, true, "u");
      return std::nullopt;
    case SAMPLEFORMAT_INT:
      if (bits == 8 || bits == 16 || bits == 32) {
        return to_float_type(TiffNumber::signed_whole, std::ldexp(1, bits - 1) - 1, true, "i");
      }
      return std::nullopt;
    case SAMPLEFORMAT_IEEEFP:
      if (bits == 16) {
        return TiffCoding{
            .number = TiffNumber::floating, .bits = 16, .type = PixelType::f16, .white_unknown = true};
      }
      if (bits == 32) {
        return TiffCoding{
            .number = TiffNumber::floating, .bits = 32, .type = PixelType::f32, .white_unknown = true};
      }
      if (bits == 24 || bits == 64) return to_float_type(TiffNumber::floating, 0, true, "f");
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::size_t stored_bytes(const TiffCoding& coding, std::size_t samples) {
  return (samples * static_cast<std::size_t>(coding.bits) + 7) / 8;
}

std::optional<double> decode_samples(const TiffCoding& coding, const std::byte* stored, std::size_t samples,
                                     std::byte* to) {
  std::optional<double> beyond;
  switch (coding.number) {
    case TiffNumber::whole:
      if (coding.bits < 8) {
        const unsigned largest = (1U << static_cast<unsigned>(coding.bits)) - 1;
        unpack_bits<std::uint8_t>(stored, samples, coding.bits, 255 / largest, to);
      } else if (coding.bits > 8 && coding.bits < 16) {
        unpack_bits<std::uint16_t>(stored, samples, coding.bits, 1, to);
      } else if (coding.bits == 24) {
        for (std::size_t i = 0; i < samples; ++i) {
          std::uint32_t value = 0;
          std::memcpy(&value, stored + 3 * i, 3);  // little endian, like all supported processors
          const auto sample = static_cast<float>(value);
          std::memcpy(to + i * sizeof sample, &sample, sizeof sample);
        }
      } else if (coding.bits == 32) {
        to_float<std::uint32_t>(stored, samples, to);
      } else {
        std::memcpy(to, stored, stored_bytes(coding, samples));
      }
      break;
    case TiffNumber::signed_whole:
      if (coding.bits == 8) to_float<std::int8_t>(stored, samples, to);
      if (coding.bits == 16) to_float<std::int16_t>(stored, samples, to);
      if (coding.bits == 32) to_float<std::int32_t>(stored, samples, to);
      break;
    case TiffNumber::floating:
      if (coding.bits == 24) {
        for (std::size_t i = 0; i < samples; ++i) {
          const float sample = float_of_24_bits(stored + 3 * i);
          std::memcpy(to + i * sizeof sample, &sample, sizeof sample);
        }
      } else if (coding.bits == 64) {
        convert_each<double, float>(stored, samples, to, [&](double value) {
          const auto sample = static_cast<float>(value);
          if (std::isfinite(value) && !std::isfinite(sample) && !beyond) beyond = value;
          return sample;
        });
      } else {
        std::memcpy(to, stored, stored_bytes(coding, samples));
      }
      break;
  }
  return beyond;
}

}  // namespace ungrain::io
