#include "core/execution.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "core/convert.h"
#include "core/convert_simd.h"
#include "core/overlap.h"
#include "core/run_checks.h"
#include "core/samples.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Whether output rows need the samples that they came from.
bool needs_raw_at_output(const ImageSpec& spec, const Options& options) {
  return spec.alpha || (is_float(spec.type) && options.nonfinite == NonFinite::keep);
}

RowRange clipped(RowRange rows, RowRange to) {
  return {std::clamp(rows.begin, to.begin, to.end), std::clamp(rows.end, to.begin, to.end)};
}

// How many rows become float planes at a time: more need not be held as they came. Enough for all threads.
int rows_converted_at_once(const ImageSpec& spec) {
  constexpr int pixels = 1 << 20;
  return std::max(1, pixels / spec.width);
}

int raw_rows_held(const Pipeline& pipeline, const ImageSpec& spec, const Options& options, int band_rows,
                  int converted_rows) {
  const int fill = fill_reach(spec, options);
  const bool at_output = needs_raw_at_output(spec, options);
  int most = 2 * fill + 1;
  play_worst(pipeline, spec.height, band_rows, [&](const BandStep& step, int height) {
    const RowRange rows = step.compute[0];
    if (at_output) {
      const RowRange held = clipped({rows.begin - fill, rows.end + fill}, {0, height});
      most = std::max(most, held.end - std::min(held.begin, step.output.begin));
    } else {
      most = std::max(most, std::min(rows.count(), converted_rows) + 2 * fill);
    }
  });
  return std::min(most, spec.height);
}

void refuse_device_memory(const ConstImageView& view, const char* which) {
  if (view.space.memory == Space::Memory::host) return;
  throw Error(ErrorCode::unsupported, fmt::format("the {} lies on a GPU, the method runs on the CPU", which));
}

// A float view as planes of its own memory, where its layout allows.
template <class Float, class View>
std::optional<BasicPlanes<Float>> planes_in_place(const View& view, int count) {
  constexpr std::ptrdiff_t sample = sizeof(float);
  const bool fits = view.spec.type == PixelType::f32 && view.strides.x == sample &&
                    view.strides.y % sample == 0 && view.strides.channel % sample == 0 &&
                    reinterpret_cast<std::uintptr_t>(view.data) % alignof(float) == 0;
  if (!fits) return std::nullopt;
  return BasicPlanes<Float>{static_cast<Float*>(view.data), rect_of(view), view.strides.y / sample,
                            view.strides.channel / sample, count};
}

// A row of floats for each worker.
float* line_of(std::span<float> lines, const Workers& workers, int worker) {
  return lines.data() + static_cast<std::size_t>(worker) * (lines.size() / workers.count());
}

// Whether a filter can go from one to the other without looking at strides. Rows that are overwritten are
// read through a window of interleaved rows.
bool samples_lie_alike(const ConstImageView& in, bool in_place, const ImageView& out) {
  if (lies_interleaved(out)) return in_place || lies_interleaved(in);
  return !in_place && lies_planar(in) && lies_planar(out);
}

template <class View>
View channel_of(View view, int channel) {
  using Byte = std::conditional_t<std::is_same_v<View, ImageView>, std::byte, const std::byte>;
  view.data = static_cast<Byte*>(view.data) + channel * view.strides.channel;
  view.spec.channels = 1;
  return view;
}

struct BadPixel {
  int x = 0;
  int y = 0;
};

// Calls body(y, worker) for every row. A worker takes several narrow ones at a time: few pixels are not worth
// another thread.
template <class Body>
void for_rows(Workers& workers, int rows, int width, Body body) {
  constexpr int pixels = 1 << 14;
  const int at_once = std::max(1, pixels / width);
  workers.for_each((rows + at_once - 1) / at_once, [&](std::int64_t item, int worker) {
    const int begin = static_cast<int>(item) * at_once;
    for (int y = begin; y < std::min(rows, begin + at_once); ++y) body(y, worker);
  });
}

// Whether a row of floats can be seen to be finite without taking it apart.
bool packed_floats_are_finite(const ConstImageView& view, int y) {
  if (view.spec.type != PixelType::f32 || !lies_interleaved(view)) return false;
  const auto* row = static_cast<const float*>(view.rows(y, 1).data);
  return all_finite(row, static_cast<std::ptrdiff_t>(view.spec.width) * view.spec.channels);
}

