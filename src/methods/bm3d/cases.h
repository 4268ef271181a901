// The settings under which bm3d is held against its reference on every backend. Strengths are for a range
// of 1.
#pragma once

#include "conformance_case.h"
#include "ungrain/methods/bm3d.h"

namespace ungrain::testing {

inline MethodCases bm3d_cases() {
  using P = Bm3dParams;
  using enum PatchTransform;
  const auto small = [](P p) {
    p.search = 11;
    return p;
  };
  return {.method = "bm3d",
          .variants = {
              {"normal", small({.sigma = {0.1}})},
              {"fast", P{.profile = Bm3dProfile::fast, .sigma = {0.08}}},
              {"high", P{.profile = Bm3dProfile::high, .sigma = {0.08}}, {}, true},
              {"one_step", small({.sigma = {0.1}, .steps = 1})},
              {"per_channel", small({.sigma = {0.05}, .colour = Bm3dColour::per_channel})},
              {"channel_sigmas", small({.sigma = {0.05, 0.1, 0.08}}), Colour::rgb},
              {"dct_hadamard", small({.sigma = {0.1},
                                      .transform = dct,
                                      .group_transform = GroupTransform::hadamard,
                                      .kaiser = false})},
              {"hadamard_dct", small({.sigma = {0.1},
                                      .transform = hadamard,
                                      .wiener_transform = bior15,
                                      .group_transform = GroupTransform::dct})},
              {"dft",
               small({.sigma = {0.1},
                      .transform = dft,
                      .wiener_transform = dft,
                      .group_transform = GroupTransform::dft,
                      .group = 6}),
               {},
               true},
              {"patch_5", small({.sigma = {0.1}, .transform = dct, .patch = 5, .spacing = 2, .group = 8})},
              {"patch_4", small({.sigma = {0.1}, .patch = 4, .group = 8, .pool = 12})},
              {"limits", small({.sigma = {0.1}, .max_distance = 0.02, .wiener_max_distance = 0.004})},
              {"dabov", small({.profile = Bm3dProfile::dabov2007, .sigma = {0.2}}), {}, true},
              {"matlab", small({.profile = Bm3dProfile::matlab, .sigma = {0.2}}), {}, true},
              {"zero_strength", P{.sigma = {0.0}}}}};
}

}  // namespace ungrain::testing
