// radius_t of the methods that search a window: the references against plain loops over a tiny clip, with its
// ends, its cuts and its borders; and what is refused.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "core/border.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods.h"

namespace ungrain {
namespace {

constexpr int width = 6;
constexpr int height = 5;
constexpr int frames = 5;
constexpr Border all_borders[] = {Border::symmetric, Border::mirror, Border::clamp,
                                  Border::constant,  Border::wrap,   Border::shrink};

ImageSpec gray() { return {.width = width, .height = height, .type = PixelType::f32}; }

using Frame = std::vector<float>;

// No two frames and no two pixels are alike.
std::vector<Frame> clip() {
  std::vector<Frame> made;
  unsigned state = 12345;
  for (int t = 0; t < frames; ++t) {
    Frame frame;
    for (int i = 0; i < width * height; ++i) {
      state = state * 1664525U + 1013904223U;
      frame.push_back(0.3F + 0.4F * static_cast<float>(state >> 8U) / static_cast<float>(1U << 24U));
    }
    made.push_back(frame);
  }
  return made;
}

// A clip with cuts: a scene starts at each of `starts`.
class Clip : public SliceReader, public SliceWriter {
 public:
  Clip(std::vector<Frame> in, std::vector<int> starts) : in_(std::move(in)), starts_(std::move(starts)) {
    made.resize(in_.size(), Frame(static_cast<std::size_t>(width * height)));
  }
  bool has(int slice) override { return slice < static_cast<int>(in_.size()); }
  bool starts_scene(int slice) override {
    return std::find(starts_.begin(), starts_.end(), slice) != starts_.end();
  }
  void read_rows(int slice, int first, const ImageView& rows) override {
    for (int y = 0; y < rows.spec.height; ++y) {
      const float* from = in_[static_cast<std::size_t>(slice)].data() + (first + y) * width;
      std::copy_n(from, width,
                  reinterpret_cast<float*>(static_cast<std::byte*>(rows.data) + y * rows.strides.y));
    }
  }
  void write_rows(int slice, int first, const ConstImageView& rows) override {
    for (int y = 0; y < rows.spec.height; ++y) {
      const auto* from =
          reinterpret_cast<const float*>(static_cast<const std::byte*>(rows.data) + y * rows.strides.y);
      std::copy_n(from, width, made[static_cast<std::size_t>(slice)].data() + (first + y) * width);
    }
  }

  std::vector<Frame> made;

 private:
  std::vector<Frame> in_;
  std::vector<int> starts_;
};

std::vector<Frame> filtered(const MethodParams& params, const std::vector<Frame>& in,
                            const std::vector<int>& starts = {0}) {
  Clip clip(in, starts);
  Denoiser::create(params, gray(), {.device = {Device::Kind::reference}}).run(clip, clip, gray());
  return clip.made;
}

// The pixel at any position of a frame; nothing where it does not count.
struct Pixels {
  const std::vector<Frame>& clip;
  Border border;

  bool counts(int x, int y) const {
    return border != Border::shrink || (x >= 0 && x < width && y >= 0 && y < height);
  }
  double at(int t, int x, int y) const {
    const int column = border_index(border, x, width);
    const int row = border_index(border, y, height);
    if (column == no_pixel || row == no_pixel) return 0;
    return clip[static_cast<std::size_t>(t)][static_cast<std::size_t>(row * width + column)];
  }
};

// What one pixel of one frame should be; [begin, end): the frames of its scene.
using Expected = std::function<double(const Pixels&, int t, int x, int y, int begin, int end)>;

void expect_everywhere(const MethodParams& params, Border border, const Expected& expected) {
  const std::vector<Frame> in = clip();
  const Pixels pixels{in, border};
  const auto check = [&](const std::vector<int>& starts) {
    const std::vector<Frame> out = filtered(params, in, starts);
    for (int t = 0; t < frames; ++t) {
      int begin = 0;
      int end = frames;
      for (const int start : starts) {
        if (start <= t) begin = start;
        if (start > t) end = std::min(end, start);
      }
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
          ASSERT_NEAR(out[static_cast<std::size_t>(t)][static_cast<std::size_t>(y * width + x)],
                      expected(pixels, t, x, y, begin, end), 1e-6)
              << "frame " << t << ", pixel " << x << "," << y << ", border " << static_cast<int>(border)
              << ", scenes " << starts.size();
        }
      }
    }
  };
  check({0});
  check({0, 2});
}

