// What only a GPU has: images in its memory, work on the caller's stream, lanes of bands.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "core/device.h"
#include "gpu_image.h"
#include "test_devices.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"

namespace ungrain::testing {
namespace {

const Device gpu{Device::Kind::cuda};

struct FreePinned {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};

TestImage picture(const ImageSpec& spec) {
  TestImage image(spec, Layout::interleaved);
  fill_with_picture(image);
  return image;
}

std::uint64_t hash_on_host(const MethodParams& params, const TestImage& in,
                           const Options& options = {.device = gpu}) {
  TestImage out(in.view().spec, Layout::interleaved);
  Denoiser::create(params, in.view().spec, options).run(in.view(), out.view());
  return hash_of(out.view());
}

const ImageSpec gray{.width = 401, .height = 303, .type = PixelType::f32};
const ImageSpec rgba{
    .width = 301, .height = 203, .channels = 4, .type = PixelType::u16, .colour = Colour::rgb, .alpha = true};

MethodParams params_for(const ImageSpec& spec) {
  MethodParams params = BilateralParams{.radius = 4, .sigma_range = 0.1};
  params.scale_strengths(spec.white());
  return params;
}

TEST(Cuda, ImagesOnTheGpuAreUsedThere) {
  UNGRAIN_NEEDS_GPU();
  for (const ImageSpec& spec : {gray, rgba}) {
    const TestImage in = picture(spec);
    const MethodParams params = params_for(spec);
    const std::uint64_t expected = hash_on_host(params, in);
    Denoiser denoiser = Denoiser::create(params, spec, {.device = gpu});
    const GpuImage source(in);
    const GpuImage target(spec);
    const Report report = denoiser.run(source.view(), target.view());
    EXPECT_EQ(target.hash(), expected);
    EXPECT_EQ(report.bands, 1);
    denoiser.run(source.view(), source.view());
    EXPECT_EQ(source.hash(), expected) << "in place";
    // From one side to the other.
    const GpuImage again(in);
    TestImage host(spec, Layout::padded);
    denoiser.run(again.view(), host.view());
    EXPECT_EQ(hash_of(host.view()), expected);
    denoiser.run(in.view(), target.view());
    EXPECT_EQ(target.hash(), expected);
  }
}

// Of such noise some pixels have no patch whose weight is far above the smallest that counts.
TEST(Cuda, WindowedNlmOfUniformNoiseAgreesWithTheCpu) {
  UNGRAIN_NEEDS_GPU();
  const ImageSpec spec{.width = 2048, .height = 1500, .type = PixelType::f32, .range = 255};
  TestImage in(spec, Layout::interleaved);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> level(0, 255);
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) in.set(x, y, 0, level(random));
  }
  const MethodParams params = resolve_derived(NlmParams{.search = 15, .patch = 5, .sigma = 12.75}, spec);
  TestImage expected(spec, Layout::interleaved);
  TestImage out(spec, Layout::interleaved);
  Denoiser::create(params, spec, {.device = {Device::Kind::cpu}}).run(in.view(), expected.view());
  Denoiser::create(params, spec, {.device = gpu}).run(in.view(), out.view());
  const Difference d = difference(out, expected);
  EXPECT_LE(d.largest, 1e-4 * 255) << d.where;
}

TEST(Cuda, WorkGoesOnTheCallersStream) {
  UNGRAIN_NEEDS_GPU();
  const TestImage in = picture(gray);
  const MethodParams params = params_for(gray);
  const std::uint64_t expected = hash_on_host(params, in);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  Denoiser denoiser = Denoiser::create(params, gray, {.device = gpu});
  const GpuImage source(in);
  const GpuImage target(gray);
  for (int run = 0; run < 3; ++run) denoiser.run_async(source.view(), target.view(), {stream});
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(target.hash(), expected);
  denoiser.wait();

  // Page-locked memory of the host.
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 2 * source.bytes()), cudaSuccess);
  const std::unique_ptr<void, FreePinned> owner(pinned);
  std::memcpy(pinned, in.view().data, source.bytes());
  const ImageView pinned_out(static_cast<std::byte*>(pinned) + source.bytes(), gray);
  denoiser.run_async(ConstImageView(static_cast<const void*>(pinned), gray), pinned_out, {stream});
  denoiser.wait();
  EXPECT_EQ(hash_of(pinned_out), expected);
  EXPECT_THROW(denoiser.run_async(in.view(), target.view(), {stream}), Error)
      << "memory that can be paged out";
  cudaStreamDestroy(stream);
}

