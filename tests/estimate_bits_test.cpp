// The noise estimate's numbers: the same bits for any threads, bands, layouts and vector instructions, and
// those of the plain formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "core/convert.h"
#include "cpu/simd.h"
#include "noise/block_batch_simd.h"
#include "noise/block_spectrum.h"
#include "noise/clipped_gaussian_simd.h"
#include "noise/cut_noise.h"
#include "noise/drawn_blocks.h"
#include "noise/latest_rows.h"
#include "noise/window_sums_simd.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods/nlm.h"
#include "ungrain/noise_model.h"

namespace ungrain {
namespace {

using testing::Layout;
using testing::TestImage;

class EstimateBits : public ::testing::Test {
 protected:
  void TearDown() override { use_simd_target(""); }
};

ImageSpec spec_of(PixelType type, int width, int height, int channels) {
  return {.width = width,
          .height = height,
          .channels = channels,
          .type = type,
          .colour = channels >= 3 ? Colour::rgb : Colour::gray,
          .alpha = channels == 2 || channels == 4};
}

unsigned scrambled(unsigned n) {
  for (int round = 0; round < 3; ++round) n = (n ^ n >> 15U) * 2654435761U + 1;
  return n;
}

// A flat half, so that there is noise to be found, and black and white places.
void fill(TestImage& image) {
  fill_with_picture(image);
  const ImageSpec& spec = image.view().spec;
  for (int y = 0; y < spec.height / 2; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < spec.channels; ++c) {
        const unsigned random = scrambled(static_cast<unsigned>(x + 4096 * y + 16777216 * c)) >> 24U;
        const double value = 0.2 + 0.6 * x / spec.width + 0.0002 * random;
        image.set(x, y, c, spec.white() * (x < 20 ? 0 : x < 40 ? 1 : value));
      }
    }
  }
}

NoiseModelEstimate in_bands(const ConstImageView& image, int rows, int threads) {
  NoiseModelEstimator estimator(image.spec, {.threads = threads});
  for (int y = 0; y < image.spec.height; y += rows) {
    estimator.add_rows(image.rows(y, std::min(rows, image.spec.height - y)));
  }
  return estimator.finish();
}

void expect_same_bits(const NoiseModelEstimate& found, const NoiseModelEstimate& expected,
                      const std::string& what) {
  EXPECT_EQ(found.model, expected.model) << what;
  EXPECT_EQ(found.finding, expected.finding) << what;
  EXPECT_EQ(found.white.channels, expected.white.channels) << what;
  EXPECT_EQ(found.white.correlation, expected.white.correlation) << what;
  EXPECT_EQ(found.blocks, expected.blocks) << what;
  EXPECT_EQ(found.lines, expected.lines) << what;
}

TEST_F(EstimateBits, DoNotDependOnThreadsBandsLayoutsAndInstructions) {
  for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f16, PixelType::f32}) {
    for (const int channels : {1, 2, 3, 4}) {
      const ImageSpec spec = spec_of(type, 411, 237, channels);
      const std::string image_name = std::string(name(type)) + " x " + std::to_string(channels) + " ";
      NoiseModelEstimate expected;
      for (const Layout layout : {Layout::interleaved, Layout::planar, Layout::padded, Layout::flipped}) {
        TestImage image(spec, layout);
        fill(image);
        const ConstImageView view = image.view();
        const bool first = layout == Layout::interleaved;
        if (first) expected = estimate_noise_model(view, {.threads = 1});
        const std::string what = image_name + testing::name(layout);
        for (const int threads : first ? std::vector{2, 7} : std::vector{2}) {
          expect_same_bits(estimate_noise_model(view, {.threads = threads}), expected,
                           what + " threads " + std::to_string(threads));
        }
        for (const int rows : first ? std::vector{1, 7, 64} : std::vector{7}) {
          expect_same_bits(in_bands(view, rows, 2), expected, what + " rows " + std::to_string(rows));
        }
        for (const std::string& target : simd_targets()) {
          use_simd_target(target);
          expect_same_bits(estimate_noise_model(view, {.threads = 2}), expected, what + " " + target);
        }
        use_simd_target("");
      }
      ASSERT_GT(expected.white.sigma, 0) << image_name;
      ASSERT_FALSE(expected.blocks.empty()) << image_name;
    }
  }
}

// Windows are then 4 pixels apart, and rows lie between the white estimate's blocks.
TEST_F(EstimateBits, OfLargeImages) {
  TestImage image(spec_of(PixelType::u8, 2603, 2401, 1), Layout::interleaved);
  fill(image);
  const NoiseModelEstimate expected = estimate_noise_model(image.view(), {.threads = 1});
  for (const int threads : {2, 7}) {
    expect_same_bits(estimate_noise_model(image.view(), {.threads = threads}), expected, "threads");
  }
  for (const int rows : {1, 64, 300}) {
    expect_same_bits(in_bands(image.view(), rows, 2), expected, "rows " + std::to_string(rows));
  }
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    expect_same_bits(estimate_noise_model(image.view(), {.threads = 2}), expected, target);
  }
}

