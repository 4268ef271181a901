// What must hold for any picture, for every method and backend: nothing leaves the range of the values that
// went in, tiny images are images, and symmetries of the definitions are symmetries of the results.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>

#include <gtest/gtest.h>

#include "all_cases.h"
#include "test_devices.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods.h"

namespace ungrain::testing {
namespace {

constexpr const char* borders[] = {"symmetric", "mirror", "clamp", "constant", "wrap", "shrink"};

struct Subject {
  Variant variant;
  Device device;
  bool has_borders = false;
  bool averages = true;
  double tiny_on_gpu = 0;

  std::string name() const {
    std::string text =
        std::string(variant.params.method()) + "_" + ungrain::name(device) + "_" + variant.name;
    for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    return text;
  }
  bool is(const char* parameter, const char* value) const {
    for (const ParamInfo& info : method_info(variant.params.method()).params) {
      if (info.name == parameter) return variant.params.get_text(parameter) == value;
    }
    return false;
  }
  // The grid's cells are fixed in space and value: what is moved or mirrored falls into others.
  bool grid() const { return is("quality", "grid"); }
  bool lab() const { return is("colour", "lab"); }
};

std::vector<Subject> subjects() {
  std::vector<Subject> list;
  for (const MethodCases& method : all_method_cases()) {
    for (const Variant& variant : method.variants) {
      for (const Device::Kind kind : {Device::Kind::reference, Device::Kind::cpu, Device::Kind::cuda}) {
        if (kind == Device::Kind::cuda && !method_info(method.method).has_cuda) continue;
        const double tiny_on_gpu = variant.halves ? method.of_halves : method.tiny_on_gpu;
        list.push_back({variant, {kind}, method.borders, method.averages, tiny_on_gpu});
      }
    }
  }
  return list;
}

TestImage filtered(const MethodParams& params, const TestImage& in, Device device) {
  TestImage out(in.view().spec, Layout::interleaved);
  Denoiser::create(params, in.view().spec, {.device = device}).run(in.view(), out.view());
  return out;
}

void for_each_sample(const TestImage& image, const std::function<void(int x, int y, int channel)>& visit) {
  const ImageSpec spec = image.view().spec;
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < spec.channels; ++c) visit(x, y, c);
    }
  }
}

// A new image of the same kind, sample by sample.
TestImage mapped(const TestImage& image, const std::function<double(int x, int y, int channel)>& value) {
  TestImage result(image.view().spec, Layout::interleaved);
  for_each_sample(image, [&](int x, int y, int c) { result.set(x, y, c, value(x, y, c)); });
  return result;
}

// Values in steps of 1/1024, so that adding and doubling are exact.
TestImage stepped_picture(const ImageSpec& spec) {
  TestImage image(spec, Layout::interleaved);
  fill_with_picture(image);
  return mapped(image, [&](int x, int y, int c) { return std::round(image.at(x, y, c) * 1024) / 1024; });
}

// That each channel of `out` is finite and within what that channel of `in` has; under a constant border
// black counts too.
void expect_within(const TestImage& out, const TestImage& in, bool black_counts, double tolerance) {
  const ImageSpec spec = in.view().spec;
  ASSERT_TRUE(difference(out, out).finite);
  std::vector<double> low(static_cast<std::size_t>(spec.channels), std::numeric_limits<double>::infinity());
  std::vector<double> high(low.size(), -std::numeric_limits<double>::infinity());
  if (black_counts) {
    std::fill(low.begin(), low.end(), 0.0);
    std::fill(high.begin(), high.end(), 0.0);
  }
  for_each_sample(in, [&](int x, int y, int c) {
    const auto at = static_cast<std::size_t>(c);
    low[at] = std::min(low[at], in.at(x, y, c));
    high[at] = std::max(high[at], in.at(x, y, c));
  });
  for_each_sample(out, [&](int x, int y, int c) {
    const auto at = static_cast<std::size_t>(c);
    const double slack = tolerance * std::max(std::fabs(low[at]), std::fabs(high[at]));
    ASSERT_GE(out.at(x, y, c), low[at] - slack) << x << ", " << y;
    ASSERT_LE(out.at(x, y, c), high[at] + slack) << x << ", " << y;
  });
}