TEST(Cuda, TheSameBitsEveryTime) {
  UNGRAIN_NEEDS_GPU();
  const TestImage in = picture(gray);
  for (const MethodParams& params :
       {MethodParams(BilateralParams{.radius = 7, .sigma_range = 0.1}),
        MethodParams(BilateralParams{.radius = 9, .sigma_range = 0.1, .quality = BilateralQuality::grid}),
        MethodParams(AdaptiveBilateralParams{.sigma = 0.05}), MethodParams(NlmParams{.sigma = 0.05}),
        MethodParams(NlmParams{.patch = 7, .h = 0.05}), MethodParams(NlmBilateralParams{.sigma = 0.05}),
        MethodParams(MedianParams{.radius = 3}), MethodParams(GaussianParams{.sigma = 2}),
        MethodParams(Bm3dParams{.sigma = {0.05}}),
        MethodParams(Bm3dParams{.profile = Bm3dProfile::fast, .sigma = {0.1}})}) {
    Denoiser denoiser = Denoiser::create(params, gray, {.device = gpu});
    const std::uint64_t first = hash_on_host(params, in);
    for (int run = 0; run < 100; ++run) {
      TestImage out(gray, Layout::interleaved);
      denoiser.run(in.view(), out.view());
      ASSERT_EQ(hash_of(out.view()), first) << params.method() << " run " << run;
    }
  }
}

