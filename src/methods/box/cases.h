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
                       {"r20", P{.radius = 20}}},
          .borders = true};
}

}  // namespace ungrain::testing
