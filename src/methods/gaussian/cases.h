// The settings under which gaussian is held against its reference on every backend.
#pragma once

#include "conformance_case.h"
#include "ungrain/methods/gaussian.h"

namespace ungrain::testing {

inline MethodCases gaussian_cases() {
  using P = GaussianParams;
  return {.method = "gaussian",
          .variants = {{"s0", P{.sigma = 0}},
                       {"s1", P{.sigma = 1}},
                       {"s3", P{.sigma = 3}},
                       {"tiny", P{.sigma = 1e-12, .radius = 2}},
                       {"flat", P{.sigma = 200, .radius = 5}},
                       {"s1_z1", P{.sigma = 1, .sigma_z = 0.7}},
                       {"s0_z2", P{.sigma = 0, .sigma_z = 1.5, .radius_z = 2}}},
          .borders = true};
}

}  // namespace ungrain::testing