TEST(Cuda, ClonesWorkAtOnce) {
  UNGRAIN_NEEDS_GPU();
  const TestImage in = picture(gray);
  const MethodParams params = params_for(gray);
  const std::uint64_t expected = hash_on_host(params, in);
  Denoiser denoiser = Denoiser::create(params, gray, {.device = gpu, .band_rows = 40});
  std::vector<Denoiser> clones;
  for (int i = 0; i < 4; ++i) clones.push_back(denoiser.clone());
  std::vector<std::uint64_t> hashes(clones.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < clones.size(); ++i) {
    threads.emplace_back([&, i] {
      TestImage out(gray, Layout::interleaved);
      for (int run = 0; run < 5; ++run) clones[i].run(in.view(), out.view());
      hashes[i] = hash_of(out.view());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::uint64_t hash : hashes) EXPECT_EQ(hash, expected);
}

TEST(Cuda, LittleMemoryMeansSmallBands) {
  UNGRAIN_NEEDS_GPU();
  const ImageSpec spec{.width = 1000, .height = 1500, .type = PixelType::f32};
  const TestImage in = picture(spec);
  const MethodParams params = params_for(spec);
  constexpr std::size_t limit = 4 << 20;
  TestImage out(spec, Layout::interleaved);
  Denoiser denoiser = Denoiser::create(params, spec, {.device = gpu, .memory = limit});
  const Report report = denoiser.run(in.view(), out.view());
  EXPECT_GT(report.bands, 3);
  EXPECT_LE(report.buffer_bytes, limit);
  EXPECT_EQ(hash_of(out.view()), hash_on_host(params, in));
  try {
    Denoiser::create(params, spec, {.device = gpu, .memory = 10000});
    FAIL() << "ten thousand bytes were enough";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_NE(std::string(error.what()).find("GPU memory"), std::string::npos) << error.what();
  }
}

TEST(Cuda, BadPixelsAreRefusedWhereAskedFor) {
  UNGRAIN_NEEDS_GPU();
  TestImage in = picture(gray);
  in.set(17, 200, 0, std::nan(""));
  const Options options{.device = gpu, .nonfinite = NonFinite::error};
  Denoiser denoiser = Denoiser::create(params_for(gray), gray, options);
  TestImage out(gray, Layout::interleaved);
  const auto message = [&](auto run) -> std::string {
    try {
      run();
    } catch (const Error& error) {
      return error.what();
    }
    return "(no error)";
  };
  const std::string expected = "pixel (17, 200) is not a finite number";
  EXPECT_EQ(message([&] { denoiser.run(in.view(), out.view()); }), expected);
  const GpuImage source(in);
  const GpuImage target(gray);
  EXPECT_EQ(message([&] { denoiser.run(source.view(), target.view()); }), expected);
  denoiser.run_async(source.view(), target.view());
  EXPECT_EQ(message([&] { denoiser.wait(); }), expected);
}

template <class View>
View part_of(View view, int x, int y, int width, int height) {
  view.region = {x, y, view.spec.width, view.spec.height};
  view.data = static_cast<std::conditional_t<std::is_same_v<View, ImageView>, std::byte, const std::byte>*>(
                  view.data) +
              y * view.strides.y + x * view.strides.x;
  view.spec.width = width;
  view.spec.height = height;
  return view;
}

// Kernels that serve large images only, held against the CPU on parts of one; and the parts against the
// whole.
void hold_parts_against_cpu(const MethodParams& params, const TestImage& in, const std::string& which) {
  const ImageSpec& spec = in.view().spec;
  const struct {
    int x, y, width, height;
  } parts[] = {{0, 0, 130, 61},
               {spec.width * 3 / 8, spec.height * 10 / 21, 257, 131},
               {spec.width - 70, spec.height - 90, 70, 90}};
  TestImage whole(spec, Layout::interleaved);
  Denoiser on_gpu = Denoiser::create(params, spec, {.device = gpu});
  on_gpu.run(in.view(), whole.view());
  Denoiser on_cpu = Denoiser::create(params, spec, {.device = {Device::Kind::cpu}});
  for (const auto& [x, y, width, height] : parts) {
    const Denoiser::Reach reach = on_cpu.reach();
    const int x0 = std::max(0, x - reach.x);
    const int y0 = std::max(0, y - reach.y);
    const ConstImageView source = part_of(in.view(), x0, y0, std::min(spec.width, x + width + reach.x) - x0,
                                          std::min(spec.height, y + height + reach.y) - y0);
    TestImage expected(spec, Layout::interleaved);
    TestImage alone(spec, Layout::interleaved);
    on_cpu.run(source, part_of(expected.view(), x, y, width, height));
    on_gpu.run(source, part_of(alone.view(), x, y, width, height));
    double worst = 0;
    for (int py = y; py < y + height; ++py) {
      for (int px = x; px < x + width; ++px) {
        for (int c = 0; c < spec.channels; ++c) {
          worst = std::max(worst, std::fabs(whole.at(px, py, c) - expected.at(px, py, c)));
          ASSERT_EQ(alone.at(px, py, c), whole.at(px, py, c)) << which << " at " << px << ", " << py;
        }
      }
    }
    EXPECT_LE(worst, 1e-5) << which;
  }
}

void hold_large_image_against_cpu(const ImageSpec& spec, std::initializer_list<int> radii) {
  const TestImage in = picture(spec);
  for (const int radius : radii) {
    hold_parts_against_cpu(BilateralParams{.radius = radius, .sigma_space = 0.5 * radius, .sigma_range = 0.1},
                           in, fmt::format("radius {}", radius));
  }
}

TEST(Cuda, LargeGrayImagesAgreeWithTheCpu) {
  UNGRAIN_NEEDS_GPU();
  hold_large_image_against_cpu({.width = 4001, .height = 2103, .type = PixelType::f32},
                               {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
}

TEST(Cuda, LargeColourImagesAgreeWithTheCpu) {
  UNGRAIN_NEEDS_GPU();
  hold_large_image_against_cpu(
      {.width = 4001, .height = 2103, .channels = 3, .type = PixelType::f32, .colour = Colour::rgb},
      {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
}

void hold_against_cpu(const MethodParams& params, const TestImage& in, const std::string& which) {
  const ImageSpec& spec = in.view().spec;
  TestImage expected(spec, Layout::interleaved);
  TestImage made(spec, Layout::interleaved);
  Denoiser::create(params, spec, {.device = {Device::Kind::cpu}}).run(in.view(), expected.view());
  Denoiser::create(params, spec, {.device = gpu}).run(in.view(), made.view());
  EXPECT_LE(difference(made, expected).largest, 1e-5) << which;
}

ImageSpec float_spec(int width, int height, int channels) {
  ImageSpec spec{.width = width, .height = height, .channels = channels, .type = PixelType::f32};
  if (channels == 3) spec.colour = Colour::rgb;
  return spec;
}

template <class Params>
void hold_at_every_border_and_strength(const ImageSpec& spec, std::initializer_list<int> radii,
                                       std::initializer_list<double> strengths) {
  const TestImage in = picture(spec);
  for (const int radius : radii) {
    Params params{.radius = radius, .sigma_space = 0.5 * radius, .sigma_range = 0.1};
    for (const char* border : {"symmetric", "mirror", "clamp", "wrap", "constant", "shrink"}) {
      MethodParams with_border = params;
      with_border.set_text("border", border);
      hold_against_cpu(with_border, in, fmt::format("radius {}, {}", radius, border));
    }
    for (const double strength : strengths) {
      params.sigma_range = strength;
      hold_against_cpu(params, in, fmt::format("radius {}, strength {}", radius, strength));
    }
  }
}

// Just large enough for kernels that no smaller image is filtered by (methods/bilateral/tuning.h).
TEST(Cuda, LargerImagesAgreeWithTheCpuAtEveryBorderAndStrength) {
  UNGRAIN_NEEDS_GPU();
  const auto hold = [](const ImageSpec& spec, std::initializer_list<int> radii) {
    hold_at_every_border_and_strength<BilateralParams>(
        spec, radii, {1e-30, 0.01, std::numeric_limits<double>::infinity()});
  };
  hold(float_spec(2003, 901, 1), {4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 18});
  hold(float_spec(3001, 1003, 1), {1, 10});
  hold(float_spec(2003, 901, 3), {6, 7, 8, 9, 13, 15});
  hold(float_spec(3001, 2003, 3), {4, 5});
  hold(float_spec(5003, 3001, 3), {1});
}

// The same (methods/adaptive_bilateral/tuning.h).
TEST(Cuda, AdaptiveBilateralOfLargerImagesAgreesWithTheCpu) {
  UNGRAIN_NEEDS_GPU();
  const auto hold = [](const ImageSpec& spec, std::initializer_list<int> radii) {
    hold_at_every_border_and_strength<AdaptiveBilateralParams>(spec, radii, {1e-30, 0.01, 10});
  };
  hold(float_spec(4001, 2503, 1), {4});
  hold(float_spec(3001, 2703, 1), {5, 6, 7, 8, 9, 10});
  hold(float_spec(2003, 2003, 3), {4});
  hold(float_spec(2003, 901, 3), {5, 6, 7});
  hold(float_spec(1103, 911, 3), {8, 9, 10});
}

// Where an image has few blocks more than a GPU holds at a time, the last rows of blocks are searched in
// pieces (cuda/patch_pairs.cu).
TEST(Cuda, NlmWithItsLastBlocksInPiecesAgreesWithTheCpu) {
  UNGRAIN_NEEDS_GPU();
  const TestImage of_gray = picture(float_spec(1920, 1080, 1));
  const TestImage of_colour = picture(float_spec(1920, 1080, 3));
  const NlmParams flat{.search = 21, .patch = 7, .h = 0.1, .self = SelfWeight::one};
  const NlmParams with_noise{.search = 21, .patch = 5, .sigma = 0.1, .h = 0.1};
  hold_parts_against_cpu(flat, of_colour, "colour, flat patches of 7");
  hold_parts_against_cpu(with_noise, of_gray, "gray, flat patches of 5, noise taken off");
  hold_parts_against_cpu(with_noise, of_colour, "colour, flat patches of 5, noise taken off");
}

// Each has a kernel of its own.
TEST(Cuda, EveryRadiusAgreesWithTheCpu) {
  UNGRAIN_NEEDS_GPU();
  for (const int channels : {1, 3}) {
    const TestImage in = picture(float_spec(97, 83, channels));
    for (int radius = 1; radius <= 17; ++radius) {
      for (const Window window : {Window::square, Window::disc}) {
        const double space = 0.5 * radius;
        hold_against_cpu(
            BilateralParams{.radius = radius, .sigma_space = space, .sigma_range = 0.1, .window = window}, in,
            fmt::format("bilateral, {} channels, radius {}", channels, radius));
        hold_against_cpu(
            AdaptiveBilateralParams{
                .radius = radius, .sigma_space = space, .sigma_range = 0.1, .window = window},
            in, fmt::format("adaptive, {} channels, radius {}", channels, radius));
      }
    }
  }
}

TEST(Cuda, EveryRadiusOfTheCityBlockDistanceAgreesWithTheCpu) {
  UNGRAIN_NEEDS_GPU();
  for (const int channels : {1, 2, 3, 4}) {
    ImageSpec spec = float_spec(97, 83, channels);
    if (channels != 1 && channels != 3) spec.colour = Colour::multi;
    const TestImage in = picture(spec);
    for (int radius = 1; radius <= 17; ++radius) {
      for (const Window window : {Window::square, Window::disc}) {
        hold_against_cpu(BilateralParams{.radius = radius,
                                         .sigma_space = 0.5 * radius,
                                         .sigma_range = 0.25,
                                         .window = window,
                                         .colour_distance = ColourDistance::city_block},
                         in, fmt::format("{} channels, radius {}", channels, radius));
      }
    }
  }
}

// ---- A whole-image search, whose patches are compared as halves.

struct Agreement {
  double largest = 0;  // of the white level
  double psnr = 0;     // dB, how much less than the reference's
};

Agreement whole_image_agreement(const NlmParams& params, const TestImage& clean, const TestImage& noisy) {
  const ImageSpec spec = clean.view().spec;
  TestImage expected(spec, Layout::interleaved);
  TestImage made(spec, Layout::interleaved);
  Denoiser::create(params, spec, {.device = {Device::Kind::reference}}).run(noisy.view(), expected.view());
  Denoiser::create(params, spec, {.device = gpu}).run(noisy.view(), made.view());
  return {difference(made, expected).largest / spec.white(),
          psnr(clean.view(), expected.view()) - psnr(clean.view(), made.view())};
}

// [003]'s experiment for a patch: see the README of nlm.
NlmParams experiment_003(int patch) {
  return {.search = whole_image,
          .patch = patch,
          .patch_sigma = 5.0 / 3 / std::sqrt(2.0),
          .h = patch == 3   ? 0.0590
               : patch == 5 ? 0.0493
                            : 0.0480};
}

TestImage with_noise(const TestImage& image, double sigma) {
  TestImage noisy(image.view().spec, Layout::interleaved);
  add_noise(image.view(), noisy.view(), {NoiseKind::gaussian, sigma, 7});
  return noisy;
}

TEST(Cuda, HalvesAreEnoughForWholeImageSearch) {
  UNGRAIN_NEEDS_GPU();
  const ImageSpec spec{.width = 61, .height = 43, .type = PixelType::f32};
  const TestImage clean = picture(spec);
  TestImage contrast(spec, Layout::interleaved);
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) contrast.set(x, y, 0, (x / 7 + y / 5) % 2);
  }
  for (const int patch : {3, 5, 7}) {
    for (const double sigma : {5.0, 10.0, 25.0, 50.0}) {
      for (const TestImage* image : {&clean, static_cast<const TestImage*>(&contrast)}) {
        NlmParams params = experiment_003(patch);
        const TestImage noisy = with_noise(*image, sigma / 255);
        const Agreement halves = whole_image_agreement(params, *image, noisy);
        EXPECT_LE(halves.largest, 2e-4) << "patch " << patch << " sigma " << sigma;
        EXPECT_LE(std::fabs(halves.psnr), 0.01) << "patch " << patch << " sigma " << sigma;
        RecordProperty(std::to_string(patch) + "_" + std::to_string(static_cast<int>(sigma)) +
                           (image == &clean ? "_picture" : "_contrast"),
                       std::to_string(halves.largest * 1e6) + "e-6");
        params.precision = Precision::single;
        EXPECT_LE(whole_image_agreement(params, *image, noisy).largest, 1e-5)
            << "patch " << patch << " sigma " << sigma << ", float";
      }
    }
  }
}

TEST(Cuda, WholeImageSearchesOf16BitsHoldOneStep) {
  UNGRAIN_NEEDS_GPU();
  const ImageSpec spec{.width = 131, .height = 97, .type = PixelType::u16};
  const TestImage in = picture(spec);
  for (const double h : {0.3, 0.05, 0.02}) {
    const NlmParams params{.search = whole_image, .patch = 7, .h = h * spec.white()};
    TestImage expected(spec, Layout::interleaved);
    TestImage out(spec, Layout::interleaved);
    Denoiser::create(params, spec, {.device = {Device::Kind::cpu}}).run(in.view(), expected.view());
    Denoiser::create(params, spec, {.device = gpu}).run(in.view(), out.view());
    const Difference d = difference(out, expected);
    EXPECT_LE(d.largest, 1) << "h " << h << ", " << d.where;
  }
}

// Values far above white, where halves and then pairs of halves are not enough: the kernels change over.
TEST(Cuda, WholeImageSearchOfAnyRange) {
  UNGRAIN_NEEDS_GPU();
  const ImageSpec spec{.width = 53, .height = 37, .type = PixelType::f32};
  for (const double brightness : {1.0, 4.0, 8.0, 30.0, 1000.0}) {
    TestImage clean = picture(spec);
    for (int y = 0; y < spec.height; ++y) {
      for (int x = 0; x < spec.width; ++x) {
        if ((x / 9 + y / 8) % 3 == 0) clean.set(x, y, 0, clean.at(x, y, 0) * brightness);
      }
    }
    for (const double h : {0.3, 0.05, 0.01}) {
      const NlmParams params{.search = whole_image, .patch = 5, .h = h};
      const Agreement agreement = whole_image_agreement(params, clean, with_noise(clean, h));
      RecordProperty("brightness_" + std::to_string(static_cast<int>(brightness)) + "_h_" +
                         std::to_string(static_cast<int>(h * 100)),
                     std::to_string(agreement.largest * 1e6) + "e-6");
      EXPECT_LE(agreement.largest, 2e-4 * brightness) << brightness << " h " << h;
      EXPECT_LE(std::fabs(agreement.psnr), 0.01) << brightness << " h " << h;
    }
  }
}

// Without a noise correction and with a weight of 1 for the pixel itself: one search finds each weight for
// both its pixels, in blocks of 128 or 192 pixels that lie in a circle. One block and more, an even and an
// odd number of them, full and not.
TEST(Cuda, WholeImageSearchForBothPixelsOfAPair) {
  UNGRAIN_NEEDS_GPU();
  const Extent sizes[] = {{13, 11}, {16, 12}, {20, 15}, {32, 12}, {25, 23}, {37, 20}, {40, 24}};
  for (const Extent& size : sizes) {
    for (const int channels : {1, 3}) {
      ImageSpec spec{
          .width = size.width, .height = size.height, .channels = channels, .type = PixelType::f32};
      if (channels == 3) spec.colour = Colour::rgb;
      const TestImage clean = picture(spec);
      TestImage bright = picture(spec);
      for (int c = 0; c < channels; ++c) bright.set(3, 4, c, 8);
      for (const int patch : {3, 5, 7, 9}) {
        const NlmParams params{.search = whole_image, .patch = patch, .h = 0.1, .self = SelfWeight::one};
        for (const TestImage* image : {&clean, static_cast<const TestImage*>(&bright)}) {
          const Agreement agreement = whole_image_agreement(params, *image, with_noise(*image, 0.1));
          EXPECT_LE(agreement.largest, image == &clean ? 2e-4 : 2e-4 * 8)
              << size.width << " x " << size.height << ", " << channels << " channels, patch " << patch;
        }
      }
    }
  }
}

// Large images, of which each pixel is searched for alone.
TEST(Cuda, WholeImageSearchOfALargeImage) {
  UNGRAIN_NEEDS_GPU();
  for (const int channels : {1, 3}) {
    const ImageSpec spec = float_spec(1031, 1029, channels);
    const TestImage in = with_noise(picture(spec), 0.1);
    const int width = channels == 1 ? 7 : 3;  // of the part that is compared
    for (const int patch : {3, 5, 7, 9}) {
      if (channels == 3 && patch == 9) continue;  // has one kernel for images of any size
      const NlmParams params{.search = whole_image, .patch = patch, .h = 0.1, .self = SelfWeight::one};
      TestImage expected(spec, Layout::interleaved);
      TestImage made(spec, Layout::interleaved);
      Denoiser::create(params, spec, {.device = {Device::Kind::reference}})
          .run(in.view(), part_of(expected.view(), 1010, 700, width, 1));
      Denoiser::create(params, spec, {.device = gpu})
          .run(in.view(), part_of(made.view(), 1010, 700, width, 1));
      EXPECT_LE(difference(made, expected).largest, 2e-4) << channels << " channels, patch " << patch;
    }
  }
}

bool floats_are_chosen(NlmParams params, const TestImage& in) {
  params.precision = Precision::half;
  const std::uint64_t chosen = hash_on_host(params, in);
  params.precision = Precision::single;
  return chosen == hash_on_host(params, in);
}

// Where patches lie far apart, measured by the strength, halves would be searched for again: a search as
// floats then comes first.
TEST(Cuda, WholeImageSearchChoosesFloatsForWhatIsFarApart) {
  UNGRAIN_NEEDS_GPU();
  const ImageSpec of_gray{.width = 61, .height = 43, .type = PixelType::f32};
  ImageSpec of_rgb = of_gray;
  of_rgb.channels = 3;
  of_rgb.colour = Colour::rgb;
  // The smallest have fewer pixels than a sample has.
  ImageSpec of_few = of_gray;
  of_few.width = 23;
  of_few.height = 17;
  for (const ImageSpec& spec : {of_gray, of_rgb, of_few}) {
    const TestImage clean = picture(spec);
    const TestImage noisy = with_noise(clean, 50.0 / 255);
    for (const int patch : {3, 5, 7}) {
      const NlmParams far = experiment_003(patch);
      NlmParams near = far;
      near.h = 0.5;
      EXPECT_TRUE(floats_are_chosen(far, noisy)) << spec.channels << " channels, patch " << patch;
      EXPECT_FALSE(floats_are_chosen(near, noisy)) << spec.channels << " channels, patch " << patch;
      EXPECT_LE(whole_image_agreement(far, clean, noisy).largest, 2e-4);
      EXPECT_LE(whole_image_agreement(near, clean, noisy).largest, 2e-4);
    }
  }
}

// A ramp on which noise lies from a column on: pixels there find nothing near, the others do.
TestImage partly_noisy(const ImageSpec& spec, int from) {
  TestImage ramp(spec, Layout::interleaved);
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) ramp.set(x, y, 0, 0.3 + 0.4 * y / spec.height);
  }
  TestImage result = with_noise(ramp, 50.0 / 255);
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < from; ++x) result.set(x, y, 0, ramp.at(x, y, 0));
  }
  return result;
}