// The first pixel, in reading order, with a colour sample that is not finite.
std::optional<BadPixel> first_bad_pixel(const ConstImageView& view, Workers& workers,
                                        std::span<float> lines) {
  std::mutex mutex;
  std::optional<BadPixel> first;
  for_rows(workers, view.spec.height, view.spec.width, [&](int y, int worker) {
    if (packed_floats_are_finite(view, y)) return;
    float* row = line_of(lines, workers, worker);
    for (int channel = 0; channel < view.spec.colour_channels(); ++channel) {
      load_row(view, y, channel, row);
      if (all_finite(row, view.spec.width)) continue;
      const float* bad = std::find_if(row, row + view.spec.width, [](float v) { return !std::isfinite(v); });
      const int x = static_cast<int>(bad - row);
      const std::lock_guard lock(mutex);
      if (!first || y < first->y || (y == first->y && x < first->x)) first = BadPixel{x, y};
    }
  });
  return first;
}

}  // namespace

BufferPlan::BufferPlan(const Pipeline& pipeline, const ImageSpec& spec, const Options& options, int band_rows,
                       int threads)
    : result_rows(rows_held(pipeline, spec.height, band_rows)), out_rows(band_rows), width(spec.width) {
  if (band_rows < spec.height) {  // one band is read and one written while another is filtered
    ahead_rows = band_rows;
    out_rows = 2 * band_rows;
  }
  planes.push_back(spec.colour_channels());
  std::size_t most_scratch = 0;
  for (const Stage& stage : pipeline.stages) {
    planes.push_back(stage.planes);
    most_scratch = std::max(most_scratch, stage.scratch);
    const auto pixels = static_cast<std::size_t>(result_rows[planes.size() - 1]) * width;
    shared = std::max(shared, stage.shared_per_pixel * pixels + stage.shared);
  }
  most_scratch = (std::max(most_scratch, pipeline.direct.scratch) + 15) / 16 * 16;
  scratch = most_scratch * static_cast<std::size_t>(threads);
  lines = static_cast<std::size_t>(threads) * ((static_cast<std::size_t>(spec.width) + 15) / 16 * 16);
  if (pipeline.wraps) {
    head_rows = std::min(spec.height, total_reach(pipeline, {spec.width, spec.height}).y);
  }
  converted_rows = rows_converted_at_once(spec);
  raw_rows = raw_rows_held(pipeline, spec, options, band_rows, converted_rows);
  if (pipeline.direct.run) {
    const int reach = total_reach(pipeline, {spec.width, spec.height}).y;
    raw_rows = std::max(raw_rows, std::min(spec.height, band_rows + 2 * reach));
  }
  raw_row_bytes = static_cast<std::size_t>(interleaved_strides(spec).y);
  out_row_bytes = static_cast<std::size_t>(spec.width) * spec.channels * sizeof(float);
}

std::size_t BufferPlan::bytes() const {
  std::size_t floats = scratch + shared + lines + PlaneRows::floats(planes[0], width, head_rows);
  for (std::size_t result = 0; result < planes.size(); ++result) {
    floats += PlaneRows::floats(planes[result], width, result_rows[result]);
  }
  return floats * sizeof(float) + static_cast<std::size_t>(raw_rows + ahead_rows) * raw_row_bytes +
         static_cast<std::size_t>(out_rows) * out_row_bytes;
}

Execution::Execution(Pipeline pipeline, const ImageSpec& spec, Options options, int band_rows,
                     Workers workers)
    : pipeline_(std::move(pipeline)),
      spec_(spec),
      options_(std::move(options)),
      band_rows_(band_rows),
      workers_(std::move(workers)),
      plan_(pipeline_, spec_, options_, band_rows_, workers_.count()),
      head_(plan_.planes[0], plan_.width, plan_.head_rows),
      raw_(static_cast<std::size_t>(plan_.raw_rows) * plan_.raw_row_bytes),
      ahead_(static_cast<std::size_t>(plan_.ahead_rows) * plan_.raw_row_bytes),
      out_(static_cast<std::size_t>(plan_.out_rows) * plan_.out_row_bytes),
      scratch_(plan_.scratch),
      shared_(plan_.shared),
      lines_(plan_.lines) {
  for (std::size_t result = 0; result < plan_.planes.size(); ++result) {
    results_.emplace_back(plan_.planes[result], plan_.width, plan_.result_rows[result]);
  }
}

