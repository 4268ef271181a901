#include "made_up_gpu.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <set>

#include "core/bands.h"
#include "cpu/cpu_backend.h"
#include "ungrain/error.h"

namespace ungrain::testing {

struct MadeUpGpus::State {
  struct Gpu {
    std::size_t bytes = 0;
    std::size_t used = 0;
    int work = 0;
    int uploads = 0;
    int allocations = 0;
    int loads = 0;
  };
  struct Allocation {
    int gpu = 0;
    std::size_t bytes = 0;
  };
  std::vector<Gpu> gpus;
  double time_factor = 1;
  std::map<const std::byte*, Allocation> allocations;

  Gpu& gpu(int index) { return gpus[static_cast<std::size_t>(index)]; }
};

namespace {

class MadeUpQueue;

struct MadeUpMark : Mark {
  MadeUpQueue* queue = nullptr;
  std::size_t position = 0;
  std::chrono::steady_clock::time_point time;
};

class MadeUpQueue : public Queue {
 public:
  MadeUpQueue(std::shared_ptr<MadeUpGpus::State> state, int gpu, Queue& cpu)
      : state_(std::move(state)), gpu_(gpu), cpu_(cpu) {}
  ~MadeUpQueue() override { wait(); }

  Memory allocate(std::size_t bytes) override {
    MadeUpGpus::State::Gpu& gpu = state_->gpu(gpu_);
    if (bytes > gpu.bytes - gpu.used) throw Error(ErrorCode::out_of_memory, "the made-up GPU is full");
    gpu.used += bytes;
    ++gpu.allocations;
    void* memory = std::malloc(std::max<std::size_t>(bytes, 1));
    std::memset(memory, 0xa5, bytes);
    state_->allocations[static_cast<const std::byte*>(memory)] = {gpu_, bytes};
    return {std::shared_ptr<void>(memory,
                                  [state = state_, on = gpu_, bytes](void* m) {
                                    state->gpu(on).used -= bytes;
                                    state->allocations.erase(static_cast<const std::byte*>(m));
                                    std::free(m);
                                  }),
            bytes};
  }
  Memory allocate_host(std::size_t bytes) override {
    ++state_->gpu(gpu_).allocations;
    return cpu_.allocate_host(bytes);
  }

  void upload(void* to, const void* from, std::size_t bytes) override {
    later([=, this] {
      std::memcpy(to, from, bytes);
      ++state_->gpu(gpu_).uploads;
    });
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    later([=] { std::memcpy(to, from, bytes); });
  }
  void clear(NonFiniteStats* stats) override {
    later([=] { *stats = {}; });
  }
  void clear(const ByteRows& rows) override {
    later([=, this] { cpu_.clear(rows); });
  }
  void load(const LoadCall& call) override {
    later([=, this] {
      cpu_.load(call);
      ++state_->gpu(gpu_).work;
      ++state_->gpu(gpu_).loads;
    });
  }
  void store(const StoreCall& call) override {
    later([=, this] {
      cpu_.store(call);
      ++state_->gpu(gpu_).work;
    });
  }
  void run(const Stage& stage, const StageData& data, const Memory& scratch) override {
    const std::vector<ConstPlanes> in(data.in.begin(), data.in.end());
    const std::vector<TypedPlanes> typed(data.typed_in.begin(), data.typed_in.end());
    later([=, this, &stage] {
      StageData kept = data;
      kept.in = in;
      kept.typed_in = typed;
      cpu_.run(stage, kept, scratch);
      ++state_->gpu(gpu_).work;
    });
  }

  std::unique_ptr<Mark> make_mark() override { return std::make_unique<MadeUpMark>(); }
  void record(Mark& mark) override {
    auto& at = static_cast<MadeUpMark&>(mark);
    later([&at] { at.time = std::chrono::steady_clock::now(); });
    at.queue = this;
    at.position = enqueued_;
  }
  void follow(const Mark& mark) override {
    const auto& at = static_cast<const MadeUpMark&>(mark);
    later([queue = at.queue, position = at.position] { queue->run_until(position); });
  }
  void wait(const Mark& mark) override {
    const auto& at = static_cast<const MadeUpMark&>(mark);
    if (at.queue != nullptr) at.queue->run_until(at.position);
  }
  void wait() override { run_until(enqueued_); }
  double ms_between(const Mark& start, const Mark& end) override {
    const auto time = [](const Mark& mark) { return static_cast<const MadeUpMark&>(mark).time; };
    return state_->time_factor * std::chrono::duration<double, std::milli>(time(end) - time(start)).count();
  }