TEST(Cuda, PartsOfAWholeImageSearchAreComparedAsTheWholeIs) {
  UNGRAIN_NEEDS_GPU();
  const ImageSpec spec{.width = 97, .height = 83, .type = PixelType::f32};
  NlmParams with_self_one = experiment_003(7);
  with_self_one.self = SelfWeight::one;
  const struct {
    NlmParams params;
    int noise_from;
    bool takes_floats;
  } cases[] = {{experiment_003(7), 87, false}, {experiment_003(7), 17, true}, {with_self_one, 87, false}};
  for (const auto& [params, from, takes_floats] : cases) {
    const TestImage in = partly_noisy(spec, from);
    EXPECT_EQ(floats_are_chosen(params, in), takes_floats);
    TestImage whole(spec, Layout::interleaved);
    Denoiser denoiser = Denoiser::create(params, spec, {.device = gpu});
    denoiser.run(in.view(), whole.view());
    const struct {
      int x, y, width, height;
    } parts[] = {{0, 0, 13, 83}, {91, 0, 6, 83}, {0, 40, 97, 1}, {96, 82, 1, 1}};
    for (const auto& [x, y, width, height] : parts) {
      TestImage alone(spec, Layout::interleaved);
      denoiser.run(in.view(), part_of(alone.view(), x, y, width, height));
      for (int py = y; py < y + height; ++py) {
        for (int px = x; px < x + width; ++px) {
          ASSERT_EQ(alone.at(px, py, 0), whole.at(px, py, 0))
              << "noise from " << from << ", at " << px << ", " << py;
        }
      }
    }
  }
}

