// The border rule against NumPy's and SciPy's own pictures of it, written out.
#include "core/border.h"

#include <vector>

#include <gtest/gtest.h>

namespace ungrain {
namespace {

std::vector<int> indices(Border border, int from, int to, int n) {
  std::vector<int> list;
  for (int i = from; i < to; ++i) list.push_back(border_index(border, i, n));
  return list;
}

TEST(Border, WrittenOut) {
  using V = std::vector<int>;
  EXPECT_EQ(indices(Border::symmetric, -4, 7, 3), (V{2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0}));
  EXPECT_EQ(indices(Border::mirror, -4, 7, 3), (V{0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2}));
  EXPECT_EQ(indices(Border::clamp, -2, 5, 3), (V{0, 0, 0, 1, 2, 2, 2}));
  EXPECT_EQ(indices(Border::wrap, -4, 7, 3), (V{2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(indices(Border::constant, -2, 5, 3), (V{-1, -1, 0, 1, 2, -1, -1}));
  EXPECT_EQ(indices(Border::shrink, -2, 5, 3), (V{-1, -1, 0, 1, 2, -1, -1}));
}

TEST(Border, OnePixelAxis) {
  for (const Border border : {Border::symmetric, Border::mirror, Border::clamp, Border::wrap}) {
    for (int i = -9; i <= 9; ++i) EXPECT_EQ(border_index(border, i, 1), 0);
  }
}

TEST(Border, FarAwayStaysInside) {
  for (const Border border : {Border::symmetric, Border::mirror, Border::clamp, Border::wrap}) {
    for (int n = 1; n <= 7; ++n) {
      for (int i = -1000; i <= 1000; ++i) {
        const int index = border_index(border, i, n);
        ASSERT_GE(index, 0);
        ASSERT_LT(index, n);
      }
    }
  }
}

TEST(Border, GatherEqualsPixelByPixel) {
  constexpr int width = 5;
  constexpr int height = 4;
  std::vector<float> pixels(width * height);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i + 1);
  const ConstPlanes planes{pixels.data(), {0, 0, width, height}, width, width * height, 1};
  for (const Border border :
       {Border::symmetric, Border::mirror, Border::clamp, Border::constant, Border::wrap, Border::shrink}) {
    const BorderedPlanes at(planes, {width, height}, border);
    for (const Rect want : {Rect{-7, -6, 12, 11}, Rect{-3, 1, -1, 3}, Rect{6, -2, 9, 9}, Rect{1, 1, 3, 3}}) {
      std::vector<float> out(static_cast<std::size_t>(want.width() * want.height()), -1.0F);
      gather(planes, 0, {width, height}, border, want, out.data(), want.width());
      for (int y = want.y0; y < want.y1; ++y) {
        for (int x = want.x0; x < want.x1; ++x) {
          const float got = out[static_cast<std::size_t>((y - want.y0) * want.width() + x - want.x0)];
          ASSERT_EQ(got, at.at(0, x, y)) << x << " " << y << " border " << static_cast<int>(border);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ungrain
