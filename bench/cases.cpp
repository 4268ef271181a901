#include "bench/cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/parts.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods.h"

namespace ungrain::bench {
namespace {

// ---- The least arithmetic
// ------------------------------------------------------------------------------------
//
// Counted for the cheapest way of computing the definition in floats that we know, with nothing for loads,
// stores, borders, conversions and loops. A weight is symmetric, so that it is made once for two pixels:
// costs of a pair stand below, and a pixel has half as many pairs as neighbours.

// 2^x: adding the number that rounds, shifting into the exponent, a polynomial of degree 3.
constexpr double exponential = 5;

int pixels_in(Window window, int radius) {
  if (window == Window::square) return (2 * radius + 1) * (2 * radius + 1);
  int count = 0;
  for (int y = -radius; y <= radius; ++y) {
    for (int x = -radius; x <= radius; ++x) count += x * x + y * y <= radius * radius ? 1 : 0;
  }
  return count;
}

// A difference and its square taken into the exponent for each channel, the exponential, and for both pixels
// a multiply-add for each channel and the sum of the weights.
double bilateral_operations(Window window, int radius, int channels) {
  const double pair = 2.0 * channels + exponential + 2.0 * (channels + 1);
  return pair * (pixels_in(window, radius) - 1) / 2;
}

// First pass: as above with one sum of weighted squares instead of values, and the square by itself. Second
// pass: the strength is each pixel's own, so that a pair shares its squared difference and nothing else.
double adaptive_operations(Window window, int radius, int channels) {
  const double first = 2.0 * channels + 1 + exponential + 2.0 * 2;
  const double second = 2.0 * channels + 2 * (1 + exponential + channels + 1);
  return (first + second) * (pixels_in(window, radius) - 1) / 2;
}

// Rows, then columns; the second weighs what the first made, so that only the differences of a pair are
// shared.
double separable_operations(int radius, int channels) {
  const double pair = 2.0 * channels + exponential + 2.0 * (channels + 1);
  return 2 * pair * radius;
}

// A pair of pixels: a difference and a square for each channel, the patch's sum as two running sums (a new
// one added, an old one taken away), the exponent, the exponential, and for both pixels the sums. `own` is
// what is there besides.
double patch_operations(int search, int channels, double own) {
  const double pair = 2.0 * channels + 4 + 1 + exponential + 2.0 * (channels + 1) + own;
  return pair * (search * search - 1) / 2;
}

// Running sums along columns and rows, and the division by the number of pixels.
constexpr double box_operations = 5;

// Both passes: a multiply-add for each pixel of the window's side.
double gaussian_operations(int radius) { return 2.0 * (2 * radius + 1); }

// 3 x 3 in minimum and maximum: three columns sorted (6, shared by the neighbours), the largest of the
// minima (2), the least of the maxima (2), the median of the medians (4) and of those three (4). For larger
// windows there is no such count: networks, histograms and selection each win somewhere.
double median_operations(int radius) { return radius == 1 ? 18 : 0; }

// ---- The cases
// -----------------------------------------------------------------------------------------------

// Noise of 25 of 255, the strengths of somebody who knows it.
constexpr double noise = 25.0 / 255;

struct Kind {
  PixelType type;
  bool rgb;
};
constexpr Kind gray_kinds[] = {{PixelType::f32, false}, {PixelType::u16, false}, {PixelType::u8, false}};
constexpr Kind all_kinds[] = {{PixelType::f32, false}, {PixelType::u16, false}, {PixelType::u8, false},
                              {PixelType::f32, true},  {PixelType::u16, true},  {PixelType::u8, true}};

std::string radius_text(int radius) { return fmt::format("radius {}", radius); }

void add_bilateral(std::vector<Case>& list) {
  const auto params = [](int radius, BilateralQuality quality, Window window) {
    return BilateralParams{.radius = radius,
                           .sigma_space = radius / 2.0,
                           .sigma_range = 2 * noise,
                           .quality = quality,
                           .window = window};
  };
  for (const int radius : {3, 7, 15}) {
    const double taps = pixels_in(Window::disc, radius);
    for (const Kind& kind : all_kinds) {
      list.push_back({"bilateral", radius_text(radius), params(radius, BilateralQuality::exact, Window::disc),
                      kind.type, kind.rgb, bilateral_operations(Window::disc, radius, kind.rgb ? 3 : 1),
                      taps / 100});
    }
    list.push_back({"adaptive-bilateral", radius_text(radius),
                    AdaptiveBilateralParams{.radius = radius,
                                            .sigma_space = radius / 2.0,
                                            .sigma_range = 2 * noise,
                                            .factor = 2,
                                            .window = Window::disc},
                    PixelType::f32, false, adaptive_operations(Window::disc, radius, 1), 2 * taps / 100});
  }
  list.push_back({"bilateral separable", radius_text(7),
                  params(7, BilateralQuality::separable, Window::square), PixelType::f32, false,
                  separable_operations(7, 1), 1});
  list.push_back({"bilateral grid", radius_text(7), params(7, BilateralQuality::grid, Window::square),
                  PixelType::f32, false, 0, 1});
}

// The self weight and the border are OpenCV's.
void add_nlm(std::vector<Case>& list) {
  constexpr int search = 21;
  constexpr int patch = 7;
  constexpr double reference_cost = search * search * patch * patch / 100.0;
  for (const Kind& kind : all_kinds) {
    list.push_back({"nlm", "21/7",
                    NlmParams{.search = search,
                              .patch = patch,
                              .patch_sigma = 0,
                              .sigma = 0,
                              .h = noise,
                              .self = SelfWeight::one,
                              .border = Border::mirror},
                    kind.type, kind.rgb, patch_operations(search, kind.rgb ? 3 : 1, 0), reference_cost});
  }
  list.push_back(
      {"nlm-bilateral", "21/7",
       NlmBilateralParams{.search = search, .patch = patch, .sigma_h = noise, .sigma_range = 3 * noise},
       PixelType::f32, false, patch_operations(search, 1, 1), reference_cost});
}

// What comes once a pixel is little beside what comes once a group.
double bm3d_operations(const Bm3dParams& params, int channels) {
  double sum = 0;
  for (const int step : {0, 1}) {
    for (const Bm3dPart part : {Bm3dPart::matching, Bm3dPart::groups}) {
      sum += bm3d_work(params, channels, step, part).operations;
    }
  }
  return sum;
}

// Beside OpenCV's non-local means, the nearest that its packages have. Where patches are about equally near,
// others are found than by the reference, because pixels have 8 bits for matching. The most is in the lower
// right corner of the small rgb picture, which few groups reach: 0.0065 of the range, 0.0091 with 7 bits
// (processors without dot products of bytes), 0.0017 with 12. What that does to whole pictures is tested.
void add_bm3d(std::vector<Case>& list) {
  for (const Bm3dProfile profile : {Bm3dProfile::normal, Bm3dProfile::fast}) {
    const bool normal = profile == Bm3dProfile::normal;
    const Bm3dParams params{.profile = profile, .sigma = {noise}};
    const MethodParams all =
        Denoiser::create(params, {.width = 64, .height = 64, .type = PixelType::f32}).params();
    for (const Kind& kind :
         {Kind{PixelType::f32, false}, Kind{PixelType::u8, false}, Kind{PixelType::u8, true}}) {
      list.push_back({"bm3d", normal ? "normal" : "fast", params, kind.type, kind.rgb,
                      bm3d_operations(all.as<Bm3dParams>(), kind.rgb ? 3 : 1), 10000, 0.01});
    }
  }
}

// The pilot, and for each group of k patches of n pixels: X^T X, the factor and W = X L^-T, of which half is
// 0 or known; the noise left; W^T Z and W (W^T Z).
double ridge_operations(const RidgeParams& params, const Bm3dParams& pilot, int channels) {
  const double n = *params.patch * *params.patch;
  const double k = *params.group;
  const double group = k * n * n * (0.5 + 0.5 + 0.5 + 1 + 1) + n * n * n / 6;
  return bm3d_operations(pilot, channels) +
         channels * *params.passes * group / (*params.spacing * *params.spacing);
}

void add_ridge(std::vector<Case>& list) {
  const ImageSpec spec{.width = 64, .height = 64, .type = PixelType::f32};
  const MethodParams pilot = Denoiser::create(Bm3dParams{.sigma = {noise}}, spec).params();
  const RidgeParams params{.sigma = {noise}};
  const MethodParams all = Denoiser::create(params, spec).params();
  for (const Kind& kind : {Kind{PixelType::f32, false}, Kind{PixelType::u8, true}}) {
    list.push_back({"ridge", "normal", params, kind.type, kind.rgb,
                    ridge_operations(all.as<RidgeParams>(), pilot.as<Bm3dParams>(), kind.rgb ? 3 : 1), 100000,
                    0.02});
  }
}

// medianBlur knows no other border than the repeated pixel.
void add_median(std::vector<Case>& list) {
  for (const int radius : {1, 2, 4, 7}) {
    for (const Kind& kind : gray_kinds) {
      list.push_back({"median", radius_text(radius), MedianParams{.radius = radius, .border = Border::clamp},
                      kind.type, kind.rgb, median_operations(radius), 1});
    }
  }
  list.push_back({"median", radius_text(2), MedianParams{.radius = 2, .border = Border::clamp}, PixelType::u8,
                  true, 0, 1});
}

void add_linear(std::vector<Case>& list) {
  for (const int sigma : {1, 3}) {
    for (const Kind& kind : gray_kinds) {
      list.push_back({"gaussian", fmt::format("sigma {}", sigma),
                      GaussianParams{.sigma = static_cast<double>(sigma), .radius = 3 * sigma}, kind.type,
                      kind.rgb, gaussian_operations(3 * sigma), 1});
    }
  }
  for (const int radius : {1, 7}) {
    for (const Kind& kind : gray_kinds) {
      list.push_back(
          {"box", radius_text(radius), BoxParams{.radius = radius}, kind.type, kind.rgb, box_operations, 1});
    }
  }
  const Kind rgb_kinds[] = {{PixelType::f32, true}, {PixelType::u8, true}};
  for (const Kind& kind : rgb_kinds) {
    list.push_back({"gaussian", "sigma 1", GaussianParams{.sigma = 1, .radius = 3}, kind.type, kind.rgb,
                    3 * gaussian_operations(3), 1});
    list.push_back(
        {"box", radius_text(1), BoxParams{.radius = 1}, kind.type, kind.rgb, 3 * box_operations, 1});
  }
}

}  // namespace

std::string Case::name() const {
  return fmt::format("{} {} {} {}", filter, setting, rgb ? "rgb" : "gray", ungrain::name(type));
}

MethodParams Case::params_for(const ImageSpec& spec) const {
  MethodParams scaled = params;
  scaled.scale_strengths(spec.white());
  return scaled;
}

std::vector<Case> cases(const std::vector<std::string>& words) {
  std::vector<Case> all;
  add_bilateral(all);
  add_nlm(all);
  add_bm3d(all);
  add_ridge(all);
  add_median(all);
  add_linear(all);
  if (words.empty()) return all;
  std::vector<Case> chosen;
  for (const std::string& word : words) {
    const auto fits = [&](const Case& one) { return one.name().starts_with(word); };
    if (std::none_of(all.begin(), all.end(), fits)) {
      throw Error(ErrorCode::invalid_argument, fmt::format("no case begins with '{}'", word));
    }
  }
  for (const Case& one : all) {
    const auto fits = [&](const std::string& word) { return one.name().starts_with(word); };
    if (std::any_of(words.begin(), words.end(), fits)) chosen.push_back(one);
  }
  return chosen;
}

}  // namespace ungrain::bench
