#include "core/plan.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/border.h"
#include "core/memory.h"
#include "core/run_checks.h"
#include "core/ycbcr.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

constexpr int slots_of_a_sequence = 3;  // one slice is uploaded, one computed, one downloaded

// Rows that become float planes at a time where the samples are not needed again: fewer samples are held.
int rows_converted_at_once(const ImageSpec& spec) {
  constexpr int pixels = 1 << 20;
  return whole_chroma_rows(std::max(1, pixels / spec.width), spec);
}

bool looks_along_slow_axis(const Pipeline& pipeline) {
  return std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                     [](const Stage& stage) { return stage.reach.slices() > 1; });
}

RowRange clipped(RowRange rows, RowRange to) {
  return {std::clamp(rows.begin, to.begin, to.end), std::clamp(rows.end, to.begin, to.end)};
}

// The rows of samples that the largest load needs.
int raw_rows_held(const Pipeline& pipeline, const ImageSpec& spec, const Options& options,
                  const BandPlaying& playing, int load_rows, bool whole_bands) {
  const int fill = fill_reach(spec, options);
  int most = 2 * fill + 1;
  play_worst(pipeline, spec.height, playing, [&](const BandStep& step, int height) {
    const RowRange rows = clipped(step.compute[0], {0, height});
    const RowRange held{rows.begin - fill, rows.end + fill};  // the real image may go on there
    const int begin =
        needs_raw_at_output(spec, options) ? std::min(held.begin, step.output.begin) : held.begin;
    most = std::max(most, whole_bands ? held.end - begin : std::min(rows.count(), load_rows) + 2 * fill);
  });
  return std::min(most, spec.height);
}

}  // namespace

bool needs_raw_at_output(const ImageSpec& spec, const Options& options) {
  return spec.alpha || (is_float(spec.type) && options.nonfinite == NonFinite::keep);
}

std::vector<RowRange> slow_reaches(const Pipeline& pipeline) {
  std::vector<RowRange> reaches(pipeline.stages.size() + 1, RowRange{0, 1});
  for (std::size_t stage = pipeline.stages.size(); stage-- > 0;) {
    const Reach& reach = pipeline.stages[stage].reach;
    const RowRange made = reaches[stage + 1];
    for (const int result : pipeline.stages[stage].reads) {
      RowRange& have = reaches[static_cast<std::size_t>(result)];
      have = {std::min(have.begin, made.begin - reach.before), std::max(have.end, made.end + reach.after)};
    }
  }
  return reaches;
}

BufferPlan::BufferPlan(const Pipeline& pipeline, const ImageSpec& spec, const Options& options,
                       const Backend& backend, int rows)
    : band_rows(rows), bands((spec.height + rows - 1) / rows) {
  const BackendTraits traits = backend.traits();
  host_memory = traits.works_in_host_memory;
  row_stride = (spec.width + traits.row_alignment - 1) / traits.row_alignment * traits.row_alignment;
  const BandPlaying playing{band_rows, traits.carries_rows};
  const std::vector<int> held = rows_held(pipeline, spec.height, playing);
  const std::vector<RowRange> slow = slow_reaches(pipeline);
  std::vector<int> stage_rows;
  for (std::size_t index = 0; index < held.size(); ++index) {
    Result result{.planes = spec.colour_channels(), .rows = held[index], .slices = slow[index].count()};
    if (index > 0) {
      result.planes = pipeline.stages[index - 1].planes;
      result.element = pipeline.stages[index - 1].element;
      stage_rows.push_back(result.rows);
    }
    result.bytes = static_cast<std::size_t>(row_stride) * static_cast<std::size_t>(result.rows) *
                   static_cast<std::size_t>(result.planes) * bytes_of(result.element);
    results.push_back(result);
  }
  scratch_bytes = backend.scratch_bytes(pipeline, stage_rows, spec);
  if (pipeline.wraps) head_rows = std::min(spec.height, total_reach(pipeline, {spec.width, spec.height}).y);

  const bool raw_at_output = needs_raw_at_output(spec, options);
  const bool whole_bands = !host_memory || raw_at_output;
  load_rows = whole_bands ? std::numeric_limits<int>::max() : rows_converted_at_once(spec);
  int raw_rows = raw_rows_held(pipeline, spec, options, playing, load_rows, whole_bands);
  if (pipeline.direct.run || pipeline.direct.launch) {
    const int reach = total_reach(pipeline, {spec.width, spec.height}).y;
    const int around = 2 * (reach + (pipeline.direct.launch ? fill_reach(spec, options) : 0));
    raw_rows = std::max(raw_rows, std::min(spec.height, band_rows + around));
  }
  raw_bytes = static_cast<std::size_t>(interleaved_strides(spec).y) * static_cast<std::size_t>(raw_rows);
  out_samples = static_cast<std::size_t>(spec.width) * spec.channels * static_cast<std::size_t>(band_rows);

  const int window = slow[0].count();
  const bool sequence = looks_along_slow_axis(pipeline);
  const bool one_after_another = bands > 1 || sequence;
  if (host_memory) {
    host_inputs = (one_after_another ? 2 : 1) + (raw_at_output ? window - 1 : 0);
    host_outputs = one_after_another ? 2 : 1;
    return;
  }
  lanes = sequence ? 1 : std::min(traits.lanes * backend.queues(), bands);
  slots = sequence ? slots_of_a_sequence : lanes;
  device_raws = sequence ? slots - 1 + (raw_at_output ? window : 1) : 1;
  host_inputs = slots + 1;
  host_outputs = slots + 1;
}

