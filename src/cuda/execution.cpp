// Images on the host flow through the GPU in bands of rows, each band in one of several lanes: a lane uploads
// while another computes and a third downloads. A band brings along the rows around it that its pixels need,
// so bands know nothing of each other, and lanes may lie on several GPUs. Images on the GPU are worked on
// where they lie, all rows at once where the memory allows.
#include "cuda/execution.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "core/bands.h"
#include "core/convert.h"
#include "core/memory.h"
#include "core/rows.h"
#include "core/run_checks.h"
#include "cpu/parallel.h"
#include "cuda/convert.h"
#include "cuda/memory.h"
#include "ungrain/error.h"

namespace ungrain::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int lanes_a_queue = 3;
constexpr std::ptrdiff_t row_alignment = 32;  // floats

std::ptrdiff_t padded(int width) { return (width + row_alignment - 1) / row_alignment * row_alignment; }

RowRange clipped(RowRange rows, int height) {
  return {std::clamp(rows.begin, 0, height), std::clamp(rows.end, 0, height)};
}

// Rows of each result that are needed for these rows of the output.
std::vector<RowRange> rows_for(const Pipeline& pipeline, int height, RowRange output) {
  const int stages = static_cast<int>(pipeline.stages.size());
  std::vector<RowRange> rows(static_cast<std::size_t>(stages) + 1, output);
  for (int stage = stages - 1; stage >= 0; --stage) {
    const Reach& reach = pipeline.stages[stage].reach;
    const RowRange made = rows[stage + 1];
    // Under wrap the rows beyond the edge are the other edge's: only the whole image will do.
    const bool all = reach.whole || pipeline.wraps;
    const RowRange more =
        all ? RowRange{0, height} : clipped({made.begin - reach.y, made.end + reach.y}, height);
    for (const int result : pipeline.stages[stage].reads) {
      rows[result] = {std::min(rows[result].begin, more.begin), std::max(rows[result].end, more.end)};
    }
  }
  return rows;
}

bool needs_all_rows(const Pipeline& pipeline) {
  return pipeline.wraps || std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                                       [](const Stage& stage) { return stage.reach.whole; });
}

// The memory that bands of so many output rows take on the GPU.
struct LanePlan {
  LanePlan(const Pipeline& pipeline, const ImageSpec& spec, const Options& options, int band)
      : band_rows(band) {
    const std::vector<RowRange> middle = rows_for(pipeline, 1 << 28, {1 << 27, (1 << 27) + band});
    const bool all = needs_all_rows(pipeline);
    const std::ptrdiff_t stride = padded(spec.width);
    for (std::size_t result = 0; result < middle.size(); ++result) {
      const int rows = all ? spec.height : std::min(spec.height, middle[result].count());
      const int planes = result == 0 ? spec.colour_channels() : pipeline.stages[result - 1].planes;
      result_rows.push_back(rows);
      result_floats.push_back(static_cast<std::size_t>(stride * rows * planes));
    }
    for (std::size_t index = 0; index < pipeline.stages.size(); ++index) {
      const Stage& stage = pipeline.stages[index];
      const std::size_t floats =
          stage.scratch_for ? stage.scratch_for(result_rows[index + 1]) : stage.scratch;
      scratch_floats = std::max(scratch_floats, floats);
    }
    raw_rows = std::min(spec.height, result_rows[0] + 2 * fill_reach(spec, options));
    raw_bytes = static_cast<std::size_t>(interleaved_strides(spec).y) * static_cast<std::size_t>(raw_rows);
    out_bytes =
        static_cast<std::size_t>(spec.width) * spec.channels * sizeof(float) * static_cast<std::size_t>(band);
  }

  std::size_t working_bytes() const {
    std::size_t floats = scratch_floats;
    for (const std::size_t result : result_floats) floats += result;
    return floats * sizeof(float) + sizeof(Found);
  }
  std::size_t bytes() const { return working_bytes() + raw_bytes + out_bytes; }

  int band_rows;
  std::vector<int> result_rows;
  std::vector<std::size_t> result_floats;
  std::size_t scratch_floats = 0;
  int raw_rows = 0;
  std::size_t raw_bytes = 0;
  std::size_t out_bytes = 0;
};

