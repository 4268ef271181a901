#include "core/bands.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace ungrain {

BandSchedule::BandSchedule(const Pipeline& pipeline, int height, RowRange output, int band_rows)
    : pipeline_(&pipeline), height_(height), output_(output), band_rows_(std::max(1, band_rows)) {
  total_ = rows_for(output);
  for (const RowRange& rows : total_) done_.push_back(rows.begin);
  step_.output = {output.begin, output.begin};
}

int BandSchedule::steps() const {
  return static_cast<int>((static_cast<std::int64_t>(output_.count()) + band_rows_ - 1) / band_rows_);
}

// Input rows that `stage` needs to compute the rows `made`. Rows beyond the edge exist only under wrap.
RowRange BandSchedule::needed(int stage, RowRange made) const {
  const Reach& reach = pipeline_->stages[stage].reach;
  if (reach.whole) return {0, height_};
  // Heights go up to INT_MAX: sums in int would overflow.
  const std::int64_t begin = static_cast<std::int64_t>(made.begin) - reach.y;
  const std::int64_t end = static_cast<std::int64_t>(made.end) + reach.y;
  const std::int64_t lowest = pipeline_->wraps ? std::numeric_limits<int>::min() : 0;
  const std::int64_t highest = pipeline_->wraps ? std::numeric_limits<int>::max() : height_;
  return {static_cast<int>(std::max(begin, lowest)), static_cast<int>(std::min(end, highest))};
}

// Rows of each result that the rows `output` of the last result need.
std::vector<RowRange> BandSchedule::rows_for(RowRange output) const {
  const int stages = static_cast<int>(pipeline_->stages.size());
  std::vector<RowRange> rows(stages + 1, output);
  std::vector<bool> wanted(stages + 1, false);
  wanted[stages] = true;
  for (int stage = stages - 1; stage >= 0; --stage) {
    for (const int result : pipeline_->stages[stage].reads) {
      const RowRange more = needed(stage, rows[stage + 1]);
      RowRange& have = rows[result];
      have = wanted[result] ? RowRange{std::min(have.begin, more.begin), std::max(have.end, more.end)} : more;
      wanted[result] = true;
    }
  }
  return rows;
}

const BandStep* BandSchedule::next() {
  const int begin = step_.output.end;
  if (begin >= output_.end) return nullptr;
  step_.output = {begin, output_.end - begin > band_rows_ ? begin + band_rows_ : output_.end};

  // The rows that the stages have yet to compute decide which rows must be kept.
  step_.keep_from.assign(done_.size(), 0);
  for (int result = 0; result < results(); ++result) step_.keep_from[result] = done_[result];
  step_.keep_from.back() = begin;
  for (int stage = 0; stage + 1 < results(); ++stage) {
    const int from = needed(stage, {done_[stage + 1], done_[stage + 1]}).begin;
    for (const int result : pipeline_->stages[stage].reads) {
      int& keep = step_.keep_from[result];
      keep = std::min(keep, std::max(from, total_[result].begin));
    }
  }

  const std::vector<RowRange> rows = rows_for({output_.begin, step_.output.end});
  step_.compute.resize(done_.size());
  for (int result = 0; result < results(); ++result) {
    step_.compute[result] = {done_[result], std::max(done_[result], rows[result].end)};
    done_[result] = step_.compute[result].end;
  }
  return &step_;
}

namespace {

// An image height at which bands of `band_rows` rows reach their steady state, also when they start in the
// middle of the image.
int steady_height(const Pipeline& pipeline, int height, int band_rows) {
  constexpr int far = 1 << 28;
  const Reach reach = total_reach(pipeline, {far, far});
  constexpr std::int64_t most = far;
  return reach.whole ? height
                     : static_cast<int>(std::min(most, 8 * (static_cast<std::int64_t>(band_rows) + reach.y)));
}

}  // namespace

void play_worst(const Pipeline& pipeline, int height, const BandPlaying& playing,
                const std::function<void(const BandStep&, int played_height)>& visit) {
  const int taller = steady_height(pipeline, height, playing.band_rows);
  for (const int begin : {0, taller / 2}) {
    const int end =
        playing.carries_rows || taller - begin < playing.band_rows ? taller : begin + playing.band_rows;
    BandSchedule schedule(pipeline, taller, {begin, end}, playing.band_rows);
    while (const BandStep* step = schedule.next()) visit(*step, taller);
  }
}

std::vector<int> rows_held(const Pipeline& pipeline, int height, const BandPlaying& playing) {
  const BandSchedule real(pipeline, height, {0, height}, playing.band_rows);
  std::vector<int> most(real.results(), 0);
  play_worst(pipeline, height, playing, [&](const BandStep& step, int) {
    for (int result = 0; result < real.results(); ++result) {
      most[result] = std::max(most[result], step.compute[result].end - step.keep_from[result]);
    }
  });
  for (int result = 0; result < real.results(); ++result) {
    const RowRange all = real.all_rows(result);
    most[result] = static_cast<int>(
        std::min(static_cast<std::int64_t>(most[result]), static_cast<std::int64_t>(all.end) - all.begin));
  }
  return most;
}

std::vector<RowRange> columns_for(const Pipeline& pipeline, int width, RowRange output) {
  const int stages = static_cast<int>(pipeline.stages.size());
  std::vector<RowRange> columns(stages + 1, output);
  for (int stage = stages - 1; stage >= 0; --stage) {
    const Reach& reach = pipeline.stages[stage].reach;
    const RowRange made = columns[stage + 1];
    const RowRange more = reach.whole || pipeline.wraps
                              ? RowRange{0, width}
                              : RowRange{std::max(0, made.begin - std::min(reach.x, width)),
                                         std::min(width, made.end + std::min(reach.x, width))};
    for (const int result : pipeline.stages[stage].reads) {
      columns[result] = {std::min(columns[result].begin, more.begin),
                         std::max(columns[result].end, more.end)};
    }
  }
  return columns;
}

Reach total_reach(const Pipeline& pipeline, const Extent& image) {
  const int stages = static_cast<int>(pipeline.stages.size());
  std::vector<Reach> reach(stages + 1);
  for (int stage = stages - 1; stage >= 0; --stage) {
    const Stage& s = pipeline.stages[stage];
    const Reach& made = reach[stage + 1];
    Reach more{std::min(image.width, made.x + s.reach.x), std::min(image.height, made.y + s.reach.y),
               made.whole || s.reach.whole, made.before + s.reach.before, made.after + s.reach.after};
    if (s.reach.whole) {
      more.x = image.width;
      more.y = image.height;
    }
    for (const int result : s.reads) {
      Reach& all = reach[result];
      all = {std::max(all.x, more.x), std::max(all.y, more.y), all.whole || more.whole,
             std::max(all.before, more.before), std::max(all.after, more.after)};
    }
  }
  return reach[0];
}

}  // namespace ungrain
