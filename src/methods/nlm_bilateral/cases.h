// The settings under which nlm-bilateral is held against its reference on every backend. Strengths are for a
// range of 1.
#pragma once

#include <limits>

#include "conformance_case.h"
#include "ungrain/methods/nlm_bilateral.h"

namespace ungrain::testing {

inline MethodCases nlm_bilateral_cases() {
  using P = NlmBilateralParams;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return {
      .method = "nlm-bilateral",
      .variants =
          {{"s7_p3", P{.search = 7, .patch = 3, .sigma_h = 0.1, .sigma_range = 0.2}},
           {"s5_p5", P{.search = 5, .patch = 5, .sigma_h = 0.05, .sigma_range = 0.1, .sigma_space = 2}},
           {"s9_p7", P{.search = 9, .patch = 7, .sigma_h = 0.05, .sigma_range = 0.2}},
           {"follows_noise", P{.search = 5, .patch = 3, .sigma = 0.05}},
           {"no_space",
            P{.search = 7, .patch = 3, .sigma_h = 0.1, .sigma_range = 0.3, .sigma_space = infinity}},
           {"per_channel", P{.search = 5,
                             .patch = 3,
                             .sigma_h = 0.1,
                             .sigma_range = 0.2,
                             .colour = ColourMode::per_channel}},
           {"lab", P{.search = 5, .patch = 3, .sigma_h = 8, .sigma_range = 20, .colour = ColourMode::lab},
            Colour::rgb},
           {"underflow", P{.search = 5, .patch = 3, .sigma_h = 1e-3, .sigma_range = 1e-30}},
           {"huge",
            P{.search = 3, .patch = 1, .sigma_h = infinity, .sigma_range = infinity, .sigma_space = 1}},
           {"s5_p3_t1", P{.search = 5, .radius_t = 1, .patch = 3, .sigma_h = 0.1, .sigma_range = 0.2}},
           {"s3_p3_t3",
            P{.search = 3, .radius_t = 3, .patch = 3, .sigma_h = 0.1, .sigma_range = 0.2},
            {},
            true},
           {"whole",
            P{.search = whole_image, .patch = 3, .sigma_h = 0.1, .sigma_range = 0.3, .sigma_space = 9},
            {},
            true,
            {},
            {},
            true},
           {"whole_no_space",
            P{.search = whole_image, .patch = 5, .sigma_h = 0.1, .sigma_range = 0.3, .sigma_space = infinity},
            {},
            true,
            {},
            {},
            true},
           {"zero_strength", P{.sigma_h = 0, .sigma_range = 1}}},
      .borders = true,
      .of_halves = 2e-4};
}

}  // namespace ungrain::testing
