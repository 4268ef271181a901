// nlm3d: each device against the definition, and what the definition promises.
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "methods/nlm3d/settings.h"
#include "test_devices.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods.h"
#include "ungrain/volume.h"

namespace ungrain::testing {
namespace {

struct Size {
  int width;
  int height;
  int depth;
};

ImageSpec volume(const Size& size, PixelType type = PixelType::f32, int channels = 1) {
  ImageSpec slice;
  slice.width = size.width;
  slice.height = size.height;
  slice.channels = channels;
  slice.type = type;
  slice.colour = channels == 1 ? Colour::gray : channels == 3 ? Colour::rgb : Colour::multi;
  return volume_spec(slice, size.depth);
}

// Edges, a gradient, waves and noise of a tenth of the range.
TestImage solid(const ImageSpec& spec, std::uint32_t seed = 1) {
  TestImage image(spec, Layout::interleaved);
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, 0.1);
  const double white = spec.white();
  for (int z = 0; z < spec.height; ++z) {
    for (int i = 0; i < spec.width; ++i) {
      const int x = i % spec.slice.width;
      const int y = i / spec.slice.width;
      for (int c = 0; c < spec.channels; ++c) {
        const double edge = (x / 7 + y / 5 + z / 6 + c) % 2 == 0 ? 0.3 : 0.6;
        const double value = edge + 0.1 * std::sin(0.7 * x + 0.4 * z + c) + 0.002 * y + noise(random);
        image.set(i, z, c, std::clamp(value, 0.0, 1.0) * white);
      }
    }
  }
  return image;
}

TestImage run(const NlmVolumeParams& params, const TestImage& in, const Options& options) {
  const ImageSpec spec = in.view().spec;
  TestImage out(spec, Layout::interleaved);
  Denoiser::create(resolve(params, in.view()), spec, options).run(in.view(), out.view());
  EXPECT_TRUE(out.guards_intact());
  return out;
}

TestImage run(const NlmVolumeParams& params, const TestImage& in, Device::Kind device) {
  return run(params, in, {.device = {device}, .threads = 2});
}

bool is_missing(Device::Kind device) { return device == Device::Kind::cuda && !gpu_missing().empty(); }

constexpr Device::Kind devices[] = {Device::Kind::cpu, Device::Kind::cuda};

void expect_agreement(const NlmVolumeParams& params, const TestImage& in, const std::string& what) {
  const ImageSpec spec = in.view().spec;
  const TestImage expected = run(params, in, Device::Kind::reference);
  for (const Device::Kind device : devices) {
    if (is_missing(device)) continue;
    const Difference found = difference(run(params, in, device), expected);
    EXPECT_TRUE(found.finite);
    const double most = device == Device::Kind::cuda ? 1e-4 : 2e-5;
    EXPECT_LE(found.largest, is_float(spec.type) ? most * spec.white() : 1)
        << what << (device == Device::Kind::cuda ? " on cuda" : " on cpu") << found.where;
  }
}

// ---- against the definition

struct Setting {
  const char* name;
  NlmVolumeParams params;
};

class Nlm3dSettings : public ::testing::TestWithParam<Setting> {};

TEST_P(Nlm3dSettings, AgreeWithTheDefinition) {
  for (const Size& size : {Size{19, 13, 11}, {9, 70, 5}, {70, 6, 4}}) {
    expect_agreement(GetParam().params, solid(volume(size)), GetParam().name);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Nlm3dSettings,
    ::testing::Values(Setting{"s5", {.search = 5, .sigma = 0.1}},
                      Setting{"s7_plain", {.search = 7, .prefilter = 0, .sigma = 0.1}},
                      Setting{"h_alone", {.search = 5, .h = 0.1}},
                      Setting{"self_one", {.search = 5, .sigma = 0.1, .self = SelfWeight::one}},
                      Setting{"p1", {.search = 5, .patch = 1, .sigma = 0.1}},
                      Setting{"p5", {.search = 5, .patch = 5, .sigma = 0.1}},
                      Setting{"p7", {.search = 3, .patch = 7, .sigma = 0.1}},
                      Setting{"flat_patch", {.search = 5, .patch = 3, .patch_z = 1, .sigma = 0.1}},
                      Setting{"p5_z3", {.search = 5, .patch = 5, .patch_z = 3, .sigma = 0.1}},
                      Setting{"p3_z5", {.search = 3, .patch = 3, .patch_z = 5, .sigma = 0.1}},
                      Setting{"deep", {.search = 3, .search_z = 7, .sigma = 0.1}},
                      Setting{"wide", {.search = 7, .search_z = 1, .sigma = 0.1}},
                      Setting{"column", {.search = 1, .search_z = 5, .sigma = 0.1}},
                      Setting{"thick_slices", {.search = 7, .patch = 5, .aspect = 2.5, .sigma = 0.1}},
                      Setting{"thin_slices", {.search = 3, .patch = 3, .aspect = 0.5, .sigma = 0.1}},
                      Setting{"weak", {.search = 5, .sigma = 0.004}},
                      Setting{"strong", {.search = 5, .sigma = 0.5}},
                      Setting{"underflow", {.search = 5, .prefilter = 0, .h = 1e-3}},
                      Setting{"huge", {.search = 3, .patch = 1, .h = 1e9}},
                      Setting{"most_prefilter", {.search = 5, .prefilter = 1.0 / 3, .sigma = 0.1}}),
    [](const auto& of) { return std::string(of.param.name); });

TEST(Nlm3d, AgreesOnAnySize) {
  for (const Size& size : {Size{1, 1, 1},
                           {1, 1, 9},
                           {9, 1, 1},
                           {5, 7, 1},
                           {17, 9, 2},
                           {2, 3, 4},
                           {3, 40, 3},
                           {40, 3, 12},
                           {130, 4, 3},
                           {66, 11, 13},
                           {4, 4, 30}}) {
    const std::string what =
        std::to_string(size.width) + " x " + std::to_string(size.height) + " x " + std::to_string(size.depth);
    expect_agreement({.search = 7, .sigma = 0.1}, solid(volume(size)), what);
    expect_agreement({.search = 5, .patch = 5, .sigma = 0.1}, solid(volume(size)), what + ", patch 5");
  }
}

TEST(Nlm3d, AgreesWithLargeSearches) {
  const TestImage in = solid(volume({33, 12, 10}));
  expect_agreement({.sigma = 0.1}, in, "defaults");
  expect_agreement({.search = 11, .sigma = 0.1}, in, "search 11");
  expect_agreement({.search = 21, .sigma = 0.1}, in, "search 21");
  expect_agreement({.search = 13, .search_z = 3, .sigma = 0.1}, in, "search 13, 3 slices");
}

TEST(Nlm3d, AgreesOnAnyType) {
  for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f16}) {
    const ImageSpec spec = volume({21, 11, 7}, type);
    const TestImage in = solid(spec);
    const NlmVolumeParams params{.search = 5, .sigma = 0.1 * spec.white()};
    if (type == PixelType::f16) {
      EXPECT_LE(
          difference(run(params, in, Device::Kind::cpu), run(params, in, Device::Kind::reference)).largest,
          1e-3);
    } else {
      expect_agreement(params, in, std::string(name(type)));
    }
  }
}