TEST_F(EstimateBits, ThinImagesInBands) {
  for (const auto& [width, height] : {std::pair{5, 900}, {900, 5}, {16, 16}, {15, 40}, {40, 17}}) {
    TestImage image(spec_of(PixelType::u8, width, height, 3), Layout::interleaved);
    fill_with_picture(image);
    const NoiseModelEstimate expected = estimate_noise_model(image.view(), {.threads = 1});
    for (const int rows : {1, 7, 64}) expect_same_bits(in_bands(image.view(), rows, 2), expected, "thin");
  }
}

// Rows of a picture in memory, in the order in which they are asked for.
class ViewReader : public RowReader {
 public:
  explicit ViewReader(const ConstImageView& view) : view_(view) {}
  void read_rows(int first, const ImageView& rows) override {
    for (int y = 0; y < rows.spec.height; ++y) copy_pixels(view_, first + y, rows, y);
  }

 private:
  ConstImageView view_;
};

// Noise of deviation 0.06 around levels from black to middle gray, cut off at black.
void fill_dark(TestImage& image) {
  const ImageSpec& spec = image.view().spec;
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < spec.channels; ++c) {
        double noise = -2;  // the sum of four uniform numbers, of variance 1 / 3
        for (unsigned n = 0; n < 4; ++n) {
          const unsigned place = static_cast<unsigned>(x + 4096 * y + 16777216 * c) + 67108864U * n;
          noise += scrambled(place) / 4294967296.0;
        }
        noise *= std::sqrt(3.0);
        const double level = 0.5 * (x / (spec.width / 6)) / 6;
        image.set(x, y, c, spec.white() * std::clamp(level + 0.06 * noise, 0.0, 1.0));
      }
    }
  }
}

// The search for a cut as well.
TEST_F(EstimateBits, OfCutNoise) {
  const MethodParams params{NlmParams{}};
  for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f32}) {
    for (const int channels : {1, 3}) {
      for (const Layout layout : {Layout::interleaved, Layout::planar}) {
        TestImage image(spec_of(type, 403, 411, channels), layout);
        fill_dark(image);
        const ConstImageView view = image.view();
        const std::string what =
            std::string(name(type)) + " x " + std::to_string(channels) + " " + testing::name(layout);
        const Resolved expected = resolve_with_noise(params, view, {.threads = 1});
        ASSERT_TRUE(expected.params.noise().cut_at_black) << what;
        ASSERT_FALSE(expected.params.noise().cut_at_white) << what;
        ASSERT_NEAR(expected.noise->white.sigma, 0.06 * view.spec.white(), 0.006 * view.spec.white()) << what;
        const auto expect_same = [&](const Resolved& found, const std::string& how) {
          expect_same_bits(*found.noise, *expected.noise, what + how);
          EXPECT_EQ(found.noise->deviations, expected.noise->deviations) << what << how;
          EXPECT_EQ(found.params.noise().cut_at_black, expected.params.noise().cut_at_black) << what << how;
          EXPECT_EQ(found.params.noise().cut_at_white, expected.params.noise().cut_at_white) << what << how;
        };
        for (const int threads : {2, 5}) {
          const std::string how = " threads " + std::to_string(threads);
          expect_same(resolve_with_noise(params, view, {.threads = threads}), how);
          ViewReader reader(view);
          expect_same(resolve_with_noise(params, reader, view.spec, {.threads = threads}), how + " by rows");
        }
        for (const std::string& target : simd_targets()) {
          use_simd_target(target);
          expect_same(resolve_with_noise(params, view, {.threads = 2}), " " + target);
        }
        use_simd_target("");
      }
    }
  }
}

// Bands of any height, also those that end within a block.
TEST_F(EstimateBits, CutsInBands) {
  TestImage image(spec_of(PixelType::u8, 403, 411, 3), Layout::interleaved);
  fill_dark(image);
  const ConstImageView view = image.view();
  const NoiseModel model = white_noise_model(view.spec, {18});
  std::vector<ChannelDeviation> deviations;
  for (int c = 0; c < 3; ++c) deviations.emplace_back(model, view.spec, c);
  const auto cut_of = [&](int rows, int threads) {
    CutDetector cuts(view.spec, threads);
    for (int y = 0; y < view.spec.height; y += rows) {
      cuts.add_rows(view.rows(y, std::min(rows, view.spec.height - y)));
    }
    return cuts.finish(deviations);
  };
  const Cut expected = cut_of(view.spec.height, 1);
  EXPECT_TRUE(expected.at_black);
  EXPECT_LT(expected.deviation_factor, 1);
  for (const int threads : {1, 2, 5}) {
    for (const int rows : {1, 7, 64, 100, view.spec.height}) {
      const Cut found = cut_of(rows, threads);
      EXPECT_EQ(found.at_black, expected.at_black) << rows;
      EXPECT_EQ(found.at_white, expected.at_white) << rows;
      EXPECT_EQ(found.deviation_factor, expected.deviation_factor) << rows;
    }
  }
}