// What the stages work in.
struct Working {
  explicit Working(const LanePlan& p)
      : plan(p), scratch(p.scratch_floats * sizeof(float)), found(sizeof(Found)) {
    for (const std::size_t floats : p.result_floats) results.emplace_back(floats * sizeof(float));
  }

  Found* found_on_device() const { return static_cast<Found*>(found.data()); }

  LanePlan plan;
  std::vector<DeviceBuffer> results;
  DeviceBuffer scratch;
  DeviceBuffer found;
};

// A queue of work with memory of its own.
struct Lane {
  // On the GPU that is the current one.
  Lane(const LanePlan& plan, int stages, int on)
      : gpu(on),
        working(plan),
        raw(plan.raw_bytes),
        out(plan.out_bytes),
        staged_in(plan.raw_bytes),
        staged_out(plan.out_bytes),
        found(sizeof(Found)),
        marks(static_cast<std::size_t>(stages) + 1) {}

  Found& found_on_host() const { return *reinterpret_cast<Found*>(found.data()); }

  int gpu;
  OwnStream stream;
  Working working;
  DeviceBuffer raw;
  DeviceBuffer out;
  PinnedBuffer staged_in;
  PinnedBuffer staged_out;
  PinnedBuffer found;
  std::vector<Event> marks;  // before the first stage and after each
  RowRange busy_with;        // output rows; none: free
};

ImageView with_region(ImageView view, const Rect& rect, const ImageSpec& image) {
  view.region = {rect.x0, rect.y0, image.width, image.height};
  return view;
}

// What one run works with.
struct Job {
  Rect in_rect;
  Rect out_rect;
  ImageSpec out_spec;
  double scale = 1;
  double alpha_scale = 1;
  bool keep = false;
};

class Execution final : public Executor {
 public:
  Execution(Pipeline pipeline, const ImageSpec& spec, const Options& options, std::vector<int> queues)
      : pipeline_(std::move(pipeline)),
        spec_(spec),
        options_(options),
        queues_(std::move(queues)),
        workers_(options.threads) {
    limit_ = options_.memory > 0 ? options_.memory : memory_to_take();
    band_rows_ = planned_rows(most_lanes(), host_band_rows());
  }

  Report run(const ConstImageView& in, const ImageView& out) override {
    const CurrentDevice current(queues_.front());
    check_images(in, out, spec_, pipeline_, options_);
    check_place(in, "input");
    check_place(out, "output");
    const bool on_device = in.space.memory == Space::Memory::cuda;
    if (on_device != (out.space.memory == Space::Memory::cuda)) return run_across(in, out);
    Job job = job_for(rect_of(in), rect_of(out), out.spec);
    Report report;
    const Clock::time_point start = Clock::now();
    if (on_device) {
      run_on_device(in, out, job, own_stream(), &report);
      own_stream_->wait();
      collect(report);
    } else {
      if (options_.nonfinite == NonFinite::error && is_float(spec_.type)) refuse_bad_pixels(in, job.in_rect);
      make_lanes();
      // In place a band is written back when as many bands as there are lanes have been read: its rows must
      // be of no more use to the next.
      Image copy;
      ConstImageView from = in;
      if (runs_in_place(in, out) && reach().y + fill_reach(spec_, options_) > band_rows_) {
        copy = Image(in.spec);
        copy_rows(in, copy.view());
        from = copy.view();
        from.region = in.region;
      }
      ViewSource source(from, job.in_rect.y0);
      run_bands(source, job, report, [&](RowRange rows, const ConstImageView& made) {
        copy_rows(made, out.rows(rows.begin - job.out_rect.y0, rows.count()));
      });
    }
    report.ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    return report;
  }

  Report run(RowReader& in, RowWriter& out, const ImageSpec& out_spec) override {
    const CurrentDevice current(queues_.front());
    check_writer(out_spec, spec_);
    const Rect whole{0, 0, spec_.width, spec_.height};
    const Job job = job_for(whole, whole, out_spec);
    Report report;
    const Clock::time_point start = Clock::now();
    make_lanes();
    // Rows are kept for the next band's sake as well: what both need is read once.
    if (stream_rows_.size() == 0) {
      stream_rows_ = Buffer<std::byte>(static_cast<std::size_t>(interleaved_strides(spec_).y) *
                                       static_cast<std::size_t>(lanes_[0].working.plan.raw_rows));
    }
    StreamSource source(in, spec_, stream_rows_);
    run_bands(source, job, report,
              [&](RowRange rows, const ConstImageView& made) { out.write_rows(rows.begin, made); });
    report.ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    return report;
  }