class Property : public ::testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    if (subject().device.kind == Device::Kind::cuda) UNGRAIN_NEEDS_GPU();
  }
  const Subject& subject() const { return GetParam(); }

  ImageSpec spec(int width, int height) const {
    const Colour colour = subject().variant.only.value_or(Colour::gray);
    return {width, height, colour == Colour::gray ? 1 : 3, PixelType::f32, colour, false, 0};
  }
  std::vector<std::string> all_borders() const {
    return subject().has_borders ? std::vector<std::string>(std::begin(borders), std::end(borders))
                                 : std::vector<std::string>{""};
  }
  MethodParams params(const std::string& border = "") const {
    MethodParams p = subject().variant.params;
    if (!border.empty()) p.set_text("border", border);
    return p;
  }
  TestImage run(const TestImage& in, const std::string& border = "") const {
    return filtered(params(border), in, subject().device);
  }
  // An average in Lab is not one in red, green and blue, but gray stays between grays. A search of patches on
  // a GPU adds up hundreds of pixels in float that are scaled by no power of two.
  double rounding() const {
    if (subject().lab()) return 2e-5;
    const std::string_view method = subject().variant.params.method();
    const bool searches = method == "nlm" || method == "nlm-bilateral";
    return searches && subject().device.kind == Device::Kind::cuda ? 5e-6 : 2e-6;
  }
};

INSTANTIATE_TEST_SUITE_P(Methods, Property, ::testing::ValuesIn(subjects()),
                         [](const auto& instance) { return instance.param.name(); });

TEST_P(Property, ImpulsesStayBetweenBlackAndWhite) {
  if (!subject().averages) return;
  for (const double ground : {0.0, 1.0}) {
    TestImage in(spec(17, 13), Layout::interleaved);
    fill_with(in, ground);
    for (int c = 0; c < in.view().spec.channels; ++c) {
      in.set(8, 6, c, 1 - ground);
      in.set(0, 12, c, 1 - ground);
    }
    for (const std::string& border : all_borders()) {
      SCOPED_TRACE(border);
      expect_within(run(in, border), in, true, rounding());
    }
  }
}

TEST_P(Property, AveragesStayWithinTheInput) {
  if (!subject().averages) return;
  if (subject().lab()) return;  // an average in Lab may leave the cube of red, green and blue
  TestImage in(spec(19, 14), Layout::interleaved);
  fill_with_picture(in);
  // Dark, bright and negative ground, and values far outside black to white.
  for (const auto& [gain, offset] :
       {std::pair(1.0, 0.0), std::pair(0.1, 0.7), std::pair(1.0, -5.0), std::pair(3e4, -9e3)}) {
    const TestImage changed = mapped(in, [&, gain = gain, offset = offset](int x, int y, int c) {
      return gain * in.at(x, y, c) + offset;
    });
    for (const std::string& border : all_borders()) {
      SCOPED_TRACE(border);
      expect_within(run(changed, border), changed, border == "constant", rounding());
    }
  }
}