// Floats of any unit: squares neither overflow nor vanish.
TEST_F(EstimateBits, ScaleWithPowersOfTwo) {
  ImageSpec spec = spec_of(PixelType::f32, 200, 150, 1);
  TestImage image(spec, Layout::interleaved);
  fill(image);
  const NoiseEstimate expected = estimate_noise(image.view());
  ASSERT_GT(expected.sigma, 0);
  for (const double unit : {0x1p90, 0x1p-60}) {
    spec.range = unit;
    TestImage scaled(spec, Layout::interleaved);
    for (int y = 0; y < spec.height; ++y) {
      for (int x = 0; x < spec.width; ++x) scaled.set(x, y, 0, image.at(x, y, 0) * unit);
    }
    EXPECT_EQ(estimate_noise(scaled.view()).sigma, expected.sigma * unit);
  }
}

// ---- parts, against plain formulas

TEST_F(EstimateBits, BatchesAreBlocks) {
  const auto value = [](int block, int channel, int i) {
    const auto random = (static_cast<unsigned>(i + 64 * block + 2048 * channel) * 2654435761U) >> 26U;
    return static_cast<float>(block == 3 ? 40 : block == 4 ? i % 2 * 63 : random);
  };
  constexpr double white = 63;
  const BlockTransform transform(8, 8);
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    const auto batch = std::make_unique<BatchChannel[]>(5);
    const auto looks = std::make_unique<BatchStatistics[]>(5);
    for (int n = 0; n < batch_blocks; ++n) {
      for (int c = 0; c < 3; ++c) {
        for (int i = 0; i < batch_samples; ++i) batch[c].samples[i][n] = value(n, c, i);
      }
    }
    measure_batch(batch.get(), 3, true, white, looks.get());
    for (int plane = 0; plane < 5; ++plane) {
      for (int n = 0; n < batch_blocks; ++n) {
        std::vector<double> block;
        for (int i = 0; i < batch_samples; ++i) {
          const double of[3] = {value(n, 0, i), value(n, 1, i), value(n, 2, i)};
          block.push_back(plane < 3    ? of[plane]
                          : plane == 3 ? static_cast<float>(of[0] + of[1] + of[2]) / 3.0F
                                       : of[0] - 2 * of[1] + of[2]);
        }
        const BlockSpectrum expected = transform(block.data());
        const BatchStatistics& look = looks[plane];
        EXPECT_NEAR(look.mean[n], expected.mean, 1e-4) << target;
        for (int set = 0; set < set_count; ++set) {
          EXPECT_NEAR(look.busyness[set][n], expected.busyness[set], 1e-5 * expected.busyness[set] + 1e-4);
          for (int band = 0; band < band_count; ++band) {
            const double energy = expected.energy[set][band];
            EXPECT_NEAR(look.energy[set][band][n], energy, 1e-5 * energy + 1e-4);
          }
        }
        EXPECT_EQ(look.smallest[n], *std::min_element(block.begin(), block.end()));
        EXPECT_EQ(look.largest[n], *std::max_element(block.begin(), block.end()));
        EXPECT_EQ(look.black[n], std::count(block.begin(), block.end(), 0));
        EXPECT_EQ(look.white[n], std::count(block.begin(), block.end(), white));
        const Neighbours neighbours = neighbours_of(block.data(), 8, 8, 1e9);
        EXPECT_NEAR(look.difference[n] / batch_pairs, neighbours.difference, 1e-5 * neighbours.difference);
        EXPECT_FLOAT_EQ(std::sqrt(look.least_square[n]), static_cast<float>(neighbours.step));
        const double black = look.black[n] * (look.black[n] - 1) / (64.0 * 63);
        EXPECT_NEAR(look.equal[n] / batch_pairs - black, neighbours.equal, 1e-6);
      }
    }
  }
}

