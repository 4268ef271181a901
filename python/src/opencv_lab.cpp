#include "opencv_lab.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "in_parallel.h"

namespace ungrain::python {
namespace {

// sRGB's primaries with a D65 white, each row divided by the white's own value: white has X = Y = Z = 1.
constexpr float white_x = 0.950456F;
constexpr float white_z = 1.088754F;
constexpr float to_x[3] = {0.412453F / white_x, 0.357580F / white_x, 0.180423F / white_x};
constexpr float to_y[3] = {0.212671F, 0.715160F, 0.072169F};
constexpr float to_z[3] = {0.019334F / white_z, 0.119193F / white_z, 0.950227F / white_z};
constexpr float from_x[3] = {3.240479F * white_x, -0.969256F * white_x, 0.055648F * white_x};
constexpr float from_y[3] = {-1.53715F, 1.875991F, -0.204043F};
constexpr float from_z[3] = {-0.498535F * white_z, 0.041556F * white_z, 1.057311F * white_z};

constexpr float linear_below = 0.008856F;
constexpr float linear_slope = 7.787F;
constexpr float linear_offset = 16.0F / 116;
constexpr float luminance_slope = 903.3F;

// The curve of Lab over [0, 1]; linear between entries, with an error far below half a step of 8 bits.
class CubeRoots {
 public:
  CubeRoots() {
    for (std::size_t i = 0; i < table_.size(); ++i) {
      const float t = static_cast<float>(i) / steps;
      table_[i] = t > linear_below ? std::cbrt(t) : linear_slope * t + linear_offset;
    }
  }
  float operator()(float t) const {
    const float at = std::clamp(t, 0.0F, 1.0F) * steps;
    const auto index = static_cast<std::size_t>(at);
    const float part = at - static_cast<float>(index);
    return table_[index] + part * (table_[index + 1] - table_[index]);
  }

 private:
  static constexpr int steps = 8192;
  std::array<float, steps + 2> table_{};
};

std::uint8_t rounded(float value) {
  return static_cast<std::uint8_t>(std::lrintf(std::clamp(value, 0.0F, 255.0F)));
}

// In this direction OpenCV drops the fraction.
std::uint8_t truncated(float value) { return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F)); }

constexpr std::size_t worth_a_thread = 1 << 16;  // pixels

}  // namespace

void bgr_to_lab(const std::uint8_t* bgr, std::uint8_t* lab, std::size_t pixels) {
  static const CubeRoots curve;
  in_parallel(pixels, worth_a_thread, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const float b = static_cast<float>(bgr[3 * i]) / 255;
      const float g = static_cast<float>(bgr[3 * i + 1]) / 255;
      const float r = static_cast<float>(bgr[3 * i + 2]) / 255;
      const auto mix = [&](const float* weights) { return weights[0] * r + weights[1] * g + weights[2] * b; };
      const float y = mix(to_y);
      const float fx = curve(mix(to_x));
      const float fy = curve(y);
      const float fz = curve(mix(to_z));
      const float luminance = y > linear_below ? 116 * fy - 16 : luminance_slope * y;
      lab[3 * i] = rounded(luminance * 2.55F);
      lab[3 * i + 1] = rounded(500 * (fx - fy) + 128);
      lab[3 * i + 2] = rounded(200 * (fy - fz) + 128);
    }
  });
}

void lab_to_bgr(const std::uint8_t* lab, std::uint8_t* bgr, std::size_t pixels) {
  constexpr float curved_above = linear_slope * linear_below + linear_offset;
  const auto uncurve = [](float f) {
    return f > curved_above ? f * f * f : (f - linear_offset) / linear_slope;
  };
  in_parallel(pixels, worth_a_thread, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const float luminance = static_cast<float>(lab[3 * i]) / 2.55F;
      const bool dark = luminance <= luminance_slope * linear_below;
      const float y_dark = luminance / luminance_slope;
      const float fy = dark ? linear_slope * y_dark + linear_offset : (luminance + 16) / 116;
      const float y = dark ? y_dark : fy * fy * fy;
      const float x = uncurve(fy + (static_cast<float>(lab[3 * i + 1]) - 128) / 500);
      const float z = uncurve(fy - (static_cast<float>(lab[3 * i + 2]) - 128) / 200);
      const auto mix = [&](int channel) {
        return 255 * (from_x[channel] * x + from_y[channel] * y + from_z[channel] * z);
      };
      bgr[3 * i] = truncated(mix(2));
      bgr[3 * i + 1] = truncated(mix(1));
      bgr[3 * i + 2] = truncated(mix(0));
    }
  });
}

}  // namespace ungrain::python
