// Choices that several methods share.
#pragma once

#include <cstdint>

namespace ungrain {

inline constexpr int whole_image = 0;  // a search window's side that stands for the image

// What stands outside the image's edge.
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

// How precisely a GPU compares patches in a whole-image search; elsewhere everything is float.
enum class Precision : std::uint8_t {
  half,    // pixels as 16-bit numbers, sums as 32-bit ones; float where that would not be enough
  single,  // pixels as two such numbers
};

}  // namespace ungrain
