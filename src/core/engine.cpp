#include "core/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "core/bands.h"
#include "core/border.h"
#include "core/convert.h"
#include "core/convert_simd.h"
#include "core/run_checks.h"
#include "core/run_ends.h"
#include "core/samples.h"
#include "core/ycbcr.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Stages of bands in different queues run at the same time, and each waits for the others' kernels: their
// times then add up to more than the run took.
void fit_stages(Report& report) {
  double sum = 0;
  for (const StageTime& stage : report.stages) sum += stage.ms;
  if (sum <= report.ms) return;
  for (StageTime& stage : report.stages) stage.ms *= report.ms / sum;
}

template <class View>
View with_region(View view, const Rect& rect, const ImageSpec& image) {
  view.region = {rect.x0, rect.y0, image.width, image.height};
  return view;
}

std::size_t packed_bytes(const ImageSpec& spec) {
  return static_cast<std::size_t>(interleaved_strides(spec).y) * static_cast<std::size_t>(spec.height);
}

// A float view as planes in its own memory, where its layout allows and all of it is defined.
std::optional<TypedPlanes> planes_in_place(const ConstImageView& view, int count) {
  constexpr std::ptrdiff_t sample = sizeof(float);
  const bool fits = view.spec.type == PixelType::f32 && view.spec.colour != Colour::ycbcr &&
                    view.strides.x == sample && view.strides.y % sample == 0 &&
                    view.strides.channel % sample == 0 &&
                    reinterpret_cast<std::uintptr_t>(view.data) % alignof(float) == 0;
  if (!fits) return std::nullopt;
  return TypedPlanes{const_cast<void*>(view.data),  Element::f32, rect_of(view), view.strides.y / sample,
                     view.strides.channel / sample, count};
}

// Planes of other element types keep only the rectangle.
Planes floats_of(const TypedPlanes& planes) {
  return planes.element == Element::f32 ? planes.as<float>() : Planes{nullptr, planes.rect};
}

// Copies the rows of `from` from `first` on into the rows `rows` of `to`, on the host.
void copy_plane_rows(const TypedPlanes& from, int first, const TypedPlanes& to, RowRange rows) {
  const Planes source = from.as<float>();
  const Planes target = to.as<float>();
  for (int plane = 0; plane < target.count; ++plane) {
    for (int row = 0; row < rows.count(); ++row) {
      std::memcpy(target.row(plane, rows.begin + row), source.row(plane, first + row),
                  static_cast<std::size_t>(target.rect.width()) * sizeof(float));
    }
  }
}

TypedPlanes rows_of(TypedPlanes planes, RowRange rows) {
  planes.data =
      static_cast<std::byte*>(planes.data) + (rows.begin - planes.rect.y0) * planes.row_stride *
                                                 static_cast<std::ptrdiff_t>(bytes_of(planes.element));
  planes.rect.y0 = rows.begin;
  planes.rect.y1 = rows.end;
  return planes;
}

// Whether a direct filter can read one and write the other without regard to strides. Rows that are
// overwritten are read through buffers of interleaved rows.
bool samples_lie_alike(const ConstImageView& in, bool in_place, const ImageView& out) {
  if (lies_interleaved(out)) return in_place || lies_interleaved(in);
  return !in_place && lies_planar(in) && lies_planar(out);
}

// Without rows beyond the edges (some devices, and stages that look along the slow axis) a wrap border takes
// all rows at once.
Pipeline without_rows_beyond_edges(Pipeline pipeline, const BackendTraits& traits) {
  const bool slow = slow_reaches(pipeline)[0].count() > 1;
  if (!pipeline.wraps || (traits.rows_beyond_edges && !slow)) return pipeline;
  for (Stage& stage : pipeline.stages) stage.reach.whole = true;
  pipeline.wraps = false;
  return pipeline;
}

struct BadPixel {
  int x = 0;
  int y = 0;
};

// Whether a row of packed floats is finite, without splitting it into channels.
bool packed_floats_are_finite(const ConstImageView& view, int y) {
  if (view.spec.type != PixelType::f32 || !lies_interleaved(view)) return false;
  const auto* row = static_cast<const float*>(view.rows(y, 1).data);
  return all_finite(row, static_cast<std::ptrdiff_t>(view.spec.width) * view.spec.channels);
}

// The first pixel, in reading order, with a colour sample that is not finite.
std::optional<BadPixel> first_bad_pixel(const ConstImageView& view, Workers& workers) {
  if (view.spec.colour == Colour::ycbcr) {
    const std::optional<BadPixel> luma = first_bad_pixel(luma_view(view), workers);
    std::optional<BadPixel> chroma = first_bad_pixel(chroma_view(view), workers);
    if (chroma) chroma = {chroma->x * view.spec.chroma.x, chroma->y * view.spec.chroma.y};
    if (!luma || !chroma) return luma ? luma : chroma;
    return std::pair(luma->y, luma->x) <= std::pair(chroma->y, chroma->x) ? luma : chroma;
  }
  constexpr int pixels = 1 << 14;
  const int rows_at_once = std::max(1, pixels / view.spec.width);
  std::mutex mutex;
  std::optional<BadPixel> first;
  const int pieces = (view.spec.height + rows_at_once - 1) / rows_at_once;
  workers.for_each_quietly(pieces, [&](std::int64_t piece, int) {
    const int begin = static_cast<int>(piece) * rows_at_once;
    std::vector<float> row;
    for (int y = begin; y < std::min(view.spec.height, begin + rows_at_once); ++y) {
      if (packed_floats_are_finite(view, y)) continue;
      row.resize(static_cast<std::size_t>(view.spec.width));
      for (int channel = 0; channel < view.spec.colour_channels(); ++channel) {
        load_row(view, y, channel, row.data());
        const auto bad = std::find_if(row.begin(), row.end(), [](float v) { return !std::isfinite(v); });
        if (bad == row.end()) continue;
        const int x = static_cast<int>(bad - row.begin());
        const std::lock_guard lock(mutex);
        if (!first || y < first->y || (y == first->y && x < first->x)) first = BadPixel{x, y};
      }
    }
  });
  return first;
}

void load_samples(Queue& queue, const LoadCall& call) {
  if (call.raw.spec.colour != Colour::ycbcr) return queue.load(call);
  for (const LoadCall& part : split(call)) {
    if (part.planes.rect.height() > 0) queue.load(part);
  }
}