// What one run works with.
struct Execution::Job {
  RawSource* source = nullptr;
  Rect in_rect;
  Rect out_rect;
  double scale = 1;  // from the input's white level to the output's
  double alpha_scale = 1;
  bool fill = false;                         // conversion looks for what is not finite
  bool direct = false;                       // without float planes
  std::optional<ConstPlanes> source_planes;  // the input's own memory, where it serves as it is
  std::optional<Planes> final_planes;        // the output's own memory, likewise
  std::optional<ImageView> out;              // the output, unless rows go to a writer
  RowWriter* writer = nullptr;
  std::function<void()> before_end;  // waits for what is still being written
  ImageSpec out_spec;
  std::vector<RowRange> columns;  // of each result
  Report report;
  std::atomic<std::int64_t> bad_pixels{0};
  std::atomic<bool> saw_nonfinite{false};  // the direct filter did
  std::int64_t rows_total = 0;             // of all stages, for the progress
  std::int64_t rows_done = 0;
  std::int64_t rows_now = 0;
  double told = 0;
  Clock::time_point last_progress;
};

Report Execution::run(const ConstImageView& in, const ImageView& out) {
  check_images(in, out, spec_, pipeline_, options_);
  refuse_device_memory(in, "input");
  refuse_device_memory(out, "output");
  Job job;
  job.in_rect = rect_of(in);
  job.out_rect = rect_of(out);
  const bool in_place = runs_in_place(in, out);

  job.out = out;
  job.out_spec = out.spec;
  job.scale = out.spec.white() / spec_.white();
  job.direct = runs_directly(job) && samples_lie_alike(in, in_place, out);

  workers_.watch(&options_.cancel, nullptr);
  ViewReader reader(in, job.in_rect.y0);
  ViewSource still(in, job.in_rect.y0);
  StreamSource moving(reader, in.spec, raw_);
  job.source = in_place ? static_cast<RawSource*>(&moving) : &still;
  // A filter that looks at every sample itself tells whether all were finite; what it wrote is written again
  // where they were not.
  const bool looks_itself = job.direct && !in_place && job.in_rect == job.out_rect && is_float(spec_.type) &&
                            options_.nonfinite != NonFinite::error;
  if (looks_itself) {
    execute(job);
    if (!job.saw_nonfinite) return job.report;
    job.saw_nonfinite = false;
    job.report = {};
    job.rows_done = job.rows_total = 0;
  }
  if (is_float(spec_.type)) {
    // Looked for beforehand, so that an error comes before the output is touched and clean input is used as
    // it is.
    const std::optional<BadPixel> bad = first_bad_pixel(in, workers_, lines_.span());
    if (bad && options_.nonfinite == NonFinite::error) {
      refuse_pixel(job.in_rect.x0 + bad->x, job.in_rect.y0 + bad->y);
    }
    job.fill = bad.has_value();
    job.direct = job.direct && !job.fill;
  }
  if (!in_place && !job.fill) job.source_planes = planes_in_place<const float>(in, spec_.colour_channels());
  if (job.scale == 1 && !pipeline_.stages.empty()) {
    job.final_planes = planes_in_place<float>(out, spec_.colour_channels());
  }

  execute(job);
  return job.report;
}

Report Execution::run(RowReader& in, RowWriter& out, const ImageSpec& out_spec) {
  check_writer(out_spec, spec_);
  Job job;
  job.in_rect = job.out_rect = {0, 0, spec_.width, spec_.height};
  job.fill = is_float(spec_.type);
  job.out_spec = out_spec;
  job.scale = out_spec.white() / spec_.white();
  job.direct = runs_directly(job);
  workers_.watch(&options_.cancel, nullptr);
  if (plan_.ahead_rows == 0) {
    StreamSource source(in, spec_, raw_);
    job.source = &source;
    job.writer = &out;
    execute(job);
    return job.report;
  }
  ReadAhead reader(in, spec_, ahead_);
  WriteBehind writer(out);
  StreamSource source(reader, spec_, raw_);
  job.source = &source;
  job.writer = &writer;
  job.before_end = [&] { writer.finish(); };
  execute(job);
  return job.report;
}