  void run_async(const ConstImageView& in, const ImageView& out, Stream stream) override {
    if (queues_.size() > 1) {
      throw Error(ErrorCode::unsupported,
                  "run_async() works on the stream of one GPU, cuda:all has queues of its own");
    }
    const CurrentDevice current(queues_.front());
    check_images(in, out, spec_, pipeline_, options_);
    for (const ConstImageView& view : {in, ConstImageView(out)}) {
      if (view.space.memory == Space::Memory::cuda) {
        check_place(view, "image");
      } else if (!is_page_locked(view.data) || !is_packed(view)) {
        throw Error(ErrorCode::unsupported,
                    "run_async() takes images on the GPU, or interleaved ones in page-locked host memory");
      }
    }
    const Job job = job_for(rect_of(in), rect_of(out), out.spec);
    const ConstImageView from = on_device_copy(in, async_in_, stream, true);
    ImageView to = out;
    if (out.space.memory == Space::Memory::host) {
      to = device_view(async_out_, out.spec, rect_of(out));
    }
    run_on_device(from, to, job, stream, nullptr);
    if (out.space.memory == Space::Memory::host) {
      check(cudaMemcpyAsync(out.data, to.data, bytes_of(out), cudaMemcpyDeviceToHost, handle(stream)),
            "downloading an image");
    }
    async_stream_ = stream;
  }

  void wait() override {
    if (!async_stream_) return;
    const CurrentDevice current(queues_.front());
    check(cudaStreamSynchronize(handle(*async_stream_)), "waiting for the GPU");
    async_stream_.reset();
    Report report;
    collect(report);
  }

  int band_rows() const override { return options_.band_rows; }
  Reach reach() const override { return total_reach(pipeline_, {spec_.width, spec_.height}); }

 private:
  // ---- planning

  int most_lanes() const { return lanes_a_queue * static_cast<int>(queues_.size()); }

  // Half of what is free, as much on every queue's GPU.
  std::size_t memory_to_take() const {
    std::size_t each = std::numeric_limits<std::size_t>::max();
    for (const int gpu : queues_) {
      const CurrentDevice current(gpu);
      const auto sharing = static_cast<std::size_t>(std::count(queues_.begin(), queues_.end(), gpu));
      each = std::min(each, free_device_memory() / 2 / sharing);
    }
    return each * queues_.size();
  }

  // Enough bands that copies hide behind kernels, each large enough to fill the GPU.
  int host_band_rows() const {
    if (needs_all_rows(pipeline_)) return spec_.height;
    if (options_.band_rows > 0) return std::min(options_.band_rows, spec_.height);
    const int bands = 8 * static_cast<int>(queues_.size());
    constexpr int least_pixels = 1 << 20;
    const int around = 2 * (reach().y + fill_reach(spec_, options_));
    const int rows =
        std::max({(spec_.height + bands - 1) / bands, least_pixels / spec_.width, 8 * around, 1});
    return std::min(rows, spec_.height);
  }

  // As many rows as were asked for, or fewer where the memory allows no more.
  int planned_rows(int lanes, int wanted) const {
    const auto bytes = [&](int rows) {
      const int used = std::min(lanes, (spec_.height + rows - 1) / rows);
      return LanePlan(pipeline_, spec_, options_, rows).bytes() * static_cast<std::size_t>(used);
    };
    int rows = wanted;
    if (!needs_all_rows(pipeline_) && options_.band_rows == 0) {
      while (rows > 1 && bytes(rows) > limit_) rows = rows * 3 / 4;
    }
    if (bytes(rows) > limit_ && options_.band_rows == 0) {
      throw Error(ErrorCode::out_of_memory,
                  fmt::format("an image of {} x {} needs at least {} of GPU memory, the limit is {}",
                              spec_.width, spec_.height, bytes_text(bytes(rows)), bytes_text(limit_)));
    }
    return rows;
  }