std::size_t BufferPlan::head_bytes() const {
  return static_cast<std::size_t>(row_stride) * static_cast<std::size_t>(head_rows) *
         static_cast<std::size_t>(results[0].planes) * sizeof(float);
}

std::size_t BufferPlan::lane_bytes() const {
  std::size_t sum = scratch_bytes + head_bytes();
  for (const Result& result : results) sum += result.bytes * static_cast<std::size_t>(result.slices);
  return sum;
}

std::size_t BufferPlan::bytes(bool images_on_device) const {
  const auto times = [](std::size_t each, int count) { return each * static_cast<std::size_t>(count); };
  const std::size_t out_bytes = out_samples * sizeof(float);
  if (host_memory) return lane_bytes() + times(raw_bytes, host_inputs) + times(out_bytes, host_outputs);
  if (images_on_device) return lane_bytes() + sizeof(NonFiniteStats);
  return times(lane_bytes() + times(raw_bytes, device_raws), lanes) +
         times(out_bytes + sizeof(NonFiniteStats), slots);
}

int planned_band_rows(const Pipeline& pipeline, const ImageSpec& spec, const Options& options,
                      const Backend& backend, int wanted, bool images_on_device) {
  const auto rounded = [&](int rows) { return std::min(whole_chroma_rows(rows, spec), spec.height); };
  if (options.band_rows > 0 && !images_on_device) {
    return rounded(std::min(options.band_rows, spec.height));
  }
  const std::size_t limit = options.memory > 0 ? options.memory : backend.memory_to_take();
  const auto bytes = [&](int rows) {
    return BufferPlan(pipeline, spec, options, backend, rows).bytes(images_on_device);
  };
  int rows = rounded(wanted);
  while (rows > spec.chroma.y && bytes(rows) > limit) {
    const int fewer = rows - (rows + 3) / 4;
    rows = std::max(spec.chroma.y, fewer - fewer % spec.chroma.y);
  }
  if (const std::size_t least = bytes(rows); least > limit) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("an image of {} x {} needs at least {} of {}, the limit is {}", spec.width,
                            spec.height, bytes_text(least), backend.traits().memory_name, bytes_text(limit)));
  }
  return rows;
}

Walk::Walk(const Pipeline& pipeline, const ImageSpec& spec, const Settings& settings, Slices& slices)
    : pipeline_(&pipeline),
      height_(spec.height),
      settings_(settings),
      slices_(&slices),
      reaches_(slow_reaches(pipeline)),
      slow_(looks_along_slow_axis(pipeline)),
      slice_(settings.first_slice),
      next_row_(settings.output.end),
      held_(pipeline.stages.size() + 1) {
  keeps_slices_ = slow_ && settings_.output.count() <= settings_.band_rows;
  --slice_;
}

// The slices of the scene that the output slice belongs to. Its ends are searched for only as far as they
// matter.
RowRange Walk::scene_around(int slice) const {
  if (!slow_) return {slice, slice + 1};
  const Border border = pipeline_->slow_border;
  const int before = -reaches_[0].begin;
  const int after = reaches_[0].end - 1;
  const int far_back = border == Border::wrap ? slice : std::min(slice, before + after);
  int begin = slice;
  while (begin > slice - far_back && !slices_->starts_scene(begin)) --begin;
  const bool folds = border == Border::symmetric || border == Border::mirror;
  const bool near_begin = slice - before < begin;
  int far = after;
  if (folds && near_begin) far = before + after;
  int end = slice + 1;
  while ((border == Border::wrap || end - slice <= far) && slices_->exists(end) &&
         !slices_->starts_scene(end)) {
    ++end;
  }
  return {begin, end};
}

std::vector<int> Walk::slices_at(const Stage& stage, int slice, RowRange scene) const {
  std::vector<int> at;
  for (int offset = -stage.reach.before; offset <= stage.reach.after; ++offset) {
    const int index = border_index(pipeline_->slow_border, slice + offset - scene.begin, scene.count());
    at.push_back(index == no_pixel ? no_pixel : scene.begin + index);
  }
  return at;
}

