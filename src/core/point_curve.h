// A curve that is applied to every sample of a plane, as a table that the CPU and the GPU share.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#ifndef __CUDACC__
#include <cmath>
#endif

#include "core/host_device.h"

namespace ungrain {

// A function that is added to the table's value. A table of 4096 steps alone is too coarse for a root over
// many thousand levels, and squares extend beyond the table's end.
enum class CurveBase : std::uint8_t {
  none,
  root,    // factor * sqrt(value + shift)
  square,  // factor * (value + shift)^2
  // factor * sqrt(x (x + width)), x = value + shift: a root at its start, a straight line far from it
  hyperbola,
};

struct CurveShape {
  CurveBase base = CurveBase::none;
  float factor = 0;
  float shift = 0;
  float width = 0;                                         // of hyperbola: 0 is the straight line
  float first = 0;                                         // value of entry 0
  float per_value = 1;                                     // entries for each unit of value
  int entries = 2;                                         // at least 2
  float lowest = -std::numeric_limits<float>::infinity();  // bounds of the result
  float highest = std::numeric_limits<float>::infinity();
};

struct PointCurve {
  CurveShape shape;
  std::vector<float> table;  // shape.entries; linear between them and beyond the ends
};

UNGRAIN_HOST_DEVICE inline float curve_at(const CurveShape& shape, const float* table, float value) {
  const float place = (value - shape.first) * shape.per_value;
  const float last = static_cast<float>(shape.entries - 2);
  const float below = place > 0 ? (place < last ? floorf(place) : last) : 0;  // false for NaN
  const float* entry = table + static_cast<int>(below);
  float result = entry[0] + (place - below) * (entry[1] - entry[0]);
  if (shape.base != CurveBase::none) {
    const float shifted = value + shape.shift > 0 ? value + shape.shift : 0;
    const float base = shape.base == CurveBase::root     ? sqrtf(shifted)
                       : shape.base == CurveBase::square ? shifted * shifted
                                                         : sqrtf(shifted) * sqrtf(shifted + shape.width);
    result += shape.factor * base;
  }
  if (result < shape.lowest) return shape.lowest;
  return result > shape.highest ? shape.highest : result;
}

}  // namespace ungrain