TEST_P(Property, TinyImagesAreImages) {
  for (const auto& [width, height] : {std::pair(1, 1), std::pair(1, 2), std::pair(2, 1), std::pair(1, 7),
                                      std::pair(9, 1), std::pair(2, 2), std::pair(4, 3)}) {
    TestImage in(spec(width, height), Layout::interleaved);
    fill_with_picture(in);
    for (const std::string& border : all_borders()) {
      SCOPED_TRACE(std::to_string(width) + " x " + std::to_string(height) + " " + border);
      const TestImage out = run(in, border);
      const bool averages = subject().averages;
      if (averages && !subject().lab()) expect_within(out, in, border == "constant", rounding());
      if (averages && width * height == 1 && border != "constant") {
        EXPECT_LE(difference(out, in).largest, rounding()) << difference(out, in).where;
      }
      if (subject().device.kind == Device::Kind::reference) continue;
      const Difference d = difference(out, filtered(params(border), in, {Device::Kind::reference}));
      EXPECT_TRUE(d.finite);
      const bool on_gpu = subject().device.kind == Device::Kind::cuda;
      const double least = on_gpu ? subject().variant.cuda_tolerance.value_or(subject().tiny_on_gpu) : 0;
      EXPECT_LE(d.largest, std::max(2e-5, least)) << d.where;
    }
  }
}

TEST_P(Property, MirroredPicturesGiveMirroredResults) {
  if (!subject().averages) return;
  if (subject().grid()) return;  // the grid starts at the top left
  const ImageSpec size = spec(19, 15);
  TestImage in(size, Layout::interleaved);
  fill_with_picture(in);
  const auto mirrored = [&](const TestImage& image, bool horizontally) {
    return mapped(image, [&](int x, int y, int c) {
      return horizontally ? image.at(size.width - 1 - x, y, c) : image.at(x, size.height - 1 - y, c);
    });
  };
  for (const std::string& border : all_borders()) {
    const TestImage out = run(in, border);
    for (const bool horizontally : {true, false}) {
      const Difference d = difference(run(mirrored(in, horizontally), border), mirrored(out, horizontally));
      EXPECT_LE(d.largest, 1e-5) << border << " " << d.where;
    }
  }
}

TEST_P(Property, TransposedPicturesGiveTransposedResults) {
  if (!subject().averages) return;
  if (subject().grid()) return;                      // the grid's cells are fixed
  if (subject().is("quality", "separable")) return;  // rows come before columns
  TestImage in(spec(16, 16), Layout::interleaved);
  fill_with_picture(in);
  const auto transposed = [](const TestImage& image) {
    return mapped(image, [&](int x, int y, int c) { return image.at(y, x, c); });
  };
  const Difference d = difference(run(transposed(in)), transposed(run(in)));
  EXPECT_LE(d.largest, 1e-5) << d.where;
}

TEST_P(Property, AddingAConstantAddsItToTheResult) {
  if (!subject().averages) return;
  if (subject().lab()) return;   // lightness is not linear in the values
  if (subject().grid()) return;  // the grid's levels are fixed
  const TestImage in = stepped_picture(spec(19, 14));
  for (const std::string& border : all_borders()) {
    if (border == "constant") continue;  // black does not move along
    const TestImage out = run(in, border);
    for (const double constant : {0.5, -2.0}) {
      const TestImage moved = mapped(in, [&](int x, int y, int c) { return in.at(x, y, c) + constant; });
      const TestImage expected = mapped(out, [&](int x, int y, int c) { return out.at(x, y, c) + constant; });
      const Difference d = difference(run(moved, border), expected);
      EXPECT_LE(d.largest, 1e-5) << border << " " << d.where;
    }
  }
}

TEST_P(Property, NegativePicturesGiveNegativeResults) {
  if (!subject().averages) return;
  if (subject().lab()) return;   // Lab is made for what is not negative
  if (subject().grid()) return;  // the grid's levels are fixed
  TestImage in(spec(19, 14), Layout::interleaved);
  fill_with_picture(in);
  const auto negative = [](const TestImage& image) {
    return mapped(image, [&](int x, int y, int c) { return -image.at(x, y, c); });
  };
  for (const std::string& border : all_borders()) {
    const Difference d = difference(run(negative(in), border), negative(run(in, border)));
    EXPECT_LE(d.largest, 2e-6) << border << " " << d.where;
  }
}

