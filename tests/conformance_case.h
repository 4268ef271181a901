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
  // A GPU compares halves, unless the samples are integers of more than 12 bits: MethodCases::of_halves
  // instead of cuda_tolerance.
  bool halves = false;
};

// Where two versions may choose other patches that are about as near, single pixels may differ by any amount:
// what holds over a picture with white noise.
struct PictureAccuracy {
  double rms = 0;              // of the difference, as a share of the noise's deviation
  double far_pixels = 0;       // share that differs by more than a quarter of the noise's deviation
  double psnr_difference = 0;  // dB, of both results against the clean picture
};

// The tolerances are those of docs/accuracy.md, which accuracy_test.cpp holds against them.
struct MethodCases {
  std::string method;
  std::vector<Variant> variants;
  bool borders = false;  // it has a border parameter
  // Largest error against the reference, as a share of the range, and for which settings it holds, in words;
  // empty: for none, because groups differ in all.
  std::string bounded_settings = "all";
  double cpu_tolerance = 2e-5;
  double cuda_tolerance = 1e-4;
  // Largest error of Variant::halves; 0: the method has none.
  double of_halves = 0;
  // Instead of largest errors, for the usual settings of a method that groups patches.
  std::optional<PictureAccuracy> cpu_pictures = {};
  std::optional<PictureAccuracy> cuda_pictures = {};
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