double patch_distance(const Pixels& p, int t, int x, int y, int u, int qx, int qy) {
  double sum = 0;
  int count = 0;
  for (int ky = -1; ky <= 1; ++ky) {
    for (int kx = -1; kx <= 1; ++kx) {
      if (!p.counts(x + kx, y + ky) || !p.counts(qx + kx, qy + ky)) continue;
      sum += std::pow(p.at(t, x + kx, y + ky) - p.at(u, qx + kx, qy + ky), 2);
      ++count;
    }
  }
  return sum / count;
}

TEST(RadiusT, NlmSearchesFramesBeforeAndAfter) {
  constexpr double h = 0.2;
  constexpr double sigma = 0.05;
  for (const int radius_t : {1, 2}) {
    for (const Border border : all_borders) {
      const NlmParams params{.search = 5,
                             .radius_t = radius_t,
                             .patch = 3,
                             .patch_sigma = 0,
                             .sigma = sigma,
                             .h = h,
                             .border = border};
      expect_everywhere(params, border, [&](const Pixels& p, int t, int x, int y, int begin, int end) {
        double weights = 0;
        double sum = 0;
        double largest = 0;
        for (int u = std::max(begin, t - radius_t); u < std::min(end, t + radius_t + 1); ++u) {
          for (int qy = y - 2; qy <= y + 2; ++qy) {
            for (int qx = x - 2; qx <= x + 2; ++qx) {
              if ((u == t && qx == x && qy == y) || !p.counts(qx, qy)) continue;
              const double distance = patch_distance(p, t, x, y, u, qx, qy) - 2 * sigma * sigma;
              const double weight = std::exp(-std::max(distance, 0.0) / (h * h));
              largest = std::max(largest, weight);
              weights += weight;
              sum += weight * p.at(u, qx, qy);
            }
          }
        }
        return (sum + largest * p.at(t, x, y)) / (weights + largest);
      });
    }
  }
}

TEST(RadiusT, NlmBilateralSearchesFramesBeforeAndAfter) {
  constexpr double sigma_h = 0.2;
  constexpr double sigma_range = 0.3;
  constexpr double sigma_space = 2;
  for (const Border border : all_borders) {
    const NlmBilateralParams params{.search = 5,
                                    .radius_t = 1,
                                    .patch = 3,
                                    .sigma_h = sigma_h,
                                    .sigma_range = sigma_range,
                                    .sigma_space = sigma_space,
                                    .border = border};
    expect_everywhere(params, border, [&](const Pixels& p, int t, int x, int y, int begin, int end) {
      double weights = 0;
      double sum = 0;
      for (int u = std::max(begin, t - 1); u < std::min(end, t + 2); ++u) {
        for (int qy = y - 2; qy <= y + 2; ++qy) {
          for (int qx = x - 2; qx <= x + 2; ++qx) {
            if (!p.counts(qx, qy)) continue;
            const double difference = p.at(t, x, y) - p.at(u, qx, qy);
            const double away = (qx - x) * (qx - x) + (qy - y) * (qy - y);
            const double weight = std::exp(-patch_distance(p, t, x, y, u, qx, qy) / (2 * sigma_h * sigma_h) -
                                           difference * difference / (2 * sigma_range * sigma_range) -
                                           away / (2 * sigma_space * sigma_space));
            weights += weight;
            sum += weight * p.at(u, qx, qy);
          }
        }
      }
      return sum / weights;
    });
  }
}