// Channels do not know of each other.
TEST(Nlm3d, FiltersChannelsByThemselves) {
  const TestImage in = solid(volume({15, 9, 6}, PixelType::f32, 3));
  const NlmVolumeParams params{.search = 5, .sigma = 0.1};
  expect_agreement(params, in, "three channels");
  for (const Device::Kind device : devices) {
    if (is_missing(device)) continue;
    const TestImage together = run(params, in, device);
    for (int c = 0; c < 3; ++c) {
      TestImage one(volume({15, 9, 6}), Layout::interleaved);
      for (int z = 0; z < 6; ++z) {
        for (int i = 0; i < 15 * 9; ++i) one.set(i, z, 0, in.at(i, z, c));
      }
      const TestImage alone = run(params, one, device);
      for (int z = 0; z < 6; ++z) {
        for (int i = 0; i < 15 * 9; ++i) ASSERT_EQ(alone.at(i, z, 0), together.at(i, z, c));
      }
    }
  }
}

// ---- the same bits

TEST(Nlm3d, BandsAndThreadsGiveTheSameBits) {
  for (const NlmVolumeParams& params :
       {NlmVolumeParams{.search = 7, .sigma = 0.1}, NlmVolumeParams{.search = 5, .patch = 5, .sigma = 0.1},
        NlmVolumeParams{.search = 3, .search_z = 9, .patch_z = 1, .sigma = 0.1}}) {
    const TestImage in = solid(volume({71, 53, 31}));
    for (const Device::Kind device : devices) {
      if (is_missing(device)) continue;
      const TestImage expected = run(params, in, {.device = {device}, .threads = 1});
      for (const int threads : {1, 3}) {
        for (const int slices : {1, 2, 7, 16}) {
          const Options options{.device = {device}, .threads = threads, .band_rows = slices};
          EXPECT_EQ(difference(run(params, in, options), expected).largest, 0) << slices << " slices";
        }
      }
    }
  }
}

