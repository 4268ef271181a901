// Filters that work on samples directly on a GPU give the bits that their stages give on float planes. Work
// in place goes through the stages.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gpu_image.h"
#include "test_devices.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods.h"

namespace ungrain::testing {
namespace {

const Device gpu{Device::Kind::cuda};

struct Kind {
  const char* name;
  int channels;
  bool alpha;
};
constexpr Kind kinds[] = {{"gray", 1, false}, {"gray-alpha", 2, true}, {"rgb", 3, false}, {"rgba", 4, true}};

ImageSpec spec_of(const Kind& kind, PixelType type, int width, int height) {
  return {.width = width,
          .height = height,
          .channels = kind.channels,
          .type = type,
          .colour = kind.channels > 2 ? Colour::rgb : Colour::gray,
          .alpha = kind.alpha};
}

std::vector<MethodParams> small_filters(Border border) {
  std::vector<MethodParams> list = {
      BoxParams{.radius = 1, .border = border}, BoxParams{.radius = 16, .border = border},
      GaussianParams{.sigma = 1.5, .border = border}, MedianParams{.radius = 1, .border = border},
      MedianParams{.radius = 2, .border = border}};
  for (const ColourMode colour : {ColourMode::joint, ColourMode::per_channel}) {
    for (const int radius : {1, 2, 3}) {
      list.emplace_back(BilateralParams{
          .radius = radius, .sigma_space = 1.0, .sigma_range = 0.1, .colour = colour, .border = border});
      list.emplace_back(
          AdaptiveBilateralParams{.radius = radius, .sigma = 0.05, .colour = colour, .border = border});
    }
  }
  return list;
}

// Lone ones, whole areas, in some channels only, at corners and in alpha.
void spoil(TestImage& image) {
  const ImageSpec& spec = image.view().spec;
  if (!is_float(spec.type)) return;
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  const int last = spec.channels - 1;
  image.set(0, 0, 0, nan);
  image.set(spec.width - 1, spec.height - 1, last, infinity);
  image.set(spec.width / 2, spec.height / 3, last, -infinity);
  for (int y = 40; y < 45; ++y) {
    for (int x = 30; x < 36; ++x) image.set(x, y, 0, nan);
  }
}

std::uint64_t in_place(Denoiser& denoiser, const TestImage& in, Report& report) {
  const GpuImage image(in);
  report = denoiser.run(image.view(), image.view());
  return image.hash();
}

std::uint64_t between_images(Denoiser& denoiser, const TestImage& in, Report& report) {
  const GpuImage from(in);
  const GpuImage to(in.view().spec);
  report = denoiser.run(from.view(), to.view());
  return to.hash();
}

// Both images planar, in the GPU's memory.
std::uint64_t between_planes(Denoiser& denoiser, const TestImage& in, Report& report) {
  const ImageSpec& spec = in.view().spec;
  const GpuImage from(spec);
  const GpuImage to(spec);
  const auto planar = [&](void* data, Space space) {
    const std::ptrdiff_t size = bytes_per_sample(spec.type);
    return ImageView(data, spec, {size, size * spec.width, size * spec.width * spec.height}, space);
  };
  std::vector<std::byte> host(from.bytes());
  const ImageView view = planar(host.data(), {});
  const auto size = static_cast<std::size_t>(bytes_per_sample(spec.type));
  const Strides source = in.view().strides;
  for (int channel = 0; channel < spec.channels; ++channel) {
    for (int y = 0; y < spec.height; ++y) {
      for (int x = 0; x < spec.width; ++x) {
        const auto* sample = static_cast<const std::byte*>(in.view().data) + x * source.x + y * source.y +
                             channel * source.channel;
        auto* to_sample =
            host.data() + x * view.strides.x + y * view.strides.y + channel * view.strides.channel;
        std::memcpy(to_sample, sample, size);
      }
    }
  }
  const Space space = from.view().space;
  EXPECT_EQ(cudaMemcpy(from.view().data, host.data(), host.size(), cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  report = denoiser.run(planar(from.view().data, space), planar(to.view().data, space));
  EXPECT_EQ(cudaMemcpy(host.data(), to.view().data, host.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  return hash_of(view);
}

void expect_same_bits(const MethodParams& at_one, const ImageSpec& spec, NonFinite nonfinite, bool spoilt) {
  MethodParams params = at_one;
  params.scale_strengths(spec.white());
  TestImage in(spec, Layout::interleaved);
  fill_with_picture(in);
  if (spoilt) spoil(in);
  Denoiser denoiser =
      Denoiser::create(resolve_derived(params, spec), spec, {.device = gpu, .nonfinite = nonfinite});
  SCOPED_TRACE(fmt::format("{} radius {} of {} x {}, {} channels, {}", params.method(),
                           params.method() == "gaussian" ? "-" : params.get_text("radius"), spec.width,
                           spec.height, spec.channels, name(spec.type)));
  Report by_stages;
  Report direct;
  const std::uint64_t expected = in_place(denoiser, in, by_stages);
  EXPECT_EQ(between_images(denoiser, in, direct), expected);
  EXPECT_EQ(direct.nonfinite_pixels, by_stages.nonfinite_pixels);
  EXPECT_EQ(between_planes(denoiser, in, direct), expected) << "planar";
  EXPECT_EQ(direct.nonfinite_pixels, by_stages.nonfinite_pixels) << "planar";
  // Through the host, in bands.
  TestImage out(spec, Layout::padded);
  const Options bands{.device = gpu, .nonfinite = nonfinite, .band_rows = 23};
  direct = Denoiser::create(denoiser.params(), spec, bands).run(in.view(), out.view());
  EXPECT_EQ(hash_of(out.view()), expected) << "bands";
  EXPECT_EQ(direct.nonfinite_pixels, by_stages.nonfinite_pixels) << "bands";
  EXPECT_TRUE(out.guards_intact());
}

class DirectCuda : public ::testing::TestWithParam<PixelType> {};

TEST_P(DirectCuda, GivesTheBitsOfTheStages) {
  UNGRAIN_NEEDS_GPU();
  for (const Kind& kind : kinds) {
    for (const Border border : {Border::symmetric, Border::constant, Border::shrink, Border::clamp}) {
      for (const MethodParams& params : small_filters(border)) {
        expect_same_bits(params, spec_of(kind, GetParam(), 133, 71), NonFinite::keep, false);
      }
    }
    for (const MethodParams& params : small_filters(Border::mirror)) {
      for (const NonFinite nonfinite : {NonFinite::keep, NonFinite::fill}) {
        expect_same_bits(params, spec_of(kind, GetParam(), 133, 71), nonfinite, true);
      }
      expect_same_bits(params, spec_of(kind, GetParam(), 5, 3), NonFinite::keep, false);
    }
  }
}

// Images so large that they go through registers.
TEST_P(DirectCuda, GivesTheBitsOfTheStagesOfLargeImages) {
  UNGRAIN_NEEDS_GPU();
  const BilateralParams smallest{.radius = 1, .sigma_space = 1.0, .sigma_range = 0.1};
  for (const Kind& kind : kinds) {
    const bool rgb = kind.channels > 2;
    const ImageSpec spec = spec_of(kind, GetParam(), rgb ? 5001 : 2003, rgb ? 3007 : 1507);
    expect_same_bits(smallest, spec, NonFinite::keep, false);
    if (is_float(GetParam())) expect_same_bits(smallest, spec, NonFinite::fill, true);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DirectCuda,
                         ::testing::Values(PixelType::u8, PixelType::u16, PixelType::f16, PixelType::f32),
                         [](const auto& type) { return std::string(name(type.param)); });

}  // namespace
}  // namespace ungrain::testing
