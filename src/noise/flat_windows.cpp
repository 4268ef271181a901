#include "noise/flat_windows.h"

#include <algorithm>
#include <cmath>

#include "core/convert.h"

namespace ungrain {
namespace {

constexpr int cells_along = flatness_window / flatness_cell;
constexpr int block_offset = (flatness_window - measured_side) / 2;  // of a block in its window

}  // namespace

float* BlockPool::add(double texture, std::int64_t place, std::size_t samples) {
  std::size_t at = samples_.size();
  if (blocks_.size() < most) {
    samples_.resize(at + samples);
  } else {
    at = blocks_.front().samples;
    std::pop_heap(blocks_.begin(), blocks_.end());
    blocks_.pop_back();
  }
  blocks_.push_back({texture, place, at});
  std::push_heap(blocks_.begin(), blocks_.end());
  return samples_.data() + at;
}

void BlockPool::merge(const BlockPool& other, std::size_t samples) {
  for (const Block& block : other.blocks_) {
    if (wants(block.texture, block.place)) {
      std::copy_n(other.samples(block), samples, add(block.texture, block.place, samples));
    }
  }
}

// Up to 1.5 million windows: more make no difference. Above 4 pixels the step is a multiple of the cells', so
// that windows share them.
int FlatWindows::step(const ImageSpec& image) {
  constexpr double most_windows = 1.5e6;
  const auto pixels = static_cast<double>(image.width) * image.height;
  int step = 2;
  while (pixels / (static_cast<double>(step) * step) > most_windows) step += step < flatness_cell ? 2 : 4;
  return step;
}

FlatWindows::FlatWindows(const ImageSpec& image, int first_channel, int channels, int first_row)
    : width_(image.width),
      first_channel_(first_channel),
      channels_(channels),
      first_row_(first_row),
      next_row_(first_row),
      step_(step(image)),
      cell_step_(std::min(step_, flatness_cell)),
      windows_across_(width_ < flatness_window ? 0 : (width_ - flatness_window) / step_ + 1),
      white_(image.white()),
      rows_(static_cast<std::size_t>(channels) * flatness_window, Row(static_cast<std::size_t>(width_))),
      channel_sums_(flatness_cell, Row(static_cast<std::size_t>(width_))),
      column_sums_(static_cast<std::size_t>(width_)),
      cells_(static_cast<std::size_t>(flatness_window / cell_step_),
             Row(static_cast<std::size_t>(width_ / cell_step_ + 1))) {}

void FlatWindows::add_rows(const ConstImageView& rows) {
  if (windows_across_ == 0) return;
  for (int y = 0; y < rows.spec.height; ++y, ++next_row_) {
    float* loaded[max_channels];
    for (int c = 0; c < channels_; ++c) {
      loaded[c] = rows_[c * flatness_window + next_row_ % flatness_window].data();
    }
    if (channels_ > 1) {
      load_channels(rows, y, channels_, loaded);  // the image's first ones: only rgb is looked at together
    } else {
      load_row(rows, y, first_channel_, loaded[0]);
    }
    Row& sum = channel_sums_[next_row_ % flatness_cell];
    std::copy_n(loaded[0], width_, sum.data());
    for (int c = 1; c < channels_; ++c) {
      for (int x = 0; x < width_; ++x) sum[x] += loaded[c][x];
    }
    const int cell_row = next_row_ - flatness_cell + 1;
    if (cell_row >= first_row_ && cell_row % cell_step_ == 0) add_cells(cell_row);
    const int window_row = next_row_ - flatness_window + 1;
    if (window_row >= first_row_ && window_row % step_ == 0) add_windows(window_row);
  }
}

// Sums, not means: of whole numbers they are exact, and a constant window has a texture of exactly 0.
void FlatWindows::add_cells(int y) {
  // By their place in the store, not by their order: the sum's bits must not depend on the first row.
  const std::vector<Row>& rows = channel_sums_;
  for (int x = 0; x < width_; ++x) column_sums_[x] = (rows[0][x] + rows[1][x]) + (rows[2][x] + rows[3][x]);
  Row& to = cells_[y / cell_step_ % cells_.size()];
  for (int x = 0, n = 0; x + flatness_cell <= width_; x += cell_step_, ++n) {
    const float* sum = column_sums_.data() + x;
    to[n] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
}

void FlatWindows::add_windows(int y) {
  const float* in[cells_along];
  for (int k = 0; k < cells_along; ++k) in[k] = cells(y + k * flatness_cell).data();
  const int apart = flatness_cell / cell_step_;  // from a cell to its neighbour
  const double samples = static_cast<double>(flatness_cell) * flatness_cell * channels_;
  for (int n = 0; n < windows_across_; ++n) {
    const int first = n * (step_ / cell_step_);
    double sum = 0;
    double squares = 0;
    double centre = 0;
    double centre_squares = 0;
    for (int j = 0; j < cells_along; ++j) {
      for (int i = 0; i < cells_along; ++i) {
        const double cell = in[j][first + i * apart];
        const bool inside = (i == 1 || i == 2) && (j == 1 || j == 2);
        sum += cell;
        squares += cell * cell;
        if (inside) centre += cell;
        if (inside) centre_squares += cell * cell;
      }
    }
    const double texture = (16 * squares - sum * sum) / (256 * samples * samples);
    if (!std::isfinite(texture)) continue;
    const double ring_sum = sum - centre;
    const double ring = (12 * (squares - centre_squares) - ring_sum * ring_sum) / (144 * samples * samples);
    add_window(n * step_, y, sum / (16 * samples), texture, ring);
  }
}

NoiseBlock FlatWindows::block_at(std::int64_t place) const {
  return {static_cast<int>(place % width_) + block_offset, static_cast<int>(place / width_) + block_offset};
}

void FlatWindows::add_window(int x, int y, double level, double texture, double ring) {
  const double place = level_count * std::sqrt(std::max(level, 0.0) / white_);
  LevelBlocks& blocks = levels_[static_cast<std::size_t>(std::min(place, level_count - 1.0))];
  if (texture == 0 && is_constant(x + block_offset, y + block_offset)) {
    ++blocks.constant;
    return;
  }
  ++blocks.windows;
  const std::int64_t index = static_cast<std::int64_t>(y) * width_ + x;
  const auto offer = [&](BlockPool& pool, double flatness) {
    if (!pool.wants(flatness, index)) return;
    copy_block(x + block_offset, y + block_offset, pool.add(flatness, index, block_samples()));
  };
  offer(blocks.by_window, texture);
  offer(blocks.by_ring, ring);
}

bool FlatWindows::is_constant(int x, int y) const {
  for (int c = 0; c < channels_; ++c) {
    const float first = row(c, y)[x];
    for (int dy = 0; dy < measured_side; ++dy) {
      const float* from = row(c, y + dy) + x;
      if (std::any_of(from, from + measured_side, [&](float value) { return value != first; })) return false;
    }
  }
  return true;
}

void FlatWindows::copy_block(int x, int y, float* to) const {
  for (int c = 0; c < channels_; ++c) {
    for (int dy = 0; dy < measured_side; ++dy, to += measured_side) {
      std::copy_n(row(c, y + dy) + x, measured_side, to);
    }
  }
}

void FlatWindows::merge(const FlatWindows& strip) {
  for (std::size_t n = 0; n < levels_.size(); ++n) {
    const LevelBlocks& from = strip.levels_[n];
    levels_[n].windows += from.windows;
    levels_[n].constant += from.constant;
    levels_[n].by_window.merge(from.by_window, block_samples());
    levels_[n].by_ring.merge(from.by_ring, block_samples());
  }
}

}  // namespace ungrain
