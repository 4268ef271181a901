// ridge: the passes of the CPU against the definition with the same pilot, and what the definition promises.
// That bands, tiles and threads agree with the whole is tested with the other methods in conformance_test.cpp
// and contract_test.cpp.
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine.h"
#include "core/registry.h"
#include "device/backends.h"
#include "methods/ridge/ridge.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods.h"

namespace ungrain::testing {
namespace {

// A group holds every patch of such a window: no choice depends on rounding.
constexpr int whole_search = 7;
constexpr int whole_group = 49;

RidgeParams resolved(RidgeParams params, const ImageSpec& spec) {
  return resolve_derived(params, spec).as<RidgeParams>();
}

// Something smoother than the image, the same for all.
Pipeline same_pilot(const ImageSpec& spec) {
  const MethodParams params = resolve_derived(GaussianParams{.sigma = 1.2}, spec);
  return find_method(GaussianParams::method).cpu(&params.as<GaussianParams>(), spec);
}

TestImage run(const RidgeParams& given, const TestImage& in, bool by_definition, int band_rows = 0) {
  const ImageSpec spec = in.view().spec;
  const RidgeSettings settings = ridge_settings(resolved(given, spec), spec);
  const RidgePasses passes =
      by_definition ? ridge_passes_by_definition(settings) : ridge_passes_on_cpu(settings);
  Engine engine(ridge_pipeline(same_pilot(spec), settings, passes), spec,
                {.threads = 2, .band_rows = band_rows}, make_backend({Device::Kind::cpu}, {.threads = 2}));
  TestImage out(spec, Layout::interleaved);
  engine.run(in.view(), out.view());
  return out;
}

TestImage picture(const ImageSpec& spec, double scale = 1, double offset = 0) {
  TestImage image(spec, Layout::interleaved);
  fill_with_picture(image);
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < spec.channels; ++c) image.set(x, y, c, image.at(x, y, c) * scale + offset);
    }
  }
  return image;
}

ImageSpec floats(int width, int height, Colour colour = Colour::gray) {
  ImageSpec spec;
  spec.width = width;
  spec.height = height;
  spec.channels = colour == Colour::rgb ? 3 : 1;
  spec.type = PixelType::f32;
  spec.colour = colour;
  return spec;
}

struct Setting {
  const char* name;
  RidgeParams params;
  Colour colour = Colour::gray;
  double scale = 1;  // of the picture
};

RidgeParams whole(RidgeParams params) {
  params.search = whole_search;
  params.group = whole_group;
  return params;
}

class RidgeAgainstDefinition : public ::testing::TestWithParam<Setting> {};

TEST_P(RidgeAgainstDefinition, WithTheSamePilot) {
  const Setting& setting = GetParam();
  const TestImage in = picture(floats(43, 38, setting.colour), setting.scale);
  const Difference found = difference(run(setting.params, in, false), run(setting.params, in, true));
  EXPECT_TRUE(found.finite);
  EXPECT_LE(found.largest, 2e-4 * std::max(1.0, setting.scale)) << found.where;
}

INSTANTIATE_TEST_SUITE_P(
    Settings, RidgeAgainstDefinition,
    ::testing::Values(
        Setting{"normal", whole({.sigma = {0.1}})}, Setting{"weak", whole({.sigma = {0.004}})},
        Setting{"strong", whole({.sigma = {0.3}})}, Setting{"one_pass", whole({.sigma = {0.1}, .passes = 1})},
        Setting{"high", whole({.profile = RidgeProfile::high, .sigma = {0.1}})},
        Setting{"patch_4", whole({.sigma = {0.1}, .passes = 2, .patch = 4, .spacing = 3})},
        Setting{"patch_5", whole({.sigma = {0.1}, .passes = 2, .patch = 5, .spacing = 4})},
        Setting{"patch_7", whole({.sigma = {0.1}, .passes = 2, .patch = 7})},
        Setting{"patch_8", whole({.sigma = {0.1}, .passes = 2, .patch = 8})},
        Setting{"rgb", whole({.sigma = {0.1}, .passes = 2}), Colour::rgb},
        Setting{"rgb_sigmas", whole({.sigma = {0.05, 0.1, 0.2}, .passes = 2}), Colour::rgb},
        Setting{"small_groups", {.sigma = {0.1}, .passes = 3, .search = 9, .group = 3}},
        // Integers differ only where rounding moves a pixel across a step, which these avoid.
        Setting{"choice", {.sigma = {0.1}, .passes = 1, .search = 15, .group = 20}},
        Setting{"deep_choice", {.sigma = {0.004}, .passes = 1, .search = 15, .group = 20}},
        Setting{"beyond_white", {.sigma = {0.5}, .passes = 1, .search = 15, .group = 20}, Colour::gray, 30}),
    [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace ungrain::testing
