// Streams, events and memory of a GPU, each owned by a type that releases it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <span>

#include "core/workers.h"
#include "cuda/check.h"
#include "ungrain/denoiser.h"

namespace ungrain::cuda {

// Makes a GPU current in this thread, and restores the previous one.
class CurrentDevice {
 public:
  explicit CurrentDevice(int index);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int index_;
  int before_ = 0;
};

class OwnStream {
 public:
  OwnStream();
  cudaStream_t get() const { return stream_.get(); }
  void wait() const { check(cudaStreamSynchronize(stream_.get()), "waiting for the GPU"); }

 private:
  struct Destroy {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  };
  std::unique_ptr<CUstream_st, Destroy> stream_;
};

class Event {
 public:
  Event();
  void record(cudaStream_t stream) const {
    check(cudaEventRecord(event_.get(), stream), "recording an event");
  }
  void wait() const { check(cudaEventSynchronize(event_.get()), "waiting for the GPU"); }
  // Makes the stream's later work wait for it.
  void hold_back(cudaStream_t stream) const {
    check(cudaStreamWaitEvent(stream, event_.get(), 0), "ordering two streams");
  }
  double ms_since(const Event& start) const;

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };
  std::unique_ptr<CUevent_st, Destroy> event_;
};

// Bytes on the GPU, uninitialised.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes);
  void* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }
  std::span<float> floats() const { return {static_cast<float*>(memory_.get()), size_ / sizeof(float)}; }

 private:
  struct Free {
    void operator()(void* memory) const { cudaFree(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  std::size_t size_ = 0;
};

// Page-locked bytes on the host: copies to and from them overlap kernels.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::size_t bytes);
  std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(void* memory) const { cudaFreeHost(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  std::size_t size_ = 0;
};

// The same for many bytes, had much sooner: large pages, which the workers touch before they are locked. On
// an H200's host 64 MB take 34 ms by cudaMallocHost() and 17 ms so with one thread, of which 2 are the
// locking.
class LargePinnedBuffer {
 public:
  static constexpr std::size_t page = std::size_t{2} << 20;  // its size is a multiple of this

  LargePinnedBuffer(std::size_t bytes, Workers& workers);
  ~LargePinnedBuffer();
  LargePinnedBuffer(const LargePinnedBuffer&) = delete;
  LargePinnedBuffer& operator=(const LargePinnedBuffer&) = delete;
  void* data() const { return memory_; }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

std::size_t free_device_memory();
bool is_page_locked(const void* memory);

inline cudaStream_t handle(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

}  // namespace ungrain::cuda
