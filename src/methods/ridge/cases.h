// The settings under which ridge is held against its reference on every backend. Strengths are for a range
// of 1.
#pragma once

#include "conformance_case.h"
#include "ungrain/methods/ridge.h"

namespace ungrain::testing {

inline MethodCases ridge_cases() {
  using P = RidgeParams;
  // Windows small enough for the reference.
  const auto near = [](P p) {
    p.search = 9;
    p.group = 24;
    return p;
  };
  constexpr bool slow = true;
  // Tolerance for the pilot's groups, which are other ones than the reference's (methods/bm3d/cases.h), and
  // for the groups that are found in what is made from it. ridge_test.cpp compares the passes themselves.
  constexpr double other_pilot = 0.06;
  return {
      .method = "ridge",
      .variants = {{"normal", near({.sigma = {0.1}, .passes = 3}), {}, false, other_pilot},
                   {"fast", near({.profile = RidgeProfile::fast, .sigma = {0.08}}), {}, slow, other_pilot},
                   {"high", near({.profile = RidgeProfile::high, .sigma = {0.08}}), {}, slow, other_pilot},
                   {"channel_sigmas", near({.sigma = {0.05, 0.1, 0.08}, .passes = 2}), Colour::rgb, slow,
                    other_pilot},
                   {"patch_8", near({.sigma = {0.1}, .passes = 2, .patch = 8}), {}, slow, other_pilot},
                   {"zero_strength", P{.sigma = {0.0}}}},
      .bounded_settings = "",
      .cpu_pictures = PictureAccuracy{.rms = 0.06, .far_pixels = 0.002, .psnr_difference = 0.02},
      .averages = false,
      .constants_move = 1e-3};
}

}  // namespace ungrain::testing