void store_samples(Queue& queue, const StoreCall& call) {
  if (call.out.spec.colour != Colour::ycbcr) return queue.store(call);
  for (const StoreCall& part : split(call)) queue.store(part);
  for (const ByteRows& rows : undefined_room(call.out)) queue.clear(rows);
}

// Whether a sample was not finite.
bool run_directly(Queue& queue, const Direct& direct, const DirectData& data, const Memory& scratch) {
  if (data.in.spec.colour != Colour::ycbcr) return queue.run_direct(direct, data, scratch);
  const auto [luma, chroma] = split(data);
  const bool bad_luma = queue.run_direct(direct, luma, scratch);
  const bool bad_chroma = queue.run_direct(*direct.chroma, chroma, scratch);
  for (const ByteRows& rows : undefined_room(data.out)) queue.clear(rows);
  return bad_luma || bad_chroma;
}

void launch_directly(Queue& queue, const Direct& direct, const DeviceDirectCall& call) {
  if (call.in.spec.colour != Colour::ycbcr) return queue.launch_direct(direct, call);
  const auto [luma, chroma] = split(call);
  queue.launch_direct(direct, luma);
  queue.launch_direct(*direct.chroma, chroma);
  for (const ByteRows& rows : undefined_room(call.out)) queue.clear(rows);
}

}  // namespace

struct Engine::Job {
  RunInput* in = nullptr;
  RunOutput* out = nullptr;
  Rect in_rect;
  Rect out_rect;
  ImageSpec out_spec;
  double scale = 1;  // from the input's white level to the output's
  double alpha_scale = 1;
  bool fill = false;             // samples may not be finite
  bool keep = false;             // those that are not are put back
  bool direct = false;           // without float planes
  bool source_in_place = false;  // the input's own memory serves as the source's planes
  int first_slice = 0;
  int last_slice = 0;
  std::optional<int> slices = 1;  // how many are made, where that is known
  bool resumes = false;           // with the slices that are held
  bool asynchronous = false;      // nobody waits for the bands
  std::vector<RowRange> columns;  // of each result
  Report report;
  bool saw_nonfinite = false;  // the direct filter did
  Background writing;
  std::int64_t rows_done = 0;  // of the output, all slices
  double told = 0;
  Clock::time_point last_progress;
  // Of the step that is being started, for the progress.
  std::int64_t step_rows = 0;
  std::int64_t step_rows_total = 0;
  std::int64_t step_rows_done = 0;
  std::int64_t step_rows_now = 0;

  Job(const Rect& in_area, const Rect& out_area, const ImageSpec& spec, const ImageSpec& made)
      : in_rect(in_area),
        out_rect(out_area),
        out_spec(made),
        scale(made.white() / spec.white()),
        alpha_scale(natural_range(made.type) / natural_range(spec.type)) {}
};

struct Engine::Lane {
  struct DeviceRaw {
    Memory memory;
    RowRequest holds;
    std::unique_ptr<Mark> used;
    bool in_use = false;
    bool just_used = false;  // by work since the mark
  };

  std::vector<std::unique_ptr<Queue>> queues;
  Queue* in = nullptr;  // uploads; the same as `compute` where bands follow each other in several lanes
  Queue* compute = nullptr;
  Queue* out = nullptr;  // downloads
  std::vector<SliceRing> results;
  PlaneRows head;
  Memory scratch;
  std::vector<DeviceRaw> raws;
  std::size_t next_raw = 0;

  void use(Queue& queue) { in = compute = out = &queue; }

  // Samples may be overwritten when what has been enqueued so far is done.
  void record_used() {
    for (DeviceRaw& raw : raws) {
      if (std::exchange(raw.just_used, false)) compute->record(*raw.used);
    }
  }
};

struct Engine::Slot {
  Lane* lane = nullptr;
  Memory out;  // on the device
  Memory stats;
  Memory stats_on_host;
  std::unique_ptr<Mark> uploaded;
  std::unique_ptr<Mark> stored;
  std::unique_ptr<Mark> done;
  std::vector<std::unique_ptr<Mark>> marks;  // around each stage
  std::vector<int> timed;                    // which stage lies between a mark and the next; -1: none
  bool busy = false;
  int slice = 0;
  RowRange rows;
  std::optional<ImageView> made;  // on the host; none: it is where it belongs
  bool to_be_written = false;     // `made` is a buffer on the way

  NonFiniteStats* device_stats() const { return static_cast<NonFiniteStats*>(stats.data()); }
  void mark(int stage_before) {
    if (timed.size() == marks.size()) marks.push_back(lane->compute->make_mark());
    lane->compute->record(*marks[timed.size()]);
    timed.push_back(stage_before);
  }
};

struct Engine::Workplace {
  explicit Workplace(BufferPlan p, bool on_device) : plan(std::move(p)), images_on_device(on_device) {}
  BufferPlan plan;
  bool images_on_device;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<Slot> slots;
  RowFeed feed;
  std::vector<Memory> host_outputs;
};

Engine::Engine(Pipeline pipeline, const ImageSpec& spec, const Options& options,
               std::unique_ptr<Backend> backend)
    : spec_(spec),
      options_(options),
      backend_(std::move(backend)),
      reach_(total_reach(pipeline, {spec.width, spec.height})),
      wraps_(pipeline.wraps) {
  pipeline_ = without_rows_beyond_edges(std::move(pipeline), backend_->traits());
  band_rows_ = planned_band_rows(pipeline_, spec_, options_, *backend_,
                                 backend_->band_rows(pipeline_, spec_, options_), false);
  if (backend_->traits().works_in_host_memory) streamed_ = make_workplace(band_rows_, false);
}

Engine::~Engine() = default;

// ---- memory

