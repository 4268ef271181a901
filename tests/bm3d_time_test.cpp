// bm3d over time: what it gains on moving pictures, that it adds neither flicker nor ghosts, and that chroma
// follows luma's groups. Conformance, sequences and bands are tested with every other method.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "core/convert.h"
#include "scene/clip.h"
#include "test_devices.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"

namespace ungrain::testing {
namespace {

constexpr double sigma = 20.0 / 255;

struct MadeClip {
  std::vector<Image> truth;
  std::vector<Image> noisy;
};

// Frames [first, first + count) of the computed clip, noise not cut off.
MadeClip made_clip(int width, int height, int first, int count, int frames = 200) {
  const ImageSpec spec{width, height, 1, PixelType::f32, Colour::gray};
  const SceneClip clip(width, height, frames);
  MadeClip made;
  for (int n = 0; n < count; ++n) {
    made.truth.emplace_back(spec);
    clip.render(first + n, made.truth.back().view());
    made.noisy.emplace_back(spec);
    add_noise(made.truth.back().view(), made.noisy.back().view(),
              {NoiseKind::gaussian, sigma, static_cast<std::uint64_t>(n + 1)});
  }
  return made;
}

std::vector<Image> filtered(const std::vector<Image>& frames, const Bm3dParams& params,
                            const Options& options = {.device = {Device::Kind::cpu}}) {
  std::vector<Image> results;
  std::vector<ConstImageView> in;
  std::vector<ImageView> out;
  for (const Image& frame : frames) {
    in.push_back(frame.view());
    results.emplace_back(frame.spec());
  }
  for (Image& result : results) out.push_back(result.view());
  Denoiser denoiser = Denoiser::create(params, frames[0].spec(), options);
  denoiser.run(std::span<const ConstImageView>(in), std::span<const ImageView>(out));
  return results;
}

double mean_psnr(const MadeClip& clip, const std::vector<Image>& results) {
  double sum = 0;
  for (std::size_t n = 0; n < results.size(); ++n) sum += psnr(clip.truth[n].view(), results[n].view());
  return sum / static_cast<double>(results.size());
}

// The variance over time of each pixel's error, on average: flicker.
double flicker(const MadeClip& clip, const std::vector<Image>& results) {
  const auto pixels = static_cast<std::size_t>(results[0].spec().width) * results[0].spec().height;
  const auto count = static_cast<double>(results.size());
  double all = 0;
  for (std::size_t i = 0; i < pixels; ++i) {
    double sum = 0;
    double squares = 0;
    for (std::size_t n = 0; n < results.size(); ++n) {
      const double error = results[n].samples<float>()[i] - clip.truth[n].samples<float>()[i];
      sum += error;
      squares += error * error;
    }
    all += squares / count - sum * sum / count / count;
  }
  return all / static_cast<double>(pixels);
}

// The mean squared error where something moves: pixels that differ much from the frame before.
double error_at_moving_edges(const MadeClip& clip, const std::vector<Image>& results) {
  const auto pixels = static_cast<std::size_t>(results[0].spec().width) * results[0].spec().height;
  double sum = 0;
  int count = 0;
  for (std::size_t n = 1; n < results.size(); ++n) {
    for (std::size_t i = 0; i < pixels; ++i) {
      const float truth = clip.truth[n].samples<float>()[i];
      if (std::abs(truth - clip.truth[n - 1].samples<float>()[i]) < 12.0F / 255) continue;
      sum += std::pow(results[n].samples<float>()[i] - truth, 2);
      ++count;
    }
  }
  EXPECT_GT(count, 500);
  return sum / count;
}

TEST(Bm3dTime, FramesAroundGainWithoutFlickerOrGhosts) {
  // The camera moves fastest here.
  const MadeClip clip = made_clip(256, 192, 0, 12);
  const std::vector<Image> alone = filtered(clip.noisy, {.sigma = {sigma}});
  const std::vector<Image> together = filtered(clip.noisy, {.sigma = {sigma}, .radius_t = 4});
  const std::vector<Image> quickly =
      filtered(clip.noisy, {.profile = Bm3dProfile::fast, .sigma = {sigma}, .radius_t = 2});
  EXPECT_GT(mean_psnr(clip, together), mean_psnr(clip, alone) + 3.0);
  EXPECT_GT(mean_psnr(clip, quickly), mean_psnr(clip, alone) + 2.0);
  EXPECT_LT(flicker(clip, together), 0.6 * flicker(clip, alone));
  EXPECT_LT(flicker(clip, quickly), 0.8 * flicker(clip, alone));
  EXPECT_LT(error_at_moving_edges(clip, together), error_at_moving_edges(clip, alone));
}

// Frames that have nothing in common with their neighbours are filtered nearly as well as single images,
// whose search is wider.
TEST(Bm3dTime, UnrelatedFramesDoNotHarm) {
  MadeClip clip = made_clip(160, 120, 0, 1);
  const MadeClip other = made_clip(160, 120, 150, 2);
  clip.truth.insert(clip.truth.begin(), other.truth[0].copy());
  clip.noisy.insert(clip.noisy.begin(), other.noisy[0].copy());
  clip.truth.push_back(other.truth[1].copy());
  clip.noisy.push_back(other.noisy[1].copy());
  const std::vector<Image> alone = filtered(clip.noisy, {.sigma = {sigma}});
  const std::vector<Image> together = filtered(clip.noisy, {.sigma = {sigma}, .radius_t = 1});
  EXPECT_GT(psnr(clip.truth[1].view(), together[1].view()),
            psnr(clip.truth[1].view(), alone[1].view()) - 0.8);
}

class Bm3dTimeFrames : public ::testing::TestWithParam<Device::Kind> {};

// Luma of a frame has the bits of gray, whatever the chroma; chroma is near the reference's; bands change
// nothing.
TEST_P(Bm3dTimeFrames, ChromaFollowsLuma) {
  const Device device{GetParam()};
  if (device.kind == Device::Kind::cuda) UNGRAIN_NEEDS_GPU();
  const bool is_reference = device.kind == Device::Kind::reference;
  const Bm3dParams params{.sigma = {12, 8, 6}, .radius_t = 1, .search = 5, .group = 4, .wiener_group = 4};
  for (const Subsampling chroma :
       {Subsampling{2, 2}, Subsampling{2, 1}, Subsampling{1, 1}, Subsampling{4, 4}}) {
    const ImageSpec spec{45, 37, 3, PixelType::f32, Colour::ycbcr, false, 255, chroma};
    std::vector<Image> frames;
    for (int n = 0; n < 3; ++n) {
      frames.emplace_back(spec);
      TestImage luma(luma_spec(spec), Layout::interleaved);
      TestImage colours(chroma_spec(spec), Layout::interleaved);
      fill_with_picture(luma, 1 + n / 2);
      fill_with_picture(colours, 3 + n / 2);
      for (int y = 0; y < spec.height; ++y) {
        for (int x = 0; x < spec.width; ++x)
          frames.back().samples<float>()[y * spec.width + x] = static_cast<float>(luma.at(x, y, 0));
      }
      const ImageView to = chroma_view(frames.back().view());
      for (int c = 0; c < 2; ++c) {
        for (int y = 0; y < to.spec.height; ++y) {
          for (int x = 0; x < to.spec.width; ++x) {
            auto* sample = static_cast<std::byte*>(to.data) + c * to.strides.channel + y * to.strides.y +
                           x * to.strides.x;
            *reinterpret_cast<float*>(sample) = static_cast<float>(colours.at(x, y, c));
          }
        }
      }
    }
    const std::vector<Image> results = filtered(frames, params, {.device = device, .threads = 2});

    std::vector<Image> lumas;
    for (const Image& frame : frames) {
      lumas.emplace_back(luma_spec(spec));
      std::copy_n(frame.samples<float>(), static_cast<std::size_t>(spec.width) * spec.height,
                  lumas.back().samples<float>());
    }
    Bm3dParams of_luma = params;
    of_luma.sigma = {12};
    const std::vector<Image> gray = filtered(lumas, of_luma, {.device = device, .threads = 2});
    for (std::size_t n = 0; n < frames.size(); ++n)
      EXPECT_EQ(hash_of(luma_view(results[n].view())), hash_of(gray[n].view())) << n;

    const std::vector<Image> banded =
        filtered(frames, params, {.device = device, .threads = 1, .band_rows = 7});
    for (std::size_t n = 0; n < frames.size(); ++n)
      EXPECT_EQ(hash_of(results[n].view()), hash_of(banded[n].view())) << n;

    if (is_reference) continue;
    const std::vector<Image> expected = filtered(frames, params, {.device = {Device::Kind::reference}});
    for (std::size_t n = 0; n < frames.size(); ++n) {
      const ConstImageView got = chroma_view(results[n].view());
      const ConstImageView wanted = chroma_view(expected[n].view());
      double largest = 0;
      for (int c = 0; c < 2; ++c) {
        for (int y = 0; y < got.spec.height; ++y) {
          for (int x = 0; x < got.spec.width; ++x) {
            const auto at = [&](const ConstImageView& view) {
              return *reinterpret_cast<const float*>(static_cast<const std::byte*>(view.data) +
                                                     c * view.strides.channel + y * view.strides.y +
                                                     x * view.strides.x);
            };
            largest = std::max(largest, static_cast<double>(std::abs(at(got) - at(wanted))));
          }
        }
      }
      EXPECT_LT(largest, 0.02 * 255) << n;
    }
  }
}

// ---- a pilot instead of the first step

class PilotImages : public SliceReader {
 public:
  explicit PilotImages(const std::vector<Image>& images) {
    for (const Image& image : images) images_.push_back(image.copy());
  }
  bool has(int slice) override { return slice < static_cast<int>(images_.size()); }
  void read_rows(int slice, int first, const ImageView& rows) override {
    const Image& image = images_.at(static_cast<std::size_t>(slice));
    const ConstImageView from = image.view().rows(first, rows.spec.height);
    for (int y = 0; y < rows.spec.height; ++y) copy_pixels(from, y, rows, y);
  }