void Execution::run_async(const ConstImageView&, const ImageView&, Stream) {
  throw Error(ErrorCode::unsupported, "run_async() needs a GPU; run() is what the CPU has");
}

bool Execution::runs_directly(const Job& job) const {
  return pipeline_.direct.run && !job.fill && job.out_spec.type == spec_.type && job.scale == 1;
}

void Execution::execute(Job& job) {
  const Clock::time_point start = Clock::now();
  job.alpha_scale = natural_range(job.out_spec.type) / natural_range(spec_.type);
  job.last_progress = start;
  const auto tell = [&](std::int64_t done, std::int64_t of) {
    constexpr std::chrono::milliseconds quiet{20};
    if (!options_.progress || job.rows_total == 0 || Clock::now() - job.last_progress < quiet) return;
    job.last_progress = Clock::now();
    const double part = static_cast<double>(done) / static_cast<double>(of);
    const double fraction = (static_cast<double>(job.rows_done) + part * static_cast<double>(job.rows_now)) /
                            static_cast<double>(job.rows_total);
    job.told = std::max(job.told, fraction);
    options_.progress(job.told);
  };
  workers_.watch(&options_.cancel, tell);
  for (const Stage& stage : pipeline_.stages) job.report.stages.push_back({stage.name, 0});
  if (job.direct) {
    filter_directly(job);
  } else {
    filter_in_stages(job);
  }
  if (job.before_end) job.before_end();
  if (options_.progress && !job.saw_nonfinite) options_.progress(1);
  job.report.ms = ms_since(start);
  job.report.threads = workers_.count();
  job.report.buffer_bytes = plan_.bytes();
  job.report.nonfinite_pixels = job.bad_pixels;
}

void Execution::filter_in_stages(Job& job) {
  job.columns = columns_for(pipeline_, spec_.width, {job.out_rect.x0, job.out_rect.x1});
  job.columns[0] = {job.in_rect.x0, job.in_rect.x1};
  BandSchedule schedule(pipeline_, spec_.height, {job.out_rect.y0, job.out_rect.y1}, band_rows_);
  for (int result = 0; result < schedule.results(); ++result) {
    results_[result].start(job.columns[result], schedule.all_rows(result).begin);
    if (result > 0 || pipeline_.stages.empty()) job.rows_total += schedule.all_rows(result).count();
  }
  head_.start(job.columns[0], 0);

  while (const BandStep* step = schedule.next()) {
    for (int result = 0; result < schedule.results(); ++result) {
      results_[result].drop_before(step->keep_from[result]);
      const RowRange rows = step->compute[result];
      if (rows.count() == 0) continue;
      if (result == 0) {
        job.rows_now = 0;
        job.source->retain_from(needs_raw_at_output(spec_, options_) ? step->output.begin
                                                                     : std::numeric_limits<int>::max());
        load_rows(job, rows);
      } else {
        job.rows_now = rows.count();
        run_stage(job, result - 1, rows);
        job.rows_done += rows.count();
      }
    }
    job.rows_now = 0;
    emit_rows(job, step->output);
    ++job.report.bands;
  }
}