std::unique_ptr<Engine::Workplace> Engine::make_workplace(int band_rows, bool images_on_device) const {
  auto place = std::make_unique<Workplace>(BufferPlan(pipeline_, spec_, options_, *backend_, band_rows),
                                           images_on_device);
  const BufferPlan& plan = place->plan;
  const bool copies = !plan.host_memory && !images_on_device;
  const int lanes = images_on_device ? 1 : plan.lanes;
  const int slots = images_on_device ? 1 : plan.slots;
  for (int index = 0; index < lanes; ++index) {
    auto lane = std::make_unique<Lane>();
    // One lane on every queue before a second one on any.
    lane->queues.push_back(backend_->make_queue(index % backend_->queues()));
    lane->use(*lane->queues[0]);
    if (copies && slots > lanes) {
      lane->queues.push_back(backend_->make_queue(index % backend_->queues()));
      lane->queues.push_back(backend_->make_queue(index % backend_->queues()));
      lane->in = lane->queues[1].get();
      lane->out = lane->queues[2].get();
    }
    Queue& queue = *lane->compute;
    for (const BufferPlan::Result& result : plan.results) {
      std::vector<PlaneRows> slices;
      for (int slice = 0; slice < result.slices; ++slice) {
        slices.emplace_back(queue.allocate(result.bytes), result.element, result.planes, plan.row_stride,
                            result.rows);
      }
      lane->results.emplace_back(std::move(slices));
    }
    lane->head = PlaneRows(queue.allocate(plan.head_bytes()), Element::f32, plan.results[0].planes,
                           plan.row_stride, plan.head_rows);
    lane->scratch = queue.allocate(plan.scratch_bytes);
    for (int raw = 0; copies && raw < plan.device_raws; ++raw) {
      lane->raws.push_back({queue.allocate(plan.raw_bytes), {}, queue.make_mark()});
    }
    place->lanes.push_back(std::move(lane));
  }
  for (int index = 0; index < slots; ++index) {
    Slot slot;
    slot.lane = place->lanes[static_cast<std::size_t>(index % lanes)].get();
    Queue& queue = *slot.lane->compute;
    slot.stats = queue.allocate(sizeof(NonFiniteStats));
    slot.stats_on_host = queue.allocate_host(sizeof(NonFiniteStats));
    slot.uploaded = queue.make_mark();
    slot.stored = queue.make_mark();
    slot.done = queue.make_mark();
    place->slots.push_back(std::move(slot));
  }
  if (images_on_device) return place;
  Queue& queue = *place->lanes[0]->compute;
  place->feed.reserve(queue, plan.host_inputs, plan.raw_bytes, copies);
  return place;
}

// Buffers for the output's samples, which are only as large as its type needs: page-locked memory is slow to
// get.
void Engine::reserve_outputs(Workplace& place, PixelType out) const {
  if (place.images_on_device) return;
  const std::size_t bytes = place.plan.out_samples * bytes_per_sample(out);
  if (!place.plan.host_memory) {
    for (Slot& slot : place.slots) {
      if (slot.out.bytes < bytes) slot.out = slot.lane->compute->allocate(bytes);
    }
  }
  Queue& queue = *place.lanes[0]->compute;
  place.host_outputs.resize(
      std::max(place.host_outputs.size(), static_cast<std::size_t>(place.plan.host_outputs)));
  for (Memory& memory : place.host_outputs) {
    if (memory.bytes < bytes) memory = queue.allocate_host(bytes);
  }
}

bool Engine::take_over(Pipeline pipeline) {
  wait();
  const Reach reach = total_reach(pipeline, {spec_.width, spec_.height});
  const bool wraps = pipeline.wraps;
  Pipeline fitted = without_rows_beyond_edges(std::move(pipeline), backend_->traits());
  const auto fits = [&](const std::unique_ptr<Workplace>& place) {
    return !place || place->plan == BufferPlan(fitted, spec_, options_, *backend_, place->plan.band_rows);
  };
  const bool unused = !streamed_ && !resident_;
  if (unused || !fits(streamed_) || !fits(resident_)) return false;
  pipeline_ = std::move(fitted);
  reach_ = reach;
  wraps_ = wraps;
  held_ = {};
  return true;
}

Engine::Workplace& Engine::workplace(bool images_on_device, PixelType out) {
  if (backend_->traits().works_in_host_memory) {
    reserve_outputs(*streamed_, out);
    return *streamed_;
  }
  if (images_on_device) {
    if (!resident_) {
      resident_ =
          make_workplace(planned_band_rows(pipeline_, spec_, options_, *backend_, spec_.height, true), true);
    }
    return *resident_;
  }
  constexpr int fewest_rows = 16;
  // Where memory is short, smaller bands are tried before the run fails.
  while (true) {
    try {
      if (!streamed_) streamed_ = make_workplace(band_rows_, false);
      reserve_outputs(*streamed_, out);
      return *streamed_;
    } catch (const Error& error) {
      const bool whole = total_reach(pipeline_, {spec_.width, spec_.height}).whole;
      if (error.code() != ErrorCode::out_of_memory || band_rows_ <= fewest_rows || whole) throw;
      streamed_.reset();
      band_rows_ = whole_chroma_rows(band_rows_ / 2, spec_);
    }
  }
}

// ---- the kinds of run

Report Engine::run(const ConstImageView& in, const ImageView& out) {
  return run_views({&in, 1}, {&out, 1}, 0, 0);
}

Report Engine::run(std::span<const ConstImageView> in, std::span<const ImageView> out) {
  if (in.size() != out.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} images cannot become {}", in.size(), out.size()));
  }
  if (in.empty()) return {};
  return run_views(in, out, 0, static_cast<int>(in.size()) - 1);
}

Report Engine::run_centre(std::span<const ConstImageView> window, int centre, const ImageView& out) {
  if (centre < 0 || centre >= static_cast<int>(window.size())) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("image {} of a window of {} cannot be made", centre, window.size()));
  }
  return run_views(window, {&out, 1}, centre, centre);
}

void Engine::check_sequence(std::span<const ConstImageView> in, std::span<const ImageView> out) const {
  for (const ConstImageView& view : in) {
    if (rect_of(view) != rect_of(in.front()) || view.space != in.front().space) {
      throw Error(ErrorCode::invalid_argument, "the images of a sequence must cover the same part of it");
    }
  }
  for (const ImageView& view : out) {
    if (rect_of(view) != rect_of(out.front()) || view.space != out.front().space ||
        view.spec != out.front().spec) {
      throw Error(ErrorCode::invalid_argument, "the results of a sequence must be of one kind");
    }
  }
}