  void make_lanes() {
    if (!lanes_.empty()) return;
    const int bands = (spec_.height + band_rows_ - 1) / band_rows_;
    // What could not be had makes the bands smaller before it makes the run fail.
    for (;;) {
      try {
        const LanePlan plan(pipeline_, spec_, options_, band_rows_);
        // One lane on every queue before a second one on any.
        for (int lane = 0; lane < std::min(most_lanes(), bands); ++lane) {
          const int gpu = queues_[static_cast<std::size_t>(lane) % queues_.size()];
          const CurrentDevice current(gpu);
          lanes_.emplace_back(plan, static_cast<int>(pipeline_.stages.size()), gpu);
        }
        return;
      } catch (const Error& error) {
        lanes_.clear();
        if (error.code() != ErrorCode::out_of_memory || band_rows_ <= 16 || needs_all_rows(pipeline_)) throw;
        band_rows_ /= 2;
      }
    }
  }

  Job job_for(const Rect& in, const Rect& out, const ImageSpec& out_spec) const {
    Job job;
    job.in_rect = in;
    job.out_rect = out;
    job.out_spec = out_spec;
    job.scale = out_spec.white() / spec_.white();
    job.alpha_scale = natural_range(out_spec.type) / natural_range(spec_.type);
    job.keep = is_float(spec_.type) && options_.nonfinite == NonFinite::keep;
    return job;
  }

