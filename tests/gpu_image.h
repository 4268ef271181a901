// An image in the memory of a GPU.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "test_images.h"
#include "ungrain/image.h"

namespace ungrain::testing {

struct FreeDevice {
  void operator()(void* memory) const { cudaFree(memory); }
};

// An image on the GPU with what was on the host.
class GpuImage {
 public:
  explicit GpuImage(const ImageSpec& spec) : spec_(spec) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, bytes()), cudaSuccess);
    EXPECT_EQ(cudaMemset(memory, 0xa5, bytes()), cudaSuccess);
    // Streams of others do not wait for it.
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    memory_.reset(memory);
  }
  explicit GpuImage(const TestImage& host) : GpuImage(host.view().spec) {
    EXPECT_EQ(cudaMemcpy(memory_.get(), host.view().data, bytes(), cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  ImageView view() const {
    return {memory_.get(), spec_, interleaved_strides(spec_), {Space::Memory::cuda, 0}};
  }
  TestImage on_host() const {
    TestImage host(spec_, Layout::interleaved);
    EXPECT_EQ(cudaMemcpy(host.view().data, memory_.get(), bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return host;
  }
  std::uint64_t hash() const { return hash_of(on_host().view()); }
  std::size_t bytes() const {
    return static_cast<std::size_t>(interleaved_strides(spec_).y) * static_cast<std::size_t>(spec_.height);
  }

 private:
  ImageSpec spec_;
  std::unique_ptr<void, FreeDevice> memory_;
};

}  // namespace ungrain::testing
