// The settings under which nlm is held against its reference on every backend. Strengths are for a range
// of 1.
#pragma once

#include "conformance_case.h"
#include "ungrain/methods/nlm.h"

namespace ungrain::testing {

inline MethodCases nlm_cases() {
  using P = NlmParams;
  return {.method = "nlm",
          .variants =
              {{"s7_p3", P{.search = 7, .patch = 3, .h = 0.1}},
               {"s5_p5_gauss", P{.search = 5, .patch = 5, .patch_sigma = 1.2, .h = 0.15}},
               {"s9_p7", P{.search = 9, .patch = 7, .h = 0.1, .self = SelfWeight::one}},
               {"s11_p7_noise", P{.search = 11, .patch = 7, .sigma = 0.05, .h = 0.04}},
               {"s5_p7_gauss", P{.search = 5, .patch = 7, .patch_sigma = 1.6, .h = 0.08}},
               {"s5_p9_gauss", P{.search = 5, .patch = 9, .patch_sigma = 2.1, .sigma = 0.05, .h = 0.05}},
               {"s3_p11_gauss", P{.search = 3, .patch = 11, .patch_sigma = 2.8, .h = 0.08}},
               {"s3_p13", P{.search = 3, .patch = 13, .h = 0.1}},
               {"noise", P{.search = 7, .patch = 3, .sigma = 0.05, .h = 0.05}},
               {"self_one", P{.search = 5, .patch = 3, .h = 0.08, .self = SelfWeight::one}},
               {"per_channel", P{.search = 5, .patch = 3, .h = 0.1, .colour = ColourMode::per_channel}},
               {"lab", P{.search = 5, .patch = 3, .h = 8, .colour = ColourMode::lab}, Colour::rgb},
               {"underflow", P{.search = 5, .patch = 3, .h = 1e-3}},
               {"huge", P{.search = 3, .patch = 1, .h = 1e9}},
               {"s5_p3_t1", P{.search = 5, .radius_t = 1, .patch = 3, .h = 0.1}},
               {"s5_p7_t1", P{.search = 5, .radius_t = 1, .patch = 7, .sigma = 0.05, .h = 0.06}, {}, true},
               {"s3_p5_gauss_t2",
                P{.search = 3, .radius_t = 2, .patch = 5, .patch_sigma = 1.2, .h = 0.15},
                {},
                true},
               {"s3_p3_t3", P{.search = 3, .radius_t = 3, .patch = 3, .h = 0.1, .self = SelfWeight::one}},
               {"s1_p3_t1", P{.search = 1, .radius_t = 1, .patch = 3, .h = 0.1}},
               {"per_channel_t1", P{.search = 3,
                                    .radius_t = 1,
                                    .patch = 3,
                                    .h = 0.1,
                                    .self = SelfWeight::one,
                                    .colour = ColourMode::per_channel}},
               {"lab_t1", P{.search = 3, .radius_t = 1, .patch = 3, .h = 8, .colour = ColourMode::lab},
                Colour::rgb},
               {"whole", P{.search = whole_image, .patch = 3, .h = 0.1}, {}, true, {}, {}, true},
               {"whole_p5_gauss",
                P{.search = whole_image, .patch = 5, .patch_sigma = 1.2, .sigma = 0.05, .h = 0.06},
                {},
                true,
                {},
                {},
                true},
               {"whole_p7",
                P{.search = whole_image, .patch = 7, .h = 0.05, .self = SelfWeight::one},
                {},
                true,
                {},
                {},
                true},
               {"whole_p7_float",
                P{.search = whole_image, .patch = 7, .h = 0.02, .precision = Precision::single},
                {},
                true},
               {"whole_p7_far", P{.search = whole_image, .patch = 7, .h = 0.02}, {}, true, {}, {}, true},
               {"whole_p9", P{.search = whole_image, .patch = 9, .h = 0.1}, {}, true, {}, {}, true},
               {"whole_underflow", P{.search = whole_image, .patch = 3, .h = 1e-3}, {}, true},
               {"zero_strength", P{.h = 0}}},
          .borders = true,
          .of_halves = 2e-4};
}

}  // namespace ungrain::testing