// Looks for bad pixels before the run where the input lies on the host: an error then comes before the output
// is touched, and finite input is used as it is.
void Engine::refuse_bad_pixels(Job& job, std::span<const ConstImageView> in) {
  const bool on_host = in.front().space.memory == Space::Memory::host;
  const bool error = options_.nonfinite == NonFinite::error;
  job.fill = is_float(spec_.type);
  if (!job.fill || !on_host || !(error || backend_->traits().works_in_host_memory)) return;
  bool found = false;
  for (const ConstImageView& view : in) {
    const std::optional<BadPixel> bad = first_bad_pixel(view, backend_->workers());
    if (bad && error) refuse_pixel(job.in_rect.x0 + bad->x, job.in_rect.y0 + bad->y);
    found = found || bad.has_value();
  }
  job.fill = found;
}

// Whether rows from a reader to a writer need no float planes.
bool Engine::can_go_directly(const Job& job) const {
  return job.out_spec.type == spec_.type && job.scale == 1 &&
         (pipeline_.direct.launch || (pipeline_.direct.run && !job.fill));
}

// A direct filter that checks every sample itself reports whether all were finite; where they were not, the
// output is computed again.
bool Engine::looks_itself(const Job& job, bool in_place) const {
  return job.direct && !in_place && job.in_rect == job.out_rect && is_float(spec_.type) &&
         options_.nonfinite != NonFinite::error && job.first_slice == job.last_slice;
}

Report Engine::run_views(std::span<const ConstImageView> in, std::span<const ImageView> out, int first_slice,
                         int last_slice) {
  check_sequence(in, out);
  bool in_place = false;
  for (const ConstImageView& view : in) {
    for (const ImageView& made : out) {
      check_images(view, made, spec_, reach_, wraps_, options_);
      const bool same = runs_in_place(view, made);
      in_place = in_place || same;
      if (same && &made - out.data() + first_slice != &view - in.data()) {
        throw Error(ErrorCode::invalid_argument, "an image's result cannot lie where another image lies");
      }
    }
  }
  const bool in_reached = backend_->reaches(in.front(), "input");
  const bool out_reached = backend_->reaches(out.front(), "output");
  const bool host_memory = backend_->traits().works_in_host_memory;
  const bool resident = in_reached && out_reached;
  backend_->watch(&options_.cancel, nullptr);

  Job job(rect_of(in.front()), rect_of(out.front()), spec_, out.front().spec);
  job.first_slice = first_slice;
  job.last_slice = last_slice;
  job.slices = last_slice - first_slice + 1;
  job.keep = is_float(spec_.type) && options_.nonfinite == NonFinite::keep;
  Workplace& place = workplace(resident && !host_memory, job.out_spec.type);
  const bool several_bands = job.out_rect.height() > place.plan.band_rows;
  if (in_place && resident && !host_memory && (several_bands || reach_.slices() > 1)) {
    throw Error(ErrorCode::out_of_memory,
                "the GPU's memory does not hold the image: it cannot be worked on in place there");
  }
  // In place, rows are copied before they are overwritten; on a device one band reads all before it writes.
  const bool copied = !in_reached || (in_place && host_memory);
  const auto can_be_copied = [&](const auto& views) {
    return !in_place && std::all_of(views.begin(), views.end(),
                                    [&](const ConstImageView& view) { return backend_->copies_from(view); });
  };
  ViewInput::Way way_in = copied ? ViewInput::Way::copied : ViewInput::Way::as_they_lie;
  if (copied && in_place) way_in = ViewInput::Way::copied_in_place;
  if (!in_reached && can_be_copied(in)) way_in = ViewInput::Way::uploaded;
  ViewOutput::Way way_out = out_reached ? ViewOutput::Way::as_they_lie : ViewOutput::Way::copied;
  if (!out_reached && can_be_copied(out)) way_out = ViewOutput::Way::downloaded;
  ViewInput source(in, way_in, backend_->workers());
  ViewOutput target(out, first_slice, way_out, backend_->workers());
  // Folded at an end, the way from image to image may turn round once.
  const bool wraps_slices = pipeline_.slow_border == Border::wrap;
  const int delay = wraps_slices ? static_cast<int>(in.size()) : reach_.before + reach_.after;
  LateOutput late(out, delay, backend_->workers());
  const bool rereads = in_place && reach_.slices() > 1 && (several_bands || wraps_slices);
  job.in = &source;
  job.out = rereads ? static_cast<RunOutput*>(&late) : &target;

  const auto lies_alike = [&] {
    if (pipeline_.direct.interleaved_only && !lies_interleaved(out.front())) return false;
    for (const ConstImageView& view : in) {
      if (!samples_lie_alike(view, copied, out.front())) return false;
    }
    return true;
  };
  const bool same_samples = out.front().spec.type == spec_.type && job.scale == 1;
  job.direct = pipeline_.direct.run && same_samples && lies_alike();
  if (looks_itself(job, in_place)) {
    execute(job, place);
    if (!job.saw_nonfinite) return job.report;
    job.saw_nonfinite = false;
    job.report = {};
    job.rows_done = 0;
  }
  refuse_bad_pixels(job, in);
  job.direct = (job.direct && !job.fill) || (pipeline_.direct.launch && same_samples && !in_place);
  job.keep = job.keep && job.fill;
  job.source_in_place = host_memory && !copied && !job.fill &&
                        std::all_of(in.begin(), in.end(), [&](const ConstImageView& view) {
                          return planes_in_place(view, spec_.colour_channels()).has_value();
                        });
  execute(job, place);
  return job.report;
}

Report Engine::run(RowReader& in, RowWriter& out, const ImageSpec& out_spec) {
  check_writer(out_spec, spec_);
  const Rect whole{0, 0, spec_.width, spec_.height};
  Job job(whole, whole, spec_, out_spec);
  RowInput source(in);
  RowOutput target(out);
  job.in = &source;
  job.out = &target;
  job.fill = is_float(spec_.type);
  job.keep = job.fill && options_.nonfinite == NonFinite::keep;
  job.direct = can_go_directly(job);
  execute(job, workplace(false, out_spec.type));
  return job.report;
}

