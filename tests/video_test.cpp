// Clips: scenes are found, their noise is measured, and each is denoised as if it were alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <stdexcept>

#include "core/convert.h"
#include "scene/scene.h"
#include "test_images.h"
#include "ungrain/error.h"
#include "ungrain/measured_noise.h"
#include "ungrain/methods.h"
#include "ungrain/noise.h"
#include "ungrain/video.h"
#include "video/scene_cuts.h"

namespace ungrain::testing {
namespace {

constexpr int width = 160;
constexpr int height = 120;

ImageSpec gray(PixelType type = PixelType::u8) { return {width, height, 1, type, Colour::gray, false, 0}; }

// A picture from which frames are cut, with levels from 60 to 190: noise is not cut off.
const Image& picture() {
  static const Image image = [] {
    Image large = render_scene({640, 480, 1, PixelType::f32, Colour::gray, false, 0});
    const auto count = static_cast<std::size_t>(large.spec().width) * large.spec().height;
    std::for_each_n(large.samples<float>(), count, [](float& v) { v = 60 + 130 * v; });
    return large;
  }();
  return image;
}

// A frame's clean picture: a window of `picture()`, and a curve for its levels.
struct Shot {
  int x = 0;
  int y = 0;
  double gain = 1;
  double offset = 0;
  double sigma = 5;
};

TestImage frame_of(const Shot& shot, int index, const ImageSpec& spec = gray()) {
  ImageSpec floats = luma_spec(spec);
  floats.type = PixelType::f32;
  floats.range = 255;
  TestImage clean(floats, Layout::interleaved);
  for (int y = 0; y < spec.height; ++y) {
    const float* from = picture().samples<float>() + static_cast<std::ptrdiff_t>(y + shot.y) * 640 + shot.x;
    for (int x = 0; x < spec.width; ++x) clean.set(x, y, 0, shot.gain * from[x] + shot.offset);
  }
  TestImage frame(luma_spec(spec), Layout::interleaved);
  add_noise(clean.view(), frame.view(), {NoiseKind::gaussian, shot.sigma, static_cast<std::uint64_t>(index)});
  return frame;
}

class Clip : public SliceReader, public SliceWriter {
 public:
  Clip(const std::vector<Shot>& shots, const ImageSpec& spec = gray()) : spec_(spec) {
    for (std::size_t i = 0; i < shots.size(); ++i) {
      in.push_back(frame_of(shots[i], static_cast<int>(i), spec));
      out.emplace_back(spec, Layout::interleaved);
    }
  }
  bool has(int slice) override { return slice < static_cast<int>(in.size()); }
  bool starts_scene(int slice) override { return slice == 0 || starts.count(slice) > 0; }
  void read_rows(int slice, int first, const ImageView& rows) override {
    EXPECT_EQ(slice, next_read_++) << "frames are read once and in order";
    EXPECT_EQ(first, 0);
    if (slice == broken) throw std::runtime_error("the tape is torn");
    for (int y = 0; y < rows.spec.height; ++y)
      copy_pixels(in[static_cast<std::size_t>(slice)].view(), y, rows, y);
  }
  void write_rows(int slice, int first, const ConstImageView& rows) override {
    const ImageView to = out[static_cast<std::size_t>(slice)].view().rows(first, rows.spec.height);
    for (int y = 0; y < rows.spec.height; ++y) copy_pixels(rows, y, to, y);
    if (first + rows.spec.height == spec_.height) {
      EXPECT_EQ(slice, written++) << "frames are written in order";
    }
  }
  VideoReport denoise(const MethodParams& params, VideoOptions options = {}) {
    next_read_ = written = 0;
    if (options.run.device.kind == Device::Kind::automatic) options.run.device = {Device::Kind::cpu};
    return denoise_video(params, spec_, *this, *this, spec_, options);
  }
  std::uint64_t result(int frame) const { return hash_of(out[static_cast<std::size_t>(frame)].view()); }

  std::vector<TestImage> in;
  std::vector<TestImage> out;
  std::set<int> starts;
  int broken = -1;
  int written = 0;