// A part of every slice, by itself.
TEST(Nlm3d, PartsOfSlicesGiveTheSameBits) {
  const Size size{90, 47, 14};
  const ImageSpec spec = volume(size);
  const TestImage in = solid(spec);
  for (const NlmVolumeParams& params :
       {NlmVolumeParams{.search = 5, .sigma = 0.1}, NlmVolumeParams{.search = 7, .patch = 5, .h = 0.2},
        NlmVolumeParams{.search = 5, .prefilter = 0, .sigma = 0.1}}) {
    const int reach = nlm3d_settings(resolve(params, in.view()).as<NlmVolumeParams>(), spec).reach();
    for (const Device::Kind device : devices) {
      if (is_missing(device)) continue;
      const TestImage expected = run(params, in, {.device = {device}});
      for (const SliceShape& shape : {SliceShape{40, 30, 0, 0, size.width, size.height},
                                      SliceShape{37, 47, 21, 0, size.width, size.height},
                                      SliceShape{29, 25, 61, 22, size.width, size.height},
                                      SliceShape{31, 27, 30, 9, size.width, size.height}}) {
        ImageSpec part = volume({shape.width, shape.height, size.depth});
        part.slice = shape;
        TestImage cut(part, Layout::interleaved);
        const auto place = [&](int x, int y) { return (y + shape.y) * size.width + x + shape.x; };
        for (int z = 0; z < size.depth; ++z) {
          for (int i = 0; i < part.width; ++i)
            cut.set(i, z, 0, in.at(place(i % shape.width, i / shape.width), z, 0));
        }
        const TestImage found = run(params, cut, {.device = {device}, .band_rows = 5});
        const auto is_known = [&](int at, int begin, int count, int whole) {
          return (at >= reach || begin == 0) && (at < count - reach || begin + count == whole);
        };
        int compared = 0;
        for (int z = 0; z < size.depth; ++z) {
          for (int i = 0; i < part.width; ++i) {
            const int x = i % shape.width;
            const int y = i / shape.width;
            if (!is_known(x, shape.x, shape.width, size.width) ||
                !is_known(y, shape.y, shape.height, size.height)) {
              continue;
            }
            ++compared;
            ASSERT_EQ(found.at(i, z, 0), expected.at(place(x, y), z, 0)) << x << ' ' << y << ' ' << z;
          }
        }
        EXPECT_GT(compared, 1000);
      }
    }
  }
}

// ---- what the definition promises