void Engine::run_slices(SliceReader& in, Job& job) {
  SliceInput source(in);
  job.in = &source;
  job.fill = is_float(spec_.type);
  job.keep = job.fill && options_.nonfinite == NonFinite::keep;
  job.direct = can_go_directly(job);
  Workplace& place = workplace(false, job.out_spec.type);
  if (place.plan.host_memory && place.plan.host_inputs < 2) {
    // One slice is read and one written while another is filtered.
    Queue& queue = *place.lanes[0]->compute;
    place.feed.reserve(queue, 2, place.plan.raw_bytes, false);
    place.host_outputs.resize(std::max<std::size_t>(2, place.host_outputs.size()));
    reserve_outputs(place, job.out_spec.type);
  }
  execute(job, place);
}

Report Engine::run(SliceReader& in, SliceWriter& out, const ImageSpec& out_spec) {
  check_writer(out_spec, spec_);
  const Rect whole{0, 0, spec_.width, spec_.height};
  Job job(whole, whole, spec_, out_spec);
  SliceOutput target(out);
  job.out = &target;
  job.last_slice = std::numeric_limits<int>::max() - 1;
  job.slices.reset();
  run_slices(in, job);
  return job.report;
}

Report Engine::run_slice(SliceReader& in, int slice, const ImageView& out) {
  if (slice < 0 || !in.has(slice)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("the sequence has no image {}", slice));
  }
  check_writer(out.spec, spec_);
  const Rect whole{0, 0, spec_.width, spec_.height};
  Job job(whole, whole, spec_, out.spec);
  const bool reached = backend_->reaches(out, "output");
  ViewOutput target({&out, 1}, slice, reached ? ViewOutput::Way::as_they_lie : ViewOutput::Way::copied,
                    backend_->workers());
  job.out = &target;
  job.first_slice = job.last_slice = slice;
  job.resumes = held_.reader == &in;
  run_slices(in, job);
  held_.reader = &in;
  return job.report;
}

void Engine::forget_slices() { held_ = {}; }

void Engine::run_async(const ConstImageView& in, const ImageView& out, Stream stream) {
  std::unique_ptr<Queue> queue = backend_->queue_on(stream);
  check_images(in, out, spec_, reach_, wraps_, options_);
  for (const ConstImageView& view : {in, ConstImageView(out)}) {
    if (!backend_->reaches(view, "image") && !backend_->copies_from(view)) {
      throw Error(ErrorCode::unsupported,
                  "run_async() takes images on the GPU, or interleaved ones in page-locked host memory");
    }
  }
  const auto on_device = [&](const ConstImageView& view, Memory& memory) {
    if (memory.bytes < packed_bytes(view.spec)) memory = queue->allocate(packed_bytes(view.spec));
    return ImageView(memory.data(), view.spec, packed_rows(view.spec), {}, view.region);
  };
  ConstImageView from = in;
  if (!backend_->reaches(in, "input")) {
    const ImageView copy = on_device(in, async_in_);
    queue->upload(copy.data, in.data, packed_bytes(in.spec));
    from = copy;
  }
  ImageView to = out;
  const bool downloads = !backend_->reaches(out, "output");
  if (downloads) to = on_device(out, async_out_);

  Workplace& place = workplace(true, out.spec.type);
  Job job(rect_of(in), rect_of(out), spec_, out.spec);
  if (job.out_rect.height() > place.plan.band_rows && runs_in_place(from, to)) {
    throw Error(ErrorCode::out_of_memory,
                "the GPU's memory does not hold the image: it cannot be worked on in place there");
  }
  ViewInput source({&from, 1}, ViewInput::Way::as_they_lie, backend_->workers());
  ViewOutput target({&to, 1}, 0, ViewOutput::Way::as_they_lie, backend_->workers());
  job.in = &source;
  job.out = &target;
  job.fill = is_float(spec_.type);
  job.keep = job.fill && options_.nonfinite == NonFinite::keep;
  job.direct = can_go_directly(job) && !runs_in_place(from, to);
  job.asynchronous = true;
  job.columns = columns_for(pipeline_, spec_.width, {job.out_rect.x0, job.out_rect.x1});
  job.columns[0] = {std::max(job.columns[0].begin, job.in_rect.x0),
                    std::min(job.columns[0].end, job.in_rect.x1)};
  Lane& lane = *place.lanes[0];
  Slot& slot = place.slots[0];
  for (SliceRing& ring : lane.results) ring.clear();
  caller_queue_ = std::move(queue);
  lane.use(*caller_queue_);
  try {
    caller_queue_->clear(slot.device_stats());
    Walk walk = make_walk(job, place);
    while (const std::optional<Step> step = walk.next()) {
      start_band(job, place, slot, *step, std::nullopt);
      slot.busy = false;
    }
    if (downloads) caller_queue_->download(out.data, to.data, packed_bytes(out.spec));
    caller_queue_->download(slot.stats_on_host.data(), slot.stats.data(), sizeof(NonFiniteStats));
  } catch (...) {
    lane.use(*lane.queues[0]);
    throw;
  }
  lane.use(*lane.queues[0]);
}

void Engine::wait() {
  if (!caller_queue_) return;
  caller_queue_->wait();
  caller_queue_.reset();
  NonFiniteStats stats;
  std::memcpy(&stats, resident_->slots[0].stats_on_host.data(), sizeof(stats));
  if (stats.pixels > 0 && options_.nonfinite == NonFinite::error) {
    refuse_pixel(stats.first_x(), stats.first_y());
  }
}

// ---- one run

// After a failure: no work may still use memory that the caller takes back. What else goes wrong is lost.
void Engine::stop_all(Job& job, Workplace& place) {
  const auto quietly = [](const auto& work) {
    try {
      work();
    } catch (...) {  // NOLINT: the run has failed already
    }
  };
  place.feed.stop();
  quietly([&] { job.writing.wait(); });
  for (const auto& lane : place.lanes) {
    for (const auto& queue : lane->queues) quietly([&] { queue->wait(); });
  }
  for (Slot& slot : place.slots) slot.busy = false;
  held_ = {};
  backend_->watch(nullptr, nullptr);
}