// The same picture in other units, with strengths in those.
TEST_P(Property, ScalingPictureAndStrengthsScalesTheResult) {
  const TestImage in = stepped_picture(spec(19, 14));
  const TestImage out = run(in);
  for (const double factor : {0x1p-20, 8.0, 0x1p16}) {
    ImageSpec scaled = in.view().spec;
    scaled.range = factor;
    TestImage large(scaled, Layout::interleaved);
    TestImage expected(scaled, Layout::interleaved);
    for_each_sample(in, [&](int x, int y, int c) {
      large.set(x, y, c, factor * in.at(x, y, c));
      expected.set(x, y, c, factor * out.at(x, y, c));
    });
    MethodParams p = params();
    p.scale_strengths(factor);
    const Difference d = difference(filtered(p, large, subject().device), expected);
    EXPECT_LE(d.largest, 1e-5 * factor) << "times " << factor << " " << d.where;
  }
}

TEST_P(Property, ChannelsByThemselvesAreGrayPictures) {
  if (subject().lab()) return;  // Lab takes three channels together
  if (subject().variant.only) return;
  const ImageSpec gray{.width = 19, .height = 14, .type = PixelType::f32};
  ImageSpec four = gray;
  four.channels = 4;
  four.colour = Colour::multi;
  MethodParams p = params();
  for (const ParamInfo& info : method_info(p.method()).params) {
    if (info.name == "colour") p.set_text("colour", "per-channel");
  }
  TestImage in(four, Layout::interleaved);
  fill_with_picture(in);
  const TestImage out = filtered(p, in, subject().device);
  for (int channel = 0; channel < four.channels; ++channel) {
    TestImage one(gray, Layout::interleaved);
    for_each_sample(one, [&](int x, int y, int) { one.set(x, y, 0, in.at(x, y, channel)); });
    const TestImage expected = filtered(p, one, subject().device);
    for_each_sample(one, [&](int x, int y, int) {
      ASSERT_EQ(out.at(x, y, channel), expected.at(x, y, 0)) << x << ", " << y << " channel " << channel;
    });
  }
}

// ---- Strengths at their ends

class Strengths : public ::testing::TestWithParam<Device::Kind> {
 protected:
  // No two pixels and no two patches are alike.
  Strengths() : in({.width = 23, .height = 17, .type = PixelType::f32}, Layout::interleaved) {
    fill_with_picture(in);
    for_each_sample(in,
                    [this](int x, int y, int c) { in.set(x, y, c, in.at(x, y, c) + 1e-4 * (x + 23 * y)); });
  }
  TestImage run(const MethodParams& params) const { return filtered(params, in, {GetParam()}); }
  TestImage in;
};

INSTANTIATE_TEST_SUITE_P(Devices, Strengths, ::testing::Values(Device::Kind::reference, Device::Kind::cpu),
                         [](const auto& instance) { return name(Device{instance.param}); });

constexpr double smallest = std::numeric_limits<double>::denorm_min();
constexpr double largest = std::numeric_limits<double>::max();
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST_P(Strengths, TinyOnesReturnTheInput) {
  for (const double tiny : {1e-10, 1e-30, 1e-150, 1e-300, smallest}) {
    for (const MethodParams& params :
         {MethodParams(BilateralParams{.sigma_range = tiny}),
          MethodParams(BilateralParams{.sigma_space = tiny, .sigma_range = 0.1}),
          MethodParams(BilateralParams{.sigma_range = tiny, .quality = BilateralQuality::separable}),
          MethodParams(AdaptiveBilateralParams{.sigma_range = 0.1, .factor = tiny}),
          MethodParams(AdaptiveBilateralParams{.sigma_space = tiny, .sigma_range = 0.1}),
          MethodParams(NlmParams{.search = 7, .patch = 3, .h = tiny}),
          MethodParams(NlmParams{.search = whole_image, .patch = 1, .h = tiny}),
          MethodParams(NlmBilateralParams{.search = 7, .patch = 3, .sigma_h = tiny, .sigma_range = 1}),
          MethodParams(NlmBilateralParams{.search = 7, .patch = 3, .sigma_h = 1, .sigma_range = tiny}),
          MethodParams(NlmBilateralParams{
              .search = 7, .patch = 3, .sigma_h = 1, .sigma_range = 1, .sigma_space = tiny}),
          MethodParams(GaussianParams{.sigma = tiny, .radius = 2})}) {
      const Difference d = difference(run(params), in);
      EXPECT_TRUE(d.finite) << params.method() << " " << tiny;
      EXPECT_LE(d.largest, 1e-6) << params.method() << " " << tiny << " " << d.where;
    }
  }
}

