#include "cuda/cuda_backend.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "core/bands.h"
#include "core/rows.h"
#include "core/run_checks.h"
#include "cuda/convert.h"
#include "cuda/memory.h"
#include "ungrain/error.h"

namespace ungrain::cuda {
namespace {

constexpr int lanes_a_queue = 3;  // one uploads while another computes and a third downloads

struct EventMark : Mark {
  Event event;
};

const Event& event_of(const Mark& mark) { return static_cast<const EventMark&>(mark).event; }

template <class Buffer, class... With>
Memory shared_memory(std::size_t bytes, With&... with) {
  auto buffer = std::make_shared<Buffer>(bytes, with...);
  void* data = buffer->data();
  return {std::shared_ptr<void>(std::move(buffer), data), bytes};
}

// A stream of one GPU, which every call makes current.
class CudaQueue : public Queue {
 public:
  CudaQueue(int gpu, Workers& workers) : gpu_(gpu), workers_(&workers) {
    const CurrentDevice current(gpu_);
    own_.emplace();
    stream_ = own_->get();
  }
  CudaQueue(int gpu, Workers& workers, Stream stream)
      : gpu_(gpu), workers_(&workers), stream_(handle(stream)) {}

  Memory allocate(std::size_t bytes) override {
    const CurrentDevice current(gpu_);
    return shared_memory<DeviceBuffer>(bytes);
  }
  Memory allocate_host(std::size_t bytes) override {
    const CurrentDevice current(gpu_);
    return bytes < LargePinnedBuffer::page ? shared_memory<PinnedBuffer>(bytes)
                                           : shared_memory<LargePinnedBuffer>(bytes, *workers_);
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    const CurrentDevice current(gpu_);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "uploading rows");
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    const CurrentDevice current(gpu_);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "downloading rows");
  }

  void clear(NonFiniteStats* stats) override {
    const CurrentDevice current(gpu_);
    check(cudaMemsetAsync(stats, 0, sizeof(*stats), stream_), "clearing memory");
  }
  void clear(const ByteRows& rows) override {
    const CurrentDevice current(gpu_);
    // The distance must be positive: rows that lie upwards are cleared from the last one on.
    auto* first = static_cast<std::byte*>(rows.data);
    if (rows.stride < 0) first += (rows.rows - 1) * rows.stride;
    const auto distance = static_cast<std::size_t>(std::abs(rows.stride));
    check(cudaMemset2DAsync(first, distance, 0, rows.bytes, static_cast<std::size_t>(rows.rows), stream_),
          "clearing memory");
  }
  void load(const LoadCall& call) override {
    const CurrentDevice current(gpu_);
    load_planes(call, {stream_});
  }
  void store(const StoreCall& call) override {
    const CurrentDevice current(gpu_);
    store_planes(call, {stream_});
  }
  void run(const Stage& stage, const StageData& data, const Memory& scratch) override {
    const CurrentDevice current(gpu_);
    stage.launch({data, {stream_}, {static_cast<float*>(scratch.data()), scratch.bytes / sizeof(float)}});
  }
  void launch_direct(const Direct& direct, const DeviceDirectCall& call) override {
    const CurrentDevice current(gpu_);
    DeviceDirectCall on_stream = call;
    on_stream.stream = {stream_};
    direct.launch(on_stream);
  }

  std::unique_ptr<Mark> make_mark() override {
    const CurrentDevice current(gpu_);
    return std::make_unique<EventMark>();
  }
  void record(Mark& mark) override {
    const CurrentDevice current(gpu_);
    event_of(mark).record(stream_);
  }
  void follow(const Mark& mark) override {
    const CurrentDevice current(gpu_);
    event_of(mark).hold_back(stream_);
  }
  void wait(const Mark& mark) override {
    const CurrentDevice current(gpu_);
    event_of(mark).wait();
  }
  void wait() override {
    const CurrentDevice current(gpu_);
    check(cudaStreamSynchronize(stream_), "waiting for the GPU");
  }
  double ms_between(const Mark& start, const Mark& end) override {
    return event_of(end).ms_since(event_of(start));
  }

