// Frames of luma and chroma: every method gives the bits of filtering luma and chroma apart, whatever lies in
// the room that has no samples.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/convert.h"
#include "core/ycbcr.h"
#include "method_subject.h"
#include "test_devices.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/estimate.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"
#include "ungrain/noise_model.h"

namespace ungrain::testing {
namespace {

ImageSpec spec_of(PixelType type, Subsampling chroma, int width = 37, int height = 29, bool alpha = false) {
  return {width, height, alpha ? 4 : 3, type, Colour::ycbcr, alpha, 0, chroma};
}

constexpr Subsampling yuv420{2, 2};
constexpr Subsampling yuv422{2, 1};
constexpr Subsampling yuv444{1, 1};
constexpr Subsampling yuv410{4, 4};

void copy_samples(const ConstImageView& from, const ImageView& to) {
  for (int y = 0; y < from.spec.height; ++y) copy_pixels(from, y, to, y);
}

// Sets every sample of the channels Cb and Cr, those that mean nothing too.
void fill_room(TestImage& frame) {
  const ImageView view = frame.view();
  const double any = is_float(view.spec.type) ? std::numeric_limits<double>::quiet_NaN() : 77;
  for (int channel = 1; channel < 3; ++channel) {
    for (int y = 0; y < view.spec.height; ++y) {
      for (int x = 0; x < view.spec.width; ++x) frame.set(x, y, channel, any);
    }
  }
}

// A frame, and its luma and chroma as images of their own.
struct Pictures {
  explicit Pictures(const ImageSpec& spec, std::uint32_t seed = 1)
      : frame(spec, Layout::planar),
        luma(luma_spec(spec), Layout::interleaved),
        chroma(chroma_spec(spec), Layout::interleaved) {
    fill_with_picture(frame, seed);
    fill_room(frame);
    fill_with_picture(luma, seed);
    fill_with_picture(chroma, seed + 1);
    copy_samples(luma.view(), luma_view(frame.view()));
    copy_samples(chroma.view(), chroma_view(frame.view()));
  }
  TestImage frame;
  TestImage luma;
  TestImage chroma;
};

bool same_bits(const ConstImageView& a, const ConstImageView& b) { return hash_of(a) == hash_of(b); }

// What has no meaning is 0.
void expect_empty_room(const TestImage& frame) {
  const ImageSpec& spec = frame.view().spec;
  for (int channel = 1; channel < 3; ++channel) {
    for (int y = 0; y < spec.height; ++y) {
      const bool row_of_chroma = y % spec.chroma.y == 0;
      for (int x = row_of_chroma ? chroma_spec(spec).width : 0; x < spec.width; ++x) {
        ASSERT_EQ(frame.at(x, y, channel), 0) << x << ", " << y << " channel " << channel;
      }
    }
  }
}

void expect_frame(const TestImage& made, const TestImage& luma, const TestImage& chroma,
                  const std::string& how) {
  SCOPED_TRACE(how);
  EXPECT_TRUE(same_bits(luma_view(made.view()), luma.view())) << "luma";
  EXPECT_TRUE(same_bits(chroma_view(made.view()), chroma.view())) << "chroma";
  expect_empty_room(made);
}

TestImage filtered(const MethodParams& params, const TestImage& image, const Options& options) {
  TestImage out(image.view().spec, Layout::interleaved);
  Denoiser::create(params, image.view().spec, options).run(image.view(), out.view());
  return out;
}

class Clip : public SliceReader, public SliceWriter, public RowReader, public RowWriter {
 public:
  Clip(std::vector<ConstImageView> in, std::vector<ImageView> out)
      : in_(std::move(in)), out_(std::move(out)) {}
  bool has(int slice) override { return slice < static_cast<int>(in_.size()); }
  void read_rows(int slice, int first, const ImageView& rows) override {
    EXPECT_EQ(first % rows.spec.chroma.y, 0) << "bands start with a row of chroma";
    copy_samples(in_[static_cast<std::size_t>(slice)].rows(first, rows.spec.height), rows);
  }
  void write_rows(int slice, int first, const ConstImageView& rows) override {
    copy_samples(rows, out_[static_cast<std::size_t>(slice)].rows(first, rows.spec.height));
  }
  void read_rows(int first, const ImageView& rows) override { read_rows(0, first, rows); }
  void write_rows(int first, const ConstImageView& rows) override { write_rows(0, first, rows); }

