#include "methods/bm3d/fast.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>

#include "core/opponent_rows.h"
#include "core/scratch.h"
#include "groups/tile_search.h"
#include "methods/bm3d/filter_simd.h"
#include "methods/bm3d/transforms.h"
#include "platform/machine.h"
#include "ungrain/denoiser.h"

namespace ungrain {
namespace {

constexpr int patch = filter_patch;

// Times the parts of a thread's work, if a benchmark asks for it.
class PartClock {
 public:
  PartClock(Bm3dTimes* times, int step) : times_(times), step_(step) {
    if (times_ != nullptr) last_ = now();
  }
  void done(Bm3dPart part) {
    if (times_ == nullptr) return;
    const std::int64_t time = now();
    times_->ns[step_][static_cast<int>(part)] += time - last_;
    last_ = time;
  }

 private:
  static std::int64_t now() { return platform::thread_time_ns(); }

  Bm3dTimes* times_;
  int step_;
  std::int64_t last_ = 0;
};

// Integers for pixels from black to white and a margin beyond: for noise, or for a filter's overshoot at
// edges.
MatchScale match_scale(double white, double sigma, bool basic) {
  MatchScale scale;
  const double half = white * 9 / 16 + (basic ? 1 : 5) * sigma;
  constexpr double coarsest = 0.5;  // largest step of bytes, as a share of the noise
  double step = half / match_depth(false);
  if (step > coarsest * sigma) {
    scale.deep = true;
    step = std::max(half / match_depth(true), sigma / 8);
  }
  scale.most = match_depth(scale.deep);
  scale.middle = static_cast<float>(white / 2);
  scale.inverse_step = static_cast<float>(1 / step);
  return scale;
}

class FastStep {
 public:
  FastStep(const Bm3dSettings& settings, const ImageSpec& spec, int index, Bm3dTimes* times)
      : settings_(settings),
        times_(times),
        index_(index),
        step_(index == 0 ? settings.first : settings.second),
        planes_(spec.colour_channels()),
        sums_({spec.width, spec.height}, {.side = patch, .spacing = step_.spacing, .reach = step_.search / 2},
              planes_),
        shape_(sums_.shape()),
        search_(shape_.side, step_.search, step_.spacing, step_.group),
        most_(step_.group) {
    const std::vector<double> window = patch_window(patch, step_.kaiser);
    std::copy_n(window.begin(), patch, window_);
    const double white = spec.white() * (settings.opponent ? std::sqrt(3.0) : 1);
    tables_ = std::make_unique<FilterTables[]>(planes_);
    for (int plane = 0; plane < planes_; ++plane) {
      const PlaneNoise* model = settings_.model.empty() ? nullptr : &settings_.model[plane];
      fill_filter_tables(step_, index == 1, settings.sigma[plane], model, window_, tables_[plane]);
      scales_.push_back(match_scale(white, settings.sigma[plane], index == 1));
      if (model != nullptr && model->covariances != nullptr) add_covariances(plane);
    }
  }

  std::size_t scratch() const { return memory_at(nullptr).floats + 32; }
  std::size_t shared() const { return sums_.shared(); }

  void run(const StageCall& call) const {
    std::array<bool, max_threads> cleared{};  // of each worker's memory
    sums_.run(
        call.workers, call.out, call.shared.data(),
        [&](const TileSums::Tile& tile, int worker) {
          const Memory memory = memory_of(call, worker);
          if (!cleared[worker]) std::fill_n(memory.filtered, columns().floats(), 0.0F);
          cleared[worker] = true;
          filter_tile(call, tile, memory);
        },
        [&](int y) {
          if (settings_.opponent && index_ + 1 == settings_.steps) rgb_row(call.out, y);
        },
        [&](const auto& work) {
          PartClock clock(times_, index_);
          work();
          clock.done(Bm3dPart::division);
        });
  }

 private:
  void add_covariances(int plane) {
    const PatchCovariances& covariances = *settings_.model[plane].covariances;
    FilterTables& tables = tables_[plane];
    tables.reach_x = covariances.reach_x();
    tables.reach_y = covariances.reach_y();
    const bool known =
        plane > 0 && settings_.model[plane - 1].covariances == settings_.model[plane].covariances;
    if (!known) common_.push_back(common_noise(covariances));
    tables.common = &common_.back()[0].of[0][0];
    if (index_ == 1) return;
    corrections_.resize(static_cast<std::size_t>(planes_));
    corrections_[plane] = {match_correction(plane, scales_[plane].inverse_step),
                           match_correction(plane, scale_beyond(plane).inverse_step)};
  }

