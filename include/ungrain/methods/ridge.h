#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ungrain/image.h"
#include "ungrain/noise_model.h"

namespace ungrain {

// Gives unset parameters below their values, together with the noise's level.
enum class RidgeProfile : std::uint8_t { fast, normal, high };

// Similar patches estimate each other: every patch of a group becomes the linear combination of all patches
// of the group that has the least expected error (a ridge regression). Starts from the result of bm3d, which
// tells how the patches of a group resemble each other, and repeats this in a few passes. Each leaves less of
// the noise and finds its groups in what the one before left.
//
// Unset numbers follow the profile and the noise.
struct RidgeParams {
  static constexpr std::string_view method = "ridge";
  RidgeProfile profile = RidgeProfile::normal;
  // The noise's standard deviation, pixel units: one number, or one for each colour channel; 0 returns the
  // input. Empty: measured.
  std::vector<double> sigma = {};
  // How much the noise of an rgb image's channels has in common, from 0 (independent) to 1 (the same). Unset:
  // measured where sigma is, 0 where that is given.
  std::optional<double> correlation = {};
  // Instead of sigma: the standard deviation at every pixel, in the pixel units of the filtered image. As
  // large as that image, with one channel or one for each of its colour channels. Must outlive the Denoiser.
  ConstImageView sigma_map = {};
  // Instead of sigma: the noise by level and frequency, of the channels that are filtered. No name on the
  // command line yet.
  std::shared_ptr<const NoiseModel> noise_model = {};
  std::optional<int> passes = {};
  // The share of the noise that the passes start with: 1, the noisy image; less, with the pilot mixed in.
  std::optional<double> start = {};
  // The share of the noise that the first of very many passes would keep; the last keeps none.
  std::optional<double> keep = {};
  std::optional<double> noise_factor = {};  // factor on the noise's variance that combinations are made for
  std::optional<int> patch = {};            // pixels: side of a patch
  std::optional<int> spacing = {};          // pixels from one reference patch to the next
  std::optional<int> search = {};           // pixels: side of the window that is searched, odd
  std::optional<int> group = {};            // patches at most
};

}  // namespace ungrain