 private:
  std::vector<ConstImageView> in_;
  std::vector<ImageView> out_;
};

std::vector<MethodSubject> subjects() {
  std::vector<MethodSubject> list;
  for (const MethodCases& method : all_method_cases()) {
    bool first = true;
    for (const Variant& variant : method.variants) {
      if (variant.only == Colour::rgb) continue;
      for (const Device::Kind kind : {Device::Kind::reference, Device::Kind::cpu, Device::Kind::cuda}) {
        if (kind == Device::Kind::cuda && !method_info(method.method).has_cuda) continue;
        if (kind == Device::Kind::reference && !first) continue;
        list.push_back({variant, {kind}, ""});
        if (method.borders && first && kind != Device::Kind::reference) {
          list.push_back({variant, {kind}, "wrap"});
          list.push_back({variant, {kind}, "shrink"});
        }
      }
      first = false;
    }
  }
  return list;
}

class YcbcrMethods : public ::testing::TestWithParam<MethodSubject> {};

TEST_P(YcbcrMethods, FilterLumaAndChromaApart) {
  const MethodSubject& subject = GetParam();
  if (subject.variant.params.method() == "bm3d")
    GTEST_SKIP() << "luma's groups serve chroma: bm3d_time_test.cpp";
  if (subject.device.kind == Device::Kind::cuda) UNGRAIN_NEEDS_GPU();
  const bool slow = subject.variant.small || subject.device.kind == Device::Kind::reference;
  for (const Subsampling chroma : {yuv420, yuv422, yuv444, yuv410}) {
    for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f32}) {
      if (slow && (chroma == yuv422 || chroma == yuv444) && type != PixelType::u8) continue;
      const ImageSpec spec = slow ? spec_of(type, chroma, 23, 17) : spec_of(type, chroma);
      const MethodParams params = subject.params(spec);
      const Options options{.device = subject.device, .threads = 2};
      const Pictures in(spec);
      const TestImage luma = filtered(params, in.luma, options);
      const TestImage chroma_made = filtered(params, in.chroma, options);
      const std::string what =
          std::string(name(type)) + " " + std::to_string(chroma.x) + " x " + std::to_string(chroma.y);
      for (const int band : {0, 1, 7}) {
        Options banded = options;
        banded.band_rows = band;
        Denoiser denoiser = Denoiser::create(params, spec, banded);
        TestImage out(spec, Layout::planar);
        const Report report = denoiser.run(in.frame.view(), out.view());
        EXPECT_EQ(report.nonfinite_pixels, 0);
        EXPECT_TRUE(out.guards_intact());
        expect_frame(out, luma, chroma_made, what + ", bands of " + std::to_string(band));
        TestImage read(spec, Layout::planar);
        Clip clip({in.frame.view()}, {read.view()});
        denoiser.run(static_cast<RowReader&>(clip), static_cast<RowWriter&>(clip), spec);
        expect_frame(read, luma, chroma_made, what + ", read in bands of " + std::to_string(band));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, YcbcrMethods, ::testing::ValuesIn(subjects()),
                         [](const auto& one) { return std::to_string(one.index) + "_" + one.param.name(); });

// ---- the rest with one method

const MethodParams box = BoxParams{.radius = 2};

TEST(Ycbcr, SpecsAreChecked) {
  const auto refused = [](const ImageSpec& spec) {
    EXPECT_THROW(validate(spec), Error) << spec.chroma.x << " x " << spec.chroma.y;
  };
  EXPECT_NO_THROW(validate(spec_of(PixelType::u8, yuv420)));
  EXPECT_NO_THROW(validate(spec_of(PixelType::u8, yuv420, 8, 8, true)));
  refused(spec_of(PixelType::u8, {3, 1}));
  refused(spec_of(PixelType::u8, {2, 0}));
  refused({8, 8, 2, PixelType::u8, Colour::ycbcr, false, 0, yuv420});
  refused({8, 8, 3, PixelType::u8, Colour::rgb, false, 0, yuv420});
  EXPECT_EQ(name(Colour::ycbcr), "ycbcr");
}

TEST(Ycbcr, ViewsShowTheSameMemory) {
  const ImageSpec spec = spec_of(PixelType::u8, yuv420, 5, 5);
  Image image(spec);
  const ImageView luma = luma_view(image.view());
  EXPECT_EQ(luma.data, image.view().data);
  EXPECT_EQ(luma.spec.channels, 1);
  const ImageView chroma = chroma_view(image.view());
  EXPECT_EQ(chroma.data, static_cast<std::byte*>(image.view().data) + 25);
  EXPECT_EQ(chroma.spec.width, 3);
  EXPECT_EQ(chroma.spec.height, 3);
  EXPECT_EQ(chroma.strides.y, 10);
  EXPECT_EQ(chroma.strides.channel, 25);
  ImageView part = image.view().rows(1, 2);
  part.region = {0, 1, 5, 5};
  EXPECT_EQ(chroma_view(part).spec.height, 1);
  EXPECT_EQ(chroma_view(part).data, static_cast<std::byte*>(chroma.data) + 10);
  part = image.view().rows(1, 1);
  part.region = {0, 1, 5, 5};
  EXPECT_EQ(chroma_view(part).spec.height, 0);
}

TEST(Ycbcr, RegionsAreRowsOfChroma) {
  const ImageSpec spec = spec_of(PixelType::u8, yuv420);
  const Pictures in(spec);
  TestImage out(spec, Layout::planar);
  Denoiser denoiser = Denoiser::create(box, spec, {.device = {Device::Kind::cpu}});
  const auto part = [&](int x, int y, int width, int height) {
    ImageView view = out.view().rows(y, height);
    view.spec.width = width;
    view.region = {x, y, spec.width, spec.height};
    return view;
  };
  EXPECT_THROW(denoiser.run(in.frame.view(), part(0, 1, 37, 4)), Error);
  EXPECT_THROW(denoiser.run(in.frame.view(), part(0, 2, 37, 5)), Error);
  EXPECT_THROW(denoiser.run(in.frame.view(), part(4, 2, 33, 4)), Error);
  denoiser.run(in.frame.view(), part(0, 0, 37, 12));
  denoiser.run(in.frame.view(), part(0, 12, 37, 17));
  const Options options{.device = {Device::Kind::cpu}};
  expect_frame(out, filtered(box, in.luma, options), filtered(box, in.chroma, options), "two regions");
}

TEST(Ycbcr, InterleavedChannelsAreRefused) {
  const ImageSpec spec = spec_of(PixelType::u8, yuv444);
  TestImage in(spec, Layout::interleaved);
  TestImage out(spec, Layout::planar);
  Denoiser denoiser = Denoiser::create(box, spec, {.device = {Device::Kind::cpu}});
  EXPECT_THROW(denoiser.run(in.view(), out.view()), Error);
}

TEST(Ycbcr, AlphaGoesThrough) {
  for (const PixelType type : {PixelType::u8, PixelType::f32}) {
    const ImageSpec spec = spec_of(type, yuv420, 37, 29, true);
    const Pictures in(spec);
    TestImage out(spec, Layout::planar);
    const Options options{.device = {Device::Kind::cpu}, .band_rows = 4};
    Denoiser::create(box, spec, options).run(in.frame.view(), out.view());
    expect_frame(out, filtered(box, in.luma, options), filtered(box, in.chroma, options), "with alpha");
    for (int y = 0; y < spec.height; ++y) {
      for (int x = 0; x < spec.width; ++x) ASSERT_EQ(out.at(x, y, 3), in.frame.at(x, y, 3));
    }
  }
}

TEST(Ycbcr, InPlaceAndOtherTypes) {
  const ImageSpec spec = spec_of(PixelType::f32, yuv420);
  const Options options{.device = {Device::Kind::cpu}, .band_rows = 4};
  const Pictures in(spec);
  Denoiser denoiser = Denoiser::create(box, spec, options);
  const TestImage luma = filtered(box, in.luma, options);
  const TestImage chroma = filtered(box, in.chroma, options);
  Pictures in_place(spec);
  denoiser.run(in_place.frame.view(), in_place.frame.view());
  expect_frame(in_place.frame, luma, chroma, "in place");

  const ImageSpec bytes = spec_of(PixelType::u8, yuv420);
  TestImage out(bytes, Layout::planar);
  denoiser.run(in.frame.view(), out.view());
  TestImage luma_bytes(luma_spec(bytes), Layout::interleaved);
  TestImage chroma_bytes(chroma_spec(bytes), Layout::interleaved);
  Denoiser::create(box, luma_spec(spec), options).run(in.luma.view(), luma_bytes.view());
  Denoiser::create(box, chroma_spec(spec), options).run(in.chroma.view(), chroma_bytes.view());
  expect_frame(out, luma_bytes, chroma_bytes, "as bytes");
}

TEST(Ycbcr, NonFiniteSamplesAreFilledCountedAndKept) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const NonFinite rule : {NonFinite::fill, NonFinite::keep}) {
    const ImageSpec spec = spec_of(PixelType::f32, yuv420);
    Pictures in(spec);
    in.luma.set(5, 7, 0, nan);
    in.chroma.set(11, 9, 0, nan);
    in.chroma.set(11, 9, 1, nan);
    in.chroma.set(0, 14, 1, nan);
    copy_samples(in.luma.view(), luma_view(in.frame.view()));
    copy_samples(in.chroma.view(), chroma_view(in.frame.view()));
    for (const int band : {0, 2, 5}) {
      const Options options{.device = {Device::Kind::cpu}, .nonfinite = rule, .band_rows = band};
      TestImage out(spec, Layout::planar);
      const Report report = Denoiser::create(box, spec, options).run(in.frame.view(), out.view());
      EXPECT_EQ(report.nonfinite_pixels, 3);
      expect_frame(out, filtered(box, in.luma, options), filtered(box, in.chroma, options), "not finite");
    }
    try {
      TestImage out(spec, Layout::planar);
      Denoiser::create(box, spec, {.device = {Device::Kind::cpu}, .nonfinite = NonFinite::error})
          .run(in.frame.view(), out.view());
      FAIL() << "the pixel was not refused";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "pixel (5, 7) is not a finite number");
    }
  }
}

