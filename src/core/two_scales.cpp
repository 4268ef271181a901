#include "core/two_scales.h"

#include <algorithm>

namespace ungrain {
namespace {

void halve(const StageCall& call) {
  const ConstPlanes in = call.in[0];
  const Planes out = half_view(call.out);
  const int rows = out.rect.height();
  call.workers.for_each(std::int64_t{rows} * out.count, [&](std::int64_t item, int) {
    const int plane = static_cast<int>(item / rows);
    const int y = out.rect.y0 + static_cast<int>(item % rows);
    const float* upper = in.row(plane, 2 * y) - in.rect.x0;
    const float* lower = in.row(plane, std::min(2 * y + 1, call.image.height - 1)) - in.rect.x0;
    float* to = out.row(plane, y) - out.rect.x0;
    for (int x = out.rect.x0; x < out.rect.x1; ++x) {
      const int right = std::min(2 * x + 1, call.image.width - 1);
      to[x] = 0.25F * ((upper[2 * x] + upper[right]) + (lower[2 * x] + lower[right]));
    }
  });
}

void correct(const StageCall& call) {
  const ConstPlanes image = call.in[0];
  const ConstPlanes before = half_view(call.in[1]);
  const ConstPlanes after = half_view(call.in[2]);
  const Rect& rect = call.out.rect;
  const int half_width = (call.image.width + 1) / 2;
  const int half_height = (call.image.height + 1) / 2;
  const int rows = rect.height();
  call.workers.for_each(std::int64_t{rows} * call.out.count, [&](std::int64_t item, int) {
    const int plane = static_cast<int>(item / rows);
    const int y = rect.y0 + static_cast<int>(item % rows);
    const HalfNeighbours down = half_neighbours(y, half_height);
    const auto row_of = [&](const ConstPlanes& planes, int at) {
      return planes.row(plane, at) - planes.rect.x0;
    };
    const float* own_before = row_of(before, down.own);
    const float* own_after = row_of(after, down.own);
    const float* other_before = row_of(before, down.other);
    const float* other_after = row_of(after, down.other);
    const auto difference = [&](int x) {
      return 0.75F * (own_after[x] - own_before[x]) + 0.25F * (other_after[x] - other_before[x]);
    };
    const float* from = image.row(plane, y) - image.rect.x0;
    float* to = call.out.row(plane, y) - rect.x0;
    for (int x = rect.x0; x < rect.x1; ++x) {
      const HalfNeighbours across = half_neighbours(x, half_width);
      to[x] = from[x] + (0.75F * difference(across.own) + 0.25F * difference(across.other));
    }
  });
}

// The data of a stage at half size, which lies in the planes of the whole image.
class HalfData {
 public:
  HalfData(const StageData& whole, const Extent& half) : out_(half_view(whole.out)), image_(half) {
    for (const ConstPlanes& planes : whole.in) in_.push_back(half_view(planes));
  }
  bool empty() const { return out_.rect.height() <= 0 || out_.rect.width() <= 0; }
  StageData of(const StageData& whole) const { return {in_, out_, image_, whole.reach, {}, {}, whole.slice}; }

 private:
  std::vector<ConstPlanes> in_;
  Planes out_;
  Extent image_;
};

// A stage of the half size, working in the planes of the whole image.
Stage at_half(const Stage& inner, const Extent& half, int first_result) {
  Stage stage = inner;
  stage.name = "coarse " + inner.name;
  stage.reach.x *= 2;
  stage.reach.y *= 2;
  stage.repeated_rows *= 2;
  for (int& result : stage.reads) result += first_result;
  if (inner.run) {
    stage.run = [run = inner.run, half](const StageCall& call) {
      const HalfData data(call, half);
      if (!data.empty()) run({data.of(call), call.workers, call.scratch, call.shared});
    };
  }
  if (inner.launch) {
    stage.launch = [launch = inner.launch, half](const DeviceStageCall& call) {
      const HalfData data(call, half);
      if (!data.empty()) launch({data.of(call), call.stream, call.scratch});
    };
    if (inner.scratch_for) {
      stage.scratch_for = [most = inner.scratch_for](int rows) { return most(rows / 2 + 1); };
    }
  }
  return stage;
}

void fill_reads(Pipeline& pipeline) {
  for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
    if (pipeline.stages[stage].reads.empty()) pipeline.stages[stage].reads = {static_cast<int>(stage)};
  }
}

}  // namespace

ScalePasses cpu_scale_passes() { return {.halve = halve, .correct = correct}; }

Pipeline two_scales(Pipeline coarse, Pipeline fine, const ImageSpec& spec, const ScalePasses& passes) {
  if (coarse.stages.empty()) return fine;
  fill_reads(coarse);
  fill_reads(fine);
  const int planes = spec.colour_channels();
  const ImageSpec half = half_of(spec);
  Pipeline both;
  both.stages.push_back({.name = "halve",
                         .reach = {.x = 1, .y = 1},
                         .planes = planes,
                         .reads = {0},
                         .run = passes.halve,
                         .launch = passes.launch_halve});
  for (const Stage& stage : coarse.stages) {
    both.stages.push_back(at_half(stage, {half.width, half.height}, 1));
  }
  const int filtered = static_cast<int>(both.stages.size());
  both.stages.push_back({.name = "correct",
                         .reach = {.x = 2, .y = 2},
                         .planes = planes,
                         .reads = {0, 1, filtered},
                         .run = passes.correct,
                         .launch = passes.launch_correct});
  const int corrected = static_cast<int>(both.stages.size());
  for (Stage& stage : fine.stages) {
    for (int& result : stage.reads) result += corrected;
    both.stages.push_back(std::move(stage));
  }
  return both;
}

}  // namespace ungrain