// Band by band where the input's rows come one after the other; all at once where they stay.
void Execution::filter_directly(Job& job) {
  const RowRange all{job.out_rect.y0, job.out_rect.y1};
  const int reach = total_reach(pipeline_, {spec_.width, spec_.height}).y;
  job.rows_total = all.count();
  for (RowRange rows{all.begin, all.begin}; rows.end < all.end;) {
    const int step = job.source->stays() ? all.count() : band_rows_;
    rows = {rows.end, all.end - rows.end > step ? rows.end + step : all.end};
    job.rows_now = rows.count();
    const RowRange needed{std::max(rows.begin - reach, job.in_rect.y0),
                          job.in_rect.y1 - rows.end > reach ? rows.end + reach : job.in_rect.y1};
    const ConstImageView in = job.source->rows(needed);
    const ImageView out = room_for(job, rows);
    const Clock::time_point start = Clock::now();
    DirectCall call{in,
                    out,
                    {job.in_rect.x0, needed.begin, job.in_rect.x1, needed.end},
                    {job.out_rect.x0, rows.begin, job.out_rect.x1, rows.end},
                    {spec_.width, spec_.height},
                    workers_,
                    scratch_.span(),
                    job.saw_nonfinite};
    if (lies_interleaved(in)) {
      pipeline_.direct.run(call);
    } else {
      for (int channel = 0; channel < spec_.colour_channels(); ++channel) {
        call.in = channel_of(in, channel);
        call.out = channel_of(out, channel);
        pipeline_.direct.run(call);
      }
    }
    job.report.stages.front().ms += ms_since(start);
    if (spec_.alpha) {
      const ConstImageView raw = columns_of(in.rows(rows.begin - needed.begin, rows.count()),
                                            job.out_rect.x0 - job.in_rect.x0, job.out_rect.width());
      for_rows(workers_, rows.count(), raw.spec.width,
               [&](int y, int) { copy_row(raw, y, out, y, spec_.channels - 1); });
    }
    if (job.writer != nullptr) job.writer->write_rows(rows.begin, out);
    job.rows_done += rows.count();
    job.rows_now = 0;
    ++job.report.bands;
  }
}

// The source's rows as float planes. Rows beyond the edge, which only a wrap border asks for, are the other
// edge's: those above the top are read now and again later; those below the bottom were put aside when the
// top was read.
void Execution::load_rows(Job& job, RowRange rows) {
  if (job.source_planes) return;
  const Planes planes = results_[0].make(rows);
  const auto part = [&](RowRange some) {
    Planes p = planes;
    p.data = planes.row(0, some.begin);
    p.rect.y0 = some.begin;
    p.rect.y1 = some.end;
    return p;
  };
  const int height = spec_.height;
  for (int y = rows.begin; y < rows.end;) {
    const int real = ((y % height) + height) % height;
    int count = std::min(rows.end - y, height - real);
    if (y < height) count = std::min(count, plan_.converted_rows);
    if (y < 0) {  // a wrap border's tail, which may be longer than what is held
      count = std::min(count, std::max(1, plan_.raw_rows - 2 * fill_radius));
      load_real_rows(job, {real, real + count}, part({y, y + count}), false);
      y += count;
    } else if (y < height) {
      load_real_rows(job, {y, y + count}, part({y, y + count}), true);
      const RowRange top = clipped({y, y + count}, {0, plan_.head_rows});
      if (top.count() > 0) {
        const Planes head = head_.make(top);
        for (int plane = 0; plane < head.count; ++plane) {
          for (int row = top.begin; row < top.end; ++row) {
            std::memcpy(head.row(plane, row), planes.row(plane, row),
                        static_cast<std::size_t>(planes.rect.width()) * sizeof(float));
          }
        }
      }
      y += count;
    } else {
      const ConstPlanes head = head_.held();
      for (int plane = 0; plane < head.count; ++plane) {
        for (int row = 0; row < count; ++row) {
          std::memcpy(planes.row(plane, y + row), head.row(plane, real + row),
                      static_cast<std::size_t>(planes.rect.width()) * sizeof(float));
        }
      }
      y += count;
    }
  }
}

void Execution::load_real_rows(Job& job, RowRange real, const Planes& planes, bool count_bad) {
  const int fill = job.fill ? fill_reach(spec_, options_) : 0;
  const RowRange raw_rows = clipped({real.begin - fill, real.end + fill}, {job.in_rect.y0, job.in_rect.y1});
  const ConstImageView raw = job.source->rows(raw_rows);
  std::mutex mutex;
  std::optional<BadPixel> refused;
  for_rows(workers_, real.count(), planes.rect.width(), [&](int offset, int) {
    const int raw_y = real.begin + offset - raw_rows.begin;
    const int to_y = planes.rect.y0 + offset;
    const int width = planes.rect.width();
    float* rows[max_channels];
    for (int channel = 0; channel < planes.count; ++channel) rows[channel] = planes.row(channel, to_y);
    load_channels(raw, raw_y, planes.count, rows);
    bool finite = true;
    for (int channel = 0; job.fill && channel < planes.count; ++channel) {
      finite = finite && all_finite(rows[channel], width);
    }
    if (finite) return;
    std::int64_t bad = 0;
    for (int x = 0; x < width; ++x) {
      bool whole = true;
      for (int channel = 0; channel < planes.count; ++channel) {
        whole = whole && std::isfinite(planes.row(channel, to_y)[x]);
      }
      if (whole) continue;
      ++bad;
      if (options_.nonfinite == NonFinite::error) {
        const std::lock_guard lock(mutex);
        const BadPixel pixel{job.in_rect.x0 + x, real.begin + offset};
        if (!refused || pixel.y < refused->y) refused = pixel;
        return;
      }
    }
    for (int channel = 0; channel < planes.count; ++channel) {
      fill_nonfinite(raw, raw_y, channel, planes.row(channel, to_y));
    }
    if (count_bad) job.bad_pixels += bad;
  });
  if (refused) refuse_pixel(refused->x, refused->y);
}