TEST_P(Strengths, HugeOnesGiveTheMeanOfTheWindow) {
  const TestImage mean = run(BoxParams{.radius = 3});
  for (const double huge : {1e10, 1e30, 1e300, largest, infinity}) {
    for (const MethodParams& params :
         {MethodParams(BilateralParams{.radius = 3, .sigma_space = huge, .sigma_range = huge}),
          MethodParams(BilateralParams{
              .radius = 3, .sigma_space = huge, .sigma_range = huge, .quality = BilateralQuality::separable}),
          MethodParams(
              AdaptiveBilateralParams{.radius = 3, .sigma_space = huge, .sigma_range = huge, .factor = huge}),
          MethodParams(NlmParams{.search = 7, .patch = 3, .h = huge}),
          MethodParams(
              NlmParams{.search = 7, .patch = 3, .patch_sigma = huge, .h = huge, .self = SelfWeight::one}),
          MethodParams(NlmBilateralParams{
              .search = 7, .patch = 3, .sigma_h = huge, .sigma_range = huge, .sigma_space = huge})}) {
      const Difference d = difference(run(params), mean);
      EXPECT_TRUE(d.finite) << params.method() << " " << huge;
      EXPECT_LE(d.largest, 2e-6) << params.method() << " " << huge << " " << d.where;
    }
  }
}

TEST_P(Strengths, AHugeNoiseMakesEveryPatchAlike) {
  const TestImage mean = run(BoxParams{.radius = 3});
  for (const double huge : {1e3, 1e30, 1e300, largest, infinity}) {
    const Difference d = difference(run(NlmParams{.search = 7, .patch = 3, .sigma = huge, .h = 0.1}), mean);
    EXPECT_TRUE(d.finite) << huge;
    EXPECT_LE(d.largest, 2e-6) << huge << " " << d.where;
  }
}

TEST_P(Strengths, WeightsThatUnderflowLeaveThePixel) {
  // One pixel is unlike all others: whatever the rest does, it keeps its value, and they do not see it.
  TestImage lone(in.view().spec, Layout::interleaved);
  fill_with(lone, 0.5);
  lone.set(11, 8, 0, 1e4);
  for (const MethodParams& params :
       {MethodParams(BilateralParams{.sigma_range = 0.1}),
        MethodParams(BilateralParams{.sigma_range = 0.1, .quality = BilateralQuality::separable}),
        MethodParams(AdaptiveBilateralParams{.sigma_range = 0.1}),
        MethodParams(NlmParams{.search = 7, .patch = 1, .h = 0.1}),
        MethodParams(NlmParams{.search = whole_image, .patch = 1, .h = 0.1, .self = SelfWeight::one}),
        MethodParams(NlmBilateralParams{.search = 7, .patch = 3, .sigma_h = 1e9, .sigma_range = 0.1}),
        MethodParams(NlmBilateralParams{.search = 7, .patch = 1, .sigma_h = 0.1, .sigma_range = 1e9})}) {
    const Difference d = difference(filtered(params, lone, {GetParam()}), lone);
    EXPECT_TRUE(d.finite) << params.method();
    EXPECT_LE(d.largest, 1e-3) << params.method() << " " << d.where;  // 1e-7 of the lone value
  }
}

}  // namespace
}  // namespace ungrain::testing