  // Empty if there is nothing to correct.
  MatchCorrection match_correction(int plane, double inverse_step) const {
    const auto at = [&](int dx, int dy) {
      const double correction = distance_correction(settings_, index_, plane, dx, dy);
      return static_cast<std::int32_t>(
          std::lround(std::min(correction * inverse_step * inverse_step * patch * patch / 2, 1e8)));
    };
    MatchCorrection result;
    for (int dy = -shape_.reach; dy <= shape_.reach; ++dy) {
      for (int dx = -shape_.reach; dx <= shape_.reach; ++dx) {
        if (at(dx, dy) == 0) continue;
        result.reach_x = std::max(result.reach_x, std::abs(dx));
        result.reach_y = std::max(result.reach_y, std::abs(dy));
        result.least = std::min(result.least, at(dx, dy));
      }
    }
    for (int dy = -result.reach_y; dy <= result.reach_y; ++dy) {
      for (int dx = -result.reach_x; dx <= result.reach_x; ++dx) result.values.push_back(at(dx, dy));
    }
    return result;
  }

  using Range = TileSums::Range;

  // A worker's memory.
  struct Memory {
    float* image = nullptr;
    float* noisy = nullptr;  // columns
    float* basic = nullptr;
    float* filtered = nullptr;  // zeros between tiles
    TileSearch::Memory search;
    std::int32_t* places = nullptr;  // most_ for each reference
    std::int32_t* sizes = nullptr;
    float* levels = nullptr;  // of the groups, for a model
    std::size_t floats = 0;
  };

  ColumnTile columns() const { return {shape_.side, shape_.side, shape_.pitch}; }

  Memory memory_at(float* start) const {
    Memory m;
    ScratchPieces pieces(start);
    const ColumnTile tile = columns();
    const auto references = static_cast<std::size_t>(shape_.references) * shape_.references;
    m.image = pieces.take<float>(shape_.plane + 16);
    m.noisy = pieces.take<float>(tile.floats());
    m.basic = index_ == 1 ? pieces.take<float>(tile.floats()) : nullptr;
    m.filtered = pieces.take<float>(tile.floats());
    m.search = search_.take_memory(pieces);
    m.places = pieces.take<std::int32_t>(references * most_);
    m.sizes = pieces.take<std::int32_t>(references);
    m.levels = pieces.take<float>(references);
    m.floats = pieces.floats();
    return m;
  }

  Memory memory_of(const StageCall& call, int worker) const {
    return memory_at(TileSums::aligned(call.scratch_of(worker)));
  }

  void filter_tile(const StageCall& call, const TileSums::Tile& at, const Memory& memory) const {
    const Range& xs = at.xs;
    const Range& ys = at.ys;
    const int left = at.left;
    const int top = at.top;

    const ColumnTile columns_of = columns();

    PartClock clock(times_, index_);
    std::fill_n(at.sums, sums_.tile_floats(), 0.0F);
    clock.done(Bm3dPart::sums);
    for (int plane = 0; plane < planes_; ++plane) {
      const bool finds = !settings_.opponent || plane == 0;
      if (index_ == 1) {
        const ConstPlanes basic = copy(call.in[1], plane, false, left, top, memory.image);
        clock.done(Bm3dPart::copies);
        if (finds) find_groups(call, basic, plane, at, memory, clock);
        clock.done(Bm3dPart::matching);
        transform_columns(step_.transform, columns_of, memory.image, memory.basic);
        clock.done(Bm3dPart::columns);
      }
      const ConstPlanes noisy = copy(call.in[0], plane, settings_.opponent, left, top, memory.image);
      clock.done(Bm3dPart::copies);
      if (index_ == 0 && finds) find_groups(call, noisy, plane, at, memory, clock);
      clock.done(Bm3dPart::matching);
      transform_columns(step_.transform, columns_of, memory.image, memory.noisy);
      clock.done(Bm3dPart::columns);
      float* values = sums_.values_of(at, plane);
      float* weights = sums_.weights_of(at, plane);
      const std::int32_t* places = memory.places;
      const int groups = (xs.end - xs.begin) * (ys.end - ys.begin);
      for (int group = 0; group < groups; ++group, places += most_) {
        filter_group({tables_[plane], step_.transform, memory.noisy, index_ == 0 ? nullptr : memory.basic,
                      places, memory.sizes[group], memory.filtered, weights, memory.levels + group, finds,
                      shape_.pitch});
      }
      clock.done(Bm3dPart::groups);
      move_columns(step_.transform, columns_of, tables_[plane], memory.filtered, values);
      spread_weights(columns_of, tables_[plane], weights);
      clock.done(Bm3dPart::sums);
    }
  }

