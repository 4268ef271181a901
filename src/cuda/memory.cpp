#include "cuda/memory.h"

#include <sys/mman.h>

#include <cstring>

#include <fmt/format.h>

#include "core/memory.h"
#include "ungrain/error.h"

namespace ungrain::cuda {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that the next call does not report it again
  const ErrorCode code = status == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device;
  throw Error(code, fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

// Asking is much quicker than choosing.
CurrentDevice::CurrentDevice(int index) : index_(index) {
  check(cudaGetDevice(&before_), "asking for the GPU");
  if (before_ != index_) check(cudaSetDevice(index_), "choosing the GPU");
}

CurrentDevice::~CurrentDevice() {
  if (before_ != index_) cudaSetDevice(before_);
}

OwnStream::OwnStream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  stream_.reset(stream);
}

Event::Event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "making an event");
  event_.reset(event);
}

double Event::ms_since(const Event& start) const {
  float ms = 0;
  check(cudaEventElapsedTime(&ms, start.event_.get(), event_.get()), "reading a time");
  return ms;
}

namespace {

[[noreturn]] void out_of_memory(std::size_t bytes, const char* where) {
  cudaGetLastError();
  throw Error(ErrorCode::out_of_memory,
              fmt::format("out of memory: {} of {} memory could not be had", bytes_text(bytes), where));
}

}  // namespace

DeviceBuffer::DeviceBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) out_of_memory(bytes, "GPU");
  memory_.reset(memory);
}

PinnedBuffer::PinnedBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* memory = nullptr;
  if (cudaMallocHost(&memory, bytes) != cudaSuccess) out_of_memory(bytes, "page-locked");
  memory_.reset(memory);
}

LargePinnedBuffer::LargePinnedBuffer(std::size_t bytes, Workers& workers)
    : size_((bytes + page - 1) / page * page) {
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) out_of_memory(size_, "page-locked");
  madvise(memory, size_, MADV_HUGEPAGE);  // works without, only slower
  auto* first = static_cast<std::byte*>(memory);
  workers.for_each_quietly(static_cast<std::int64_t>(size_ / page), [&](std::int64_t index, int) {
    std::memset(first + static_cast<std::size_t>(index) * page, 0, page);
  });
  if (cudaHostRegister(memory, size_, cudaHostRegisterPortable) != cudaSuccess) {
    munmap(memory, size_);
    out_of_memory(size_, "page-locked");
  }
  memory_ = memory;
}

LargePinnedBuffer::~LargePinnedBuffer() {
  cudaHostUnregister(memory_);
  munmap(memory_, size_);
}

std::size_t free_device_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for the GPU's memory");
  return free;
}

bool is_page_locked(const void* memory) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return attributes.type == cudaMemoryTypeHost;
}

}  // namespace ungrain::cuda
