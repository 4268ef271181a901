// What a method's cases.h says: under which parameters it is tested. Images, borders, types and layouts are
// added to them by conformance_test.cpp, the same for every method.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ungrain/image.h"
#include "ungrain/parameters.h"

namespace ungrain::testing {

struct Variant {
  std::string name;
  MethodParams params;              // strengths for a range of 1
  std::optional<Colour> only = {};  // images of this kind only
  bool small = false;               // too slow for more than a thousand pixels
  // Instead of the method's: a share of the range, for every type.
  std::optional<double> tolerance = {};
  std::optional<double> cuda_tolerance = {};  // the same, on a GPU only
};

struct MethodCases {
  std::string method;
  std::vector<Variant> variants;
  bool borders = false;  // it has a border parameter
  // Largest error against the reference, as a share of the range.
  double cpu_tolerance = 2e-5;
  double cuda_tolerance = 1e-4;
  // Every result is a mean of pixels whose weights differences and distances decide: nothing overshoots, and
  // a mirrored or brighter picture gives the same weights. Not so where patches lie on a raster and are
  // transformed.
  bool averages = true;
  // What a constant image may change by: a share of its level.
  double constants_move = 2e-6;
  // Largest error of tiny images on a GPU where its arithmetic is coarser than float's, as a share of the
  // range.
  double tiny_on_gpu = 2e-5;
};

}  // namespace ungrain::testing