 private:
  ImageSpec spec_;
  int next_read_ = 0;
};

std::vector<Shot> pan(int frames, int x, int y, int step, double sigma = 5) {
  std::vector<Shot> shots;
  for (int i = 0; i < frames; ++i) shots.push_back({x + i * step, y, 1, 0, sigma});
  return shots;
}

std::vector<Shot> operator+(std::vector<Shot> a, const std::vector<Shot>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<int> starts_of(const VideoReport& report) {
  std::vector<int> starts;
  for (const VideoScene& scene : report.scenes) starts.push_back(scene.first);
  return starts;
}

const MethodParams average = BoxParams{.radius = 1, .radius_z = 1};

TEST(VideoScenes, AreDenoisedAsIfTheyWereAlone) {
  const std::vector<Shot> one = pan(9, 0, 40, 2, 5);
  const std::vector<Shot> two = pan(7, 300, 330, 1, 12);
  Clip whole(one + two);
  for (const MethodParams& params : {average, MethodParams(NlmParams{.search = 5, .patch = 3})}) {
    const VideoReport report = whole.denoise(params);
    ASSERT_EQ(starts_of(report), (std::vector{0, 9}));
    EXPECT_EQ(report.frames, 16);
    EXPECT_EQ(report.scenes[0].frames, 9);
    EXPECT_EQ(report.scenes[1].frames, 7);
    for (const VideoScene& scene : report.scenes) {
      // The scene as views, with its own parameters.
      std::vector<ConstImageView> in;
      std::vector<TestImage> expected;
      std::vector<ImageView> out;
      for (int i = 0; i < scene.frames; ++i) {
        in.emplace_back(whole.in[static_cast<std::size_t>(scene.first + i)].view());
        expected.emplace_back(gray(), Layout::interleaved);
      }
      for (TestImage& image : expected) out.push_back(image.view());
      Denoiser::create(scene.params, gray(), {.device = {Device::Kind::cpu}}).run(in, out);
      for (int i = 0; i < scene.frames; ++i) {
        EXPECT_EQ(whole.result(scene.first + i), hash_of(out[static_cast<std::size_t>(i)]))
            << scene.first + i;
      }
      // And as a clip of its own.
      Clip alone(scene.first == 0 ? one : two);
      for (int i = 0; i < scene.frames; ++i) {
        alone.in[static_cast<std::size_t>(i)] =
            frame_of(scene.first == 0 ? one[static_cast<std::size_t>(i)] : two[static_cast<std::size_t>(i)],
                     scene.first + i);
      }
      alone.denoise(params);
      for (int i = 0; i < scene.frames; ++i) EXPECT_EQ(alone.result(i), whole.result(scene.first + i));
    }
  }
}

TEST(VideoScenes, AnyMemoryGivesTheSameBits) {
  Clip clip(pan(6, 0, 40, 2) + pan(6, 300, 330, 1));
  const MethodParams params = BoxParams{.radius = 2, .radius_z = 2};
  ASSERT_EQ(clip.denoise(params).scenes.size(), 2U);
  std::vector<std::uint64_t> expected;
  for (int i = 0; i < 12; ++i) expected.push_back(clip.result(i));
  for (const int rows : {1, 16, 50}) {
    VideoOptions options;
    options.run.band_rows = rows;
    clip.denoise(params, options);
    for (int i = 0; i < 12; ++i) EXPECT_EQ(clip.result(i), expected[static_cast<std::size_t>(i)]) << rows;
  }
}

TEST(VideoScenes, CutsAreFoundInNoise) {
  for (const double sigma : {0.0, 20.0, 50.0}) {
    Clip clip(pan(5, 0, 40, 3, sigma) + pan(4, 300, 330, 0, sigma) + pan(6, 330, 60, 1, sigma));
    EXPECT_EQ(starts_of(clip.denoise(BoxParams{})), (std::vector{0, 5, 9})) << sigma;
  }
}

TEST(VideoScenes, ACutMayBeAtTheSecondOrTheLastFrame) {
  Clip clip(pan(1, 0, 40, 0) + pan(6, 300, 330, 0) + pan(1, 20, 40, 0));
  EXPECT_EQ(starts_of(clip.denoise(BoxParams{})), (std::vector{0, 1, 7}));
}

void expect_no_cut(const std::vector<Shot>& shots, const std::string& what) {
  Clip clip(shots);
  EXPECT_EQ(starts_of(clip.denoise(BoxParams{})), std::vector{0}) << what;
}

TEST(VideoScenes, PansFadesAndFlashesAreNoCuts) {
  for (const double sigma : {0.0, 5.0, 50.0}) {
    const std::string noise = ", sigma " + std::to_string(sigma);
    for (const int step : {0, 1, 4, 12, 24}) {
      expect_no_cut(pan(std::min(19, 470 / std::max(step, 1)), 0, 100, step, sigma),
                    "a pan of " + std::to_string(step) + noise);
    }
    // The pan starts suddenly.
    expect_no_cut(pan(5, 0, 100, 0, sigma) + pan(10, 12, 100, 12, sigma), "a sudden pan" + noise);

    std::vector<Shot> fade = pan(30, 100, 60, 1, sigma);
    for (std::size_t i = 5; i < 17; ++i) fade[i].gain = std::max(0.0, 1 - static_cast<double>(i - 4) / 12);
    for (std::size_t i = 17; i < 25; ++i) fade[i].gain = static_cast<double>(i - 16) / 8;
    expect_no_cut(fade, "a fade to black and back" + noise);

    std::vector<Shot> flash = pan(12, 100, 60, 1, sigma);
    flash[6].offset = 120;
    expect_no_cut(flash, "a flash" + noise);
    flash[6].gain = 3;
    expect_no_cut(flash, "a flash that saturates" + noise);
    flash[7].offset = 60;
    expect_no_cut(flash, "a flash that dies away" + noise);

    std::vector<Shot> light = pan(12, 100, 60, 1, sigma);
    for (std::size_t i = 6; i < light.size(); ++i) light[i].offset = 40;
    expect_no_cut(light, "a lamp that is switched on" + noise);
  }
}

TEST(VideoScenes, FlatFramesHaveNoCuts) {
  std::vector<Shot> flat = pan(40, 0, 0, 0, 50);
  for (Shot& shot : flat) {
    shot.gain = 0;
    shot.offset = 128;
  }
  expect_no_cut(flat, "nothing but noise");
  EXPECT_EQ(frame_difference({{1, 1, 1}}, {{0, 0, 0}}).variance, 0);
}

TEST(VideoScenes, BlockMeansAreThoseOfTheFrame) {
  for (const int side : {50, 1000}) {
    TestImage ramp({side, side, 1, PixelType::f32, Colour::gray, false, 2}, Layout::interleaved);
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) ramp.set(x, y, 0, 2.0 * x / side);
    }
    ramp.set(3, 0, 0, std::nan(""));
    const std::vector<float> means = outline_of(ramp.view()).blocks;
    const auto across = static_cast<std::size_t>(side == 50 ? 5 : 16);
    ASSERT_EQ(means.size(), across * across);
    EXPECT_NEAR(means.front(), 0.5 * (side == 50 ? 11.0 / 50 : 62.0 / 1000), 2e-3);
    EXPECT_NEAR(means[across / 2], means[across * across - across + across / 2], 1e-6);
  }
}

TEST(VideoScenes, TheReaderMaySayWhereTheyStart) {
  Clip clip(pan(6, 0, 40, 1) + pan(6, 300, 330, 1));
  clip.starts = {2};
  EXPECT_EQ(starts_of(clip.denoise(average)), (std::vector{0, 2, 6}));
  VideoOptions options;
  options.find_cuts = false;
  EXPECT_EQ(starts_of(clip.denoise(average, options)), (std::vector{0, 2}));
}

TEST(VideoNoise, IsMeasuredInEachScene) {
  Clip clip(pan(20, 0, 40, 1, 4) + pan(12, 300, 330, 1, 15) + pan(3, 330, 60, 0, 8));
  const VideoReport report = clip.denoise(NlmParams{.search = 3, .patch = 3});
  ASSERT_EQ(starts_of(report), (std::vector{0, 20, 32}));
  const double sigmas[] = {4, 15, 8};
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(report.scenes[i].noise.has_value());
    const double found = report.scenes[i].noise->deviations.front();
    EXPECT_NEAR(found, sigmas[i], 0.06 * sigmas[i]) << "scene " << i;
    EXPECT_FALSE(report.scenes[i].params.needs_image());
  }
}

