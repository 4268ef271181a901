#include "noise/flat_windows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace ungrain {
namespace {

constexpr int cells_along = flatness_window / flatness_cell;
constexpr int block_offset = (flatness_window - measured_side) / 2;  // of a block in its window

std::size_t quad_slot(int top) { return static_cast<std::size_t>(top / 2 % 2); }

std::vector<BlockPool::Block> without_samples(const std::vector<FlatCandidates::Candidate>& flattest) {
  std::vector<BlockPool::Block> blocks;
  blocks.reserve(flattest.size());
  for (const FlatCandidates::Candidate& block : flattest) {
    blocks.push_back({block.texture, block.place, BlockPool::no_samples});
  }
  return blocks;
}

}  // namespace

float* BlockPool::add(double texture, std::int64_t place, std::size_t samples) {
  if (!samples_) samples_ = std::unique_ptr<float[]>(new float[most * samples]);
  std::size_t at = blocks_.size() * samples;
  if (full()) {
    at = blocks_.front().samples;
    std::pop_heap(blocks_.begin(), blocks_.end());
    blocks_.pop_back();
  }
  blocks_.push_back({texture, place, at});
  std::push_heap(blocks_.begin(), blocks_.end());
  return samples_.get() + at;
}

void FlatCandidates::add(const Candidate* candidates, std::size_t count) {
  const std::lock_guard lock(mutex_);
  std::copy_if(candidates, candidates + count, std::back_inserter(candidates_),
               [limit = limit()](const Candidate& candidate) { return candidate.texture <= limit; });
  if (candidates_.size() >= 2 * BlockPool::most) keep_flattest();
}

void FlatCandidates::keep_flattest() {
  if (candidates_.size() <= BlockPool::most) return;
  const auto last = candidates_.begin() + (BlockPool::most - 1);
  std::nth_element(candidates_.begin(), last, candidates_.end());
  candidates_.resize(BlockPool::most);
  limit_.store(candidates_.back().texture, std::memory_order_relaxed);
}

void FlatCandidates::start(double limit) {
  candidates_.clear();
  limit_.store(limit, std::memory_order_relaxed);
}

std::vector<FlatCandidates::Candidate> FlatCandidates::flattest() {
  keep_flattest();
  std::sort(candidates_.begin(), candidates_.end());
  return candidates_;
}

// Up to 1.5 million windows: more make no difference. Above 4 pixels the step is a multiple of the cells'
// step, so that windows state cells.
int FlatWindows::step(const ImageSpec& image) {
  constexpr double most_windows = 1.5e6;
  const auto pixels = static_cast<double>(image.width) * image.height;
  int step = 2;
  while (pixels / (static_cast<double>(step) * step) > most_windows) step += step < flatness_cell ? 2 : 4;
  return step;
}

FlatWindows::FlatWindows(const ImageSpec& image, int first_channel, int channels)
    : width_(image.width),
      height_(image.height),
      first_channel_(first_channel),
      channels_(channels),
      step_(step(image)),
      cell_step_(std::min(step_, flatness_cell)),
      windows_across_(width_ < flatness_window ? 0 : (width_ - flatness_window) / step_ + 1),
      cells_across_(width_ < flatness_window ? 0 : (width_ - flatness_cell) / cell_step_ + 1),
      white_(image.white()),
      quad_sums_(image, first_channel, channels),
      candidates_(std::make_unique<std::array<LevelCandidates, level_count>>()) {
  const double samples = static_cast<double>(flatness_window) * flatness_window * channels_;
  level_scale_ = static_cast<double>(level_count) * level_count / (samples * image.white());
}

void FlatWindows::prepare(int workers) { worker_states_.resize(static_cast<std::size_t>(workers)); }

// Made by the worker itself: its memory is first touched in parallel with the others'.
FlatWindows::WorkerState& FlatWindows::state_of(int worker) {
  std::unique_ptr<WorkerState>& state = worker_states_[static_cast<std::size_t>(worker)];
  if (state) return *state;
  state = std::make_unique<WorkerState>();
  const auto cells = static_cast<std::size_t>(cells_across_);
  state->samples.resize(static_cast<std::size_t>(quad_sums_.scratch()));
  state->quads.assign(2, std::vector<float>(static_cast<std::size_t>(width_ / 2)));
  state->cells.assign(static_cast<std::size_t>(flatness_window / cell_step_), std::vector<float>(cells));
  state->sums.resize(4 * cells);
  state->textures.resize(cells);
  state->rings.resize(cells);
  state->places.resize(cells);
  return *state;
}