 private:
  int gpu_;
  Workers* workers_;
  std::optional<OwnStream> own_;
  cudaStream_t stream_ = nullptr;
};

class CudaBackend : public Backend {
 public:
  CudaBackend(std::vector<int> queues, int threads) : gpus_(std::move(queues)), workers_(threads) {}

  BackendTraits traits() const override {
    return {.memory_name = "GPU memory", .lanes = lanes_a_queue, .row_alignment = 32};
  }
  int queues() const override { return static_cast<int>(gpus_.size()); }
  std::unique_ptr<Queue> make_queue(int index) override {
    return std::make_unique<CudaQueue>(gpus_[static_cast<std::size_t>(index)], workers_);
  }
  std::unique_ptr<Queue> queue_on(Stream stream) override {
    if (gpus_.size() > 1) {
      throw Error(ErrorCode::unsupported,
                  "run_async() works on the stream of one GPU, cuda:all has queues of its own");
    }
    return std::make_unique<CudaQueue>(gpus_.front(), workers_, stream);
  }
  int devices_of(int queues) const override {
    return static_cast<int>(std::set<int>(gpus_.begin(), gpus_.begin() + queues).size());
  }

  std::size_t memory_to_take() const override {
    std::size_t each = std::numeric_limits<std::size_t>::max();
    for (const int gpu : gpus_) {
      const CurrentDevice current(gpu);
      const auto sharing = static_cast<std::size_t>(std::count(gpus_.begin(), gpus_.end(), gpu));
      each = std::min(each, free_device_memory() / 2 / sharing);
    }
    return each * gpus_.size();
  }

  // Enough bands that kernels hide copies, each large enough to fill the GPU.
  int band_rows(const Pipeline& pipeline, const ImageSpec& spec, const Options& options) const override {
    const Reach reach = total_reach(pipeline, {spec.width, spec.height});
    if (reach.whole || reach.slices() > 1) return spec.height;
    const int bands = 8 * static_cast<int>(gpus_.size());
    constexpr int least_pixels = 1 << 20;
    const int around = 2 * (reach.y + fill_reach(spec, options));
    const int rows = std::max({(spec.height + bands - 1) / bands, least_pixels / spec.width, 8 * around, 1});
    return std::min(rows, spec.height);
  }

  std::size_t scratch_bytes(const Pipeline& pipeline, std::span<const int> stage_rows,
                            const ImageSpec&) const override {
    std::size_t most = 0;
    for (std::size_t index = 0; index < pipeline.stages.size(); ++index) {
      const Stage& stage = pipeline.stages[index];
      most = std::max(most, stage.scratch_for ? stage.scratch_for(stage_rows[index]) : stage.scratch);
    }
    return most * sizeof(float);
  }

  bool reaches(const ConstImageView& view, const char* which) const override {
    if (view.space.memory != Space::Memory::cuda) return false;
    if (gpus_.size() > 1) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("the {} lies on GPU {}, cuda:all works on images in the host's memory", which,
                              view.space.device));
    }
    if (view.space.device != gpus_.front()) {
      throw Error(ErrorCode::unsupported, fmt::format("the {} lies on GPU {}, the method runs on GPU {}",
                                                      which, view.space.device, gpus_.front()));
    }
    return true;
  }
  bool copies_from(const ConstImageView& view) const override {
    return view.strides == packed_rows(view.spec) && is_page_locked(view.data);
  }

  Workers& workers() override { return workers_; }
  void watch(const CancelToken* cancel, StageProgress) override { workers_.watch(cancel, nullptr); }

 private:
  std::vector<int> gpus_;  // of each queue
  Workers workers_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(std::vector<int> queues, int threads) {
  return std::make_unique<CudaBackend>(std::move(queues), threads);
}

}  // namespace ungrain::cuda
