// Images of more rows than a GPU's grid has in y, which is at most 65535 blocks of 8 rows: every method.
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gpu_image.h"
#include "test_devices.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods.h"

namespace ungrain::testing {
namespace {

const Device gpu{Device::Kind::cuda};

// Parameters cheap enough for ten million pixels, of each kernel. Strengths are for a range of 1.
struct TallCase {
  std::string name;
  MethodParams params;
  double largest = 1e-4;  // difference between GPU and CPU, as a share of the range
  double rms = 1e-4;
  int least_width = 1;  // below a patch's the CPU may take the definition, and its time
};

std::vector<TallCase> tall_cases() {
  constexpr double any = 1;  // single pixels of bm3d may differ by much: by the noise, and more at edges
  constexpr double few_other_groups = 5e-3;
  return {
      {"box", BoxParams{.radius = 1}},
      {"gaussian", GaussianParams{.sigma = 1}},
      {"median_small", MedianParams{.radius = 1}},
      {"median_large", MedianParams{.radius = 3}},
      {"bilateral_1", BilateralParams{.radius = 1, .sigma_range = 0.1}},
      {"bilateral_3", BilateralParams{.radius = 3, .sigma_range = 0.1}},
      {"bilateral_5", BilateralParams{.radius = 5, .sigma_range = 0.1}},
      {"bilateral_disc", BilateralParams{.radius = 2, .sigma_range = 0.1, .window = Window::disc}},
      {"bilateral_separable",
       BilateralParams{.radius = 2, .sigma_range = 0.1, .quality = BilateralQuality::separable}},
      {"bilateral_grid",
       BilateralParams{.radius = 6, .sigma_space = 3, .sigma_range = 0.1, .quality = BilateralQuality::grid}},
      {"adaptive", AdaptiveBilateralParams{.radius = 1, .sigma_range = 0.1}},
      {"nlm", NlmParams{.search = 3, .patch = 3, .h = 0.1}},
      {"nlm_any", NlmParams{.search = 3, .patch = 3, .h = 0.1, .border = Border::shrink}},
      {"nlm_bilateral", NlmBilateralParams{.search = 3, .patch = 3, .sigma_h = 0.1, .sigma_range = 0.2}},
      {"bm3d_fast", Bm3dParams{.profile = Bm3dProfile::fast, .sigma = {0.05}, .search = 5}, any,
       few_other_groups},
      {"bm3d_general",
       Bm3dParams{.sigma = {0.05}, .steps = 1, .patch = 4, .spacing = 4, .search = 3, .group = 2}, any,
       few_other_groups},
      {"ridge", RidgeParams{.sigma = {0.05}, .passes = 1, .search = 5, .group = 8}, any, few_other_groups, 6},
  };
}

struct TallSize {
  int width;
  int height;
};

struct TallSubject {
  TallCase method;
  TallSize size;
};

std::vector<TallSubject> tall_subjects() {
  std::vector<TallSubject> list;
  for (const TallCase& method : tall_cases()) {
    for (const TallSize& size : {TallSize{1, 600000}, TallSize{3, 700000}, TallSize{16, 600000}}) {
      if (size.width >= method.least_width) list.push_back({method, size});
    }
  }
  return list;
}

double rms_difference(const TestImage& image, const TestImage& expected) {
  const ImageSpec& spec = image.view().spec;
  double squares = 0;
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) squares += std::pow(image.at(x, y, 0) - expected.at(x, y, 0), 2);
  }
  return std::sqrt(squares / (static_cast<double>(spec.width) * spec.height));
}

class TallCuda : public ::testing::TestWithParam<TallSubject> {};

TEST_P(TallCuda, AgreesWithTheCpu) {
  UNGRAIN_NEEDS_GPU();
  const TallCase& method = GetParam().method;
  const ImageSpec spec{
      .width = GetParam().size.width, .height = GetParam().size.height, .type = PixelType::f32};
  TestImage in(spec, Layout::interleaved);
  fill_with_picture(in);
  TestImage expected(spec, Layout::interleaved);
  Denoiser::create(method.params, spec, {.device = {Device::Kind::cpu}}).run(in.view(), expected.view());

  Denoiser denoiser = Denoiser::create(method.params, spec, {.device = gpu});
  TestImage out(spec, Layout::interleaved);
  denoiser.run(in.view(), out.view());
  const Difference d = difference(out, expected);
  EXPECT_TRUE(d.finite);
  EXPECT_LE(d.largest, method.largest) << d.where;
  EXPECT_LE(rms_difference(out, expected), method.rms);

  const GpuImage source(in);
  const GpuImage target(spec);
  denoiser.run(source.view(), target.view());
  EXPECT_EQ(target.hash(), hash_of(out.view())) << "in the memory of the GPU";
}

INSTANTIATE_TEST_SUITE_P(Methods, TallCuda, ::testing::ValuesIn(tall_subjects()), [](const auto& instance) {
  const TallSubject& subject = instance.param;
  return fmt::format("{}_{}x{}", subject.method.name, subject.size.width, subject.size.height);
});

TEST(TallCuda, ColourWithAlphaOfAnyType) {
  UNGRAIN_NEEDS_GPU();
  MethodParams params = NlmParams{.search = 3, .patch = 3, .h = 8, .colour = ColourMode::lab};
  for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f16}) {
    const ImageSpec spec{
        .width = 1, .height = 600000, .channels = 4, .type = type, .colour = Colour::rgb, .alpha = true};
    TestImage in(spec, Layout::planar);
    fill_with_picture(in);
    TestImage expected(spec, Layout::interleaved);
    TestImage out(spec, Layout::interleaved);
    Denoiser::create(params, spec, {.device = {Device::Kind::cpu}}).run(in.view(), expected.view());
    Denoiser::create(params, spec, {.device = gpu}).run(in.view(), out.view());
    const Difference d = difference(out, expected);
    EXPECT_LE(d.largest, type == PixelType::f16 ? 0x1p-9 : 1.0) << d.where;
  }
}

TEST(TallCuda, Sequences) {
  UNGRAIN_NEEDS_GPU();
  const ImageSpec spec{.width = 1, .height = 600000, .type = PixelType::f32};
  const ImageSequence in(3, spec);
  ImageSequence expected(3, spec);
  ImageSequence out(3, spec);
  const BoxParams params{.radius = 1, .radius_z = 1};
  Denoiser::create(params, spec, {.device = {Device::Kind::cpu}}).run(in.views(), expected.views());
  Denoiser::create(params, spec, {.device = gpu}).run(in.views(), out.views());
  for (std::size_t slice = 0; slice < in.images.size(); ++slice) {
    const Difference d = difference(out.images[slice], expected.images[slice]);
    EXPECT_LE(d.largest, 1e-4) << d.where;
  }
}

TEST(TallCuda, EveryMethodIsTried) {
  std::set<std::string> tried;
  for (const TallCase& method : tall_cases()) tried.insert(std::string(method.params.method()));
  for (const MethodInfo& method : methods()) {
    EXPECT_TRUE(!method.has_cuda || tried.contains(method.name)) << method.name;
  }
}

}  // namespace
}  // namespace ungrain::testing