  void find_groups(const StageCall& call, const ConstPlanes& image, int plane, const TileSums::Tile& at,
                   const Memory& memory, PartClock& clock) const {
    const TileSearch::Scales scales{scales_[plane], scale_beyond(plane), correction(plane, false),
                                    correction(plane, true), step_.max_distance};
    const TileSearch::Integers integers = search_.integers(image, call.image, scales, at, memory.search);
    clock.done(Bm3dPart::integers);
    int number = 0;
    search_.find(image, call.image, scales, integers, sums_, at, memory.search,
                 [&](const MatchGroup& group, int x, int y) {
                   keep_group(group, x - at.left, y - at.top, number++, memory);
                 });
  }

  const MatchCorrection* correction(int plane, bool beyond) const {
    if (corrections_.empty() || corrections_[plane][0].values.empty()) return nullptr;
    return &corrections_[plane][beyond ? 1 : 0];
  }

  // The scale with the middle at 0.
  MatchScale scale_beyond(int plane) const {
    return {0, static_cast<float>(8 / settings_.sigma[plane]), true, match_depth(true)};
  }

  void keep_group(const MatchGroup& group, int x, int y, int number, const Memory& memory) const {
    const int size = static_cast<int>(std::bit_floor(static_cast<unsigned>(group.count)));
    memory.sizes[number] = size;
    std::int32_t* places = memory.places + static_cast<std::ptrdiff_t>(number) * most_;
    for (int i = 0; i < size; ++i) places[i] = (y + group.dy[i]) * shape_.pitch + (x + group.dx[i]);
  }

  // Copies the pixels around a tile, as far as the image has them; of rgb planes, one of luminance and colour
  // differences.
  ConstPlanes copy(const ConstPlanes& from, int plane, bool opponent, int left, int top, float* to) const {
    const Rect rect{std::max(left, from.rect.x0), std::max(top, from.rect.y0),
                    std::min(left + shape_.side, from.rect.x1), std::min(top + shape_.side, from.rect.y1)};
    float* first = to + (rect.y0 - top) * shape_.pitch + (rect.x0 - left);
    const int width = rect.width();
    for (int y = rect.y0; y < rect.y1; ++y) {
      float* row = first + (y - rect.y0) * shape_.pitch;
      const auto source = [&](int channel) { return from.row(channel, y) + (rect.x0 - from.rect.x0); };
      if (opponent) {
        opponent_row(source(0), source(1), source(2), plane, width, row);
      } else {
        std::memcpy(row, source(plane), static_cast<std::size_t>(width) * sizeof(float));
      }
    }
    return {first, rect, shape_.pitch, 0, 1};
  }

  Bm3dSettings settings_;
  Bm3dTimes* times_;
  int index_;
  Bm3dStep step_;
  int planes_;
  TileSums sums_;
  TileSums::Shape shape_;
  TileSearch search_;
  int most_;  // patches of a group
  double window_[patch];
  std::unique_ptr<FilterTables[]> tables_;  // one for each plane
  std::vector<MatchScale> scales_;
  std::deque<std::vector<CommonNoise>> common_;  // covariances, if patches share noise; of one or more planes
  std::vector<std::array<MatchCorrection, 2>> corrections_;  // by plane; the second for scale_beyond()
};

bool takes(const Bm3dStep& step) {
  return filter_knows(step) && step.prefilter == 0 && step.search <= widest_match_search &&
         step.group <= most_matches;
}

}  // namespace

bool bm3d_fast_takes(const Bm3dSettings& settings, const ImageSpec& spec) {
  if (settings.sigma_map.data != nullptr) return false;
  if (spec.width < patch || spec.height < patch || !has_match_vectors()) return false;
  if (std::any_of(settings.sigma.begin(), settings.sigma.end(), [](double sigma) { return !(sigma > 0); }))
    return false;
  // Above 0, because signal and noise are divided and 0 / 0 is not a number.
  constexpr double least = std::numeric_limits<float>::min() * 1e6;
  for (const PlaneNoise& noise : settings.model) {
    if (!(least_variance(noise) > least)) return false;
  }
  return takes(settings.first) && (settings.steps == 1 || takes(settings.second));
}

Pipeline bm3d_fast(const Bm3dSettings& settings, const ImageSpec& spec, Bm3dTimes* times) {
  Pipeline pipeline;
  for (int index = 0; index < settings.steps; ++index) {
    const auto step = std::make_shared<const FastStep>(settings, spec, index, times);
    const int reach = bm3d_reach(settings, index);
    pipeline.stages.push_back({.name = index == 0 ? "threshold" : "wiener",
                               .reach = {.x = reach, .y = reach},
                               .planes = spec.colour_channels(),
                               .reads = index == 0 ? std::vector{0} : std::vector{0, 1},
                               .scratch = step->scratch(),
                               .shared = step->shared(),
                               .repeated_rows = reach,
                               .run = [step](const StageCall& call) { step->run(call); }});
  }
  return pipeline;
}

}  // namespace ungrain
