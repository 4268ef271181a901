// Descriptors of every kind, and the methods' parameters by name.
#include "ungrain/parameters.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/descriptor.h"
#include "core/nearest.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods.h"

namespace ungrain {
namespace {

enum class Taste { sweet, sour };

struct AllKinds {
  int side = 7;
  double strength = 1.5;
  Taste taste = Taste::sour;
  std::optional<double> sigma = {};
  std::optional<int> reach = {};
  std::vector<double> levels = {1, 2, 3};
  std::vector<double> noise = {};
  ConstImageView map = {};
};

std::vector<Descriptor> all_kinds() {
  using P = AllKinds;
  return {
      describe::number(&P::side, "side", {.min = 1, .max = 99, .unit = Unit::pixels, .odd = true},
                       "an odd side"),
      describe::number(&P::strength, "strength", {.min = 0, .unit = Unit::intensity}, "a strength"),
      describe::choice(&P::taste, "taste", {{"sweet", Taste::sweet}, {"sour", Taste::sour}}, "a choice"),
      describe::noise_level(
          &P::sigma, +[](const P&) { return true; }, "measured"),
      describe::derived(
          &P::reach, "reach", {.min = 0, .max = 64}, "half the side",
          +[](const P& p, const ImageSpec&) -> std::optional<int> { return p.side / 2; }, "derived"),
      describe::per_channel(&P::levels, "levels", {.min = 0, .max = 9}, Fallback::none, "a list"),
      describe::per_channel(&P::noise, "noise", {.min = 0}, Fallback::automatic, "a list to be measured"),
      describe::image(&P::map, "map", "an image"),
  };
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "(no error)";
}

// The value as text after it was set from text, or the message.
std::string round_trip(std::size_t index, const std::string& text) {
  AllKinds params;
  const Descriptor d = all_kinds()[index];
  try {
    d.assign(&params, parse_value(d.info, text));
  } catch (const Error& error) {
    return error.what();
  }
  return value_text(d.info, d.get(&params));
}

TEST(Descriptors, EveryKindFromText) {
  EXPECT_EQ(round_trip(0, "9"), "9");
  EXPECT_EQ(round_trip(0, "8"), "side takes an odd whole number from 1 to 99, got 8");
  EXPECT_EQ(round_trip(0, "9.5"), "side takes an odd whole number from 1 to 99, got 9.5");
  EXPECT_EQ(round_trip(0, "9x"), "side takes an odd whole number from 1 to 99, got '9x'");
  EXPECT_EQ(round_trip(0, ""), "side takes an odd whole number from 1 to 99, got ''");
  EXPECT_EQ(round_trip(1, "+2.5"), "2.5");
  EXPECT_EQ(round_trip(1, "inf"), "inf");
  EXPECT_EQ(round_trip(1, "-1"), "strength takes a number from 0 up, got -1");
  EXPECT_EQ(round_trip(1, "nan"), "strength takes a number from 0 up, got nan");
  EXPECT_EQ(round_trip(1, "auto"), "strength takes a number from 0 up, got 'auto'");
  EXPECT_EQ(round_trip(2, "sweet"), "sweet");
  EXPECT_EQ(round_trip(2, "swet"), "taste takes one of sweet, sour, got 'swet'; did you mean 'sweet'?");
  EXPECT_EQ(round_trip(3, "auto"), "auto");
  EXPECT_EQ(round_trip(3, "12"), "12");
  EXPECT_EQ(round_trip(3, "-1"), "sigma takes a number from 0 up, or auto, got -1");
  EXPECT_EQ(round_trip(4, "auto"), "auto");
  EXPECT_EQ(round_trip(4, "3"), "3");
  EXPECT_EQ(round_trip(5, "4,5,6"), "4,5,6");
  EXPECT_EQ(round_trip(5, "4"), "4");
  EXPECT_EQ(round_trip(5, "4,,6"),
            "levels takes a number from 0 to 9, or one for each colour channel, got '4,,6'");
  EXPECT_EQ(round_trip(5, "4,10"),
            "levels takes a number from 0 to 9, or one for each colour channel, got 4,10");
  EXPECT_EQ(round_trip(6, "auto"), "auto");
  EXPECT_EQ(round_trip(7, "none"), "none");
  EXPECT_EQ(round_trip(7, "map.png"), "map takes an image, or none, got 'map.png'");
}

TEST(Descriptors, AWordMayStandForANumber) {
  MethodParams params = MethodParams::defaults("nlm");
  params.set_text("search", "whole-image");
  EXPECT_EQ(params.as<NlmParams>().search, whole_image);
  EXPECT_EQ(params.get_text("search"), "whole-image");
  EXPECT_EQ(message_of([&] { params.set_text("search", "whole"); }),
            "search takes an odd whole number from 1 to 255, or whole-image, got 'whole'");
}

TEST(Descriptors, DefaultsAreWrittenOnce) {
  const std::vector<Descriptor> list = all_kinds();
  const std::vector<std::string> expected{"7",     "1.5",  "sour", "auto (measured)", "half the side",
                                          "1,2,3", "auto", "none"};
  for (std::size_t i = 0; i < list.size(); ++i) EXPECT_EQ(list[i].info.default_text, expected[i]);
}

TEST(Descriptors, DerivedFollowsOnlyWhenUnset) {
  AllKinds params{.side = 11};
  const Descriptor d = all_kinds()[4];
  d.derive(&params, ImageSpec{});
  EXPECT_EQ(params.reach, 5);
  params.side = 31;
  d.derive(&params, ImageSpec{});
  EXPECT_EQ(params.reach, 5);
}

TEST(Descriptors, ValuesOfTheWrongKind) {
  const std::vector<Descriptor> list = all_kinds();
  EXPECT_THROW(check_value(list[0].info, std::string("7")), Error);
  EXPECT_THROW(check_value(list[0].info, std::monostate{}), Error);
  EXPECT_THROW(check_value(list[2].info, 1.0), Error);
  EXPECT_THROW(check_value(list[5].info, std::vector<double>{}), Error);
  EXPECT_THROW(check_value(list[7].info, ConstImageView{}), Error);
  EXPECT_NO_THROW(check_value(list[3].info, std::monostate{}));
  EXPECT_NO_THROW(check_value(list[7].info, std::monostate{}));
}

TEST(MethodParams, ByNameAndByStructAreTheSame) {
  MethodParams params = MethodParams::defaults("bilateral");
  params.set_text("radius", "7");
  params.set("sigma_range", 0.25);
  params.set_text("window", "disc");
  const auto& p = params.as<BilateralParams>();
  EXPECT_EQ(p.radius, 7);
  EXPECT_EQ(p.sigma_range, 0.25);
  EXPECT_EQ(p.window, Window::disc);
  const MethodParams same = BilateralParams{.radius = 7};
  EXPECT_EQ(same.get_text("radius"), "7");
  EXPECT_EQ(same.get_text("border"), "symmetric");
}

TEST(MethodParams, CopiesDoNotShareChanges) {
  MethodParams first = BoxParams{.radius = 2};
  MethodParams second = first;
  second.set("radius", 9.0);
  EXPECT_EQ(first.get_text("radius"), "2");
  EXPECT_EQ(second.get_text("radius"), "9");
}

TEST(MethodParams, ErrorsNameTheNearest) {
  EXPECT_EQ(message_of([] { MethodParams::defaults("bilatral"); }),
            "there is no method 'bilatral'; did you mean 'bilateral'?");
  EXPECT_EQ(message_of([] { MethodParams::defaults("box").set("raduis", 1.0); }),
            "box has no parameter 'raduis'; did you mean 'radius'?");
  EXPECT_EQ(message_of([] { MethodParams::defaults("box").as<GaussianParams>(); }),
            "these are parameters of box, not of gaussian");
  EXPECT_EQ(
      message_of([] { MethodParams(BilateralParams{.radius = 500}).validate({.width = 4, .height = 4}); }),
      "bilateral: radius takes a whole number from 0 to 128, got 500");
  EXPECT_EQ(
      message_of([] {
        MethodParams(BilateralParams{.border = static_cast<Border>(42)}).validate({.width = 4, .height = 4});
      }),
      "bilateral: border takes one of symmetric, mirror, clamp, constant, wrap, shrink, got 'value 42'");
}

const ImageSpec gray_bytes{.width = 1, .height = 1, .type = PixelType::u8};

BilateralParams bilateral_for(const BilateralParams& params, const ImageSpec& spec) {
  return resolve_derived(params, spec).as<BilateralParams>();
}

TEST(MethodParams, DerivedStrengthsFollowTheNoise) {
  const BilateralParams bytes = bilateral_for({.sigma = 25}, gray_bytes);
  EXPECT_DOUBLE_EQ(bytes.sigma_range.value(), 75);
  EXPECT_DOUBLE_EQ(bytes.sigma_space.value(), 1.45);
  // The same noise in other units.
  ImageSpec twelve_bits = gray_bytes;
  twelve_bits.type = PixelType::u16;
  twelve_bits.range = 4095;
  const BilateralParams wide = bilateral_for({.sigma = 25.0 / 255 * 4095}, twelve_bits);
  EXPECT_DOUBLE_EQ(wide.sigma_range.value(), 75.0 / 255 * 4095);
  EXPECT_DOUBLE_EQ(wide.sigma_space.value(), 1.45);
  EXPECT_EQ(
      *resolve_derived(GaussianParams{.sigma = 1.1}, {.width = 1, .height = 1}).as<GaussianParams>().radius,
      4);
}

TEST(MethodParams, TheRangeFollowsTheNoiseInTheDistanceThatColoursAreComparedBy) {
  const auto range_of = [](int channels, ColourMode colour, ColourDistance distance) {
    ImageSpec spec{.width = 1, .height = 1, .channels = channels, .type = PixelType::u8};
    if (channels == 3) spec.colour = Colour::rgb;
    const BilateralParams params{.sigma = 25, .colour = colour, .colour_distance = distance};
    return bilateral_for(params, spec).sigma_range.value();
  };
  const auto growth = [&](int channels, ColourMode colour) {
    return range_of(channels, colour, ColourDistance::city_block) /
           range_of(channels, colour, ColourDistance::euclidean);
  };
  EXPECT_EQ(growth(1, ColourMode::joint), 1);
  EXPECT_EQ(growth(3, ColourMode::per_channel), 1);
  // Three independent normal differences: sqrt(E (|a| + |b| + |c|)²) over sqrt(E a²) is sqrt(3 + 12 / pi).
  EXPECT_NEAR(growth(3, ColourMode::joint), 2.612, 0.001);
  EXPECT_NEAR(growth(3, ColourMode::lab), 1.508, 0.001);
}

TEST(MethodParams, WithoutTheNoiseTheDefaultsAreThePapers) {
  EXPECT_EQ(bilateral_for({.sigma_range = 30}, gray_bytes).sigma_space, 3);
  const MethodParams adaptive = AdaptiveBilateralParams{.sigma_range = 30};
  EXPECT_EQ(resolve_derived(adaptive, gray_bytes).as<AdaptiveBilateralParams>().factor, 0.5);
  EXPECT_EQ(resolve_derived(NlmParams{.h = 10}, gray_bytes).as<NlmParams>().patch, 7);
}

// Halves are wrong by more than a step of 16 bits.
TEST(MethodParams, WholeImageSearchesOfFineIntegersCompareFloats) {
  const auto precision_of = [](PixelType type, double range) {
    const ImageSpec spec{.width = 8, .height = 8, .type = type, .range = range};
    return resolve_derived(NlmParams{.h = 10}, spec).as<NlmParams>().precision.value();
  };
  EXPECT_EQ(precision_of(PixelType::u8, 0), Precision::half);
  EXPECT_EQ(precision_of(PixelType::u16, 4095), Precision::half);
  EXPECT_EQ(precision_of(PixelType::u16, 0), Precision::single);
  EXPECT_EQ(precision_of(PixelType::f32, 0), Precision::half);
}

TEST(MethodParams, WhatFollowsTheNoiseWaitsForIt) {
  const MethodParams unknown = BilateralParams{};
  EXPECT_TRUE(unknown.needs_image());
  EXPECT_FALSE(bilateral_for({}, gray_bytes).sigma_range.has_value());
  EXPECT_FALSE(MethodParams(BilateralParams{.sigma_range = 30}).needs_image());
  EXPECT_FALSE(MethodParams(BilateralParams{.sigma = 10}).needs_image());
  EXPECT_FALSE(MethodParams(BoxParams{}).needs_image());
  EXPECT_EQ(
      message_of([&] { Denoiser::create(unknown, gray_bytes); }),
      "bilateral: the noise's sigma is left to be measured; give it, or call resolve() with the image first");
}

TEST(MethodParams, PresetsFollowWhatIsSet) {
  // [003]'s experiment in our units, image from 0 to 1: for each patch the Gaussian and h that its program
  // uses.
  const struct {
    int patch;
    double h;
  } expected[] = {{3, 0.0590}, {5, 0.0493}, {7, 0.0480}};
  for (const auto& [patch, h] : expected) {
    MethodParams params = NlmParams{.patch = patch};
    params.apply_preset("paper-003", 1);
    EXPECT_EQ(params.as<NlmParams>().search, whole_image);
    EXPECT_EQ(params.as<NlmParams>().patch, patch);
    EXPECT_NEAR(params.as<NlmParams>().patch_sigma.value(), 1.18, 0.005);
    EXPECT_NEAR(params.as<NlmParams>().h.value(), h, 0.00005);
  }
  MethodParams params = NlmParams{};
  EXPECT_EQ(message_of([&] { params.apply_preset("paper-03", 1); }),
            "nlm has no preset 'paper-03'; did you mean 'paper-003'?");
  EXPECT_EQ(message_of([&] { params.apply_preset("fast", 1); }),
            "nlm has no preset 'fast'; there are: paper-003, paper-004");
  MethodParams box = BoxParams{};
  EXPECT_EQ(message_of([&] { box.apply_preset("fast", 1); }), "box has no presets");
}

TEST(MethodParams, OnlyStrengthsInPixelUnitsAreScaled) {
  MethodParams params = BilateralParams{.sigma_space = 2, .sigma_range = 10};
  params.scale_strengths(257);
  EXPECT_EQ(params.get_text("sigma_range"), "2570");
  EXPECT_EQ(params.get_text("sigma_space"), "2");
  MethodParams lab = BilateralParams{.sigma_range = 10, .colour = ColourMode::lab};
  lab.scale_strengths(257);
  EXPECT_EQ(lab.get_text("sigma_range"), "10");
  EXPECT_EQ(lab.unit("sigma_range"), Unit::delta_e);
}

TEST(Nearest, FindsTyposAndNothingElse) {
  const std::vector<std::string> names{"box", "gaussian", "bilateral"};
  EXPECT_EQ(nearest("gausian", names), "gaussian");
  EXPECT_EQ(nearest("bilat", names), "bilateral");
  EXPECT_EQ(nearest("xob", names), "");
  EXPECT_EQ(nearest("median", names), "");
}

}  // namespace
}  // namespace ungrain