 private:
  std::vector<Image> images_;
};

std::vector<Image> ycbcr_frames(int width, int height, int count, Subsampling chroma = {2, 2}) {
  const ImageSpec spec{width, height, 3, PixelType::f32, Colour::ycbcr, false, 0, chroma};
  const MadeClip clip = made_clip(width, height, 0, 3 * count);
  std::vector<Image> frames;
  for (int n = 0; n < count; ++n) {
    frames.emplace_back(spec);
    for (int c = 0; c < 3; ++c) {
      const Image& from = clip.noisy[static_cast<std::size_t>(3 * n + c)];
      for (int y = 0; y < height; ++y) {
        const float* row = from.samples<float>() + static_cast<std::ptrdiff_t>(y) * width;
        float* to = frames.back().samples<float>() + (static_cast<std::ptrdiff_t>(c) * height + y) * width;
        if (c == 0) std::copy(row, row + width, to);
        if (c > 0 && y % chroma.y == 0) std::copy(row, row + width / chroma.x, to);
      }
    }
  }
  return frames;
}

TEST_P(Bm3dTimeFrames, PlanesWithoutNoiseStayAsTheyAre) {
  const Device device{GetParam()};
  if (device.kind == Device::Kind::cuda) UNGRAIN_NEEDS_GPU();
  for (const Subsampling chroma : {Subsampling{2, 2}, Subsampling{1, 1}}) {
    const std::vector<Image> frames = ycbcr_frames(48, 40, 3, chroma);
    for (int kept = 0; kept < 3; ++kept) {
      Bm3dParams params{.sigma = {sigma, sigma, sigma}, .radius_t = 1};
      const std::vector<Image> all = filtered(frames, params, {.device = device});
      params.sigma[static_cast<std::size_t>(kept)] = 0;
      const std::vector<Image> results = filtered(frames, params, {.device = device, .band_rows = 12});
      for (int c = 0; c < 3; ++c) {
        const int rows_between = c > 0 ? chroma.y : 1;
        const int width = c > 0 ? 48 / chroma.x : 48;
        for (int y = 0; y < 40; y += rows_between) {
          const auto row = [&](const Image& image) {
            return std::span(image.samples<float>() + static_cast<std::ptrdiff_t>(c * 40 + y) * 48,
                             static_cast<std::size_t>(width));
          };
          const auto equals = [](std::span<const float> a, std::span<const float> b) {
            return std::equal(a.begin(), a.end(), b.begin());
          };
          EXPECT_EQ(equals(row(results[1]), row(frames[1])), c == kept) << chroma.x << kept << c << y;
          if (c == 0 && kept > 0 && chroma.x > 1) {
            EXPECT_TRUE(equals(row(results[1]), row(all[1]))) << kept << y;
          }
        }
      }
    }
  }
}

TEST_P(Bm3dTimeFrames, TheFirstStepsResultIsAPilotLikeAnyOther) {
  const Device device{GetParam()};
  if (device.kind == Device::Kind::cuda) UNGRAIN_NEEDS_GPU();
  const std::vector<Image> frames = ycbcr_frames(72, 48, 2);
  const Options options{.device = device};
  const std::vector<Image> both = filtered(frames, {.sigma = {sigma}}, options);
  const auto basic = std::make_shared<PilotImages>(filtered(frames, {.sigma = {sigma}, .steps = 1}, options));
  const std::vector<Image> second = filtered(frames, {.sigma = {sigma}, .pilot = basic}, options);
  const std::vector<Image> banded =
      filtered(frames, {.sigma = {sigma}, .pilot = basic}, {.device = device, .band_rows = 10});
  for (std::size_t n = 0; n < frames.size(); ++n) {
    EXPECT_EQ(hash_of(both[n].view()), hash_of(second[n].view())) << n;
    EXPECT_EQ(hash_of(both[n].view()), hash_of(banded[n].view())) << n;
  }
}

TEST_P(Bm3dTimeFrames, APilotSaysWhatIsSignal) {
  const Device device{GetParam()};
  if (device.kind == Device::Kind::cuda) UNGRAIN_NEEDS_GPU();
  MadeClip clip = made_clip(80, 64, 0, 4);
  clip.truth[2].samples<float>()[5] = std::nanf("");
  const auto truth = std::make_shared<PilotImages>(clip.truth);
  clip.truth[2].samples<float>()[5] = clip.truth[2].samples<float>()[6];
  for (const int radius : {0, 1}) {
    const Bm3dParams params{.sigma = {sigma}, .pilot = truth, .radius_t = radius};
    const std::vector<Image> results = filtered(clip.noisy, params, {.device = device});
    const std::vector<Image> without =
        filtered(clip.noisy, {.sigma = {sigma}, .radius_t = radius}, {.device = {Device::Kind::cpu}});
    EXPECT_GT(mean_psnr(clip, results), mean_psnr(clip, without) + 1) << radius;
    const std::vector<Image> expected = filtered(clip.noisy, params, {.device = {Device::Kind::reference}});
    for (std::size_t n = 0; n < results.size(); ++n)
      EXPECT_GT(psnr(expected[n].view(), results[n].view()), 70) << radius << ' ' << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Bm3dTimeFrames,
                         ::testing::Values(Device::Kind::reference, Device::Kind::cpu, Device::Kind::cuda),
                         [](const auto& one) { return name(Device{one.param}); });

TEST(Bm3dTime, TakesOnePatchSizeAndItsTransforms) {
  const ImageSpec spec{64, 48, 1, PixelType::f32, Colour::gray};
  const auto refused = [&](const Bm3dParams& params, const char* why) {
    try {
      Denoiser::create(params, spec);
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  };
  refused({.sigma = {0.1}, .radius_t = 1, .patch = 4}, "patch with radius_t above 0 takes 8");
  refused({.sigma = {0.1}, .radius_t = 1, .transform = PatchTransform::dft},
          "transform with radius_t above 0");
  refused({.sigma = {0.1}, .radius_t = 9}, "radius_t");
  const auto pilot = std::make_shared<PilotImages>(std::vector<Image>{});
  refused({.sigma = {0.1}, .steps = 1, .pilot = pilot}, "a pilot is for the second step");
  refused({.sigma = {0.1}, .pilot = pilot, .patch = 4}, "patch with a pilot takes 8");
}

TEST(Bm3dTime, AClipsFramesTakePartByProfile) {
  EXPECT_EQ(MethodParams(Bm3dParams{}).clip_radius_t(), 4);
  EXPECT_EQ(MethodParams(Bm3dParams{.profile = Bm3dProfile::fast}).clip_radius_t(), 2);
  EXPECT_EQ(MethodParams(Bm3dParams{.profile = Bm3dProfile::high}).clip_radius_t(), 6);
  EXPECT_EQ(MethodParams(NlmParams{}).clip_radius_t(), 1);
  EXPECT_EQ(MethodParams(BoxParams{}).clip_radius_t(), 0);
}

}  // namespace
}  // namespace ungrain::testing
