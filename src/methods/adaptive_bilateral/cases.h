// The settings under which adaptive-bilateral is held against its reference on every backend. Strengths are
// for a range of 1.
#pragma once

#include "conformance_case.h"
#include "ungrain/methods/adaptive_bilateral.h"

namespace ungrain::testing {

inline MethodCases adaptive_bilateral_cases() {
  using P = AdaptiveBilateralParams;
  return {.method = "adaptive-bilateral",
          .variants = {{"default", P{.sigma_range = 0.12}},
                       {"follows_noise", P{.radius = 2, .sigma = 0.05}},
                       {"r2_disc", P{.radius = 2, .sigma_range = 0.2, .window = Window::disc}},
                       {"mean", P{.radius = 3, .sigma_range = 0.15, .centre = VarianceCentre::mean}},
                       {"per_channel", P{.radius = 2, .sigma_range = 0.1, .colour = ColourMode::per_channel}},
                       {"strong", P{.radius = 4, .sigma_range = 0.3, .factor = 2}},
                       {"lab", P{.radius = 2, .sigma_range = 12, .colour = ColourMode::lab}, Colour::rgb},
                       {"weak", P{.radius = 3, .sigma_range = 0.01}},
                       {"weak_mean", P{.radius = 3, .sigma_range = 0.01, .centre = VarianceCentre::mean}},
                       {"tiny_factor", P{.radius = 2, .sigma_range = 0.1, .factor = 1e-9}},
                       {"no_epsilon", P{.radius = 2, .sigma_range = 0.1, .epsilon = 0}},
                       {"zero_factor", P{.sigma_range = 0.1, .factor = 0}}},
          .borders = true};
}

}  // namespace ungrain::testing