TEST(Nlm3d, AConstantStays) {
  for (const double level : {0.0, 1.0 / 3, 0.9}) {
    TestImage in(volume({23, 17, 9}), Layout::interleaved);
    fill_with(in, level);
    for (const Device::Kind device : devices) {
      if (is_missing(device)) continue;
      EXPECT_LE(difference(run({.search = 7, .sigma = 0.1}, in, device), in).largest,
                device == Device::Kind::cpu ? 0 : 1e-5 * level)
          << level;
    }
  }
}

TEST(Nlm3d, NoStrengthReturnsTheInput) {
  const TestImage in = solid(volume({12, 9, 5}));
  for (const NlmVolumeParams& params :
       {NlmVolumeParams{.h = 0}, NlmVolumeParams{.sigma = 0}, NlmVolumeParams{.search = 1, .sigma = 0.1}}) {
    for (const Device::Kind device : {Device::Kind::reference, Device::Kind::cpu, Device::Kind::cuda}) {
      if (is_missing(device)) continue;
      EXPECT_EQ(difference(run(params, in, device), in).largest, 0);
    }
  }
}

// A slice of its own is searched within itself only.
TEST(Nlm3d, OneSliceHasNoNeighbours) {
  const TestImage in = solid(volume({25, 19, 1}));
  const NlmVolumeParams deep{.search = 5, .patch_z = 1, .prefilter = 0, .h = 0.2};
  NlmVolumeParams flat = deep;
  flat.search_z = 1;
  EXPECT_EQ(difference(run(deep, in, Device::Kind::cpu), run(flat, in, Device::Kind::cpu)).largest, 0);
}

TEST(Nlm3d, RemovesNoise) {
  const Size size{48, 40, 32};
  const ImageSpec spec = volume(size);
  TestImage clean(spec, Layout::interleaved);
  TestImage noisy(spec, Layout::interleaved);
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.1);
  for (int z = 0; z < size.depth; ++z) {
    for (int i = 0; i < spec.width; ++i) {
      const double r = std::hypot(i % size.width - 24, i / size.width - 20, z - 16);
      clean.set(i, z, 0, r < 9 ? 0.8 : r < 14 ? 0.5 : 0.2 + 0.004 * z);
      noisy.set(i, z, 0, clean.at(i, z, 0) + noise(random));
    }
  }
  const auto error = [&](const TestImage& image) {
    double sum = 0;
    for (int z = 0; z < size.depth; ++z) {
      for (int i = 0; i < spec.width; ++i) sum += std::pow(image.at(i, z, 0) - clean.at(i, z, 0), 2);
    }
    return sum;
  };
  EXPECT_LT(error(run({.sigma = 0.1}, noisy, Device::Kind::cpu)), 0.04 * error(noisy));
  EXPECT_LT(error(run({}, noisy, Device::Kind::cpu)), 0.04 * error(noisy));
}

TEST(Nlm3d, RefusesWhatDoesNotFit) {
  const auto failure = [](const NlmVolumeParams& params, const ImageSpec& spec) {
    try {
      Denoiser::create(params, spec);
    } catch (const Error& error) {
      return std::pair(error.code(), std::string(error.what()));
    }
    return std::pair(ErrorCode::internal, std::string());
  };
  ImageSpec image;
  image.width = 20;
  image.height = 10;
  const auto [code, message] = failure({.sigma = 10}, image);
  EXPECT_EQ(code, ErrorCode::unsupported);
  EXPECT_NE(message.find("nlm3d is for volumes"), std::string::npos) << message;
  const ImageSpec spec = volume({9, 9, 9});
  EXPECT_NE(failure({.search = 23, .sigma = 0.1}, spec).second.find("search"), std::string::npos);
  EXPECT_NE(failure({.search = 4, .sigma = 0.1}, spec).second.find("search"), std::string::npos);
  EXPECT_NE(failure({.patch = 9, .sigma = 0.1}, spec).second.find("patch"), std::string::npos);
  EXPECT_NE(failure({.prefilter = 0.5, .sigma = 0.1}, spec).second.find("prefilter"), std::string::npos);
}

}  // namespace
}  // namespace ungrain::testing