TEST(Ycbcr, LittleMemoryGivesSmallBandsOrAnError) {
  for (const Subsampling chroma : {Subsampling{2, 2}, Subsampling{4, 4}}) {
    const ImageSpec spec{64, 96, 3, PixelType::u8, Colour::ycbcr, false, 0, chroma};
    bool fits = false;
    bool too_little = false;
    for (std::size_t memory = 1 << 10; memory < (1 << 24); memory += memory / 8) {
      try {
        Denoiser::create(GaussianParams{.sigma = 2}, spec,
                         {.device = {Device::Kind::cpu}, .threads = 1, .memory = memory});
        fits = true;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
        EXPECT_FALSE(fits) << memory;
        too_little = true;
      }
    }
    EXPECT_TRUE(fits && too_little);
  }
}

TEST(Ycbcr, SequencesLookAlongBothPlanes) {
  const ImageSpec spec = spec_of(PixelType::u8, yuv420);
  const MethodParams params = BoxParams{.radius = 1, .radius_z = 1};
  std::vector<Pictures> in;
  std::vector<TestImage> made;
  std::vector<TestImage> luma;
  std::vector<TestImage> chroma;
  std::vector<ConstImageView> frames, lumas, chromas;
  std::vector<ImageView> out, luma_out, chroma_out;
  in.reserve(4);
  for (std::uint32_t frame = 0; frame < 4; ++frame) {
    in.emplace_back(spec, frame);
    made.emplace_back(spec, Layout::planar);
    luma.emplace_back(luma_spec(spec), Layout::interleaved);
    chroma.emplace_back(chroma_spec(spec), Layout::interleaved);
  }
  for (std::size_t frame = 0; frame < in.size(); ++frame) {
    frames.emplace_back(in[frame].frame.view());
    lumas.emplace_back(in[frame].luma.view());
    chromas.emplace_back(in[frame].chroma.view());
    out.push_back(made[frame].view());
    luma_out.push_back(luma[frame].view());
    chroma_out.push_back(chroma[frame].view());
  }
  for (const int band : {0, 3}) {
    const Options options{.device = {Device::Kind::cpu}, .band_rows = band};
    Denoiser::create(params, luma_spec(spec), options).run(lumas, luma_out);
    Denoiser::create(params, chroma_spec(spec), options).run(chromas, chroma_out);
    Clip clip(frames, out);
    Denoiser::create(params, spec, options)
        .run(static_cast<SliceReader&>(clip), static_cast<SliceWriter&>(clip), spec);
    for (std::size_t frame = 0; frame < made.size(); ++frame) {
      expect_frame(made[frame], luma[frame], chroma[frame], "frame " + std::to_string(frame));
    }
  }
}