ConstPlanes Execution::result_planes(const Job& job, int result) const {
  if (result == 0 && job.source_planes) return *job.source_planes;
  return results_[result].held();
}

void Execution::run_stage(Job& job, int index, RowRange rows) {
  const Clock::time_point start = Clock::now();
  const Stage& stage = pipeline_.stages[index];
  std::vector<ConstPlanes> in;
  for (const int result : stage.reads) in.push_back(result_planes(job, result));
  Planes out = results_[index + 1].make(rows);
  if (index + 1 == static_cast<int>(pipeline_.stages.size()) && job.final_planes) {
    const Planes& whole = *job.final_planes;
    out = whole;
    out.data = whole.row(0, rows.begin);
    out.rect.y0 = rows.begin;
    out.rect.y1 = rows.end;
  }
  stage.run({in, out, {spec_.width, spec_.height}, workers_, scratch_.span(), shared_.span()});
  job.report.stages[index].ms += ms_since(start);
}

// Where output rows go: the output's own memory, or the buffer of those on the way to the writer, which has
// room for a band that is being written and the next.
ImageView Execution::room_for(const Job& job, RowRange rows) const {
  if (job.out) return job.out->rows(rows.begin - job.out_rect.y0, rows.count());
  ImageSpec band = job.out_spec;
  band.height = rows.count();
  const bool second = plan_.ahead_rows > 0 && job.report.bands % 2 == 1;
  const std::size_t before = second ? static_cast<std::size_t>(band_rows_) * plan_.out_row_bytes : 0;
  return {out_.data() + before, band};
}

void Execution::emit_rows(Job& job, RowRange rows) {
  const ImageView to = room_for(job, rows);
  store_rows(job, rows, to);
  if (job.writer != nullptr) job.writer->write_rows(rows.begin, to);
}

void Execution::store_rows(Job& job, RowRange rows, const ImageView& to) {
  const bool keep = job.fill && options_.nonfinite == NonFinite::keep;
  const int width = job.out_rect.width();
  const int skipped = job.out_rect.x0 - job.in_rect.x0;
  std::optional<ConstImageView> raw;
  if (spec_.alpha || keep) raw = columns_of(job.source->rows(rows), skipped, width);
  const ConstPlanes planes =
      job.final_planes ? ConstPlanes{} : result_planes(job, static_cast<int>(pipeline_.stages.size()));
  const int alpha = spec_.channels - 1;
  for_rows(workers_, rows.count(), width, [&](int y, int worker) {
    if (!job.final_planes) {
      const float* values[max_channels];
      for (int channel = 0; channel < planes.count; ++channel) {
        values[channel] = planes.row(channel, rows.begin + y) + (job.out_rect.x0 - planes.rect.x0);
      }
      store_channels(to, y, planes.count, values, job.scale);
    }
    if (!raw) return;
    float* row = line_of(lines_.span(), workers_, worker);
    if (spec_.alpha && to.spec.type == spec_.type) {
      copy_row(*raw, y, to, y, alpha);
    } else if (spec_.alpha) {
      load_row(*raw, y, alpha, row);
      store_row(to, y, alpha, row, job.alpha_scale);
    }
    if (!keep) return;
    for (int channel = 0; channel < spec_.colour_channels(); ++channel) {
      load_row(*raw, y, channel, row);
      for (int x = 0; x < width; ++x) {
        if (!std::isfinite(row[x])) store_row(columns_of(to, x, 1), y, channel, &row[x]);
      }
    }
  });
}

}  // namespace ungrain