void Engine::execute(Job& job, Workplace& place) {
  const Clock::time_point start = Clock::now();
  job.last_progress = start;
  backend_->watch(&options_.cancel, [&](double part) { tell_progress(job, part); });
  for (const Stage& stage : pipeline_.stages) job.report.stages.push_back({stage.name, 0});
  job.columns = columns_for(pipeline_, spec_.width, {job.out_rect.x0, job.out_rect.x1});
  job.columns[0] = {std::max(job.columns[0].begin, job.in_rect.x0),
                    std::min(job.columns[0].end, job.in_rect.x1)};
  try {
    walk_bands(job, place);
    job.writing.wait();
    job.out->all_done();
  } catch (...) {
    stop_all(job, place);
    throw;
  }
  backend_->watch(nullptr, nullptr);  // the job's progress ends with it
  if (options_.progress && !job.saw_nonfinite) options_.progress(1);
  const int lanes = static_cast<int>(place.lanes.size());
  job.report.ms = ms_since(start);
  fit_stages(job.report);
  job.report.threads = place.plan.host_memory ? backend_->workers().count() : 1;
  job.report.buffer_bytes = place.plan.bytes(place.images_on_device);
  job.report.gpus = backend_->devices_of(std::min(backend_->queues(), lanes));
  if (job.report.gpus > 0) job.report.queues = std::min(backend_->queues(), lanes);
}

Walk Engine::make_walk(Job& job, const Workplace& place) const {
  Walk::Settings settings;
  settings.output = {job.out_rect.y0, job.out_rect.y1};
  settings.input = {job.in_rect.y0, job.in_rect.y1};
  settings.band_rows = place.plan.band_rows;
  settings.load_rows = place.plan.load_rows;
  settings.fill = job.fill ? fill_reach(spec_, options_) : 0;
  settings.raw_at_output = needs_raw_at_output(spec_, options_);
  settings.carries_rows = backend_->traits().carries_rows;
  settings.converts = !job.source_in_place;
  settings.first_slice = job.first_slice;
  settings.last_slice = job.last_slice;
  if (job.direct) {
    settings.direct_reach = reach_.y;
    // All rows at once where the images stay in memory.
    const bool stays =
        place.plan.host_memory ? job.in->view(job.first_slice) != nullptr : place.images_on_device;
    if (stays) settings.band_rows = job.out_rect.height();
  }
  return {pipeline_, spec_, settings, *job.in};
}

void Engine::start_feed(Job& job, Workplace& place) {
  ImageSpec row_spec = spec_;
  row_spec.width = job.in_rect.width();
  place.feed.start(
      row_spec,
      [&job](int slice, int first, const ImageView& rows) { job.in->read_rows(slice, first, rows); },
      job.in->takes_time(), job.in->reads_once());
}

void Engine::walk_bands(Job& job, Workplace& place) {
  if (!place.images_on_device) start_feed(job, place);
  Walk walk = make_walk(job, place);
  if (job.resumes && walk.keeps_slices()) {
    walk.resume(held_.slices);
  } else {
    for (const auto& lane : place.lanes) {
      for (SliceRing& ring : lane->results) ring.clear();
    }
  }
  held_ = {};
  std::size_t index = 0;
  std::optional<Step> step = walk.next();
  while (step) {
    if (options_.cancel.cancelled()) throw Error(ErrorCode::cancelled, "cancelled");
    Slot& slot = place.slots[index % place.slots.size()];
    finish_band(job, slot);
    // The walk may ask the reader for the next slice, which is not allowed while rows are being read.
    place.feed.settle();
    std::optional<Step> next = walk.next();
    slot.timed.clear();
    if (job.fill) slot.lane->compute->clear(slot.device_stats());
    start_band(job, place, slot, *step, next);
    if (place.plan.host_memory) finish_band(job, slot);
    step = std::move(next);
    ++index;
  }
  for (std::size_t later = 0; later < place.slots.size(); ++later) {
    finish_band(job, place.slots[(index + later) % place.slots.size()]);
  }
  if (walk.keeps_slices()) held_.slices = walk.held();
}

void Engine::start_band(Job& job, Workplace& place, Slot& slot, const Step& step,
                        const std::optional<Step>& next) {
  Lane& lane = *slot.lane;
  if (step.starts) {
    lane.head.start(job.columns[0], 0);
    for (std::size_t result = 0; result < lane.results.size(); ++result) {
      const bool last = result + 1 == lane.results.size();
      if (!last && reach_.slices() > 1 && job.out_rect.height() <= place.plan.band_rows) {
        lane.results[result].retain(step.slices[result]);
      } else {
        lane.results[result].clear();
      }
    }
  }
  job.step_rows = step.output.count();
  job.step_rows_total = job.step_rows_done = job.step_rows_now = 0;
  for (const StageStep& stage : step.stages) job.step_rows_total += stage.rows.count();

  const auto request_after = [&](std::size_t load) -> std::optional<RowRequest> {
    for (std::size_t index = load + 1; index < step.loads.size(); ++index) {
      if (!step.loads[index].from_head) return RowRequest{step.loads[index].slice, step.loads[index].raw};
    }
    if (!next) return std::nullopt;
    for (const LoadStep& later : next->loads) {
      if (!later.from_head) return RowRequest{later.slice, later.raw};
    }
    return std::nullopt;
  };
  const ImageView out = room_for_output(job, place, slot, step);
  if (job.direct) {
    filter_directly(job, place, slot, step, out, request_after(0));
  } else {
    for (std::size_t result = 0; result < step.keep_from.size(); ++result) {
      for (const int slice : step.slices[result]) {
        if (PlaneRows* rows = lane.results[result].find(slice)) rows->drop_before(step.keep_from[result]);
      }
    }
    for (std::size_t index = 0; index < step.loads.size(); ++index) {
      load(job, place, slot, step, step.loads[index], request_after(index));
    }
    if (!job.asynchronous) slot.mark(-1);
    for (const StageStep& stage : step.stages) run_stage(job, slot, step, stage);
    const int last = static_cast<int>(pipeline_.stages.size());
    const TypedPlanes made = planes_of(job, lane, last, step.slice);
    const std::optional<TypedPlanes> final = final_planes(job, step.slice);
    if (!final) {
      StoreCall store{floats_of(made), {}, job.keep, out, job.scale, job.alpha_scale};
      if (spec_.alpha || job.keep) store.raw = samples_held(job, place, lane, step.slice, step.output);
      store_samples(*lane.compute, store);
    }
  }
  lane.record_used();
  slot.busy = true;
  slot.slice = step.slice;
  slot.rows = step.output;
  ++job.report.bands;
  if (job.asynchronous) return;
  if (lane.out != lane.compute) {
    lane.compute->record(*slot.stored);
    lane.out->follow(*slot.stored);
  }
  if (slot.made && !place.plan.host_memory) {
    lane.out->download(slot.made->data, out.data, packed_bytes(out.spec));
  }
  if (job.fill) lane.out->download(slot.stats_on_host.data(), slot.stats.data(), sizeof(NonFiniteStats));
  lane.out->record(*slot.done);
}

