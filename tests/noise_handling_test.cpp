// What all methods have in common about noise: models, strength, kept grain, cuts at black and white.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "all_cases.h"
#include "noise/stabilize.h"
#include "scene/scene.h"
#include "test_devices.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"
#include "ungrain/noise_model.h"

namespace ungrain::testing {
namespace {

constexpr Device reference{Device::Kind::reference};
constexpr Device cpu{Device::Kind::cpu};
constexpr Device gpu{Device::Kind::cuda};

ImageSpec floats(int width, int height, int channels = 1, double range = 255) {
  return {.width = width,
          .height = height,
          .channels = channels,
          .type = PixelType::f32,
          .colour = channels == 3 ? Colour::rgb : Colour::gray,
          .range = range};
}

ImageSpec bytes(int width, int height, int channels = 1) {
  ImageSpec spec = floats(width, height, channels, 0);
  spec.type = PixelType::u8;
  return spec;
}

std::shared_ptr<const NoiseModel> shared(NoiseModel model) {
  return std::make_shared<const NoiseModel>(std::move(model));
}

MethodParams with(MethodParams params, const NoiseHandling& noise) {
  params.set_noise(noise);
  return params;
}

Image filtered(const MethodParams& params, const Image& in, const Options& options = {.device = cpu}) {
  Image out(in.spec());
  Denoiser::create(params, in.spec(), options).run(in.view(), out.view());
  return out;
}

bool same(const Image& a, const Image& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.view().data, b.view().data, a.bytes()) == 0;
}

double at(const Image& image, std::size_t i) {
  return image.spec().type == PixelType::u8 ? image.samples<std::uint8_t>()[i] : image.samples<float>()[i];
}

std::size_t samples_of(const Image& image) {
  return static_cast<std::size_t>(image.spec().width) * image.spec().height * image.spec().channels;
}

double largest_difference(const Image& a, const Image& b) {
  double largest = 0;
  for (std::size_t i = 0; i < samples_of(a); ++i) largest = std::max(largest, std::abs(at(a, i) - at(b, i)));
  return largest;
}

double mean_of(const Image& image) {
  double sum = 0;
  for (std::size_t i = 0; i < samples_of(image); ++i) sum += at(image, i);
  return sum / static_cast<double>(samples_of(image));
}

Image constant(const ImageSpec& spec, double level) {
  Image image(spec);
  for (std::size_t i = 0; i < samples_of(image); ++i) {
    if (spec.type == PixelType::u8) {
      image.samples<std::uint8_t>()[i] = static_cast<std::uint8_t>(level);
    } else {
      image.samples<float>()[i] = static_cast<float>(level);
    }
  }
  return image;
}

Image noisy_of(const Image& clean, const Noise& noise, const ImageSpec& spec) {
  Image noisy(spec);
  add_noise(clean.view(), noisy.view(), noise);
  return noisy;
}
Image noisy_of(const Image& clean, const Noise& noise) { return noisy_of(clean, noise, clean.spec()); }

// Darker: what is cut at black matters.
Image darkened(const Image& bright, double factor) {
  Image image = bright.copy();
  for (std::size_t i = 0; i < samples_of(image); ++i) image.samples<float>()[i] *= static_cast<float>(factor);
  return image;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string refusal(const MethodParams& params, const NoiseHandling& noise, const ImageSpec& spec) {
  return message_of([&] { resolve_derived(with(params, noise), spec); });
}

// The deviation rises to the middle of the range and falls again, as a camera's tone curve makes it.
NoiseModel bent_model(const ImageSpec& spec, double sigma) {
  NoiseModel model = white_noise_model(spec, {sigma});
  for (NoiseModel::Channel& channel : model.channels) {
    for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      if (share == 0) channel.levels.clear(), channel.deviations.clear();
      channel.levels.push_back(share * spec.white());
      channel.deviations.push_back(sigma * (0.3 + 1.4 * share * (1 - share) * 2));
    }
  }
  return model;
}

// ---- values

TEST(NoiseHandling, RefusesWhatIsOutOfRange) {
  const ImageSpec gray = bytes(16, 16);
  const MethodParams bilateral = BilateralParams{.sigma = 10};
  EXPECT_EQ(refusal(bilateral, {.strength = -1}, gray), "strength takes a number from 0 to 10, got -1");
  EXPECT_EQ(refusal(bilateral, {.strength = std::nan("")}, gray),
            "strength takes a number from 0 to 10, got nan");
  EXPECT_EQ(refusal(bilateral, {.keep_grain = 1.5}, gray), "keep_grain takes a number from 0 to 1, got 1.5");
  EXPECT_EQ(refusal(Bm3dParams{.sigma = {10}}, {.chroma = 11}, bytes(16, 16, 3)),
            "chroma takes a number from 0 to 10, got 11");
  EXPECT_EQ(refusal(bilateral, {.luminance = 2}, bytes(16, 16, 3)),
            "luminance and chroma are for bm3d and ridge, not for bilateral");
  EXPECT_EQ(refusal(Bm3dParams{.sigma = {10}}, {.luminance = 2}, gray),
            "luminance and chroma are for rgb images, this one is gray");
  EXPECT_EQ(refusal(BoxParams{}, {.strength = 2}, gray),
            "box: strength takes a number from 0 to 1 for this method, which knows no noise; got 2");
}

TEST(NoiseHandling, RefusesTwoAnswersToOneQuestion) {
  const ImageSpec gray = bytes(16, 16);
  const NoiseHandling model{.model = shared(white_noise_model(gray, {10}))};
  EXPECT_EQ(refusal(BilateralParams{.sigma = 9}, model, gray),
            "bilateral: sigma and a noise model exclude each other");
  EXPECT_EQ(refusal(NlmParams{.h = 9}, model, gray), "nlm: h and a noise model exclude each other");
  EXPECT_EQ(refusal(Bm3dParams{.sigma = {9}}, model, gray),
            "bm3d: sigma and a noise model exclude each other");
  Image map(floats(16, 16));
  EXPECT_EQ(refusal(Bm3dParams{.sigma_map = map.view()}, model, gray),
            "bm3d: noise_model and sigma_map exclude each other");
  EXPECT_EQ(refusal(Bm3dParams{.sigma_map = map.view()}, {.strength = 2}, gray),
            "bm3d: strength and sigma_map exclude each other");
  EXPECT_EQ(refusal(NlmParams{}, {.model = shared(white_noise_model(bytes(9, 9, 3), {10}))}, gray),
            "the noise model has 3 channels, the image 1 colours");
  EXPECT_EQ(refusal(BilateralParams{.sigma_range = 30}, {.cut_at_black = true}, gray),
            "bilateral: a cut at black or white is undone only where sigma or a noise model is given");
  EXPECT_EQ(refusal(MedianParams{}, {.cut_at_white = true}, gray),
            "median: a cut at black or white is undone only where a noise model is given");
}

TEST(NoiseHandling, EqualWhereItsModelsAre) {
  const ImageSpec gray = bytes(16, 16);
  const NoiseHandling a{.model = shared(white_noise_model(gray, {10}))};
  EXPECT_EQ(a, (NoiseHandling{.model = shared(white_noise_model(gray, {10}))}));
  EXPECT_FALSE(a == (NoiseHandling{.model = shared(white_noise_model(gray, {11}))}));
  EXPECT_FALSE(a == NoiseHandling{});
}

TEST(NoiseHandling, DefaultsAddNoStage) {
  const Image noisy = noisy_of(render_scene(bytes(40, 30, 3)), {NoiseKind::gaussian, 20});
  Image out(noisy.spec());
  for (const MethodCases& cases : all_method_cases()) {
    MethodParams params = cases.variants.front().params;
    params.scale_strengths(255);
    const Report report =
        Denoiser::create(params, noisy.spec(), {.device = cpu}).run(noisy.view(), out.view());
    for (const StageTime& stage : report.stages) {
      for (const char* added : {"fill in what was cut", "stabilise noise", "restore levels", "keep grain"}) {
        EXPECT_NE(stage.name, added) << cases.method;
      }
    }
  }
}

// ---- strength

TEST(NoiseHandling, StrengthMultipliesTheNoise) {
  const Image noisy = noisy_of(render_scene(floats(50, 40, 3)), {NoiseKind::gaussian, 20});
  const auto expect_same = [&](const MethodParams& stronger, const MethodParams& plain) {
    const MethodParams strong = with(plain, {.strength = 1.5});
    EXPECT_TRUE(same(filtered(strong, noisy), filtered(stronger, noisy))) << plain.method();
    const MethodParams once = resolve_derived(strong, noisy.spec());
    EXPECT_EQ(once.noise().strength, 1);
    EXPECT_TRUE(same(filtered(resolve_derived(once, noisy.spec()), noisy), filtered(stronger, noisy)));
  };
  expect_same(BilateralParams{.sigma = 30}, BilateralParams{.sigma = 20});
  expect_same(BilateralParams{.sigma_range = 30}, BilateralParams{.sigma_range = 20});
  expect_same(NlmParams{.search = 7, .h = 30}, NlmParams{.search = 7, .h = 20});
  expect_same(BilateralParams{.sigma_range = 12, .colour = ColourMode::lab},
              BilateralParams{.sigma_range = 8, .colour = ColourMode::lab});
  expect_same(NlmBilateralParams{.search = 7, .sigma = 30}, NlmBilateralParams{.search = 7, .sigma = 20});
  expect_same(AdaptiveBilateralParams{.sigma = 30}, AdaptiveBilateralParams{.sigma = 20});
  expect_same(Bm3dParams{.sigma = {15, 30, 45}, .search = 9}, Bm3dParams{.sigma = {10, 20, 30}, .search = 9});
}

TEST(NoiseHandling, StrengthWaitsForTheMeasurement) {
  const Image noisy = noisy_of(render_scene(bytes(160, 120)), {NoiseKind::gaussian, 20});
  const MethodParams waiting = resolve_derived(with(BilateralParams{}, {.strength = 0.5}), noisy.spec());
  EXPECT_EQ(waiting.noise().strength, 0.5);
  const double sigma = resolve(BilateralParams{}, noisy.view()).as<BilateralParams>().sigma.value();
  EXPECT_NEAR(resolve(waiting, noisy.view()).as<BilateralParams>().sigma.value(), sigma / 2, 1e-9);
}

TEST(NoiseHandling, MethodsThatKnowNoNoiseMixInstead) {
  const Image noisy = noisy_of(render_scene(floats(50, 40)), {NoiseKind::gaussian, 20});
  const Image blurred = filtered(GaussianParams{.sigma = 2}, noisy);
  const Image half = filtered(with(GaussianParams{.sigma = 2}, {.strength = 0.5}), noisy);
  const Image quarter =
      filtered(with(GaussianParams{.sigma = 2}, {.strength = 0.5, .keep_grain = 0.5}), noisy);
  for (std::size_t i = 0; i < samples_of(noisy); ++i) {
    EXPECT_NEAR(at(half, i), (at(noisy, i) + at(blurred, i)) / 2, 1e-3);
    EXPECT_NEAR(at(quarter, i), 0.75 * at(noisy, i) + 0.25 * at(blurred, i), 1e-3);
  }
}

TEST(NoiseHandling, NoNoiseMeansTheInput) {
  for (const int channels : {1, 3}) {
    const Image noisy = noisy_of(render_scene(floats(40, 30, channels)), {NoiseKind::gaussian, 20});
    NoiseModel nothing = bent_model(noisy.spec(), 0);
    for (const MethodInfo& method : methods()) {
      const MethodParams plain = MethodParams::defaults(method.name);
      MethodParams known = plain;
      if (plain.needs_image()) known.set_text("sigma", "20");
      EXPECT_TRUE(same(filtered(with(known, {.strength = 0}), noisy), noisy)) << method.name;
      EXPECT_TRUE(same(filtered(with(known, {.keep_grain = 1}), noisy), noisy)) << method.name;
      if (!plain.needs_image()) continue;
      EXPECT_TRUE(same(filtered(with(plain, {.model = shared(nothing)}), noisy), noisy)) << method.name;
      known.set_text("sigma", "0");
      EXPECT_TRUE(same(filtered(with(known, {.cut_at_black = true}), noisy), noisy)) << method.name;
    }
  }
}

TEST(NoiseHandling, KeepsGrain) {
  const Image noisy = noisy_of(render_scene(floats(50, 40, 3)), {NoiseKind::gaussian, 20});
  const MethodParams params = BilateralParams{.sigma = 20};
  const Image clean = filtered(params, noisy);
  const Image kept = filtered(with(params, {.keep_grain = 0.25}), noisy);
  for (std::size_t i = 0; i < samples_of(noisy); ++i) {
    EXPECT_NEAR(at(kept, i), at(clean, i) + 0.25 * (at(noisy, i) - at(clean, i)), 1e-3);
  }
}

// ---- bm3d's own use of models

TEST(NoiseHandling, Bm3dTakesTheModelItself) {
  const Image noisy = noisy_of(render_scene(floats(48, 40, 3)), {NoiseKind::gaussian, 20});
  const auto model = shared(bent_model(noisy.spec(), 20));
  const Image native = filtered(Bm3dParams{.noise_model = model, .search = 9}, noisy);
  const MethodParams given = resolve_derived(with(Bm3dParams{.search = 9}, {.model = model}), noisy.spec());
  EXPECT_EQ(given.as<Bm3dParams>().noise_model, model);
  EXPECT_TRUE(same(filtered(given, noisy), native));
  const Image stronger = filtered(with(Bm3dParams{.search = 9}, {.model = model, .strength = 1.5}), noisy);
  EXPECT_TRUE(
      same(stronger, filtered(Bm3dParams{.noise_model = shared(scaled(*model, 1.5)), .search = 9}, noisy)));
}

TEST(NoiseHandling, LuminanceAndChromaAreTheModelsPlanes) {
  const Image noisy = noisy_of(render_scene(floats(48, 40, 3)), {NoiseKind::gaussian, 20});
  NoiseModel model = white_noise_model(noisy.spec(), {20}, 0.3);
  for (std::size_t c = 0; c < 3; ++c) model.channels[c].deviations[0] *= c == 0 ? 0.5 : 2;
  const MethodParams plain = Bm3dParams{.sigma = {20}, .correlation = 0.3, .search = 9};
  const MethodParams weighed = resolve_derived(with(plain, {.luminance = 0.5, .chroma = 2}), noisy.spec());
  EXPECT_EQ(weighed.noise().luminance, 1);
  EXPECT_EQ(*weighed.noise().model, model);
  EXPECT_TRUE(
      same(filtered(weighed, noisy), filtered(Bm3dParams{.noise_model = shared(model), .search = 9}, noisy)));
}

// ---- stabilisation

TEST(Stabilize, FindsPoissonGaussianNoise) {
  const ImageSpec gray = floats(8, 8);
  const NoiseModel model = poisson_gaussian_model(gray, 0.5, 9);
  const std::optional<PoissonGaussian> found = as_poisson_gaussian(model, 0);
  ASSERT_TRUE(found.has_value());
  EXPECT_NEAR(found->a, 0.5, 1e-9);
  EXPECT_NEAR(found->b, 9, 1e-9);
  EXPECT_FALSE(as_poisson_gaussian(bent_model(gray, 10), 0).has_value());
  EXPECT_FALSE(as_poisson_gaussian(white_noise_model(gray, {10}), 0).has_value());
  NoiseModel coloured = model;
  coloured.channels[0].spectrum[5] = 0.5;
  EXPECT_FALSE(as_poisson_gaussian(coloured, 0).has_value());
}

TEST(Stabilize, MakesTheDeviationTheSameAtAllLevels) {
  for (const int channels : {1, 3}) {
    const ImageSpec spec = floats(200, 200, channels);
    for (const NoiseModel& model : {bent_model(spec, 12), poisson_gaussian_model(spec, 0.5, 4)}) {
      const ChannelDeviation deviation(model, spec, 0);
      const PointCurve curve = stabilizing_curve(deviation, 255);
      const double expected = stabilized_deviations(model, spec)[0];
      for (const double level : {20.0, 60.0, 128.0, 200.0, 240.0}) {
        const double step = 0.5 * deviation.at(level);
        const auto f = [&](double value) {
          return curve_at(curve.shape, curve.table.data(), static_cast<float>(value));
        };
        EXPECT_NEAR(f(level + step) - f(level - step), expected, 0.03 * expected) << level;
      }
    }
  }
}

// A blur takes the mean of what it sees: any bias left is the transform's.
double mean_after(const Image& noisy, const NoiseModel& model, Device device = cpu) {
  const MethodParams blur = with(GaussianParams{.sigma = 20}, {.model = shared(model)});
  return mean_of(filtered(blur, noisy, {.device = device}));
}

TEST(Stabilize, KeepsTheMeanOfFewCounts) {
  const ImageSpec spec = floats(512, 512, 1, 40);
  std::mt19937 random(7);
  for (const double counts : {0.5, 1.0, 2.0, 5.0, 20.0}) {
    std::poisson_distribution<int> poisson(counts);
    Image noisy(spec);
    for (std::size_t i = 0; i < samples_of(noisy); ++i)
      noisy.samples<float>()[i] = static_cast<float>(poisson(random));
    EXPECT_NEAR(mean_after(noisy, poisson_gaussian_model(spec, 1, 0)), mean_of(noisy), 0.01 * counts)
        << counts;
  }
}

TEST(Stabilize, KeepsTheMeanUnderMeasuredCurves) {
  const ImageSpec spec = floats(400, 400);
  const NoiseModel model = bent_model(spec, 20);
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (const double level : {0.0, 5.0, 40.0, 128.0, 215.0, 255.0}) {
    Image noisy(spec);
    for (std::size_t i = 0; i < samples_of(noisy); ++i) {
      noisy.samples<float>()[i] = static_cast<float>(level + model.deviation(0, level) * normal(random));
    }
    EXPECT_NEAR(mean_after(noisy, model), mean_of(noisy), 0.1) << level;
  }
}

TEST(Stabilize, GoesOnBeyondBlackAndWhite) {
  const ImageSpec spec = floats(8, 8);
  for (const NoiseModel& model : {bent_model(spec, 10), poisson_gaussian_model(spec, 1, 400)}) {
    const ChannelDeviation deviation(model, spec, 0);
    const PointCurve forward = stabilizing_curve(deviation, 255);
    const PointCurve back = restoring_curve(deviation, 255);
    for (const float value : {20.0F, 100.0F, 250.0F, 400.0F, 2550.0F}) {
      const float seen = curve_at(forward.shape, forward.table.data(), value);
      EXPECT_NEAR(curve_at(back.shape, back.table.data(), seen), value, 2) << value;
    }
  }
}

TEST(Stabilize, IsWorthMuchForPhotonNoise) {
  const ImageSpec spec = floats(256, 192, 1, 1);
  Image clean = render_scene(spec);
  for (std::size_t i = 0; i < samples_of(clean); ++i) {  // linear light, as a sensor sees it
    clean.samples<float>()[i] = std::pow(clean.samples<float>()[i], 2.2F);
  }
  const Image noisy = noisy_of(clean, {NoiseKind::poisson, 20, 3});
  const auto model = shared(poisson_gaussian_model(spec, 1.0 / 20, 0));
  const double sigma = estimate_noise(noisy.view()).sigma;
  for (const char* method : {"bilateral", "nlm"}) {
    MethodParams with_sigma = MethodParams::defaults(method);
    with_sigma.set("sigma", sigma);
    const MethodParams with_model = with(MethodParams::defaults(method), {.model = model});
    const double plain = psnr(clean.view(), filtered(with_sigma, noisy).view());
    const double better = psnr(clean.view(), filtered(with_model, noisy).view());
    EXPECT_GT(better, plain + 3) << method;
  }
}

// ---- cuts

class Rows : public RowReader {
 public:
  explicit Rows(const Image& image) : image_(image) {}
  void read_rows(int first, const ImageView& rows) override {
    const auto stride = static_cast<std::size_t>(image_.view().strides.y);
    std::memcpy(rows.data, image_.samples<std::byte>() + first * stride, rows.spec.height * stride);
  }

