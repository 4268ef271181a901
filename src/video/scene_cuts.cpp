#include "video/scene_cuts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "core/convert.h"

namespace ungrain {
namespace {

constexpr int blocks_across = 16;
constexpr int least_side = 12;

constexpr double least_variance = 1e-4;  // a deviation of 2.5 on the 0-255 scale
constexpr double least_share = 0.15;     // a correlation of 0.92
// Times the variance of the differences beside it. Pans, flashes and noise of deviation 50 reach 1.3, cuts in
// such noise 3.2 and more (160 x 120 pixels). The fewer the blocks, the more noise varies it.
constexpr double stands_out = 2.5;
constexpr double for_few_blocks = 20;

constexpr int rows_of_a_block = 16;  // that are looked at, about: all would take 6 ms of 1080p

// In lanes, so that the compiler makes vectors of them.
float sum_of(std::span<const float> samples) {
  constexpr std::size_t lanes = 8;
  std::array<float, lanes> sums{};
  std::size_t x = 0;
  for (; x + lanes <= samples.size(); x += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += samples[x + lane];
  }
  for (; x < samples.size(); ++x) sums[0] += samples[x];
  return std::accumulate(sums.begin(), sums.end(), 0.0F);
}

struct BlockSum {
  double sum = 0;
  double count = 0;

  void add(std::span<const float> samples) {
    const float whole = sum_of(samples);
    if (std::isfinite(whole)) {
      sum += whole;
      count += static_cast<double>(samples.size());
      return;
    }
    for (const float sample : samples) {
      if (!std::isfinite(sample)) continue;
      sum += sample;
      count += 1;
    }
  }
};

}  // namespace

FrameOutline outline_of(const ConstImageView& frame) {
  const ConstImageView view = frame.spec.colour == Colour::ycbcr ? luma_view(frame) : frame;
  const int side = std::max(least_side, (view.spec.width + blocks_across - 1) / blocks_across);
  const int columns = (view.spec.width + side - 1) / side;
  const int rows = (view.spec.height + side - 1) / side;
  std::vector<BlockSum> blocks(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows));
  std::vector<float> row(static_cast<std::size_t>(view.spec.width));
  const int step = std::max(1, side / rows_of_a_block);
  for (int y = 0; y < view.spec.height; y += step) {
    BlockSum* block = &blocks[static_cast<std::size_t>(y / side) * static_cast<std::size_t>(columns)];
    for (int channel = 0; channel < view.spec.colour_channels(); ++channel) {
      load_row(view, y, channel, row.data());
      for (int column = 0; column < columns; ++column) {
        const int begin = column * side;
        const int end = std::min(view.spec.width, begin + side);
        block[column].add(
            std::span(row).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
      }
    }
  }
  std::vector<float> means;
  for (const BlockSum& block : blocks) {
    means.push_back(block.count > 0 ? static_cast<float>(block.sum / block.count / view.spec.white()) : 0);
  }
  return {std::move(means)};
}

FrameDifference frame_difference(const FrameOutline& first, const FrameOutline& second) {
  const std::vector<float>& a = first.blocks;
  const std::vector<float>& b = second.blocks;
  const auto count = static_cast<double>(a.size());
  double mean_a = 0;
  double mean_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    mean_a += a[i] / count;
    mean_b += b[i] / count;
  }
  double variance_a = 0;
  double variance_b = 0;
  double covariance = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double from_a = a[i] - mean_a;
    const double from_b = b[i] - mean_b;
    variance_a += from_a * from_a / count;
    variance_b += from_b * from_b / count;
    covariance += from_a * from_b / count;
  }
  const double both = variance_a * variance_b;
  // A negative of a picture is another picture.
  const double explained = covariance > 0 && both > 0 ? std::min(1.0, covariance * covariance / both) : 0;
  return {.variance = (1 - explained) * std::max(variance_a, variance_b),
          .share = 1 - explained,
          .blocks = static_cast<int>(a.size())};
}

bool is_cut(const std::optional<FrameDifference>& before, const FrameDifference& here,
            const std::optional<FrameDifference>& after) {
  if (here.variance < least_variance || here.share < least_share) return false;
  const double ratio = stands_out + for_few_blocks / here.blocks;
  const auto stands_out_from = [&](const std::optional<FrameDifference>& other) {
    return !other || here.variance > ratio * other->variance;
  };
  return stands_out_from(before) && stands_out_from(after);
}

bool is_cut(const FrameOutline* two_before, const FrameOutline& before, const FrameOutline& frame,
            const FrameOutline* after) {
  const auto difference = [](const FrameOutline* a, const FrameOutline* b) -> std::optional<FrameDifference> {
    if (a == nullptr || b == nullptr) return std::nullopt;
    return frame_difference(*a, *b);
  };
  return is_cut(difference(two_before, &before), frame_difference(before, frame), difference(&frame, after));
}

}  // namespace ungrain