TEST_F(EstimateBits, BlocksAreCopies) {
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f16, PixelType::f32}) {
      for (const int channels : {1, 2, 3, 4}) {
        for (const Layout layout : {Layout::interleaved, Layout::planar, Layout::padded, Layout::flipped}) {
          TestImage image(spec_of(type, 21, 19, channels), layout);
          fill_with_picture(image);
          const ConstImageView view = image.view();
          const LatestRows rows(view.rows(0, 5), view.rows(5, 14), 5);
          const int copied = view.spec.colour_channels();
          for (const int y : {0, 3, 11}) {
            std::vector<float> block(static_cast<std::size_t>(64 * copied));
            copy_blocks(rows, 0, copied, 13, y, block.data());
            for (int i = 0; i < 64 * copied; ++i) {
              EXPECT_EQ(block[i], sample_at(rows, 13 + i % 8, y + i / 8 % 8, i / 64)) << target << " " << i;
            }
          }
        }
      }
    }
  }
}

// The moments of noise around black: half of it is cut off.
TEST_F(EstimateBits, CutMomentsAreThoseOfHalfAGaussian) {
  constexpr int count = 4001;
  std::vector<double> weights;
  std::vector<double> offsets;
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    offsets.push_back(6 * (2.0 * i / (count - 1) - 1));
    weights.push_back(std::exp(-0.5 * offsets.back() * offsets.back()));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  std::vector<double> centres(cut_areas);
  for (std::size_t i = 1; i < cut_areas; ++i) centres[i] = 100 + static_cast<double>(i);
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    CutMoments moments;
    find_cut_moments(centres.data(), {weights.data(), offsets.data(), count}, 1000, moments);
    EXPECT_NEAR(moments.mean[0], 1 / std::sqrt(2 * std::numbers::pi), 1e-5) << target;
    EXPECT_NEAR(moments.second[0], 0.5 - 0.5 / std::numbers::pi, 1e-5) << target;
    for (std::size_t i = 1; i < cut_areas; ++i) {  // nothing is cut
      EXPECT_NEAR(moments.mean[i], centres[i], 1e-9) << target;
      EXPECT_NEAR(moments.second[i], 1, 1e-6) << target;
      EXPECT_NEAR(moments.fourth[i], 3, 1e-4) << target;
    }
  }
}

TEST_F(EstimateBits, WindowsAreSums) {
  constexpr int width = 83;
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f32}) {
      TestImage image(spec_of(type, width, 16, 3), Layout::interleaved);
      fill_with_picture(image);
      const ConstImageView view = image.view();
      const QuadSums quad_sums(view.spec, 0, 3);
      std::vector<float> scratch(static_cast<std::size_t>(quad_sums.scratch()));
      std::vector<std::vector<float>> quads(8, std::vector<float>(width / 2));
      for (int y = 0; y < 8; ++y) {
        quad_sums(view.rows(2 * y, 1), view.rows(2 * y + 1, 1), scratch.data(), quads[y].data());
      }
      for (const int apart : {2, 4}) {
        const int cells = (width - 4) / apart + 1;
        std::vector<std::vector<float>> rows(4, std::vector<float>(static_cast<std::size_t>(cells)));
        WindowRow row{.cell_count = cells, .apart = 4 / apart, .level_scale = 100, .level_count = 64};
        for (int k = 0; k < 4; ++k) {
          cell_sums(quads[2 * k].data(), quads[2 * k + 1].data(), apart, cells, rows[k].data());
          row.cells[k] = rows[k].data();
        }
        std::vector<double> sums(static_cast<std::size_t>(4 * cells));
        std::vector<double> texture(static_cast<std::size_t>(cells));
        std::vector<double> ring(static_cast<std::size_t>(cells));
        std::vector<std::int32_t> level(static_cast<std::size_t>(cells));
        measure_windows(row, sums.data(), {texture.data(), ring.data(), level.data()});
        const double tolerance = type == PixelType::f32 ? 1e-3 : 0;
        for (int n = 0; n < row.count(); ++n) {
          double sum = 0;
          double squares = 0;
          double outer = 0;
          double outer_squares = 0;
          for (int cell = 0; cell < 16; ++cell) {
            double value = 0;
            for (int i = 0; i < 16; ++i) {
              for (int c = 0; c < 3; ++c) {
                value += image.at(n * apart + cell % 4 * 4 + i % 4, cell / 4 * 4 + i / 4, c);
              }
            }
            sum += value;
            squares += value * value;
            const bool inner = cell == 5 || cell == 6 || cell == 9 || cell == 10;
            outer += inner ? 0 : value;
            outer_squares += inner ? 0 : value * value;
          }
          EXPECT_NEAR(texture[n], 16 * squares - sum * sum, tolerance * sum) << target << " " << n;
          EXPECT_NEAR(ring[n], 12 * outer_squares - outer * outer, tolerance * sum) << target << " " << n;
          EXPECT_NEAR(level[n], std::min(std::floor(std::sqrt(100 * sum)), 63.0), 0) << target << " " << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ungrain