// ---- noise

Pictures noisy_pictures(const ImageSpec& spec, double luma_sigma, double chroma_sigma) {
  Pictures in(spec);
  const auto add = [&](TestImage& image, double sigma, std::uint64_t seed) {
    fill_with(image, 100);
    add_noise(image.view(), image.view(), {NoiseKind::gaussian, sigma, seed});
  };
  add(in.luma, luma_sigma, 1);
  add(in.chroma, chroma_sigma, 2);
  copy_samples(in.luma.view(), luma_view(in.frame.view()));
  copy_samples(in.chroma.view(), chroma_view(in.frame.view()));
  return in;
}

TEST(YcbcrNoise, IsThatOfLumaAndOfChroma) {
  const ImageSpec spec = spec_of(PixelType::u8, yuv420, 201, 157);
  const Pictures in = noisy_pictures(spec, 12, 5);
  const NoiseEstimate luma = estimate_noise(in.luma.view());
  const NoiseEstimate chroma = estimate_noise(in.chroma.view());
  const std::vector<double> expected{luma.channels[0], chroma.channels[0], chroma.channels[1]};
  EXPECT_NEAR(expected[0], 12, 0.6);
  EXPECT_NEAR(expected[1], 5, 0.4);
  EXPECT_EQ(estimate_noise(in.frame.view()).channels, expected);
  EXPECT_EQ(estimate_noise_model(in.frame.view()).white.channels, expected);
  EXPECT_EQ(estimate_noise_model(in.frame.view()).model.channels.size(), 3U);
  for (const int rows : {1, 7, 64}) {
    NoiseEstimator estimator(spec);
    NoiseModelEstimator model(spec);
    for (int first = 0; first < spec.height; first += rows) {
      const ConstImageView band = in.frame.view().rows(first, std::min(rows, spec.height - first));
      estimator.add_rows(band);
      model.add_rows(band);
    }
    EXPECT_EQ(estimator.finish().channels, expected) << rows;
    EXPECT_EQ(model.finish().white.channels, expected) << rows;
  }
}

