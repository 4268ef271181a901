// The noise of images in the memory of a GPU: looked at there, with the result of the processor.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu_image.h"
#include "noise_pass.h"
#include "test_devices.h"
#include "ungrain/denoiser.h"
#include "ungrain/estimate.h"
#include "ungrain/methods/bm3d.h"
#include "ungrain/noise.h"

namespace ungrain::testing {
namespace {

// Any layout on the GPU, byte for byte with its padding.
class CopiedImage {
 public:
  explicit CopiedImage(const TestImage& host) : bytes_(host.bytes()), view_(host.view()) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, bytes_.size()), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory, bytes_.data(), bytes_.size(), cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    memory_.reset(memory);
    view_.data = static_cast<const std::byte*>(memory) + host.offset();
    view_.space = {Space::Memory::cuda, 0};
  }
  ConstImageView view() const { return view_; }

 private:
  std::vector<std::byte> bytes_;
  ConstImageView view_;
  std::unique_ptr<void, FreeDevice> memory_;
};

TEST(NoiseCuda, EstimatesAreTheProcessors) {
  UNGRAIN_NEEDS_GPU();
  for (const ImageSpec& spec : noise_specs()) {
    for (const Layout layout : {Layout::interleaved, Layout::planar, Layout::padded, Layout::flipped}) {
      if (layout != Layout::interleaved && spec.width > 411) continue;
      TestImage image(spec, layout);
      fill_with_noise(image);
      const CopiedImage on_gpu(image);
      const std::string what = name_of(spec) + " " + name(layout);
      expect_same(estimate_noise_model(on_gpu.view()), estimate_noise_model(image.view()), what);
      const NoiseEstimate found = estimate_noise(on_gpu.view());
      const NoiseEstimate expected = estimate_noise(image.view());
      EXPECT_EQ(found.channels, expected.channels) << what;
      EXPECT_EQ(found.correlation, expected.correlation) << what;
    }
  }
}

// All that the program measures: also where noise was cut off.
TEST(NoiseCuda, ParametersAreTheProcessors) {
  UNGRAIN_NEEDS_GPU();
  for (const ImageSpec& spec : noise_specs()) {
    TestImage image(spec, Layout::interleaved);
    const double sigma = 0.05 * spec.white();
    fill_with_cut_noise(image, sigma);
    const GpuImage on_gpu(image);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (const Clipping clipping : {Clipping::measured, Clipping::everywhere}) {
      MethodParams params{Bm3dParams{}};
      NoiseHandling noise = params.noise();
      noise.clipping = clipping;
      params.set_noise(noise);
      const Resolved found = resolve_with_noise(params, on_gpu.view());
      const Resolved expected = resolve_with_noise(params, image.view());
      EXPECT_EQ(found.params.noise().cut_at_black, expected.params.noise().cut_at_black) << name_of(spec);
      EXPECT_EQ(found.params.noise().cut_at_white, expected.params.noise().cut_at_white) << name_of(spec);
      ASSERT_EQ(found.noise.has_value(), expected.noise.has_value()) << name_of(spec);
      if (expected.noise) expect_same(*found.noise, *expected.noise, name_of(spec));
    }
  }
}

// Very many equally flat windows are more than the GPU lists: the image is then looked at on the host.
TEST(NoiseCuda, DrawingsAndConstants) {
  UNGRAIN_NEEDS_GPU();
  for (const int kind : {0, 1, 2}) {
    const ImageSpec spec{.width = 1500, .height = 1100};
    TestImage image(spec, Layout::interleaved);
    for (int y = 0; y < spec.height; ++y) {
      for (int x = 0; x < spec.width; ++x) {
        const bool odd = (x + y) % 2 == 1;
        image.set(x, y, 0, kind == 0 ? 90 : kind == 1 ? (odd ? 100 : 110) : x / 67 * 9 % 200);
      }
    }
    const GpuImage on_gpu(image);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    expect_same(estimate_noise_model(on_gpu.view()), estimate_noise_model(image.view()),
                "kind " + std::to_string(kind));
  }
}

TEST(NoiseCuda, SeveralAtOnce) {
  UNGRAIN_NEEDS_GPU();
  const ImageSpec spec{.width = 700, .height = 500, .channels = 3, .colour = Colour::rgb};
  TestImage image(spec, Layout::interleaved);
  fill_with_noise(image);
  const GpuImage on_gpu(image);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const NoiseModelEstimate expected = estimate_noise_model(image.view());
  std::vector<std::thread> callers;
  for (int n = 0; n < 4; ++n) {
    callers.emplace_back([&] {
      for (int run = 0; run < 5; ++run) expect_same(estimate_noise_model(on_gpu.view()), expected, "at once");
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// Samples at odd addresses.
TEST(NoiseCuda, OddAddresses) {
  UNGRAIN_NEEDS_GPU();
  const ImageSpec spec{.width = 301, .height = 203, .type = PixelType::u16};
  TestImage image(spec, Layout::interleaved);
  fill_with_noise(image);
  const auto row = static_cast<std::size_t>(spec.width) * 2;
  const std::size_t pitch = row + 7;
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, pitch * static_cast<std::size_t>(spec.height) + 1), cudaSuccess);
  const std::unique_ptr<void, FreeDevice> owner(memory);
  std::byte* first = static_cast<std::byte*>(memory) + 1;
  ASSERT_EQ(cudaMemcpy2D(first, pitch, image.view().data, row, row, static_cast<std::size_t>(spec.height),
                         cudaMemcpyHostToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const ConstImageView view(first, spec, {2, static_cast<std::ptrdiff_t>(pitch), 2},
                            {Space::Memory::cuda, 0});
  expect_same(estimate_noise_model(view), estimate_noise_model(image.view()), "odd");
}

}  // namespace
}  // namespace ungrain::testing