TEST(VideoNoise, GivenNoiseIsNotMeasured) {
  Clip clip(pan(4, 0, 40, 1));
  const VideoReport report = clip.denoise(NlmParams{.search = 3, .patch = 3, .sigma = 5});
  ASSERT_EQ(report.scenes.size(), 1U);
  EXPECT_FALSE(report.scenes[0].noise.has_value());
}

TEST(Video, HoldsAFewFramesOfALongClip) {
  Clip clip(pan(150, 0, 40, 1));
  EXPECT_EQ(clip.denoise(BoxParams{}).scenes.size(), 1U);
  const VideoReport alone = clip.denoise(BoxParams{});
  EXPECT_LE(alone.ring_frames, 8);
  EXPECT_EQ(alone.ring_bytes, static_cast<std::size_t>(alone.ring_frames) * width * height);
  EXPECT_LE(clip.denoise(BoxParams{.radius_z = 2}).ring_frames, 14);
  EXPECT_LE(clip.denoise(BilateralParams{.radius = 1}).ring_frames, 22);
  EXPECT_EQ(clip.written, 150);
}

TEST(Video, WhatTheReaderThrowsComesAfterTheFramesBeforeIt) {
  Clip clip(pan(12, 0, 40, 1));
  clip.broken = 7;
  for (const MethodParams& params : {average, MethodParams(BilateralParams{.radius = 1})}) {
    try {
      clip.denoise(params);
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "the tape is torn");
    }
    EXPECT_EQ(clip.written, 7);
  }
  clip.broken = 0;
  EXPECT_THROW(clip.denoise(average), std::runtime_error);
}

