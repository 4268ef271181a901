// The settings for which every backend of bilateral is compared with its reference. Strengths are for a range
// of 1.
#pragma once

#include <limits>

#include "conformance_case.h"
#include "ungrain/methods/bilateral.h"

namespace ungrain::testing {

inline MethodCases bilateral_cases() {
  using P = BilateralParams;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return {
      .method = "bilateral",
      .variants =
          {{"default", P{.sigma_range = 0.12}},
           {"follows_noise", P{.radius = 2, .sigma = 0.05}},
           {"separable", P{.sigma_range = 0.2, .quality = BilateralQuality::separable}},
           {"separable_lab",
            P{.radius = 3,
              .sigma_range = 12,
              .quality = BilateralQuality::separable,
              .colour = ColourMode::lab},
            Colour::rgb},
           {"grid_r6", P{.radius = 6,
                         .sigma_range = 0.1,
                         .quality = BilateralQuality::grid,
                         .colour = ColourMode::per_channel}},
           {"grid_r9", P{.radius = 9,
                         .sigma_space = 6,
                         .sigma_range = 0.3,
                         .quality = BilateralQuality::grid,
                         .colour = ColourMode::per_channel}},
           {"grid_huge", P{.radius = 7,
                           .sigma_space = infinity,
                           .sigma_range = infinity,
                           .quality = BilateralQuality::grid,
                           .colour = ColourMode::per_channel}},
           {"r1", P{.radius = 1, .sigma_range = 0.1}},
           {"r1_t1", P{.radius = 1, .radius_t = 1, .sigma_range = 0.2}},
           {"r3_t2", P{.radius = 3, .radius_t = 2, .sigma_range = 0.12}},
           {"r2_t2_step", P{.radius = 2, .radius_t = 2, .step_t = 1.5, .sigma_range = 0.15}},
           {"r1_t2_far", P{.radius = 1, .radius_t = 2, .step_t = 40, .sigma_range = 0.3}},
           {"r0_t1", P{.radius = 0, .radius_t = 1, .sigma_range = 0.3}},
           {"r17_t1", P{.radius = 17, .radius_t = 1, .sigma_space = 8, .sigma_range = 0.15}, {}, true},
           {"city_block_t1", P{.radius = 2,
                               .radius_t = 1,
                               .sigma_range = 0.4,
                               .window = Window::disc,
                               .colour_distance = ColourDistance::city_block}},
           {"lab_t1", P{.radius = 2, .radius_t = 1, .sigma_range = 12, .colour = ColourMode::lab},
            Colour::rgb},
           {"r3_disc", P{.radius = 3, .sigma_range = 0.2, .window = Window::disc}},
           {"r9", P{.radius = 9, .sigma_space = 5, .sigma_range = 0.15}},
           {"weak", P{.radius = 3, .sigma_range = 0.01}},  // exponents below a float's
           {"narrow", P{.radius = 3, .sigma_space = 0.1, .sigma_range = 0.2}},
           {"per_channel", P{.radius = 2, .sigma_range = 0.1, .colour = ColourMode::per_channel}},
           {"lab", P{.radius = 3, .sigma_range = 12, .colour = ColourMode::lab}, Colour::rgb},
           {"lab_disc", P{.radius = 2, .sigma_range = 3, .window = Window::disc, .colour = ColourMode::lab},
            Colour::rgb},
           {"city_block", P{.radius = 3,
                            .sigma_range = 0.3,
                            .window = Window::disc,
                            .colour_distance = ColourDistance::city_block}},
           {"city_block_r1",
            P{.radius = 1, .sigma_range = 0.2, .colour_distance = ColourDistance::city_block}, Colour::rgb},
           {"city_block_r9", P{.radius = 9,
                               .sigma_space = 5,
                               .sigma_range = 0.4,
                               .colour_distance = ColourDistance::city_block}},
           {"city_block_r17",
            P{.radius = 17,
              .sigma_space = 8,
              .sigma_range = 0.4,
              .colour_distance = ColourDistance::city_block},
            Colour::rgb},
           {"city_block_follows_noise",
            P{.radius = 2, .sigma = 0.05, .colour_distance = ColourDistance::city_block}},
           // Where all channels differ by the range, exponents are below a float's; their squared
           // differences, summed, are not.
           {"city_block_weak", P{.radius = 2,
                                 .sigma_space = 1,
                                 .sigma_range = 0.13,
                                 .colour_distance = ColourDistance::city_block}},
           {"city_block_tiny",
            P{.radius = 2, .sigma_range = 1e-30, .colour_distance = ColourDistance::city_block}, Colour::rgb},
           {"city_block_huge",
            P{.radius = 2,
              .sigma_space = infinity,
              .sigma_range = infinity,
              .colour_distance = ColourDistance::city_block},
            Colour::rgb},
           {"separable_city_block",
            P{.sigma_range = 0.4,
              .quality = BilateralQuality::separable,
              .colour_distance = ColourDistance::city_block},
            Colour::rgb},
           {"lab_city_block",
            P{.radius = 3,
              .sigma_range = 20,
              .colour = ColourMode::lab,
              .colour_distance = ColourDistance::city_block},
            Colour::rgb},
           {"huge_strength", P{.radius = 2, .sigma_space = infinity, .sigma_range = infinity}},
           {"tiny_strength", P{.radius = 2, .sigma_range = 1e-30}},
           {"zero_strength", P{.sigma_range = 0}}},
      .borders = true};
}

}  // namespace ungrain::testing