TEST(YcbcrNoise, ChromaIsFilteredWithItsOwnStrength) {
  const ImageSpec spec = spec_of(PixelType::u8, yuv420, 201, 157);
  const Pictures in = noisy_pictures(spec, 12, 5);
  const Options options{.device = {Device::Kind::cpu}};
  for (const char* method : {"nlm", "bilateral"}) {
    const MethodParams params = MethodParams::defaults(method);
    const Resolved resolved = resolve_with_noise(params, in.frame.view());
    ASSERT_TRUE(resolved.noise.has_value()) << method;
    ASSERT_NE(resolved.params.chroma(), nullptr) << method;
    TestImage out(spec, Layout::planar);
    const Report report = Denoiser::create(resolved.params, spec, options).run(in.frame.view(), out.view());
    expect_frame(out, filtered(resolve(params, in.luma.view()), in.luma, options),
                 filtered(resolve(params, in.chroma.view()), in.chroma, options), method);
    EXPECT_EQ(report.strengths.front().name, "sigma");
    EXPECT_NEAR(report.strengths.front().value, 12, 0.6);
    Clip rows({in.frame.view()}, {});
    const Resolved read = resolve_with_noise(params, static_cast<RowReader&>(rows), spec);
    EXPECT_EQ(read.params.get_text("sigma"), resolved.params.get_text("sigma"));
    EXPECT_EQ(read.params.chroma()->get_text("sigma"), resolved.params.chroma()->get_text("sigma"));
    // Resolved parameters stay as they are.
    Denoiser clone = Denoiser::create(resolved.params, spec, options).clone();
    TestImage again(spec, Layout::planar);
    clone.run(in.frame.view(), again.view());
    EXPECT_TRUE(same_bits(again.view(), out.view()));
  }
}

