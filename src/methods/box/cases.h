// The settings under which box is held against its reference on every backend.
#pragma once

#include "conformance_case.h"
#include "ungrain/methods/box.h"

namespace ungrain::testing {

inline MethodCases box_cases() {
  using P = BoxParams;
  return {.method = "box",
          .variants = {{"r0", P{.radius = 0}},
                       {"r1", P{.radius = 1}},
                       {"r4", P{.radius = 4}},
                       {"r20", P{.radius = 20}},
                       {"r1_z1", P{.radius = 1, .radius_z = 1}},
                       {"r0_z3", P{.radius = 0, .radius_z = 3}}},
          .borders = true};
}

}  // namespace ungrain::testing
