// The noise estimate of one image by two ways, which must find the same.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/noise_model.h"

namespace ungrain::testing {

inline void expect_same(const NoiseModelEstimate& found, const NoiseModelEstimate& expected,
                        const std::string& what) {
  EXPECT_EQ(found.model, expected.model) << what;
  EXPECT_EQ(found.finding, expected.finding) << what;
  EXPECT_EQ(found.white.sigma, expected.white.sigma) << what;
  EXPECT_EQ(found.white.channels, expected.white.channels) << what;
  EXPECT_EQ(found.white.correlation, expected.white.correlation) << what;
  EXPECT_EQ(found.deviations, expected.deviations) << what;
  EXPECT_EQ(found.darkest, expected.darkest) << what;
  EXPECT_EQ(found.brightest, expected.brightest) << what;
  EXPECT_EQ(found.levels, expected.levels) << what;
  EXPECT_EQ(found.calm_levels, expected.calm_levels) << what;
  EXPECT_EQ(found.blocks, expected.blocks) << what;
  EXPECT_EQ(found.lines, expected.lines) << what;
}

// Flat and busy places, black and white ones, exactly constant ones, noise that grows with the level.
inline void fill_with_noise(TestImage& image) {
  fill_with_picture(image);
  const ImageSpec& spec = image.view().spec;
  std::uint32_t state = 1;
  const auto random = [&state] {
    state = state * 1664525U + 1013904223U;
    return static_cast<double>(state >> 8U) / (1U << 24U) - 0.5;
  };
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      const int tile = x / 48 + y / 40;
      for (int c = 0; c < spec.channels; ++c) {
        const double level = 0.02 + 0.9 * ((x / 48 * 7 + y / 40 * 3 + c) % 11) / 11;
        const double noise = 0.3 * std::sqrt(level) * (random() + random()) / 2;
        double value = level + noise;
        if (tile % 5 == 0) continue;  // the picture's
        if (tile % 7 == 0) value = level;
        if (tile % 9 == 0) value = noise < 0 ? 0 : noise;
        image.set(x, y, c, spec.white() * std::min(std::max(value, 0.0), 1.0));
      }
    }
  }
  if (!is_float(spec.type) || spec.width < 64 || spec.height < 40) return;
  image.set(33, 20, 0, std::numeric_limits<double>::quiet_NaN());
  image.set(spec.width - 5, spec.height - 3, spec.colour_channels() - 1,
            std::numeric_limits<double>::infinity());
  image.set(50, 30, 0, -0.25 * spec.white());
}

// Noise around black that was cut off there.
inline void fill_with_cut_noise(TestImage& image, double sigma) {
  const ImageSpec& spec = image.view().spec;
  std::uint32_t state = 1;
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < spec.channels; ++c) {
        double noise = -6;
        for (int n = 0; n < 12; ++n) {
          state = state * 1664525U + 1013904223U;
          noise += static_cast<double>(state >> 8U) / (1U << 24U);
        }
        const double level = (x / 64 + y / 64) % 4 == 3 ? 0.5 * spec.white() : 0.2 * sigma;
        image.set(x, y, c, std::max(level + sigma * noise, 0.0));
      }
    }
  }
}

inline std::vector<ImageSpec> noise_specs() {
  std::vector<ImageSpec> specs;
  for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f16, PixelType::f32}) {
    for (const int channels : {1, 2, 3, 4}) {
      const Colour colour = channels >= 3 ? Colour::rgb : Colour::gray;
      const bool alpha = channels == 2 || channels == 4;
      for (const auto& [width, height] : {std::pair{411, 237}, {630, 471}, {64, 64}, {17, 16}, {5, 90}}) {
        specs.push_back({width, height, channels, type, colour, alpha, 0});
      }
    }
    specs.push_back({300, 200, 2, type, Colour::multi, false, 0});
  }
  specs.push_back({500, 300, 1, PixelType::u16, Colour::gray, false, 4095});   // 12 bits
  specs.push_back({500, 300, 3, PixelType::f32, Colour::rgb, false, 1000.5});  // white between floats' steps
  specs.push_back({2603, 2401, 1, PixelType::u8, Colour::gray, false, 0});     // windows 4 pixels apart
  return specs;
}

inline std::string name_of(const ImageSpec& spec) {
  return std::to_string(spec.width) + " x " + std::to_string(spec.height) + " x " +
         std::to_string(spec.channels) + " " + std::string(name(spec.type));
}

}  // namespace ungrain::testing
