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
                       {"flat", P{.sigma = 200, .radius = 5}}},
          .borders = true};
}

}  // namespace ungrain::testing
