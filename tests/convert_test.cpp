// Samples to numbers and back.
#include "core/convert.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/convert_simd.h"
#include "cpu/separable_kernels.h"
#include "cpu/simd.h"
#include "ungrain/half.h"

namespace ungrain {
namespace {

TEST(Half, EveryFiniteValueComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const float value = half_to_float(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_half(value), bits) << value;
  }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(half_to_float(0x3c00), 1.0F);
  EXPECT_EQ(half_to_float(0x7bff), 65504.0F);
  EXPECT_EQ(half_to_float(0x0001), 0x1p-24F);
  EXPECT_EQ(half_to_float(0x8000), 0.0F);
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
  EXPECT_TRUE(std::isinf(half_to_float(0x7c00)));
  EXPECT_TRUE(std::isnan(half_to_float(0x7e00)));
  EXPECT_EQ(float_to_half(65519.0F), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0F), 0x7c00);  // the tie goes to even, which is infinity
  EXPECT_EQ(float_to_half(1.0F + 0x1p-11F), 0x3c00);
  EXPECT_EQ(float_to_half(1.0F + 3 * 0x1p-11F), 0x3c02);
  EXPECT_EQ(float_to_half(0x1p-25F), 0);
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(std::nanf("")))));
}

template <class Sample>
std::vector<Sample> stored(PixelType type, const std::vector<float>& values, double scale = 1) {
  std::vector<Sample> out(values.size());
  const ImageSpec spec{.width = static_cast<int>(values.size()), .height = 1, .type = type};
  store_row(ImageView(out.data(), spec), 0, 0, values.data(), scale);
  return out;
}

TEST(Convert, IntegersRoundHalfToEvenAndSaturate) {
  const float nan = std::nanf("");
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ((stored<std::uint8_t>(PixelType::u8,
                                  {-3, -0.4F, 0.5F, 1.5F, 2.5F, 254.5F, 255.4F, 300, nan, infinity})),
            (std::vector<std::uint8_t>{0, 0, 0, 2, 2, 254, 255, 255, 0, 255}));
  EXPECT_EQ((stored<std::uint16_t>(PixelType::u16, {-1, 0.5F, 65534.5F, 65535.5F, 1e9F})),
            (std::vector<std::uint16_t>{0, 0, 65534, 65535, 65535}));
  EXPECT_EQ((stored<std::uint16_t>(PixelType::u16, {0, 1, 128, 255}, 257)),
            (std::vector<std::uint16_t>{0, 257, 32896, 65535}));
}

TEST(Convert, FloatsPassUnclipped) {
  EXPECT_EQ((stored<float>(PixelType::f32, {-3.5F, 1e30F})), (std::vector<float>{-3.5F, 1e30F}));
}

TEST(Convert, AnyStride) {
  // Two rows of three rgb pixels, read backwards in x and bottom up.
  std::vector<std::uint16_t> samples(18);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<std::uint16_t>(i);
  const ImageSpec spec{.width = 3, .height = 2, .channels = 3, .type = PixelType::u16, .colour = Colour::rgb};
  const ConstImageView view(&samples[15], spec, Strides{.x = -6, .y = -18, .channel = 2});
  std::vector<float> row(3);
  load_row(view, 1, 2, row.data());
  EXPECT_EQ(row, (std::vector<float>{8, 5, 2}));
}

// Every type, channel count and set of vector instructions, at lengths around those of vectors: the numbers
// that one sample at a time gives.
TEST(Convert, ChannelsAtOnceAreTheSame) {
  using enum PixelType;
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    for (const PixelType type : {u8, u16, f16, f32}) {
      for (int channels = 1; channels <= 4; ++channels) {
        for (const int width : {1, 3, 15, 16, 17, 64, 65, 600}) {
          const ImageSpec spec{width, 1, channels, type, Colour::multi, false, 0};
          Image image(spec);
          Image expected(spec);
          std::vector<std::vector<float>> rows(static_cast<std::size_t>(channels), std::vector<float>(width));
          const double top = type == u8 ? 260 : type == u16 ? 66000 : 3;
          for (int c = 0; c < channels; ++c) {
            std::vector<double> values(static_cast<std::size_t>(width));
            for (int x = 0; x < width; ++x) {
              rows[c][x] = static_cast<float>(top * ((x * 37 + c * 11) % 101) / 100 - 1.5);
              values[x] = rows[c][x] * 1.25F;
            }
            store_row(expected.view(), 0, c, values.data());
          }
          float* pointers[max_channels];
          for (int c = 0; c < channels; ++c) pointers[c] = rows[c].data();
          store_channels(image.view(), 0, channels, pointers, 1.25);
          ASSERT_EQ(std::memcmp(image.view().data, expected.view().data, image.bytes()), 0)
              << target << " " << name(type) << " x " << channels << ", " << width;
          load_channels(image.view(), 0, channels, pointers);
          for (int c = 0; c < channels; ++c) {
            std::vector<double> values(static_cast<std::size_t>(width));
            load_row(expected.view(), 0, c, values.data());
            for (int x = 0; x < width; ++x) ASSERT_EQ(rows[c][x], static_cast<float>(values[x])) << target;
          }
        }
      }
    }
  }
  use_simd_target("");
}

TEST(Convert, FiniteIsSeenAtEveryPlace) {
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    for (const int count : {1, 16, 33, 100}) {
      std::vector<float> values(static_cast<std::size_t>(count), -3e38F);
      EXPECT_TRUE(all_finite(values.data(), count));
      for (int at = 0; at < count; ++at) {
        for (const float bad : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
          values[at] = bad;
          EXPECT_FALSE(all_finite(values.data(), count)) << target << " " << at << " of " << count;
          values[at] = 0;
        }
      }
    }
  }
  use_simd_target("");
}

TEST(ShortDivision, RoundsToNearest) {
  for (int side = 3; side <= 15; side += 2) {
    const int by = side * side;
    const ShortDivision division(by);
    for (std::uint32_t sum = 0; sum <= 255U * by; ++sum) {
      ASSERT_EQ(((sum + division.half) * division.multiplier) >> (16 + division.shift), (sum + by / 2) / by);
    }
  }
}

TEST(Fill, MeanOfTheNearestFinitePixels) {
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> pixels{1, 2,   3,    //
                            4, nan, inf,  //
                            7, 8,   9};
  const ImageSpec spec{.width = 3, .height = 3, .type = PixelType::f32};
  std::vector<float> row(pixels.begin() + 3, pixels.begin() + 6);
  EXPECT_EQ(fill_nonfinite(ConstImageView(pixels.data(), spec), 1, 0, row.data()), 2);
  EXPECT_EQ(row[0], 4.0F);
  EXPECT_FLOAT_EQ(row[1], (1 + 2 + 3 + 4 + 7 + 8 + 9) / 7.0F);
  EXPECT_FLOAT_EQ(row[2], (2 + 3 + 8 + 9) / 4.0F);
}

TEST(Fill, GrowsTheWindowAndEndsAtZero) {
  const ImageSpec spec{.width = 25, .height = 1, .type = PixelType::f32};
  std::vector<float> pixels(25, std::nanf(""));
  pixels[24] = 5;
  std::vector<float> row = pixels;
  fill_nonfinite(ConstImageView(pixels.data(), spec), 0, 0, row.data());
  EXPECT_EQ(row[24 - fill_radius], 5.0F);
  EXPECT_EQ(row[24 - fill_radius - 1], 0.0F);
}

}  // namespace
}  // namespace ungrain
