// The settings under which median is held against its reference on every backend. A median is one of the
// values, so the versions agree to the bit (except the mean of two under a shrinking border).
#pragma once

#include "conformance_case.h"
#include "ungrain/methods/median.h"

namespace ungrain::testing {

inline MethodCases median_cases() {
  using P = MedianParams;
  return {.method = "median",
          .variants = {{"r0", P{.radius = 0}},
                       {"r1", P{.radius = 1}},
                       {"r2", P{.radius = 2}},
                       {"r5", P{.radius = 5}},
                       {"r7", P{.radius = 7}},
                       {"r18", P{.radius = 18}, {}, true},
                       {"r1_t1", P{.radius = 1, .radius_t = 1}},
                       {"r0_t2", P{.radius = 0, .radius_t = 2}},
                       {"r3_t1", P{.radius = 3, .radius_t = 1}},
                       {"r11_t1", P{.radius = 11, .radius_t = 1}, {}, true}},
          .borders = true,
          .cpu_tolerance = 1e-7,
          .cuda_tolerance = 1e-7};
}

}  // namespace ungrain::testing