void FlatWindows::look_at(const LatestRows& rows, int first, int end, int worker) {
  if (windows_across_ == 0) return;
  WorkerState& state = state_of(worker);
  for (std::size_t n = 0; n < level_count; ++n) {
    state.levels[n].by_window.follow((*candidates_)[n].by_window);
    state.levels[n].by_ring.follow((*candidates_)[n].by_ring);
  }
  const int first_top = std::max(0, first - flatness_window + 1);
  for (int y = (first_top + step_ - 1) / step_ * step_; y + flatness_window <= end; y += step_) {
    if (y < state.first_cells || y > state.next_cells) state.first_cells = state.next_cells = y;
    for (; state.next_cells + flatness_cell <= y + flatness_window; state.next_cells += cell_step_) {
      add_cells(rows, state.next_cells, state);
    }
    look_at_row(rows, y, state);
  }
}

// Sums, not means: integer sums are exact, and a constant window has a texture of exactly 0.
void FlatWindows::add_cells(const LatestRows& rows, int y, WorkerState& state) const {
  for (const int top : {y, y + 2}) {
    const std::size_t slot = quad_slot(top);
    if (std::exchange(state.quad_tops[slot], top) == top) continue;  // overlapping cells
    quad_sums_(rows.row(top), rows.row(top + 1), state.samples.data(), state.quads[slot].data());
  }
  std::vector<float>& to = state.cells[static_cast<std::size_t>(y / cell_step_) % state.cells.size()];
  cell_sums(state.quads[quad_slot(y)].data(), state.quads[quad_slot(y + 2)].data(), cell_step_, cells_across_,
            to.data());
}

void FlatWindows::look_at_row(const LatestRows& rows, int y, WorkerState& state) const {
  WindowRow row{.cell_count = cells_across_,
                .apart = flatness_cell / cell_step_,
                .level_scale = level_scale_,
                .level_count = level_count};
  for (int k = 0; k < cells_along; ++k) {
    const auto at = static_cast<std::size_t>((y + k * flatness_cell) / cell_step_);
    row.cells[k] = state.cells[at % state.cells.size()].data();
  }
  measure_windows(row, state.sums.data(), {state.textures.data(), state.rings.data(), state.places.data()});
  const std::int64_t first_place = static_cast<std::int64_t>(y) * width_;
  const int cells_apart = step_ / cell_step_;
  for (int n = 0; n < windows_across_; ++n) {
    const auto cell = static_cast<std::size_t>(n * cells_apart);
    const double texture = state.textures[cell];
    if (!std::isfinite(texture)) continue;
    const int x = n * step_;
    const auto place = static_cast<std::size_t>(state.places[cell]);
    Level& level = state.levels[place];
    if (texture == 0 &&
        is_constant_block(rows, first_channel_, channels_, x + block_offset, y + block_offset)) {
      ++level.constant;
      continue;
    }
    ++level.windows;
    level.by_window.offer(texture, first_place + x, (*candidates_)[place].by_window);
    level.by_ring.offer(state.rings[cell], first_place + x, (*candidates_)[place].by_ring);
  }
}

NoiseBlock FlatWindows::block_at(std::int64_t place) const {
  return {static_cast<int>(place % width_) + block_offset, static_cast<int>(place / width_) + block_offset};
}

void FlatWindows::add_up(std::size_t index) {
  LevelBlocks& level = levels_[index];
  LevelCandidates& candidates = (*candidates_)[index];
  for (const std::unique_ptr<WorkerState>& state : worker_states_) {
    if (!state) continue;
    Level& found = state->levels[index];
    level.windows += std::exchange(found.windows, 0);
    level.constant += std::exchange(found.constant, 0);
    found.by_window.flush(candidates.by_window);
    found.by_ring.flush(candidates.by_ring);
  }
}

