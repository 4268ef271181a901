// Choices that several methods share.
#pragma once

#include <cstdint>

namespace ungrain {

inline constexpr int whole_image = 0;  // side of a search window that covers the whole image

// How pixels outside the image are defined.
enum class Border : std::uint8_t {
  symmetric,  // cba|abc|cba
  mirror,     // cb|abc|ba
  clamp,      // aaa|abc|ccc
  constant,   // 000|abc|000
  wrap,       // abc|abc|abc
  shrink,     // nothing: only pixels inside take part, weights renormalised
};

enum class Window : std::uint8_t {
  square,  // (2 radius + 1)²
  disc,    // |p - q| <= radius, as OpenCV's
};

enum class ColourMode : std::uint8_t {
  joint,        // one weight a pixel from the mean squared difference over the colour channels
  per_channel,  // each channel by itself
  lab,          // jointly in CIE-Lab (rgb images only), strengths in delta E
};

// How precisely a GPU compares patches in a whole-image search; everything else uses float.
enum class Precision : std::uint8_t {
  half,    // 16-bit pixels, 32-bit sums; float where that is not precise enough
  single,  // each pixel as two 16-bit numbers
};

}  // namespace ungrain
