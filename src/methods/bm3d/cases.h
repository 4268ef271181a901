// The settings under which bm3d is held against its reference on every backend. Strengths are for a range
// of 1.
#pragma once

#include "conformance_case.h"
#include "ungrain/methods/bm3d.h"

namespace ungrain::testing {

inline MethodCases bm3d_cases() {
  using P = Bm3dParams;
  using enum PatchTransform;
  // Windows small enough for the reference.
  const auto near = [](P p) {
    p.search = 9;
    p.wiener_group = 16;
    return p;
  };
  constexpr bool slow = true;
  // Tolerance for other groups than the reference's. The fast version matches pixels of 8 or 12 bits, a GPU
  // halves, so patches at about the same distance may be exchanged. A GPU's transforms are of halves too, so
  // coefficients near the threshold may be kept or not. Single pixels differ by a fraction of the noise, the
  // mean does not (bm3d_test.cpp). A wrong transform or weight differs by more.
  constexpr double other_groups = 0.06;
  // For settings in which a GPU searches among halves and filters with the general kernel: only the groups
  // may differ (0.007 measured).
  constexpr double other_groups_on_gpu = 0.02;
  return {
      .method = "bm3d",
      .variants =
          {{"normal", near({.sigma = {0.1}}), {}, false, other_groups},
           {"normal_whole", P{.sigma = {0.1}}, {}, slow, other_groups},
           {"fast", P{.profile = Bm3dProfile::fast, .sigma = {0.08}}, {}, slow, other_groups},
           {"high", P{.profile = Bm3dProfile::high, .sigma = {0.08}, .search = 15}, {}, slow, other_groups},
           {"one_step", near({.sigma = {0.1}, .steps = 1}), {}, slow, other_groups},
           {"per_channel",
            near({.sigma = {0.05}, .colour = Bm3dColour::per_channel}),
            {},
            slow,
            other_groups},
           {"channel_sigmas", near({.sigma = {0.05, 0.1, 0.08}}), Colour::rgb, slow, other_groups},
           {"rgb_patch_4", P{.sigma = {0.1}, .patch = 4, .search = 5, .group = 8}, Colour::rgb},
           {"dct_hadamard",
            near({.sigma = {0.1},
                  .transform = dct,
                  .group_transform = GroupTransform::hadamard,
                  .kaiser = false}),
            {},
            slow,
            other_groups},
           {"hadamard_dct",
            near({.sigma = {0.1},
                  .transform = hadamard,
                  .wiener_transform = bior15,
                  .group_transform = GroupTransform::dct}),
            {},
            slow,
            {},
            other_groups_on_gpu},
           {"dft",
            near({.sigma = {0.1},
                  .transform = dft,
                  .wiener_transform = dft,
                  .group_transform = GroupTransform::dft,
                  .group = 6}),
            {},
            slow,
            {},
            other_groups_on_gpu},
           {"patch_5",
            near({.sigma = {0.1}, .transform = dct, .patch = 5, .spacing = 2, .group = 8}),
            {},
            slow},
           {"limits",
            near({.sigma = {0.1}, .max_distance = 0.02, .wiener_max_distance = 0.004}),
            {},
            slow,
            other_groups},
           {"dabov", near({.profile = Bm3dProfile::dabov2007, .sigma = {0.2}}), {}, slow},
           // Only the GPU's fast kernel runs a part of it: step 1.
           {"matlab", near({.profile = Bm3dProfile::matlab, .sigma = {0.2}}), {}, slow, other_groups},
           // Over time patches are compared as integers, so groups differ only where rounding moves a pixel
           // from one integer to the next.
           {"over_time", P{.sigma = {0.1}, .radius_t = 1, .search = 7, .group = 8}, {}, slow, 0.02},
           {"over_time_dct",
            P{.sigma = {0.05}, .steps = 1, .radius_t = 2, .transform = dct, .search = 5, .group = 4},
            {},
            slow,
            0.02},
           {"zero_strength", P{.sigma = {0.0}}}},
      .bounded_settings = "`patch` other than 8",
      .cpu_pictures = PictureAccuracy{.rms = 0.05, .far_pixels = 0.001, .psnr_difference = 0.02},
      .cuda_pictures = PictureAccuracy{.rms = 0.08, .far_pixels = 0.005, .psnr_difference = 0.03},
      .averages = false,
      .constants_move = 1e-3,
      .tiny_on_gpu = 3e-4};
}

}  // namespace ungrain::testing