void FlatWindows::choose(Workers& workers) {
  if (windows_across_ == 0) return;
  workers.for_each_quietly(level_count, [&](std::int64_t n, int) {
    const auto index = static_cast<std::size_t>(n);
    add_up(index);
    levels_[index].by_window.set(without_samples((*candidates_)[index].by_window.flattest()));
    levels_[index].by_ring.set(without_samples((*candidates_)[index].by_ring.flattest()));
  });
}

WindowLattice FlatWindows::lattice() const {
  const bool some = windows_across_ > 0 && height_ >= flatness_window;
  return {.first_channel = first_channel_,
          .channels = channels_,
          .step = step_,
          .cell_step = cell_step_,
          .columns = some ? windows_across_ : 0,
          .rows = some ? (height_ - flatness_window) / step_ + 1 : 0,
          .cells_across = cells_across_,
          .cells_down = some ? (height_ - flatness_cell) / cell_step_ + 1 : 0,
          .width = width_,
          .level_scale = level_scale_};
}

void FlatWindows::take(const FoundWindows& found, Workers& workers) {
  const auto add = [](std::span<const FlatWindow> windows, FlatCandidates& to) {
    std::vector<FlatCandidates::Candidate> candidates;
    candidates.reserve(windows.size());
    for (const FlatWindow& window : windows) candidates.push_back({window.texture, window.place});
    to.add(candidates.data(), candidates.size());
  };
  workers.for_each_quietly(level_count, [&](std::int64_t level, int) {
    const auto n = static_cast<std::size_t>(level);
    levels_[n].windows = found.levels[n].windows;
    levels_[n].constant = found.levels[n].constant;
    add(found.levels[n].by_window, (*candidates_)[n].by_window);
    add(found.levels[n].by_ring, (*candidates_)[n].by_ring);
  });
}

void FlatWindows::request(int level, BlockPool LevelBlocks::*pool, std::size_t index) {
  BlockPool::Block& block = (levels_[static_cast<std::size_t>(level)].*pool).block(index);
  if (block.samples != BlockPool::no_samples) return;
  block.samples = requested_.size() * block_samples();
  requested_.push_back(block_at(block.place));
}

void FlatWindows::fetch(const BlockSource& source, Workers& workers) {
  fetched_ = std::unique_ptr<float[]>(new float[requested_.size() * block_samples()]);
  source.copy(requested_, first_channel_, channels_, workers, fetched_.get());
}

void FlatWindows::collect(const LatestRows& rows, Workers& workers) {
  if (windows_across_ == 0) return;
  workers.for_each_quietly(level_count, [&](std::int64_t n, int) {
    const auto index = static_cast<std::size_t>(n);
    add_up(index);
    LevelBlocks& level = levels_[index];
    LevelCandidates& candidates = (*candidates_)[index];
    std::vector<PendingBlock> wanted;
    make_room(candidates.by_window, level.by_window, wanted);
    make_room(candidates.by_ring, level.by_ring, wanted);
    fetch(rows, wanted);
  });
}

// The flattest candidates come first, so that a block that gets a place keeps it.
void FlatWindows::make_room(FlatCandidates& candidates, BlockPool& pool,
                            std::vector<PendingBlock>& wanted) const {
  for (const FlatCandidates::Candidate& candidate : candidates.flattest()) {
    if (!pool.wants(candidate.texture, candidate.place)) break;
    wanted.push_back({candidate.place, pool.add(candidate.texture, candidate.place, block_samples())});
  }
  candidates.start(pool.full() ? pool.least_flat().texture : std::numeric_limits<double>::infinity());
}

// Blocks lie all over the image, and flat blocks have flat neighbours: in the image's order they are often in
// a cache already.
void FlatWindows::fetch(const LatestRows& rows, std::vector<PendingBlock>& wanted) const {
  std::sort(wanted.begin(), wanted.end(),
            [](const PendingBlock& a, const PendingBlock& b) { return a.place < b.place; });
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    constexpr std::size_t ahead = 3;
    if (n + ahead < wanted.size()) {
      const NoiseBlock soon = block_at(wanted[n + ahead].place);
      prefetch_block(rows, soon.x, soon.y);
    }
    const NoiseBlock block = block_at(wanted[n].place);
    copy_blocks(rows, first_channel_, channels_, block.x, block.y, wanted[n].to);
  }
}

}  // namespace ungrain
