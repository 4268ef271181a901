#include "fake_gpus.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Allocation {
  int gpu = 0;
  std::size_t bytes = 0;
};

struct Gpu {
  std::size_t bytes = 0;
  std::size_t used = 0;
  int kernels = 0;
};

std::vector<Gpu>& gpus() {
  static std::vector<Gpu> list;
  return list;
}

std::map<const std::byte*, Allocation>& allocations() {
  static std::map<const std::byte*, Allocation> all;
  return all;
}

int current = 0;

}  // namespace

struct CUstream_st {
  int gpu = 0;
  std::deque<std::function<void()>> work;

  void finish() {
    while (!work.empty()) {
      const std::function<void()> next = std::move(work.front());
      work.pop_front();
      next();
    }
  }
};

struct CUevent_st {
  int gpu = 0;
  Clock::time_point time;
};

namespace fake_gpus {

void reset(int count, std::size_t bytes_each) {
  gpus().assign(static_cast<std::size_t>(count), Gpu{bytes_each});
  current = 0;
}

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  if (stream->gpu != current) return cudaErrorInvalidResourceHandle;
  stream->work.push_back([stream, work = std::move(work)] {
    work();
    ++gpus()[static_cast<std::size_t>(stream->gpu)].kernels;
  });
  return cudaSuccess;
}

int gpu_of(cudaStream_t stream) { return stream->gpu; }

int gpu_of(const void* memory) {
  const auto* at = static_cast<const std::byte*>(memory);
  auto next = allocations().upper_bound(at);
  if (next == allocations().begin()) return -1;
  const auto& [begin, allocation] = *--next;
  return at < begin + allocation.bytes ? allocation.gpu : -1;
}

std::size_t bytes_in_use(int gpu) { return gpus()[static_cast<std::size_t>(gpu)].used; }
int kernels_run(int gpu) { return gpus()[static_cast<std::size_t>(gpu)].kernels; }

}  // namespace fake_gpus

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= static_cast<int>(gpus().size())) return cudaErrorInvalidDevice;
  current = device;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorInvalidResourceHandle ? "of another GPU" : "an error";
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const Gpu& gpu = gpus()[static_cast<std::size_t>(current)];
  *free = gpu.bytes - gpu.used;
  *total = gpu.bytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  Gpu& gpu = gpus()[static_cast<std::size_t>(current)];
  if (bytes > gpu.bytes - gpu.used) return cudaErrorMemoryAllocation;
  gpu.used += bytes;
  *memory = std::malloc(bytes);
  std::memset(*memory, 0xa5, bytes);
  allocations()[static_cast<const std::byte*>(*memory)] = {current, bytes};
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  const auto found = allocations().find(static_cast<const std::byte*>(memory));
  if (found == allocations().end()) return cudaErrorInvalidValue;
  gpus()[static_cast<std::size_t>(found->second.gpu)].used -= found->second.bytes;
  allocations().erase(found);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  *memory = std::malloc(bytes);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  *attributes = {};
  attributes->type = fake_gpus::gpu_of(memory) < 0 ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st{current, {}};
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  stream->finish();
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  stream->finish();
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st{current, {}};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event->gpu != stream->gpu) return cudaErrorInvalidResourceHandle;
  stream->work.push_back([event] { event->time = Clock::now(); });
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  *ms = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  stream->work.push_back([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  stream->work.push_back([=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

}  // extern "C"