TEST(Cuda, WholeImageSearchGivesTheSameBitsEveryTime) {
  UNGRAIN_NEEDS_GPU();
  const ImageSpec spec{.width = 131, .height = 77, .type = PixelType::f32};
  const TestImage usual = picture(spec);
  const TestImage little_noise = partly_noisy(spec, 118);
  const TestImage much_noise = partly_noisy(spec, 20);
  const struct {
    const TestImage& in;
    MethodParams params;
  } cases[] = {
      {usual, NlmParams{.search = whole_image, .patch = 7, .sigma = 0.05}},
      {usual, NlmParams{.search = whole_image, .patch = 7, .sigma = 0.05, .precision = Precision::single}},
      {usual, NlmParams{.search = whole_image, .patch = 7, .h = 0.1, .self = SelfWeight::one}},
      {usual, NlmBilateralParams{.search = whole_image, .patch = 5, .sigma = 0.05}},
      {little_noise, experiment_003(7)},
      {much_noise, experiment_003(7)}};
  for (const auto& [in, params] : cases) {
    Denoiser denoiser = Denoiser::create(params, spec, {.device = gpu});
    const std::uint64_t first = hash_on_host(params, in);
    for (int run = 0; run < 100; ++run) {
      TestImage out(spec, Layout::interleaved);
      denoiser.run(in.view(), out.view());
      ASSERT_EQ(hash_of(out.view()), first) << params.method() << " run " << run;
    }
  }
}