// Which slices of each result the next output slice needs, and which of them must be computed.
void Walk::open_slice() {
  scene_ = scene_around(slice_);
  needed_.assign(pipeline_->stages.size() + 1, {});
  needed_.back() = {slice_};
  for (std::size_t stage = pipeline_->stages.size(); stage-- > 0;) {
    for (const int slice : needed_[stage + 1]) {
      for (const int at : slices_at(pipeline_->stages[stage], slice, scene_)) {
        if (at == no_pixel) continue;
        for (const int result : pipeline_->stages[stage].reads) {
          needed_[static_cast<std::size_t>(result)].push_back(at);
        }
      }
    }
    // All stages that read this result have been visited.
    std::vector<int>& list = needed_[stage];
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  made_now_ = needed_;
  if (!keeps_slices_) return;
  for (std::size_t result = 0; result < needed_.size(); ++result) {
    std::erase_if(made_now_[result], [&](int slice) {
      return std::find(held_[result].begin(), held_[result].end(), slice) != held_[result].end();
    });
  }
  held_ = needed_;
  held_.back().clear();  // the output may have been made elsewhere
}

void Walk::open_section() {
  const RowRange all = settings_.output;
  const int rows =
      settings_.carries_rows ? all.end - next_row_ : std::min(settings_.band_rows, all.end - next_row_);
  section_rows_ = {next_row_, next_row_ + rows};
  section_.emplace(*pipeline_, height_, section_rows_, settings_.band_rows);
  section_starts_ = true;
}

bool Walk::open_next_slice() {
  if (slice_ >= settings_.last_slice || !slices_->exists(slice_ + 1)) return false;
  ++slice_;
  next_row_ = settings_.output.begin;
  open_slice();
  return true;
}

Step Walk::direct_step() {
  Step step;
  step.slice = slice_;
  step.output = {next_row_, next_row_ + std::min(settings_.band_rows, settings_.output.end - next_row_)};
  next_row_ = step.output.end;
  step.counted = step.output;
  const std::int64_t reach = std::int64_t{*settings_.direct_reach} + settings_.fill;
  const RowRange needed{
      static_cast<int>(std::max<std::int64_t>(step.output.begin - reach, settings_.input.begin)),
      static_cast<int>(std::min<std::int64_t>(step.output.end + reach, settings_.input.end))};
  step.loads.push_back({slice_, step.output, needed});
  return step;
}

std::optional<Step> Walk::next() {
  const BandStep* band = section_ ? section_->next() : nullptr;
  if (band == nullptr) {
    if (next_row_ >= settings_.output.end && !open_next_slice()) return std::nullopt;
    if (settings_.direct_reach) return direct_step();
    open_section();
    band = section_->next();
  }
  next_row_ = band->output.end;

  Step step;
  step.slice = slice_;
  step.output = band->output;
  step.counted = section_rows_;
  step.starts = section_starts_;
  step.keep_from = band->keep_from;
  step.slices = needed_;
  section_starts_ = false;
  for (int result = 0; result < section_->results(); ++result) {
    step.first_rows.push_back(section_->all_rows(result).begin);
    const RowRange rows = band->compute[static_cast<std::size_t>(result)];
    if (rows.count() == 0) continue;
    for (const int slice : made_now_[static_cast<std::size_t>(result)]) {
      if (result == 0) {
        if (settings_.converts) add_loads(step, slice, rows);
      } else {
        step.stages.push_back(
            {result - 1, slice, rows,
             slices_at(pipeline_->stages[static_cast<std::size_t>(result - 1)], slice, scene_)});
      }
    }
  }
  return step;
}

// The rows of samples for these rows, as far as the input goes.
RowRange Walk::raw_rows(RowRange rows) const {
  return clipped({rows.begin - settings_.fill, rows.end + settings_.fill}, settings_.input);
}

// Rows beyond the edge, which only a wrap border asks for, are rows of the other edge: those above the top
// are read now and again later; those below the bottom were kept when the top was read.
void Walk::add_loads(Step& step, int slice, RowRange rows) const {
  for (int y = rows.begin; y < rows.end;) {
    const int real = ((y % height_) + height_) % height_;
    const bool from_head = y >= height_;
    int count = std::min(rows.end - y, height_ - real);
    if (!from_head) count = std::min(count, settings_.load_rows);
    LoadStep load{slice, {y, y + count}, {}, real - y, from_head};
    if (!from_head) load.raw = raw_rows({real, real + count});
    // The samples that the output needs stay with the band's.
    if (settings_.raw_at_output && y >= 0 && !from_head && slice == step.slice) {
      load.raw.begin = std::min(load.raw.begin, std::max(step.output.begin, settings_.input.begin));
    }
    step.loads.push_back(load);
    y += count;
  }
}

}  // namespace ungrain