  void check_place(const ConstImageView& view, const char* which) const {
    if (view.space.memory != Space::Memory::cuda) return;
    if (queues_.size() > 1) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("the {} lies on GPU {}, cuda:all works on images in the host's memory", which,
                              view.space.device));
    }
    if (view.space.device != queues_.front()) {
      throw Error(ErrorCode::unsupported, fmt::format("the {} lies on GPU {}, the method runs on GPU {}",
                                                      which, view.space.device, queues_.front()));
    }
  }

  Stream own_stream() {
    if (!own_stream_) own_stream_.emplace();
    return {own_stream_->get()};
  }

  // ---- one band, on the GPU

  // Raw samples to float planes, through the stages, to samples. `raw` covers what the band needs.
  void compute(const Working& working, const ConstImageView& raw, const ImageView& out, const Job& job,
               Stream stream, const std::vector<Event>* marks) const {
    const Rect out_rect = rect_of(out);
    std::vector<RowRange> rows = rows_for(pipeline_, spec_.height, {out_rect.y0, out_rect.y1});
    std::vector<RowRange> columns = columns_for(pipeline_, spec_.width, {out_rect.x0, out_rect.x1});
    columns[0] = {std::max(columns[0].begin, job.in_rect.x0), std::min(columns[0].end, job.in_rect.x1)};
    std::vector<Planes> planes;
    for (std::size_t result = 0; result < rows.size(); ++result) {
      const int count = result == 0 ? spec_.colour_channels() : pipeline_.stages[result - 1].planes;
      const Rect rect{columns[result].begin, rows[result].begin, columns[result].end, rows[result].end};
      const std::ptrdiff_t stride = padded(spec_.width);
      planes.push_back({working.results[result].floats().data(), rect, stride,
                        stride * working.plan.result_rows[result], count});
    }
    if (const std::optional<Planes> final = planes_in_place(out, job)) planes.back() = *final;

    load_planes(raw, planes[0], out_rect.y0, out_rect.y1, working.found_on_device(), stream);
    if (marks != nullptr) marks->front().record(handle(stream));
    for (std::size_t index = 0; index < pipeline_.stages.size(); ++index) {
      const Stage& stage = pipeline_.stages[index];
      std::vector<ConstPlanes> in;
      for (const int result : stage.reads) in.push_back(planes[result]);
      stage.launch({in, planes[index + 1], {spec_.width, spec_.height}, stream, working.scratch.floats()});
      if (marks != nullptr) (*marks)[index + 1].record(handle(stream));
    }
    if (!planes_in_place(out, job)) {
      store_planes(planes.back(), raw, job.keep, out, job.scale, job.alpha_scale, stream);
    }
  }

  // The output's own memory as planes, where the last stage can write there at once.
  std::optional<Planes> planes_in_place(const ImageView& out, const Job& job) const {
    constexpr std::ptrdiff_t sample = sizeof(float);
    const bool fits = out.spec.type == PixelType::f32 && job.scale == 1 && !job.keep && !spec_.alpha &&
                      !pipeline_.stages.empty() && out.strides.x == sample && out.strides.y % sample == 0 &&
                      out.strides.channel % sample == 0;
    if (!fits) return std::nullopt;
    return Planes{static_cast<float*>(out.data), rect_of(out), out.strides.y / sample,
                  out.strides.channel / sample, spec_.colour_channels()};
  }

  void clear_found(const Working& working, Stream stream) const {
    check(cudaMemsetAsync(working.found.data(), 0, sizeof(unsigned long long), handle(stream)),
          "clearing memory");
    check(cudaMemsetAsync(&working.found_on_device()->first_bad, 0xff, sizeof(unsigned long long),
                          handle(stream)),
          "clearing memory");
  }

  // ---- images on the GPU

  void run_on_device(const ConstImageView& in, const ImageView& out, const Job& job, Stream stream,
                     Report* report) {
    const Rect out_rect = rect_of(out);
    if (!resident_) {
      const int rows = planned_rows(1, spec_.height);
      resident_.emplace(LanePlan(pipeline_, spec_, options_, rows));
      resident_found_ = PinnedBuffer(sizeof(Found));
      for (std::size_t mark = 0; mark <= pipeline_.stages.size(); ++mark) resident_marks_.emplace_back();
    }
    const int band = resident_->plan.band_rows;
    if (out_rect.height() > band && runs_in_place(in, out)) {
      throw Error(ErrorCode::out_of_memory,
                  "the GPU's memory does not hold the image: it cannot be worked on in place there");
    }
    clear_found(*resident_, stream);
    for (int y = out_rect.y0; y < out_rect.y1; y += band) {
      const Rect rect{out_rect.x0, y, out_rect.x1, std::min(y + band, out_rect.y1)};
      const ImageView part =
          with_region(out.rows(y - out_rect.y0, rect.height()), rect, {spec_.width, spec_.height});
      ConstImageView raw = in;
      raw.region = {job.in_rect.x0, job.in_rect.y0, spec_.width, spec_.height};
      const bool timed = report != nullptr && out_rect.height() <= band;
      compute(*resident_, raw, part, job, stream, timed ? &resident_marks_ : nullptr);
      if (report != nullptr) ++report->bands;
    }
    check(cudaMemcpyAsync(resident_found_.data(), resident_->found.data(), sizeof(Found),
                          cudaMemcpyDeviceToHost, handle(stream)),
          "reading what was found");
    if (report == nullptr) return;
    report->buffer_bytes = resident_->plan.working_bytes();
    report->gpus = 1;
    report->queues = 1;
  }

  // After the stream has come to the end of run_on_device().
  void collect(Report& report) {
    const Found& found = *reinterpret_cast<const Found*>(resident_found_.data());
    report.nonfinite_pixels = static_cast<std::int64_t>(found.bad_pixels);
    if (found.bad_pixels > 0 && options_.nonfinite == NonFinite::error) refuse(found);
    for (std::size_t stage = 0; stage < pipeline_.stages.size(); ++stage) {
      const double ms = report.bands == 1 ? resident_marks_[stage + 1].ms_since(resident_marks_[stage]) : 0;
      report.stages.push_back({pipeline_.stages[stage].name, ms});
    }
  }

  [[noreturn]] static void refuse(const Found& found) {
    refuse_pixel(static_cast<int>(found.first_bad & 0xffffffffU), static_cast<int>(found.first_bad >> 32U));
  }

  static std::size_t bytes_of(const ConstImageView& packed) {
    return static_cast<std::size_t>(interleaved_strides(packed.spec).y) * packed.spec.height;
  }
  static bool is_packed(const ConstImageView& view) { return view.strides == interleaved_strides(view.spec); }

  static ImageView device_view(DeviceBuffer& memory, const ImageSpec& spec, const Rect& rect) {
    const ImageView packed(nullptr, spec);
    if (memory.size() < bytes_of(packed)) memory = DeviceBuffer(bytes_of(packed));
    ImageView view(memory.data(), spec);
    view.space.memory = Space::Memory::cuda;
    view.region = {rect.x0, rect.y0, spec.width, spec.height};
    return view;
  }

  ConstImageView on_device_copy(const ConstImageView& view, DeviceBuffer& memory, Stream stream,
                                bool packed) {
    if (view.space.memory == Space::Memory::cuda) return view;
    ImageView copy = device_view(memory, view.spec, rect_of(view));
    copy.region = view.region;
    if (packed) {
      check(cudaMemcpyAsync(copy.data, view.data, bytes_of(view), cudaMemcpyHostToDevice, handle(stream)),
            "uploading an image");
    }
    return copy;
  }

  // From the host to the GPU or back, without bands.
  Report run_across(const ConstImageView& in, const ImageView& out) {
    const Clock::time_point start = Clock::now();
    Image packed_in;
    ConstImageView from = in;
    if (in.space.memory == Space::Memory::host && !is_packed(in)) {
      packed_in = Image(in.spec);
      ImageView to = packed_in.view();
      copy_rows(in, to);
      from = to;
      from.region = in.region;
    }
    const Job job = job_for(rect_of(in), rect_of(out), out.spec);
    const Stream stream = own_stream();
    const ConstImageView source = on_device_copy(from, async_in_, stream, true);
    ImageView to = out;
    if (out.space.memory == Space::Memory::host) to = device_view(async_out_, out.spec, rect_of(out));
    to.region = out.region;
    Report report;
    run_on_device(source, to, job, stream, &report);
    own_stream_->wait();
    collect(report);
    if (out.space.memory == Space::Memory::host) {
      Image packed(out.spec);
      check(cudaMemcpy(packed.view().data, to.data, packed.bytes(), cudaMemcpyDeviceToHost),
            "downloading an image");
      copy_rows(packed.view(), out);
    }
    report.ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    return report;
  }

  // ---- images on the host

  using Deliver = std::function<void(RowRange rows, const ConstImageView& made)>;

  void run_bands(RawSource& source, const Job& job, Report& report, const Deliver& deliver) {
    make_lanes();
    for (const Stage& stage : pipeline_.stages) report.stages.push_back({stage.name, 0});
    report.threads = 1;
    report.buffer_bytes = lanes_[0].working.plan.bytes() * lanes_.size();
    const std::size_t in_use = std::min(queues_.size(), lanes_.size());
    report.queues = static_cast<int>(in_use);
    report.gpus = static_cast<int>(std::set<int>(queues_.begin(), queues_.begin() + in_use).size());
    workers_.watch(&options_.cancel, nullptr);
    const int band = band_rows_;
    const Rect& out = job.out_rect;
    std::size_t next_lane = 0;
    try {
      for (int y = out.y0; y < out.y1; y += band) {
        if (options_.cancel.cancelled()) throw Error(ErrorCode::cancelled, "cancelled");
        Lane& lane = lanes_[next_lane];
        next_lane = (next_lane + 1) % lanes_.size();
        finish_band(lane, job, report, deliver);
        start_band(lane, source, {y, std::min(y + band, out.y1)}, job);
      }
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        finish_band(lanes_[(next_lane + lane) % lanes_.size()], job, report, deliver);
      }
    } catch (...) {
      // Nothing may still be running into memory that the caller takes back.
      for (Lane& lane : lanes_) {
        cudaStreamSynchronize(lane.stream.get());
        lane.busy_with = {};
      }
      throw;
    }
    if (options_.progress) options_.progress(1);
  }

  void start_band(Lane& lane, RawSource& source, RowRange rows, const Job& job) {
    const CurrentDevice current(lane.gpu);
    const int fill = fill_reach(spec_, options_);
    const RowRange needed = rows_for(pipeline_, spec_.height, rows)[0];
    const RowRange raw_rows{std::max(job.in_rect.y0, needed.begin - fill),
                            std::min(job.in_rect.y1, needed.end + fill)};
    const ConstImageView raw = source.rows(raw_rows);
    ImageSpec staged_spec = spec_;
    staged_spec.width = job.in_rect.width();
    staged_spec.height = raw_rows.count();
    const ImageView staged(lane.staged_in.data(), staged_spec);
    copy_rows(raw, staged);

    const cudaStream_t stream = lane.stream.get();
    check(cudaMemcpyAsync(lane.raw.data(), staged.data, bytes_of(staged), cudaMemcpyHostToDevice, stream),
          "uploading rows");
    ConstImageView on_device(static_cast<const void*>(lane.raw.data()), staged_spec);
    on_device.region = {job.in_rect.x0, raw_rows.begin, spec_.width, spec_.height};

    ImageSpec out_spec = job.out_spec;
    out_spec.width = job.out_rect.width();
    out_spec.height = rows.count();
    ImageView out(lane.out.data(), out_spec);
    out.region = {job.out_rect.x0, rows.begin, spec_.width, spec_.height};
    clear_found(lane.working, {stream});
    compute(lane.working, on_device, out, job, {stream}, &lane.marks);
    check(cudaMemcpyAsync(lane.staged_out.data(), out.data, bytes_of(out), cudaMemcpyDeviceToHost, stream),
          "downloading rows");
    check(cudaMemcpyAsync(lane.found.data(), lane.working.found.data(), sizeof(Found), cudaMemcpyDeviceToHost,
                          stream),
          "reading what was found");
    lane.busy_with = rows;
  }

  void finish_band(Lane& lane, const Job& job, Report& report, const Deliver& deliver) {
    const RowRange rows = lane.busy_with;
    if (rows.count() == 0) return;
    lane.stream.wait();
    lane.busy_with = {};
    const Found found = lane.found_on_host();
    if (found.bad_pixels > 0 && options_.nonfinite == NonFinite::error) refuse(found);
    report.nonfinite_pixels += static_cast<std::int64_t>(found.bad_pixels);
    for (std::size_t stage = 0; stage < pipeline_.stages.size(); ++stage) {
      report.stages[stage].ms += lane.marks[stage + 1].ms_since(lane.marks[stage]);
    }
    ImageSpec spec = job.out_spec;
    spec.width = job.out_rect.width();
    spec.height = rows.count();
    deliver(rows, ImageView(lane.staged_out.data(), spec));
    ++report.bands;
    if (options_.progress) {
      options_.progress(static_cast<double>(rows.end - job.out_rect.y0) / job.out_rect.height());
    }
  }

  // Between views of one type, any layouts.
  void copy_rows(const ConstImageView& from, const ImageView& to) {
    const std::ptrdiff_t packed_row = interleaved_strides(from.spec).y;
    const Strides packed = interleaved_strides(from.spec);
    const bool whole_rows = from.strides.x == packed.x && to.strides.x == packed.x &&
                            from.strides.channel == packed.channel && to.strides.channel == packed.channel;
    workers_.for_each(from.spec.height, [&](std::int64_t item, int) {
      const int y = static_cast<int>(item);
      if (whole_rows) {
        std::memcpy(static_cast<std::byte*>(to.data) + y * to.strides.y,
                    static_cast<const std::byte*>(from.data) + y * from.strides.y,
                    static_cast<std::size_t>(packed_row));
        return;
      }
      for (int channel = 0; channel < from.spec.channels; ++channel) copy_row(from, y, to, y, channel);
    });
  }

  void refuse_bad_pixels(const ConstImageView& in, const Rect& rect) const {
    std::vector<float> row(static_cast<std::size_t>(in.spec.width));
    for (int y = 0; y < in.spec.height; ++y) {
      int first = in.spec.width;
      for (int channel = 0; channel < in.spec.colour_channels(); ++channel) {
        load_row(in, y, channel, row.data());
        const auto bad = std::find_if(row.begin(), row.end(), [](float v) { return !std::isfinite(v); });
        first = std::min(first, static_cast<int>(bad - row.begin()));
      }
      if (first < in.spec.width) refuse_pixel(rect.x0 + first, rect.y0 + y);
    }
  }

  Pipeline pipeline_;
  ImageSpec spec_;
  Options options_;
  std::vector<int> queues_;  // the GPU of each
  Workers workers_;
  std::size_t limit_ = 0;
  int band_rows_ = 0;
  std::vector<Lane> lanes_;
  Buffer<std::byte> stream_rows_;
  std::optional<Working> resident_;  // for images on the GPU
  PinnedBuffer resident_found_;
  std::vector<Event> resident_marks_;
  std::optional<OwnStream> own_stream_;
  std::optional<Stream> async_stream_;
  DeviceBuffer async_in_;
  DeviceBuffer async_out_;
};

}  // namespace

std::unique_ptr<Executor> make_execution(Pipeline pipeline, const ImageSpec& spec, const Options& options,
                                         std::vector<int> queues) {
  return std::make_unique<Execution>(std::move(pipeline), spec, options, std::move(queues));
}

}  // namespace ungrain::cuda