 private:
  const Image& image_;
};

// A constant with noise of 25, rounded to 8 bits.
struct CutConstant {
  explicit CutConstant(double level, int channels = 1)
      : even(constant(floats(256, 256, channels), level)),
        drawn(mean_of(noisy_of(even, noise))),
        image(noisy_of(even, noise, bytes(256, 256, channels))) {}
  // The mean's shift by filtering, the result being floats.
  double shift(const MethodParams& resolved) const {
    Image out(even.spec());
    Denoiser::create(resolved, image.spec(), {.device = cpu}).run(image.view(), out.view());
    return mean_of(out) - drawn;
  }

  Noise noise{NoiseKind::gaussian, 25, 4};
  Image even;
  double drawn;
  Image image;
};

MethodParams given_sigma(const std::string& method, double sigma) {
  MethodParams params = MethodParams::defaults(method);
  params.set("sigma", sigma);
  return params;
}

// What is filled in has not quite the noise's own distribution, and the groups that ridge finds in it, pass
// after pass, follow its skew.
double most_shift(const std::string& method) { return method == "ridge" ? 0.4 : 0.2; }

TEST(Cut, IsFoundAndItsMeanRestored) {
  for (const double level : {0.0, 5.0, 20.0, 250.0}) {
    const CutConstant cut(level);
    for (const MethodInfo& method : methods()) {
      const MethodParams plain = MethodParams::defaults(method.name);
      if (!plain.needs_image()) continue;
      const MethodParams found = resolve(plain, cut.image.view());
      EXPECT_EQ(found.noise().cut_at_black, level < 128) << method.name;
      EXPECT_EQ(found.noise().cut_at_white, level > 128) << method.name;
      EXPECT_NEAR(cut.shift(found), 0, most_shift(method.name)) << method.name << level;
    }
  }
}

TEST(Cut, IsUndoneWhereTheNoiseIsGiven) {
  for (const double level : {0.0, 5.0, 20.0, 250.0}) {
    const CutConstant cut(level);
    const auto model = shared(white_noise_model(cut.image.spec(), {25}));
    for (const MethodInfo& method : methods()) {
      if (!MethodParams::defaults(method.name).needs_image()) continue;
      SCOPED_TRACE(method.name + std::to_string(level));
      const MethodParams with_sigma = with(given_sigma(method.name, 25), {.clipping = Clipping::known});
      EXPECT_TRUE(with_sigma.needs_image());
      const Resolved found = resolve_with_noise(with_sigma, cut.image.view());
      EXPECT_FALSE(found.noise.has_value());
      EXPECT_FALSE(found.params.needs_image());
      EXPECT_EQ(found.params.noise().cut_at_black, level < 128);
      EXPECT_EQ(found.params.noise().cut_at_white, level > 128);
      EXPECT_NEAR(cut.shift(found.params), 0, most_shift(method.name));
      const MethodParams with_model =
          with(MethodParams::defaults(method.name), {.model = model, .clipping = Clipping::known});
      EXPECT_NEAR(cut.shift(resolve(with_model, cut.image.view())), 0, most_shift(method.name));
    }
  }
}

TEST(Cut, IsUndoneForMethodsThatKnowNoNoise) {
  const std::vector<MethodParams> those = {BoxParams{},
                                           GaussianParams{},
                                           MedianParams{},
                                           MedianParams{.radius = 2},
                                           BilateralParams{.sigma_range = 30},
                                           BilateralParams{.sigma_range = 150},
                                           NlmParams{.h = 30}};
  for (const double level : {0.0, 5.0, 20.0, 250.0}) {
    const CutConstant cut(level);
    for (const MethodParams& params : those) {
      SCOPED_TRACE(std::string(params.method()) + std::to_string(level));
      const MethodParams found = resolve(with(params, {.clipping = Clipping::everywhere}), cut.image.view());
      EXPECT_NE(found.noise().cut_model, nullptr);
      EXPECT_EQ(found.noise().model, nullptr);
      EXPECT_NEAR(cut.shift(found), 0, 0.2);
      // Not unless it is asked for.
      EXPECT_FALSE(with(params, {.clipping = Clipping::known}).needs_image());
    }
  }
}

TEST(Cut, IsKeptWhereNothingIsAsked) {
  const CutConstant cut(5);
  const MethodParams given = NlmParams{.search = 7, .sigma = 25};
  EXPECT_EQ(resolve(given, cut.image.view()).noise(), NoiseHandling{});
  EXPECT_GT(cut.shift(given), 5);
  EXPECT_GT(cut.shift(resolve(with(given, {.clipping = Clipping::keep}), cut.image.view())), 5);
  const MethodParams measured =
      resolve(with(NlmParams{.search = 7}, {.clipping = Clipping::keep}), cut.image.view());
  EXPECT_FALSE(measured.noise().cut_at_black);
  EXPECT_GT(cut.shift(measured), 5);
}

TEST(Cut, IsLookedForByResolve) {
  const ImageSpec gray = bytes(16, 16);
  const auto message = [&](const MethodParams& params) {
    return message_of([&] { Denoiser::create(params, gray); });
  };
  EXPECT_EQ(message(with(NlmParams{.sigma = 5}, {.clipping = Clipping::known})),
            "nlm: whether noise was cut off at black and white is left to be looked for; call resolve() with "
            "the image first");
  EXPECT_EQ(message(with(BoxParams{}, {.clipping = Clipping::everywhere})),
            "box: whether noise was cut off at black and white is left to be looked for; call resolve() with "
            "the image first");
  EXPECT_EQ(message(with(BoxParams{}, {.clipping = Clipping::known})), "");
  Image map(floats(16, 16));
  EXPECT_EQ(refusal(Bm3dParams{.sigma_map = map.view()}, {.clipping = Clipping::everywhere}, gray),
            "bm3d: undoing a cut at black or white and sigma_map exclude each other");
  EXPECT_FALSE(with(Bm3dParams{.sigma_map = map.view()}, {.clipping = Clipping::known}).needs_image());
  // Nothing is filtered: nothing to look for.
  EXPECT_FALSE(with(NlmParams{.sigma = 5}, {.strength = 0, .clipping = Clipping::known}).needs_image());
  EXPECT_EQ(
      refusal(BoxParams{},
              {.cut_at_black = true, .cut_model = shared(white_noise_model(bytes(9, 9, 3), {10}))}, gray),
      "the noise model has 3 channels, the image 1 colours");
}

// The noise that was cut is not that of which less is taken away.
TEST(Cut, IsUndoneWithTheWholeNoise) {
  const CutConstant cut(5, 3);
  const MethodParams halved = with(Bm3dParams{.sigma = {25}, .search = 9},
                                   {.strength = 0.8, .luminance = 0.8, .clipping = Clipping::known});
  EXPECT_NEAR(cut.shift(resolve(halved, cut.image.view())), 0, 0.3);
}

TEST(Cut, OfAGivenNoiseIsFoundRowByRowToo) {
  const CutConstant cut(5, 3);
  Rows rows(cut.image);
  const MethodParams params = with(NlmParams{.sigma = 25}, {.clipping = Clipping::known});
  const MethodParams by_rows = resolve(params, rows, cut.image.spec());
  EXPECT_TRUE(by_rows.noise().cut_at_black);
  EXPECT_EQ(by_rows.noise(), resolve(params, cut.image.view()).noise());
}

TEST(Cut, IsFoundRowByRowToo) {
  const Image dark = darkened(render_scene(floats(300, 200, 3)), 0.25);
  const Image cut = noisy_of(dark, {NoiseKind::gaussian, 25, 4}, bytes(300, 200, 3));
  Rows rows(cut);
  const Resolved by_rows = resolve_with_noise(Bm3dParams{}, rows, cut.spec());
  const Resolved whole = resolve_with_noise(Bm3dParams{}, cut.view());
  EXPECT_TRUE(whole.params.noise().cut_at_black);
  EXPECT_EQ(by_rows.params.noise(), whole.params.noise());
  EXPECT_EQ(by_rows.params.as<Bm3dParams>().sigma, whole.params.as<Bm3dParams>().sigma);
  ASSERT_TRUE(by_rows.noise.has_value());
}

bool cut_found(const Image& image) {
  const NoiseHandling noise = resolve(NlmParams{}, image.view()).noise();
  return noise.cut_at_black || noise.cut_at_white;
}

TEST(Cut, IsNotFoundElsewhere) {
  const Image clean = render_scene(floats(320, 240));
  const Noise weak{NoiseKind::gaussian, 3, 4};
  EXPECT_FALSE(cut_found(noisy_of(clean, {NoiseKind::gaussian, 25, 4})));  // floats below 0 are there
  // Black borders and a saturated sky.
  Image framed = darkened(clean, 0.5);
  for (std::size_t i = 0; i < samples_of(framed); ++i) framed.samples<float>()[i] += 40;
  Image noisy = noisy_of(framed, weak, bytes(320, 240));
  for (int y = 0; y < 240; ++y) {
    for (int x = 0; x < 320; ++x) {
      if (y < 30 || x > 280) noisy.samples<std::uint8_t>()[y * 320 + x] = 0;
      if (y > 200) noisy.samples<std::uint8_t>()[y * 320 + x] = 255;
    }
  }
  EXPECT_FALSE(cut_found(noisy));
  // Clean and dark.
  EXPECT_FALSE(cut_found(noisy_of(darkened(clean, 0.1), {NoiseKind::gaussian, 0, 4}, bytes(320, 240))));
}

TEST(Cut, CostsLittleWhereItIsUndone) {
  for (const int channels : {1, 3}) {
    const Image clean = darkened(render_scene(floats(256, 192, channels)), 0.25);
    const Noise noise{NoiseKind::gaussian, 25, 4};
    const Image whole = noisy_of(clean, noise);
    const Image cut = noisy_of(clean, noise, bytes(256, 192, channels));
    for (const char* method : {"bilateral", "nlm", "bm3d"}) {
      MethodParams known = MethodParams::defaults(method);
      known.set_text("sigma", "25");
      const double best = psnr(clean.view(), filtered(known, whole).view());
      Image out(clean.spec());
      Denoiser::create(resolve(MethodParams::defaults(method), cut.view()), cut.spec(), {.device = cpu})
          .run(cut.view(), out.view());
      EXPECT_GT(psnr(clean.view(), out.view()), best - 0.5) << method << channels;
    }
  }
}

// ---- what resolve() measures

TEST(Resolve, GivesAModelWhereOneWasFound) {
  const ImageSpec spec = floats(512, 384, 1, 1);
  Image bars(spec);  // of eight levels
  for (std::size_t i = 0; i < samples_of(bars); ++i) {
    const auto bar = i % 512 / 64;
    bars.samples<float>()[i] = 0.06F + 0.12F * static_cast<float>(bar);
  }
  const Image noisy = noisy_of(bars, {NoiseKind::poisson, 200, 3});
  const Resolved found = resolve_with_noise(NlmParams{}, noisy.view());
  ASSERT_TRUE(found.noise.has_value());
  ASSERT_EQ(found.noise->finding, NoiseFinding::by_level);
  ASSERT_NE(found.params.noise().model, nullptr);
  EXPECT_EQ(*found.params.noise().model, found.noise->model);
  EXPECT_EQ(found.params.as<NlmParams>().sigma, stabilized_sigma(found.noise->model, spec));
  const Resolved native = resolve_with_noise(Bm3dParams{}, noisy.view());
  EXPECT_NE(native.params.as<Bm3dParams>().noise_model, nullptr);
  // A patch that models are not made for.
  const Resolved other = resolve_with_noise(Bm3dParams{.patch = 12}, noisy.view());
  EXPECT_EQ(other.params.noise().model, nullptr);
  EXPECT_EQ(other.params.as<Bm3dParams>().sigma, found.noise->deviations);
  EXPECT_FALSE(resolve_with_noise(NlmParams{.sigma = 1}, noisy.view()).noise.has_value());
}

TEST(Resolve, TakesASlopeForNoNoise) {
  Image slope(bytes(64, 48));
  for (int i = 0; i < 64 * 48; ++i) {
    slope.samples<std::uint8_t>()[i] = static_cast<std::uint8_t>(2 * (i % 64) + i / 64);
  }
  const MethodParams found = resolve(Bm3dParams{}, slope.view());
  EXPECT_EQ(found.noise().model, nullptr);
  EXPECT_LT(found.as<Bm3dParams>().sigma[0], 0.3);
}

// ---- every method, every backend

struct Handled {
  const char* name;
  NoiseHandling noise;
  bool needs_sigma = true;
};

std::vector<Handled> handled(const ImageSpec& spec) {
  const double white = spec.white();
  return {
      {"strength", {.strength = 0.7}},
      {"keep_grain", {.keep_grain = 0.3}},
      {"poisson_gaussian",
       {.model = shared(poisson_gaussian_model(spec, white / 200, white * white / 4e4))},
       false},
      {"curve", {.model = shared(bent_model(spec, white / 12)), .strength = 0.8, .keep_grain = 0.1}, false},
      {"cut", {.cut_at_black = true, .cut_at_white = true}},
      {"cut_model",
       {.cut_at_black = true, .cut_at_white = true, .cut_model = shared(bent_model(spec, white / 12))}},
      {"cut_curve",
       {.model = shared(bent_model(spec, white / 12)), .cut_at_black = true, .cut_at_white = true},
       false}};
}

double tolerance_of(const std::string& method, const ImageSpec& spec, bool on_gpu) {
  double share = 0;
  for (const MethodCases& cases : all_method_cases()) {
    if (cases.method == method) share = on_gpu ? cases.cuda_tolerance : cases.cpu_tolerance;
  }
  // Where patches are about equally near they may take others than the reference: see their cases.h.
  if (method == "bm3d" || method == "ridge") return 0.1 * spec.white();
  // Restoring levels is steeper than 1 at some of them.
  return is_float(spec.type) ? 4 * share * spec.white() : 1;
}

void expect_agreement(Device device) {
  for (const ImageSpec& spec : {floats(37, 29), floats(33, 21, 3, 1), bytes(40, 23, 3), bytes(7, 3)}) {
    const Image noisy = noisy_of(render_scene(spec), {NoiseKind::gaussian, spec.white() / 10, 4});
    for (const MethodInfo& method : methods()) {
      if (device == gpu && !method.has_cuda) continue;
      for (const Handled& how : handled(spec)) {
        SCOPED_TRACE(method.name + " " + how.name + " " + std::to_string(spec.channels));
        MethodParams params = MethodParams::defaults(method.name);
        for (const ParamInfo& info : method.params) {
          if (info.name == "search") params.set_text("search", "9");
        }
        const bool measures = params.needs_image();
        if (how.needs_sigma && measures) params.set("sigma", spec.white() / 10);
        const bool noise_told = how.noise.model != nullptr || how.noise.cut_model != nullptr;
        if (!measures && how.noise.cut_at_black && !noise_told) continue;
        params = with(params, how.noise);
        const Image expected = filtered(params, noisy, {.device = reference});
        const Image out = filtered(params, noisy, {.device = device});
        EXPECT_LE(largest_difference(out, expected), tolerance_of(method.name, spec, device == gpu));
        // In bands, and a copy of the Denoiser.
        EXPECT_TRUE(same(filtered(params, noisy, {.device = device, .band_rows = 7}), out));
        Image again(spec);
        Denoiser::create(params, spec, {.device = device}).clone().run(noisy.view(), again.view());
        EXPECT_TRUE(same(again, out));
        Image in_place = noisy.copy();
        Denoiser::create(params, spec, {.device = device}).run(in_place.view(), in_place.view());
        EXPECT_TRUE(same(in_place, out));
      }
    }
  }
}

TEST(NoiseHandling, CpuAgreesWithTheReference) { expect_agreement(cpu); }

TEST(NoiseHandling, GpuAgreesWithTheReference) {
  UNGRAIN_NEEDS_GPU();
  expect_agreement(gpu);
}

void expect_agreement_at_borders(Device device) {
  const ImageSpec spec = floats(31, 18, 1);
  const Image noisy = noisy_of(render_scene(bytes(31, 18)), {NoiseKind::gaussian, 40, 4}, bytes(31, 18));
  for (const char* border : {"symmetric", "mirror", "clamp", "constant", "wrap", "shrink"}) {
    for (const Handled& how : handled(noisy.spec())) {
      SCOPED_TRACE(std::string(border) + " " + how.name);
      MethodParams params = BilateralParams{};
      params.set_text("border", border);
      if (how.needs_sigma) params.set_text("sigma", "40");
      params = with(params, how.noise);
      const auto run = [&](const Options& options) {
        Image out(spec);
        Denoiser::create(params, noisy.spec(), options).run(noisy.view(), out.view());
        return out;
      };
      const Image expected = run({.device = reference});
      EXPECT_LE(largest_difference(run({.device = device}), expected), 0.02);
      EXPECT_LE(largest_difference(run({.device = device, .band_rows = 4}), expected), 0.02);
    }
  }
}

TEST(NoiseHandling, BordersOnTheCpu) { expect_agreement_at_borders(cpu); }

TEST(NoiseHandling, BordersOnTheGpu) {
  UNGRAIN_NEEDS_GPU();
  expect_agreement_at_borders(gpu);
}

}  // namespace
}  // namespace ungrain::testing