void Engine::filter_directly(Job& job, Workplace& place, Slot& slot, const Step& step, const ImageView& out,
                             const std::optional<RowRequest>& next) {
  const LoadStep& load = step.loads.front();
  const ConstImageView all = samples_of(job, place, slot, load.slice, load.raw, next);
  Queue& queue = *slot.lane->compute;
  if (!job.asynchronous) slot.mark(-1);
  job.step_rows_total = job.step_rows_now = step.output.count();
  if (pipeline_.direct.launch) {
    launch_directly(queue, pipeline_.direct,
                    {.in = all,
                     .out = out,
                     .image = {spec_.width, spec_.height},
                     .keep = job.keep,
                     .stats = slot.device_stats()});
  } else {
    const ConstImageView in = all.rows(load.raw.begin - rect_of(all).y0, load.raw.count());
    const bool bad = run_directly(queue, pipeline_.direct,
                                  {in,
                                   out,
                                   {job.in_rect.x0, load.raw.begin, job.in_rect.x1, load.raw.end},
                                   {job.out_rect.x0, step.output.begin, job.out_rect.x1, step.output.end},
                                   {spec_.width, spec_.height}},
                                  slot.lane->scratch);
    job.saw_nonfinite = job.saw_nonfinite || bad;
  }
  if (!job.asynchronous) slot.mark(0);
}

// The samples of these rows (or more: the region says which), in memory that the lane's queue can read.
ConstImageView Engine::samples_of(Job& job, Workplace& place, Slot& slot, int slice, RowRange rows,
                                  const std::optional<RowRequest>& next) {
  if (const ConstImageView* view = job.in->view(slice)) return with_region(*view, job.in_rect, spec_);
  Lane& lane = *slot.lane;
  const Rect rect{job.in_rect.x0, rows.begin, job.in_rect.x1, rows.end};
  RowFeed::Buffer* buffer = nullptr;
  ConstImageView on_host;
  if (const ConstImageView* view = job.in->upload_view(slice)) {
    on_host = with_region(view->rows(rows.begin - job.in_rect.y0, rows.count()), rect, spec_);
  } else {
    buffer = &place.feed.get({slice, rows}, next);
    on_host = with_region(place.feed.view(*buffer, rows), rect, spec_);
  }
  if (place.plan.host_memory) return on_host;

  Lane::DeviceRaw& raw = lane.raws[lane.next_raw];
  lane.next_raw = (lane.next_raw + 1) % lane.raws.size();
  if (lane.in != lane.compute && raw.in_use) lane.in->follow(*raw.used);
  raw.holds = {slice, rows};
  raw.in_use = raw.just_used = true;
  lane.in->upload(raw.memory.data(), on_host.data, packed_bytes(on_host.spec));
  if (buffer != nullptr) {
    lane.in->record(*buffer->uploaded);
    buffer->uploads = lane.in;
  }
  if (lane.in != lane.compute) {
    lane.in->record(*slot.uploaded);
    lane.compute->follow(*slot.uploaded);
  }
  return {raw.memory.data(), on_host.spec, on_host.strides, {}, on_host.region};
}

// The samples of rows that have been loaded.
ConstImageView Engine::samples_held(Job& job, Workplace& place, Lane& lane, int slice, RowRange rows) {
  if (const ConstImageView* view = job.in->view(slice)) return with_region(*view, job.in_rect, spec_);
  const Rect rect{job.in_rect.x0, rows.begin, job.in_rect.x1, rows.end};
  if (place.plan.host_memory) {
    const RowFeed::Buffer* buffer = place.feed.find({slice, rows});
    if (buffer == nullptr) throw Error(ErrorCode::internal, "the input's samples are gone");
    return with_region(place.feed.view(*buffer, rows), rect, spec_);
  }
  for (Lane::DeviceRaw& raw : lane.raws) {
    const RowRange has = raw.holds.rows;
    if (raw.holds.slice != slice || has.begin > rows.begin || has.end < rows.end) continue;
    raw.just_used = true;
    ImageSpec spec = spec_;
    spec.width = job.in_rect.width();
    spec.height = has.count();
    return with_region(ConstImageView(raw.memory.data(), spec, packed_rows(spec)),
                       {job.in_rect.x0, has.begin, job.in_rect.x1, has.end}, spec_);
  }
  throw Error(ErrorCode::internal, "the input's samples are gone");
}

// Room for rows of a result; the slice is opened where these are its first.
TypedPlanes Engine::room_in_ring(Job& job, Lane& lane, const Step& step, int result, int slice,
                                 RowRange rows) {
  SliceRing& ring = lane.results[static_cast<std::size_t>(result)];
  PlaneRows* held = ring.find(slice);
  if (held == nullptr) {
    held = &ring.open(slice);
    held->start(job.columns[static_cast<std::size_t>(result)],
                step.first_rows[static_cast<std::size_t>(result)]);
  }
  return held->make(rows);
}

void Engine::load(Job& job, Workplace& place, Slot& slot, const Step& step, const LoadStep& load,
                  const std::optional<RowRequest>& next) {
  Lane& lane = *slot.lane;
  const TypedPlanes planes = room_in_ring(job, lane, step, 0, load.slice, load.rows);
  if (load.from_head) {
    copy_plane_rows(lane.head.held(), load.rows.begin + load.row_shift, planes, load.rows);
    return;
  }
  LoadCall call{.raw = samples_of(job, place, slot, load.slice, load.raw, next),
                .planes = planes.as<float>(),
                .row_shift = load.row_shift,
                .counted = step.counted,
                .fill = job.fill,
                .stats = slot.device_stats()};
  // Slices that are loaded again for each output slice count once.
  if (load.slice != step.slice && job.out_rect.height() > place.plan.band_rows) call.counted = {};
  load_samples(*lane.compute, call);
  lane.record_used();
  const RowRange top{load.rows.begin, std::min(load.rows.end, place.plan.head_rows)};
  if (load.row_shift == 0 && top.count() > 0) {
    copy_plane_rows(planes, top.begin, lane.head.make(top), top);
  }
}