TEST(Video, WhatTheWriterThrowsEndsIt) {
  Clip clip(pan(12, 0, 40, 1));
  struct Full : SliceWriter {
    void write_rows(int slice, int, const ConstImageView&) override {
      if (slice == 3) throw std::runtime_error("the disc is full");
    }
  } full;
  EXPECT_THROW(denoise_video(average, gray(), clip, full, gray(), {.run = {.device = {Device::Kind::cpu}}}),
               std::runtime_error);
}

TEST(Video, CanBeCancelledAndTellsItsProgress) {
  Clip clip(pan(40, 0, 40, 1));
  VideoOptions options;
  std::vector<int> told;
  options.progress = [&](int done, const VideoScene& scene) {
    told.push_back(done);
    EXPECT_EQ(scene.frames, done);
    if (done == 3) options.run.cancel.cancel();
  };
  try {
    clip.denoise(average, options);
    FAIL() << "it was not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  EXPECT_LT(clip.written, 40);
  ASSERT_GE(told.size(), 3U);
  EXPECT_EQ(told[2], 3);
}

TEST(Video, MayHaveNoFramesOrOne) {
  Clip none({});
  EXPECT_EQ(none.denoise(average).frames, 0);
  Clip one(pan(1, 0, 40, 0));
  EXPECT_EQ(one.denoise(average).frames, 1);
  EXPECT_THROW(one.denoise(BoxParams{.radius = -1}), Error);
}

TEST(Video, HasNoWrapAlongTime) {
  Clip clip(pan(3, 0, 40, 0));
  EXPECT_THROW(clip.denoise(BoxParams{.radius_z = 1, .border = Border::wrap}), Error);
  EXPECT_NO_THROW(clip.denoise(BoxParams{.border = Border::wrap}));
}

// ---- luma and chroma

class ColourClip : public SliceReader, public SliceWriter {
 public:
  explicit ColourClip(const ImageSpec& spec) : spec_(spec) {
    const std::vector<Shot> shots = pan(4, 0, 40, 1, 10) + pan(4, 300, 330, 1, 10);
    for (std::size_t i = 0; i < shots.size(); ++i) {
      in.emplace_back(spec, Layout::planar);
      out.emplace_back(spec, Layout::planar);
      copy(frame_of(shots[i], static_cast<int>(i), spec).view(), luma_view(in.back().view()));
      TestImage chroma(chroma_spec(spec), Layout::interleaved);
      fill_with(chroma, spec.white() / 2);
      add_noise(chroma.view(), chroma.view(), {NoiseKind::gaussian, 4 * spec.white() / 255, i});
      copy(chroma.view(), chroma_view(in.back().view()));
    }
  }
  bool has(int slice) override { return slice < static_cast<int>(in.size()); }
  void read_rows(int slice, int first, const ImageView& rows) override {
    copy(in[static_cast<std::size_t>(slice)].view().rows(first, rows.spec.height), rows);
  }
  void write_rows(int slice, int first, const ConstImageView& rows) override {
    copy(rows, out[static_cast<std::size_t>(slice)].view().rows(first, rows.spec.height));
  }
  static void copy(const ConstImageView& from, const ImageView& to) {
    for (int y = 0; y < from.spec.height; ++y) copy_pixels(from, y, to, y);
  }
  std::vector<TestImage> in;
  std::vector<TestImage> out;

 private:
  ImageSpec spec_;
};

TEST(Video, OfLumaAndChroma) {
  const ImageSpec spec{width + 1, height + 1, 3, PixelType::u16, Colour::ycbcr, false, 1023, {2, 2}};
  ColourClip clip(spec);
  const VideoReport report = denoise_video(NlmParams{.search = 5, .patch = 3}, spec, clip, clip, spec,
                                           {.run = {.device = {Device::Kind::cpu}}});
  ASSERT_EQ(starts_of(report), (std::vector{0, 4}));
  const std::vector<double>& found = report.scenes[0].noise->deviations;
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NEAR(found[0], 10 * 1023 / 255.0, 2.5);
  EXPECT_NEAR(found[1], 4 * 1023 / 255.0, 1.2);
  for (int i = 0; i < 8; ++i) {
    const VideoScene& scene = report.scenes[i < 4 ? 0 : 1];
    ASSERT_NE(scene.params.chroma(), nullptr);
    TestImage chroma(chroma_spec(spec), Layout::interleaved);
    Denoiser::create(*scene.params.chroma(), chroma_spec(spec), {.device = {Device::Kind::cpu}})
        .run(chroma_view(clip.in[static_cast<std::size_t>(i)].view()), chroma.view());
    EXPECT_EQ(hash_of(chroma_view(clip.out[static_cast<std::size_t>(i)].view())), hash_of(chroma.view()))
        << i;
  }
}

// Noise that was measured once gives the parameters that denoise_video() finds.
TEST(VideoNoise, MayBeMeasuredBefore) {
  const ImageSpec spec{width + 1, height + 1, 3, PixelType::u16, Colour::ycbcr, false, 1023, {2, 2}};
  ColourClip clip(spec);
  for (const MethodParams& params : {MethodParams(NlmParams{.search = 5, .patch = 3}),
                                     MethodParams(Bm3dParams{}), MethodParams(BilateralParams{})}) {
    const VideoReport report =
        denoise_video(params, spec, clip, clip, spec, {.run = {.device = {Device::Kind::cpu}}});
    ASSERT_EQ(starts_of(report), (std::vector{0, 4}));
    for (const VideoScene& scene : report.scenes) {
      std::vector<MeasuredNoise> measured;
      for (const int frame : frames_to_measure(spec, scene.frames))
        measured.emplace_back(clip.in[static_cast<std::size_t>(scene.first + frame)].view());
      ASSERT_EQ(measured.size(), 2U);
      const Resolved found = resolve_frames(params, spec, measured);
      for (const ParamInfo& info : method_info(params.method()).params)
        EXPECT_EQ(found.params.get_text(info.name), scene.params.get_text(info.name)) << info.name;
      EXPECT_EQ(found.noise->deviations, scene.noise->deviations);
    }
  }
  EXPECT_THROW(resolve_frames(NlmParams{}, spec, std::span<MeasuredNoise>()), Error);
  EXPECT_EQ(frames_to_measure(spec, 100).size(), 8U);
}

}  // namespace
}  // namespace ungrain::testing