 private:
  void later(std::function<void()> work) {
    work_.push_back(std::move(work));
    ++enqueued_;
  }
  void run_until(std::size_t position) {
    while (done_ < position) {
      const std::function<void()> next = std::move(work_.front());
      work_.pop_front();
      ++done_;
      next();
    }
  }

  std::shared_ptr<MadeUpGpus::State> state_;
  int gpu_;
  Queue& cpu_;
  std::deque<std::function<void()>> work_;
  std::size_t enqueued_ = 0;
  std::size_t done_ = 0;
};

class MadeUpBackend : public Backend {
 public:
  MadeUpBackend(std::shared_ptr<MadeUpGpus::State> state, std::vector<int> queues)
      : state_(std::move(state)),
        gpus_(std::move(queues)),
        cpu_(make_cpu_backend(2)),
        queue_(cpu_->make_queue(0)) {}

  BackendTraits traits() const override {
    return {.memory_name = "GPU memory", .lanes = 3, .row_alignment = 32};
  }
  int queues() const override { return static_cast<int>(gpus_.size()); }
  std::unique_ptr<Queue> make_queue(int index) override {
    return std::make_unique<MadeUpQueue>(state_, gpus_[static_cast<std::size_t>(index)], *queue_);
  }
  int devices_of(int queues) const override {
    return static_cast<int>(std::set<int>(gpus_.begin(), gpus_.begin() + queues).size());
  }
  std::size_t memory_to_take() const override {
    std::size_t each = std::size_t{1} << 60U;
    for (const int gpu : gpus_) {
      const auto sharing = static_cast<std::size_t>(std::count(gpus_.begin(), gpus_.end(), gpu));
      each = std::min(each, (state_->gpu(gpu).bytes - state_->gpu(gpu).used) / 2 / sharing);
    }
    return each * gpus_.size();
  }
  int band_rows(const Pipeline&, const ImageSpec& spec, const Options&) const override { return spec.height; }
  std::size_t scratch_bytes(const Pipeline& pipeline, std::span<const int> rows,
                            const ImageSpec& spec) const override {
    return cpu_->scratch_bytes(pipeline, rows, spec);
  }
  bool reaches(const ConstImageView& view, const char*) const override {
    return view.space.memory == Space::Memory::cuda;
  }
  bool copies_from(const ConstImageView&) const override { return false; }
  Workers& workers() override { return host_; }
  void watch(const CancelToken* cancel, StageProgress) override { host_.watch(cancel, nullptr); }

 private:
  std::shared_ptr<MadeUpGpus::State> state_;
  std::vector<int> gpus_;
  std::unique_ptr<Backend> cpu_;  // does the work
  std::unique_ptr<Queue> queue_;
  Workers host_{2};
};

}  // namespace

MadeUpGpus::MadeUpGpus(int count, std::size_t bytes_each) : state_(std::make_shared<State>()) {
  state_->gpus.assign(static_cast<std::size_t>(count), {.bytes = bytes_each});
}

std::unique_ptr<Backend> MadeUpGpus::backend(std::vector<int> queues) {
  return std::make_unique<MadeUpBackend>(state_, std::move(queues));
}

std::size_t MadeUpGpus::bytes_in_use(int gpu) const { return state_->gpu(gpu).used; }
int MadeUpGpus::work_done(int gpu) const { return state_->gpu(gpu).work; }
int MadeUpGpus::allocations(int gpu) const { return state_->gpu(gpu).allocations; }
int MadeUpGpus::uploads(int gpu) const { return state_->gpu(gpu).uploads; }
int MadeUpGpus::loads(int gpu) const { return state_->gpu(gpu).loads; }

void MadeUpGpus::stretch_time(double factor) { state_->time_factor = factor; }

int MadeUpGpus::gpu_of(const void* memory) const {
  const auto* at = static_cast<const std::byte*>(memory);
  auto next = state_->allocations.upper_bound(at);
  if (next == state_->allocations.begin()) return -1;
  const auto& [begin, allocation] = *--next;
  return at < begin + allocation.bytes ? allocation.gpu : -1;
}

}  // namespace ungrain::testing
