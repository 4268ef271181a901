// The largest median: a column has more ranks than 7 bits count.
#include <string>

#include <gtest/gtest.h>

#include "cpu/simd.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods.h"

namespace ungrain::testing {
namespace {

TEST(Median, LargestRadiusAgreesWithReference) {
  for (const PixelType type : {PixelType::u8, PixelType::f32}) {
    for (const int radius : {63, 64}) {
      const ImageSpec spec{.width = 150, .height = 2, .type = type};
      TestImage in(spec, Layout::interleaved);
      for (int x = 0; x < spec.width; ++x) {
        for (int y = 0; y < spec.height; ++y)
          in.set(x, y, 0, x < 70 ? 0 : x < 90 ? spec.white() : spec.white() / 3);
      }
      TestImage expected(spec, Layout::interleaved);
      const MethodParams params = MedianParams{.radius = radius};
      Denoiser::create(params, spec, {.device = {Device::Kind::reference}}).run(in.view(), expected.view());
      for (const std::string& target : simd_targets()) {
        use_simd_target(target);
        TestImage out(spec, Layout::interleaved);
        Denoiser::create(params, spec, {.device = {Device::Kind::cpu}}).run(in.view(), out.view());
        EXPECT_EQ(difference(out, expected).largest, 0) << target << ", radius " << radius;
      }
      use_simd_target("");
    }
  }
}

}  // namespace
}  // namespace ungrain::testing