TypedPlanes Engine::planes_of(Job& job, Lane& lane, int result, int slice) {
  if (result == 0 && job.source_in_place)
    return *planes_in_place(*job.in->view(slice), spec_.colour_channels());
  PlaneRows* held = lane.results[static_cast<std::size_t>(result)].find(slice);
  if (held == nullptr) throw Error(ErrorCode::internal, "a slice of a result is gone");
  return held->held();
}

// The output's own memory, where the last stage can write directly into it.
std::optional<TypedPlanes> Engine::final_planes(const Job& job, int slice) const {
  const ImageView* out = job.out->view(slice);
  if (out == nullptr || job.scale != 1 || job.keep || spec_.alpha || pipeline_.stages.empty()) {
    return std::nullopt;
  }
  return planes_in_place(*out, spec_.colour_channels());
}

void Engine::run_stage(Job& job, Slot& slot, const Step& step, const StageStep& work) {
  Lane& lane = *slot.lane;
  const Stage& stage = pipeline_.stages[static_cast<std::size_t>(work.stage)];
  std::vector<ConstPlanes> in;
  std::vector<TypedPlanes> typed_in;
  for (const int result : stage.reads) {
    for (const int slice : work.slices) {
      const TypedPlanes planes = slice == no_pixel ? TypedPlanes{} : planes_of(job, lane, result, slice);
      typed_in.push_back(planes);
      in.push_back(floats_of(planes));
    }
  }
  TypedPlanes out = room_in_ring(job, lane, step, work.stage + 1, work.slice, work.rows);
  if (work.stage + 1 == static_cast<int>(pipeline_.stages.size())) {
    if (const std::optional<TypedPlanes> final = final_planes(job, work.slice))
      out = rows_of(*final, work.rows);
  }
  const StageData data{in,  floats_of(out), {spec_.width, spec_.height}, stage.reach, typed_in,
                       out, work.slice};
  job.step_rows_now = work.rows.count();
  lane.compute->run(stage, data, lane.scratch);
  job.step_rows_done += work.rows.count();
  job.step_rows_now = 0;
  if (!job.asynchronous) slot.mark(work.stage);
}

// The memory for the band's output: the output's own, or a buffer on the way there. Samples that end up on
// the host and are to be written become the slot's `made`.
ImageView Engine::room_for_output(Job& job, Workplace& place, Slot& slot, const Step& step) {
  const Rect rect{job.out_rect.x0, step.output.begin, job.out_rect.x1, step.output.end};
  slot.made.reset();
  if (const ImageView* out = job.out->view(step.slice)) {
    return with_region(out->rows(step.output.begin - job.out_rect.y0, step.output.count()), rect, spec_);
  }
  ImageSpec band = job.out_spec;
  band.width = rect.width();
  band.height = rect.height();
  slot.to_be_written = job.out->download_view(step.slice) == nullptr;
  if (const ImageView* out = job.out->download_view(step.slice)) {
    slot.made = out->rows(step.output.begin - job.out_rect.y0, step.output.count());
  } else {
    const std::size_t buffer = static_cast<std::size_t>(job.report.bands) % place.host_outputs.size();
    slot.made = ImageView(place.host_outputs[buffer].data(), band, packed_rows(band));
  }
  if (place.plan.host_memory) return with_region(*slot.made, rect, spec_);
  return with_region(ImageView(slot.out.data(), band, packed_rows(band)), rect, spec_);
}

void Engine::finish_band(Job& job, Slot& slot) {
  if (!slot.busy) return;
  Lane& lane = *slot.lane;
  lane.out->wait(*slot.done);
  slot.busy = false;
  NonFiniteStats stats;
  if (job.fill) std::memcpy(&stats, slot.stats_on_host.data(), sizeof(stats));
  if (stats.pixels > 0 && options_.nonfinite == NonFinite::error) {
    refuse_pixel(stats.first_x(), stats.first_y());
  }
  job.report.nonfinite_pixels += static_cast<std::int64_t>(stats.pixels);
  for (std::size_t index = 1; index < slot.timed.size(); ++index) {
    job.report.stages[static_cast<std::size_t>(slot.timed[index])].ms +=
        lane.compute->ms_between(*slot.marks[index - 1], *slot.marks[index]);
  }
  const bool writes = slot.made && slot.to_be_written;
  if (writes && job.out->takes_time()) {
    job.writing.wait();
    const auto write = [&job, slice = slot.slice, first = slot.rows.begin, rows = *slot.made] {
      job.out->write_rows(slice, first, rows);
    };
    // With one band there is nothing to overlap with.
    if (slot.rows.count() == job.out_rect.height() && job.slices == 1) {
      write();
    } else {
      job.writing.start(write);
    }
  } else if (writes) {
    job.out->write_rows(slot.slice, slot.rows.begin, *slot.made);
  }
  if (slot.rows.end == job.out_rect.y1) job.out->slice_done(slot.slice);
  job.rows_done += slot.rows.count();
  if (!backend_->tells_progress() && options_.progress && job.slices) {
    options_.progress(static_cast<double>(job.rows_done) /
                      (static_cast<double>(job.out_rect.height()) * *job.slices));
  }
}

// For a backend that reports how much of a stage is done.
void Engine::tell_progress(Job& job, double part) {
  constexpr std::chrono::milliseconds quiet{20};
  if (!options_.progress || !job.slices || job.step_rows_total == 0) return;
  if (Clock::now() - job.last_progress < quiet) return;
  job.last_progress = Clock::now();
  const double of_step =
      (static_cast<double>(job.step_rows_done) + part * static_cast<double>(job.step_rows_now)) /
      static_cast<double>(job.step_rows_total);
  const double rows = static_cast<double>(job.rows_done) + of_step * static_cast<double>(job.step_rows);
  job.told = std::max(job.told, rows / (static_cast<double>(job.out_rect.height()) * *job.slices));
  options_.progress(job.told);
}

}  // namespace ungrain