TEST(RadiusT, BilateralTakesFramesAlike) {
  constexpr double sigma_range = 0.2;
  constexpr double sigma_space = 1.5;
  for (const int radius_t : {1, 2}) {
    for (const Border border : all_borders) {
      const BilateralParams params{.radius = 2,
                                   .radius_t = radius_t,
                                   .sigma_space = sigma_space,
                                   .sigma_range = sigma_range,
                                   .border = border};
      expect_everywhere(params, border, [&](const Pixels& p, int t, int x, int y, int begin, int end) {
        double weights = 0;
        double sum = 0;
        for (int u = std::max(begin, t - radius_t); u < std::min(end, t + radius_t + 1); ++u) {
          for (int dy = -2; dy <= 2; ++dy) {
            for (int dx = -2; dx <= 2; ++dx) {
              if (!p.counts(x + dx, y + dy)) continue;
              const double difference = p.at(u, x + dx, y + dy) - p.at(t, x, y);
              const double weight = std::exp(-difference * difference / (2 * sigma_range * sigma_range) -
                                             (dx * dx + dy * dy) / (2 * sigma_space * sigma_space));
              weights += weight;
              sum += weight * p.at(u, x + dx, y + dy);
            }
          }
        }
        return sum / weights;
      });
    }
  }
}

TEST(RadiusT, MedianFollowsTheBorderAtTheEnds) {
  for (const int radius : {0, 1}) {
    for (const Border border : all_borders) {
      const MedianParams params{.radius = radius, .radius_t = 1, .border = border};
      expect_everywhere(params, border, [&](const Pixels& p, int t, int x, int y, int begin, int end) {
        std::vector<double> values;
        for (int u = t - 1; u <= t + 1; ++u) {
          const int index = border_index(border, u - begin, end - begin);
          if (index == no_pixel && border == Border::shrink) continue;
          for (int dy = -radius; dy <= radius; ++dy) {
            for (int dx = -radius; dx <= radius; ++dx) {
              if (!p.counts(x + dx, y + dy)) continue;
              values.push_back(index == no_pixel ? 0 : p.at(begin + index, x + dx, y + dy));
            }
          }
        }
        std::sort(values.begin(), values.end());
        const std::size_t half = values.size() / 2;
        return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
      });
    }
  }
}

std::string refusal(const MethodParams& params) {
  try {
    Denoiser::create(params, gray());
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(RadiusT, WhatIsRefused) {
  EXPECT_EQ(refusal(NlmParams{.search = whole_image, .radius_t = 1, .h = 0.1}),
            "nlm: radius_t takes a search window; with a whole-image search it must be 0");
  EXPECT_EQ(
      refusal(NlmBilateralParams{.search = whole_image, .radius_t = 2, .sigma_h = 0.1, .sigma_range = 0.1}),
      "nlm-bilateral: radius_t takes a search window; with a whole-image search it must be 0");
  EXPECT_EQ(
      refusal(BilateralParams{.radius_t = 1, .sigma_range = 0.1, .quality = BilateralQuality::separable}),
      "bilateral: only quality exact takes a radius_t");
  EXPECT_NE(refusal(MedianParams{.radius_t = 17}).find("radius_t"), std::string::npos);
  EXPECT_EQ(refusal(MedianParams{.radius_t = 16}), "nothing");
}

// A window so wide that its shifts are taken in blocks: too slow for the methods' own cases.
TEST(RadiusT, VeryWideWindowsOnTheCpu) {
  const NlmParams params{.search = 99, .radius_t = 1, .patch = 1, .h = 0.2};
  const std::vector<Frame> in = clip();
  const std::vector<Frame> expected = filtered(params, in);
  Clip clip(in, {0});
  Denoiser::create(params, gray(), {.device = {Device::Kind::cpu}}).run(clip, clip, gray());
  for (std::size_t t = 0; t < frames; ++t) {
    for (std::size_t i = 0; i < in[t].size(); ++i) ASSERT_NEAR(clip.made[t][i], expected[t][i], 2e-5);
  }
}

// Strengths that leave the image as it is do so in a sequence too.
TEST(RadiusT, NoStrengthReturnsTheInput) {
  const std::vector<Frame> in = clip();
  EXPECT_EQ(filtered(NlmParams{.radius_t = 1, .h = 0}, in), in);
  EXPECT_EQ(filtered(BilateralParams{.radius_t = 1, .sigma_range = 0}, in), in);
}

}  // namespace
}  // namespace ungrain