const ImageSpec large_gray{.width = 6000, .height = 4000, .type = PixelType::u8};

TEST(Cuda, AutomaticTakesTheGpuForMuchWork) {
  UNGRAIN_NEEDS_GPU();
  const MethodParams params = Bm3dParams{.sigma = {20}};
  EXPECT_EQ(Denoiser::create(params, large_gray, {.images = 0}).device(), gpu);
  EXPECT_EQ(Denoiser::create(BoxParams{}, gray, {.images = 1}).device().kind, Device::Kind::cpu);
}

// Takes all of the GPU's memory, so that nothing else can run there meanwhile.
TEST(FullGpu, AutomaticTurnsToTheCpu) {
  UNGRAIN_NEEDS_GPU();
  if (std::getenv("UNGRAIN_FILL_GPU") == nullptr) GTEST_SKIP() << "set UNGRAIN_FILL_GPU, with the GPU alone";
  std::vector<std::unique_ptr<void, FreeDevice>> taken;
  for (std::size_t bytes = std::size_t{1} << 36; bytes >= std::size_t{1} << 12; bytes /= 2) {
    void* memory = nullptr;
    while (cudaMalloc(&memory, bytes) == cudaSuccess) taken.emplace_back(memory);
    cudaGetLastError();
  }
  const MethodParams heavy = Bm3dParams{.sigma = {20}};
  Denoiser denoiser = Denoiser::create(heavy, large_gray, {.images = 0});
  EXPECT_EQ(denoiser.device().kind, Device::Kind::cpu);
  try {
    Denoiser::create(heavy, large_gray, {.device = gpu});
    FAIL() << "a full GPU had memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

TEST(Cuda, CancelStopsAndLeavesTheDenoiserUsable) {
  UNGRAIN_NEEDS_GPU();
  const TestImage in = picture(gray);
  Options options{.device = gpu, .band_rows = 10};
  int calls = 0;
  options.progress = [&](double) {
    if (++calls == 3) options.cancel.cancel();
  };
  Denoiser denoiser = Denoiser::create(params_for(gray), gray, options);
  TestImage out(gray, Layout::interleaved);
  EXPECT_THROW(denoiser.run(in.view(), out.view()), Error);
}

// ---- cuda:all. With one GPU it works in two queues on it.

const Device all_gpus{Device::Kind::cuda, Device::all_gpus};

TEST(CudaAll, TheSameBitsAsOneGpu) {
  UNGRAIN_NEEDS_GPU();
  const std::size_t queue_count = queues(all_gpus).size();
  ASSERT_GE(queue_count, 2U);
  for (const ImageSpec& spec : {gray, rgba}) {
    const TestImage in = picture(spec);
    for (const MethodParams& params : {params_for(spec), MethodParams(MedianParams{.radius = 2}),
                                       MethodParams(GaussianParams{.sigma = 2})}) {
      const std::uint64_t expected = hash_on_host(params, in);
      for (const int rows : {0, 1, 17, 60}) {
        const Options options{.device = all_gpus, .band_rows = rows};
        Denoiser denoiser = Denoiser::create(params, spec, options);
        EXPECT_EQ(denoiser.device(), all_gpus);
        TestImage out(spec, Layout::padded);
        const Report report = denoiser.run(in.view(), out.view());
        EXPECT_EQ(hash_of(out.view()), expected) << params.method() << " rows " << rows;
        EXPECT_EQ(name(report.device), "cuda:all");
        EXPECT_EQ(report.queues, std::min(static_cast<int>(queue_count), report.bands));
        EXPECT_GE(report.gpus, 1);
        if (rows > 0) {
          EXPECT_EQ(report.bands, (spec.height + rows - 1) / rows);
        }
        TestImage same = picture(spec);
        denoiser.run(same.view(), same.view());
        EXPECT_EQ(hash_of(same.view()), expected) << "in place";
      }
    }
  }
}

TEST(CudaAll, LittleMemoryIsSharedByTheQueues) {
  UNGRAIN_NEEDS_GPU();
  const ImageSpec spec{.width = 1000, .height = 1500, .type = PixelType::f32};
  const TestImage in = picture(spec);
  const MethodParams params = params_for(spec);
  const std::size_t limit = queues(all_gpus).size() * (3 << 20);
  TestImage out(spec, Layout::interleaved);
  Denoiser denoiser = Denoiser::create(params, spec, {.device = all_gpus, .memory = limit});
  const Report report = denoiser.run(in.view(), out.view());
  EXPECT_GT(report.bands, 3 * static_cast<int>(queues(all_gpus).size()));
  EXPECT_LE(report.buffer_bytes, limit);
  EXPECT_EQ(hash_of(out.view()), hash_on_host(params, in));
  EXPECT_THROW(Denoiser::create(params, spec, {.device = all_gpus, .memory = 10000}), Error);
}

TEST(CudaAll, RunsAgainAfterCancelAndBadPixels) {
  UNGRAIN_NEEDS_GPU();
  TestImage in = picture(gray);
  Options options{.device = all_gpus, .nonfinite = NonFinite::error, .band_rows = 10};
  int calls = 0;
  options.progress = [&](double) {
    if (++calls == 3) options.cancel.cancel();
  };
  TestImage out(gray, Layout::interleaved);
  Denoiser stopped = Denoiser::create(params_for(gray), gray, options);
  EXPECT_THROW(stopped.run(in.view(), out.view()), Error);

  Denoiser denoiser = Denoiser::create(params_for(gray), gray,
                                       {.device = all_gpus, .nonfinite = NonFinite::error, .band_rows = 10});
  in.set(17, 200, 0, std::nan(""));
  EXPECT_THROW(denoiser.run(in.view(), out.view()), Error);
  in = picture(gray);
  denoiser.run(in.view(), out.view());
  EXPECT_EQ(hash_of(out.view()), hash_on_host(params_for(gray), in));
  Denoiser twin = denoiser.clone();
  twin.run(in.view(), out.view());
  EXPECT_EQ(hash_of(out.view()), hash_on_host(params_for(gray), in));
}

TEST(CudaAll, ImagesOnOneGpuAreRefused) {
  UNGRAIN_NEEDS_GPU();
  const GpuImage source(picture(gray));
  Denoiser denoiser = Denoiser::create(params_for(gray), gray, {.device = all_gpus});
  try {
    denoiser.run(source.view(), source.view());
    FAIL() << "an image on a GPU was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_STREQ(error.what(), "the input lies on GPU 0, cuda:all works on images in the host's memory");
  }
  EXPECT_THROW(denoiser.run_async(source.view(), source.view()), Error);
}

}  // namespace
}  // namespace ungrain::testing
