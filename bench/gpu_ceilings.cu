#include "bench/gpu_ceilings.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "cuda/launch.cuh"

namespace ungrain::bench {
namespace {

constexpr int threads = 256;
constexpr int chains = 8;  // independent in each thread: more than the latency needs at full occupancy
constexpr int rounds = 4096;
constexpr int warm_up = 3;
constexpr int runs = 11;

struct Exponential {
  __device__ static void step(float& value, float, float) {
    asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(value));
  }
};

struct MultiplyAdd {
  __device__ static void step(float& value, float factor, float summand) {
    asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(value) : "f"(factor), "f"(summand));
  }
};

template <class Instruction>
__global__ void repeat_kernel(float factor, float summand, float* never_written) {
  float values[chains];
  for (int i = 0; i < chains; ++i) values[i] = static_cast<float>(threadIdx.x + i);
#pragma unroll 4
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < chains; ++i) Instruction::step(values[i], factor, summand);
  }
  float sum = 0;
  for (int i = 0; i < chains; ++i) sum += values[i];
  if (sum == 0.123F) *never_written = sum;
}

constexpr int products_each = 16 * 8 * 16;

__global__ void products_kernel(unsigned operand, float* never_written) {
  float values[chains][4] = {};
#pragma unroll 4
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (auto& c : values) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, "
          "{%0,%1,%2,%3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(operand));
    }
  }
  float sum = 0;
  for (const auto& c : values) sum += c[0] + c[1] + c[2] + c[3];
  if (sum == 0.123F) *never_written = sum;
}

__global__ void copy_kernel(const float4* from, float4* to, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    to[i] = from[i];
  }
}

double median_ms(const std::function<void()>& work) {
  const cuda::Event start;
  const cuda::Event end;
  std::vector<double> ms;
  for (int run = 0; run < warm_up + runs; ++run) {
    start.record(nullptr);
    work();
    end.record(nullptr);
    end.wait();
    if (run >= warm_up) ms.push_back(end.ms_since(start));
  }
  std::nth_element(ms.begin(), ms.begin() + runs / 2, ms.end());
  return ms[runs / 2];
}

int multiprocessors() {
  int count = 0;
  cuda::check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0), "asking for the GPU");
  return count;
}

template <class Instruction>
double rate_of() {
  const cuda::DeviceBuffer memory(sizeof(float));
  const int blocks = multiprocessors() * 16;  // two rounds of full multiprocessors
  const double ms = median_ms([&] {
    cuda::launch(repeat_kernel<Instruction>, dim3(static_cast<unsigned>(blocks)), dim3(threads), 0, Stream{},
                 0.5F, 0.25F, static_cast<float*>(memory.data()));
  });
  return static_cast<double>(blocks) * threads * rounds * chains / ms * 1e3;
}

double rate_of_products() {
  const cuda::DeviceBuffer memory(sizeof(float));
  const int blocks = multiprocessors() * 8;
  const double ms = median_ms([&] {
    cuda::launch(products_kernel, dim3(static_cast<unsigned>(blocks)), dim3(threads), 0, Stream{}, 0U,
                 static_cast<float*>(memory.data()));
  });
  return static_cast<double>(blocks) * (threads / 32) * rounds * chains * products_each / ms * 1e3;
}

}  // namespace

Rates measure_rates() { return {rate_of<Exponential>(), rate_of<MultiplyAdd>(), rate_of_products()}; }

double measure_copy(std::size_t bytes) {
  const std::size_t vectors = (bytes + sizeof(float4) - 1) / sizeof(float4);
  const cuda::DeviceBuffer from(vectors * sizeof(float4));
  const cuda::DeviceBuffer to(from.size());
  cuda::check(cudaMemset(from.data(), 0, from.size()), "clearing memory");
  const double by_runtime = median_ms([&] {
    cuda::check(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDeviceToDevice, nullptr),
                "copying");
  });
  const auto needed = static_cast<int>((vectors + threads - 1) / threads);
  const int blocks = std::min(needed, multiprocessors() * 64);
  const double by_kernel = median_ms([&] {
    cuda::launch(copy_kernel, dim3(static_cast<unsigned>(blocks)), dim3(threads), 0, Stream{},
                 static_cast<const float4*>(from.data()), static_cast<float4*>(to.data()), vectors);
  });
  return 2.0 * static_cast<double>(from.size()) / std::min(by_runtime, by_kernel) * 1e3;
}

}  // namespace ungrain::bench
