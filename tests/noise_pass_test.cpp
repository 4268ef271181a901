// The arithmetic of a device's pass over an image, here on the host, against the processor's own estimate.
#include "noise_pass.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/convert.h"
#include "noise/cut_noise.h"
#include "noise/flat_windows.h"
#include "noise/noise_pass.h"
#include "noise/noise_pass_items.h"
#include "noise/stabilize.h"
#include "noise/white_noise.h"
#include "test_devices.h"
#include "ungrain/error.h"
#include "ungrain/estimate.h"
#include "ungrain/methods/bm3d.h"

namespace ungrain {
namespace {

using testing::Layout;
using testing::TestImage;

// One item after the other.
class HostPass : public NoisePass {
 public:
  explicit HostPass(const ConstImageView& image) : rows_(all_rows(image)), image_(image) {}

  std::span<const BatchStatistics> white_blocks(const WhiteBlocks& of) override {
    looks_.resize(of.batches() * static_cast<std::size_t>(of.planes()));
    for (int row = 0; row < of.rows; ++row) {
      for (int column = 0; column < of.columns; ++column) {
        const int batch = row * of.row_batches() + column / batch_blocks;
        for (int plane = 0; plane < of.planes(); ++plane) {
          pass_items::look_at_white_block(reader(), of, column * of.step, row * of.step, plane,
                                          column % batch_blocks,
                                          looks_[static_cast<std::size_t>(batch * of.planes() + plane)]);
        }
      }
    }
    return looks_;
  }

  // Lists all windows, more than a device would.
  bool windows(const WindowLattice& of, FoundWindows& found) override {
    if (refuses_windows) return false;
    std::vector<float> cells(static_cast<std::size_t>(of.cells_across) * of.cells_down);
    for (int y = 0; y < of.cells_down; ++y) {
      for (int x = 0; x < of.cells_across; ++x) {
        cells[static_cast<std::size_t>(y) * of.cells_across + x] =
            pass_items::cell_sum(reader(), of, x * of.cell_step, y * of.cell_step);
      }
    }
    for (auto& list : by_window_) list.clear();
    for (auto& list : by_ring_) list.clear();
    const int apart = of.step / of.cell_step;
    for (int row = 0; row < of.rows; ++row) {
      for (int column = 0; column < of.columns; ++column) {
        const pass_items::WindowLook look = pass_items::look_at_window(
            cells.data() + static_cast<std::ptrdiff_t>(row * apart) * of.cells_across + column * apart,
            of.cells_across, flatness_cell / of.cell_step, of.level_scale);
        if (!std::isfinite(look.texture)) continue;
        const auto level = static_cast<std::size_t>(look.level);
        constexpr int offset = 4;
        if (look.texture == 0 &&
            pass_items::is_constant(reader(), of, column * of.step + offset, row * of.step + offset)) {
          ++found.levels[level].constant;
          continue;
        }
        ++found.levels[level].windows;
        const std::int64_t place = std::int64_t{row} * of.step * of.width + column * of.step;
        by_window_[level].push_back({look.texture, place});
        by_ring_[level].push_back({look.ring, place});
      }
    }
    for (std::size_t n = 0; n < found.levels.size(); ++n) {
      found.levels[n].by_window = by_window_[n];
      found.levels[n].by_ring = by_ring_[n];
    }
    return true;
  }

  std::span<const CutBlock> cut_blocks(const CutLattice& of) override {
    cuts_.clear();
    for (int c = 0; c < of.channels; ++c) {
      for (int row = 0; row < of.rows; ++row) {
        for (int column = 0; column < of.columns; ++column) {
          const int x = column * of.step;
          const int y = row * of.step;
          cuts_.push_back(of.whole_numbers
                              ? pass_items::look_at_cut_block<std::int32_t>(reader(), of.white, x, y, c)
                              : pass_items::look_at_cut_block<double>(reader(), of.white, x, y, c));
        }
      }
    }
    return cuts_;
  }

  void copy(std::span<const NoiseBlock> blocks, int first_channel, int channels, Workers& workers,
            float* to) const override {
    RowsSource(rows_).copy(blocks, first_channel, channels, workers, to);
  }

  Image on_host() override {
    Image host(image_.spec);
    for (int y = 0; y < image_.spec.height; ++y) copy_pixels(image_, y, host.view(), y);
    return host;
  }

  bool refuses_windows = false;

 private:
  struct Reader {
    const LatestRows& rows;
    float operator()(int x, int y, int c) const { return sample_at(rows, x, y, c); }
  };
  Reader reader() const { return {rows_}; }

  LatestRows rows_;
  ConstImageView image_;
  std::vector<BatchStatistics> looks_;
  std::vector<CutBlock> cuts_;
  std::array<std::vector<FlatWindow>, WindowLattice::level_count> by_window_;
  std::array<std::vector<FlatWindow>, WindowLattice::level_count> by_ring_;
};

TEST(NoisePass, FindsWhatTheProcessorFinds) {
  for (const ImageSpec& spec : testing::noise_specs()) {
    TestImage image(spec, Layout::padded);
    testing::fill_with_noise(image);
    const ConstImageView view = image.view();
    const std::string what = testing::name_of(spec);
    HostPass pass(view);
    const NoiseModelEstimate expected = estimate_noise_model(view);
    testing::expect_same(estimate_noise_model(pass, spec, {}), expected, what);
    EXPECT_EQ(estimate_noise(pass, spec).channels, estimate_noise(view).channels) << what;
    pass.refuses_windows = true;
    testing::expect_same(estimate_noise_model(pass, spec, {}), expected, what + " on the host");
    if (spec.width > 400) {
      EXPECT_GT(expected.white.sigma, 0) << what;
    }
  }
}

TEST(NoisePass, FindsTheSameCut) {
  int cut = 0;
  for (const ImageSpec& spec : testing::noise_specs()) {
    TestImage image(spec, Layout::planar);
    const double sigma = 0.05 * spec.white();
    testing::fill_with_cut_noise(image, sigma);
    const NoiseModel white = white_noise_model(spec, {sigma});
    std::vector<ChannelDeviation> deviations;
    for (int c = 0; c < spec.colour_channels(); ++c) deviations.emplace_back(white, spec, c);
    CutDetector by_rows(spec);
    by_rows.add_rows(image.view());
    CutDetector by_pass(spec);
    HostPass pass(image.view());
    by_pass.add_pass(pass);
    const Cut expected = by_rows.finish(deviations);
    const Cut found = by_pass.finish(deviations);
    EXPECT_EQ(found.at_black, expected.at_black) << testing::name_of(spec);
    EXPECT_EQ(found.at_white, expected.at_white) << testing::name_of(spec);
    EXPECT_EQ(found.deviation_factor, expected.deviation_factor) << testing::name_of(spec);
    cut += expected.at_black ? 1 : 0;
  }
  EXPECT_GT(cut, 20);
}

TEST(NoisePass, NeedsAGpuForImagesThere) {
  if (testing::gpu_missing().empty()) GTEST_SKIP() << "there is a GPU";
  Image image({.width = 64, .height = 64});
  ConstImageView view = image.view();
  view.space = {Space::Memory::cuda, 0};
  EXPECT_THROW(estimate_noise(view), Error);
  EXPECT_THROW(estimate_noise_model(view), Error);
  EXPECT_THROW(resolve_with_noise(MethodParams{Bm3dParams{}}, view), Error);
  NoiseModelEstimator rows(image.spec());
  EXPECT_THROW(rows.add_rows(view), Error) << "bands are of the host";
}

}  // namespace
}  // namespace ungrain