TEST(YcbcrNoise, ListsAndModelsAreDivided) {
  // Chroma is too low for groups of bm3d that luma and chroma share.
  const ImageSpec spec = spec_of(PixelType::u8, yuv420, 61, 13);
  const Pictures in = noisy_pictures(spec, 12, 5);
  const Options options{.device = {Device::Kind::cpu}};
  TestImage out(spec, Layout::planar);
  const auto run = [&](const MethodParams& params) {
    Denoiser::create(params, spec, options).run(in.frame.view(), out.view());
  };
  run(Bm3dParams{.sigma = {12, 5, 6}});
  expect_frame(out, filtered(Bm3dParams{.sigma = {12}}, in.luma, options),
               filtered(Bm3dParams{.sigma = {5, 6}}, in.chroma, options), "sigma of three channels");
  run(NlmParams{.sigma = 9});
  expect_frame(out, filtered(NlmParams{.sigma = 9}, in.luma, options),
               filtered(NlmParams{.sigma = 9}, in.chroma, options), "one sigma");
  EXPECT_THROW(run(Bm3dParams{.sigma = {12, 5}}), Error);

  const auto with_model = [](const ImageSpec& of, const std::vector<double>& sigma) {
    MethodParams params = Bm3dParams{};
    NoiseHandling noise;
    noise.model = std::make_shared<const NoiseModel>(white_noise_model(of, sigma));
    params.set_noise(noise);
    return params;
  };
  run(with_model(spec, {12, 5, 6}));
  expect_frame(out, filtered(with_model(luma_spec(spec), {12}), in.luma, options),
               filtered(with_model(chroma_spec(spec), {5, 6}), in.chroma, options), "a model");

  TestImage map(luma_spec(spec), Layout::interleaved);
  fill_with(map, 3);
  EXPECT_THROW(run(Bm3dParams{.sigma_map = map.view()}), Error);
}

TEST(YcbcrNoise, BecomesOneSetForAMethodThatTakesBoth) {
  const ImageSpec spec = spec_of(PixelType::u8, yuv420, 61, 47);
  const MethodParams luma = Bm3dParams{.sigma = {12}};
  const MethodParams chroma = Bm3dParams{.sigma = {5, 6}};
  MethodParams given = Bm3dParams{.steps = 1};
  given.set_noise({.strength = 0.5, .chroma = 2});
  MethodParams both = YcbcrParams::with_noise_of(given, luma, chroma, spec);
  EXPECT_EQ(std::get<std::vector<double>>(both.get("sigma")), (std::vector<double>{12, 5, 6}));
  EXPECT_EQ(both.get_text("steps"), "1");
  EXPECT_EQ(both.noise().strength, 0.5);
  EXPECT_EQ(both.noise().chroma, 2);

  MethodParams measured = Bm3dParams{};
  measured.set_noise(
      {.model = std::make_shared<const NoiseModel>(white_noise_model(chroma_spec(spec), {7, 8}))});
  both = YcbcrParams::with_noise_of(given, luma, measured, spec);
  ASSERT_NE(both.noise().model, nullptr);
  ASSERT_EQ(both.noise().model->channels.size(), 3U);
  EXPECT_EQ(both.noise().model->channels[0].deviations.front(), 12);
  EXPECT_EQ(both.noise().model->channels[2].deviations.front(), 8);
}

TEST(YcbcrNoise, LumaAndChromaHaveFactorsOfTheirOwn) {
  const ImageSpec spec = spec_of(PixelType::u8, yuv420, 61, 47);
  const Pictures in = noisy_pictures(spec, 12, 5);
  const Options options{.device = {Device::Kind::cpu}};
  const auto with = [](double sigma, const NoiseHandling& noise) {
    MethodParams params = NlmParams{.search = 5, .patch = 3, .sigma = sigma};
    params.set_noise(noise);
    return params;
  };
  TestImage out(spec, Layout::planar);
  Denoiser::create(with(8, {.luminance = 0.5, .chroma = 2}), spec, options).run(in.frame.view(), out.view());
  expect_frame(out, filtered(with(8, {.strength = 0.5}), in.luma, options),
               filtered(with(8, {.strength = 2}), in.chroma, options), "factors");
}

TEST(YcbcrNoise, WhatIsSetAfterwardsIsSetForBoth) {
  const ImageSpec spec = spec_of(PixelType::u8, yuv420, 201, 157);
  const Pictures in = noisy_pictures(spec, 12, 5);
  MethodParams params = resolve(NlmParams{}, in.frame.view());
  params.set("search", 5.0);
  ASSERT_NE(params.chroma(), nullptr);
  EXPECT_EQ(params.get_text("search"), "5");
  EXPECT_EQ(params.chroma()->get_text("search"), "5");
  EXPECT_NE(params.get_text("sigma"), params.chroma()->get_text("sigma"));
}

TEST(Ycbcr, FunctionsThatTakeNoneSaySo) {
  const ImageSpec spec = spec_of(PixelType::u8, yuv420);
  Pictures in(spec);
  EXPECT_THROW(psnr(in.frame.view(), in.frame.view()), Error);
  EXPECT_THROW(add_noise(in.frame.view(), in.frame.view(), {}), Error);
}

}  // namespace
}  // namespace ungrain::testing
