#include "cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

#include "core/bands.h"
#include "core/convert.h"
#include "core/convert_simd.h"
#include "core/memory.h"
#include "core/rows.h"
#include "core/run_checks.h"
#include "core/samples.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

// This many pixels keep every thread busy for many tiles; larger bands would leave less overlap of reading,
// filtering and writing.
constexpr int band_pixels = 1 << 20;
// Higher bands are a multiple of full tiles.
constexpr int tile_rows = 64;
// A band has this many times the rows that every band computes again: they cost about 4 % of bm3d's time.
constexpr int rows_for_repeated = 12;

constexpr std::size_t padded(std::size_t floats) { return (floats + 15) / 16 * 16; }

using Clock = std::chrono::steady_clock;

struct TimeMark : Mark {
  Clock::time_point time;
};

Memory host_memory(std::size_t bytes) {
  auto buffer = std::make_shared<Buffer<std::byte>>(bytes);
  std::byte* data = buffer->data();
  return {std::shared_ptr<void>(std::move(buffer), data), bytes};
}

// Calls body(y, worker) for every row. A worker takes several narrow rows at a time: few pixels do not pay
// for another thread.
template <class Body>
void for_rows(Workers& workers, int rows, int width, Body body) {
  constexpr int pixels = 1 << 14;
  const int at_once = std::max(1, pixels / width);
  workers.for_each((rows + at_once - 1) / at_once, [&](std::int64_t item, int worker) {
    const int begin = static_cast<int>(item) * at_once;
    for (int y = begin; y < std::min(rows, begin + at_once); ++y) body(y, worker);
  });
}

template <class View>
View channel_of(View view, int channel) {
  using Byte = std::conditional_t<std::is_same_v<View, ImageView>, std::byte, const std::byte>;
  view.data = static_cast<Byte*>(view.data) + channel * view.strides.channel;
  view.spec.channels = 1;
  return view;
}

// Every call returns when its work is done.
class CpuQueue : public Queue {
 public:
  explicit CpuQueue(Workers& workers) : workers_(workers) {}

  Memory allocate(std::size_t bytes) override { return host_memory(bytes); }
  Memory allocate_host(std::size_t bytes) override { return host_memory(bytes); }
  void upload(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void clear(NonFiniteStats* stats) override { *stats = {}; }
  void clear(const ByteRows& rows) override {
    for (int row = 0; row < rows.rows; ++row) {
      std::memset(static_cast<std::byte*>(rows.data) + row * rows.stride, 0, rows.bytes);
    }
  }

  void load(const LoadCall& call) override;
  void store(const StoreCall& call) override;
  void run(const Stage& stage, const StageData& data, const Memory& scratch) override;
  bool run_direct(const Direct& direct, const DirectData& data, const Memory& scratch) override;

  std::unique_ptr<Mark> make_mark() override { return std::make_unique<TimeMark>(); }
  void record(Mark& mark) override { static_cast<TimeMark&>(mark).time = Clock::now(); }
  void follow(const Mark&) override {}
  void wait(const Mark&) override {}
  void wait() override {}
  double ms_between(const Mark& start, const Mark& end) override {
    const auto time = [](const Mark& mark) { return static_cast<const TimeMark&>(mark).time; };
    return std::chrono::duration<double, std::milli>(time(end) - time(start)).count();
  }

 private:
  std::span<float> worker_scratch(const Memory& scratch, std::size_t floats_each) const {
    return {static_cast<float*>(scratch.data()), padded(floats_each) * workers_.count()};
  }

  Workers& workers_;
};

void CpuQueue::load(const LoadCall& call) {
  const Planes& planes = call.planes;
  const Rect raw_rect = rect_of(call.raw);
  const ConstImageView raw = columns_of(call.raw, planes.rect.x0 - raw_rect.x0, planes.rect.width());
  const int width = planes.rect.width();
  std::mutex mutex;
  for_rows(workers_, planes.rect.height(), width, [&](int offset, int) {
    const int y = planes.rect.y0 + offset;
    const int raw_y = y + call.row_shift - raw_rect.y0;
    float* rows[max_channels];
    for (int channel = 0; channel < planes.count; ++channel) rows[channel] = planes.row(channel, y);
    load_channels(raw, raw_y, planes.count, rows);
    if (!call.fill) return;
    bool finite = true;
    for (int channel = 0; channel < planes.count; ++channel) {
      finite = finite && all_finite(rows[channel], width);
    }
    if (finite) return;
    NonFiniteStats found;
    for (int x = width - 1; x >= 0; --x) {
      const bool whole =
          std::all_of(rows, rows + planes.count, [&](const float* r) { return std::isfinite(r[x]); });
      if (whole) continue;
      ++found.pixels;
      found.inverse_first = NonFiniteStats::inverse_of((planes.rect.x0 + x) * call.step.x, y * call.step.y);
    }
    for (int channel = 0; channel < planes.count; ++channel) {
      fill_nonfinite(call.raw, raw_y, channel, rows[channel], planes.rect.x0 - raw_rect.x0, width);
    }
    if (y < call.counted.begin || y >= call.counted.end) return;
    const std::lock_guard lock(mutex);
    call.stats->pixels += found.pixels;
    call.stats->inverse_first = std::max(call.stats->inverse_first, found.inverse_first);
  });
}

void CpuQueue::store(const StoreCall& call) {
  const Rect rect = rect_of(call.out);
  const int width = rect.width();
  const ImageView& out = call.out;
  const int alpha = out.spec.alpha ? out.spec.channels - 1 : -1;
  const Rect raw_rect = rect_of(call.raw);
  for_rows(workers_, rect.height(), width, [&](int y, int) {
    const float* values[max_channels];
    for (int channel = 0; channel < call.planes.count; ++channel) {
      values[channel] = call.planes.row(channel, rect.y0 + y) + (rect.x0 - call.planes.rect.x0);
    }
    store_channels(out, y, call.planes.count, values, call.scale);
    if (alpha < 0 && !call.keep) return;
    const ConstImageView raw = columns_of(call.raw, rect.x0 - raw_rect.x0, width);
    const int raw_y = rect.y0 + y - raw_rect.y0;
    std::vector<float> row(static_cast<std::size_t>(width));
    if (alpha >= 0 && out.spec.type == raw.spec.type) {
      copy_row(raw, raw_y, out, y, alpha);
    } else if (alpha >= 0) {
      load_row(raw, raw_y, alpha, row.data());
      store_row(out, y, alpha, row.data(), call.alpha_scale);
    }
    for (int channel = 0; call.keep && channel < call.planes.count; ++channel) {
      load_row(raw, raw_y, channel, row.data());
      for (int x = 0; x < width; ++x) {
        const float* value = &row[static_cast<std::size_t>(x)];
        if (!std::isfinite(*value)) store_row(columns_of(out, x, 1), y, channel, value);
      }
    }
  });
}

// The memory holds each worker's own part, then the shared part.
void CpuQueue::run(const Stage& stage, const StageData& data, const Memory& scratch) {
  const std::span<float> own = worker_scratch(scratch, stage.scratch);
  const std::span<float> shared{own.data() + own.size(), scratch.bytes / sizeof(float) - own.size()};
  stage.run({data, workers_, own, shared});
}

bool CpuQueue::run_direct(const Direct& direct, const DirectData& data, const Memory& scratch) {
  std::atomic<bool> saw_nonfinite = false;
  DirectCall call{data.in,
                  data.out,
                  data.in_rect,
                  data.out_rect,
                  data.image,
                  workers_,
                  worker_scratch(scratch, direct.scratch),
                  saw_nonfinite};
  if (lies_interleaved(data.in)) {
    direct.run(call);
  } else {
    for (int channel = 0; channel < data.in.spec.colour_channels(); ++channel) {
      call.in = channel_of(data.in, channel);
      call.out = channel_of(data.out, channel);
      direct.run(call);
    }
  }
  if (data.in.spec.alpha) {
    const ConstImageView raw = columns_of(data.in, data.out_rect.x0 - data.in_rect.x0, data.out_rect.width());
    const int above = data.out_rect.y0 - data.in_rect.y0;
    for_rows(workers_, data.out_rect.height(), raw.spec.width,
             [&](int y, int) { copy_row(raw, y + above, data.out, y, data.out.spec.channels - 1); });
  }
  return saw_nonfinite;
}

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(int threads) : workers_(threads) {}

  BackendTraits traits() const override {
    return {.memory_name = "working memory",
            .works_in_host_memory = true,
            .carries_rows = true,
            .rows_beyond_edges = true,
            .row_alignment = 16};
  }
  std::unique_ptr<Queue> make_queue(int) override { return std::make_unique<CpuQueue>(workers_); }
  int devices_of(int) const override { return 0; }
  std::size_t memory_to_take() const override { return free_memory() / 2; }

  int band_rows(const Pipeline& pipeline, const ImageSpec& spec, const Options&) const override {
    // What each pixel and each other one have in common is found once where both are in one band, and slices
    // are read and computed once where a band is a whole slice.
    const Reach reach = total_reach(pipeline, {spec.width, spec.height});
    if (reach.whole || reach.slices() > 1) return spec.height;
    int repeated = 0;
    for (const Stage& stage : pipeline.stages) repeated = std::max(repeated, stage.repeated_rows);
    const int rows =
        std::clamp(std::max(band_pixels / spec.width, rows_for_repeated * repeated), 1, spec.height);
    return rows > tile_rows && rows < spec.height ? rows / tile_rows * tile_rows : rows;
  }

  std::size_t scratch_bytes(const Pipeline& pipeline, std::span<const int> stage_rows,
                            const ImageSpec& spec) const override {
    const auto threads = static_cast<std::size_t>(workers_.count());
    std::size_t most = padded(pipeline.direct.scratch) * threads;
    for (std::size_t index = 0; index < pipeline.stages.size(); ++index) {
      const Stage& stage = pipeline.stages[index];
      const auto pixels = static_cast<std::size_t>(stage_rows[index]) * static_cast<std::size_t>(spec.width);
      most = std::max(most, padded(stage.scratch) * threads + stage.shared_per_pixel * pixels + stage.shared);
    }
    return most * sizeof(float);
  }

  bool reaches(const ConstImageView& view, const char* which) const override {
    if (view.space.memory == Space::Memory::host) return true;
    throw Error(ErrorCode::unsupported,
                fmt::format("the {} lies on a GPU, the method runs on the CPU", which));
  }
  bool copies_from(const ConstImageView&) const override { return true; }

  Workers& workers() override { return workers_; }
  void watch(const CancelToken* cancel, StageProgress progress) override {
    if (!progress) {
      workers_.watch(cancel, nullptr);
      return;
    }
    workers_.watch(cancel, [progress = std::move(progress)](std::int64_t done, std::int64_t of) {
      progress(static_cast<double>(done) / static_cast<double>(of));
    });
  }
  bool tells_progress() const override { return true; }

 private:
  Workers workers_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads) { return std::make_unique<CpuBackend>(threads); }

}  // namespace ungrain
