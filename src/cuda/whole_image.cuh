// The whole-image search by products of 16 x 8 (mma.sync), for GPUs from compute capability 8.0 on.
//
// A warp holds 16 or 32 queries; the keys lie in shared memory in the order in which its lanes read them.
// While one set of products is computed, the weights of the previous set are. On an H200 the time is the sum
// of the exponentials' and the products' time alone: this kind of product does not overlap with exponentials
// there. cuda/hopper's does.
#pragma once

#include "cuda/async_copy.cuh"
#include "cuda/products.cuh"
#include "cuda/whole_image_call.cuh"

namespace ungrain::cuda {

// The keys of each stage, copied into shared memory some stages ahead of their use.
template <int Words, int Keys, int Planes>
class KeyStages {
 public:
  static constexpr int buffers = 3;
  static constexpr int stage_words = Keys / 8 * Words * 32;
  static constexpr int stage_values = Keys * Planes;
  static constexpr std::size_t shared_bytes =
      sizeof(float) * buffers * static_cast<std::size_t>(stage_words + stage_values);

  __device__ KeyStages(const WholeImageCall& call, float* shared)
      : call_(call),
        keys_(reinterpret_cast<std::uint32_t*>(shared)),
        values_(shared + buffers * stage_words) {}

  __device__ const std::uint32_t* keys(int buffer) const { return keys_ + buffer * stage_words; }
  __device__ const float* values(int buffer) const { return values_ + buffer * stage_values; }

  // use(stage, buffer) for each stage of [from, to).
  template <class Use>
  __device__ void for_each(int from, int to, Use use) {
#pragma unroll
    for (int ahead = 0; ahead < buffers - 1; ++ahead) {
      if (from + ahead < to) copy(from + ahead, ahead);
      commit_copies();
    }
    int buffer = 0;
    for (int stage = from; stage < to; ++stage) {
      wait_for_copies<buffers - 2>();
      __syncthreads();
      const int next = stage + buffers - 1;
      if (next < to) copy(next, buffer == 0 ? buffers - 1 : buffer - 1);
      commit_copies();
      use(stage, buffer);
      buffer = buffer == buffers - 1 ? 0 : buffer + 1;
    }
    wait_for_copies<0>();
  }

 private:
  __device__ void copy(int stage, int buffer) {
    const auto threads = static_cast<int>(blockDim.x);
    const std::uint32_t* const keys = call_.keys + static_cast<std::size_t>(stage) * stage_words;
    for (int i = static_cast<int>(threadIdx.x) * 4; i < stage_words; i += threads * 4) {
      copy_async(keys_ + buffer * stage_words + i, keys + i);
    }
    const float* const values = call_.values + static_cast<std::size_t>(stage) * stage_values;
    for (int i = static_cast<int>(threadIdx.x) * 4; i < stage_values; i += threads * 4) {
      copy_async(values_ + buffer * stage_values + i, values + i);
    }
  }

  const WholeImageCall& call_;
  std::uint32_t* keys_;
  float* values_;
};

// For vectors of 8 K8 numbers.
template <int K8, int Channels, SearchWeights Weights>
class WholeImageBlock {
 public:
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int tiles = K8 <= 31 ? 2 : 1;
  static constexpr int queries = 16 * tiles * warps;
  static constexpr int words = K8 == 2 ? 2 : (K8 + 3) / 4 * 4;
  static constexpr int keys = K8 <= 11 ? 128 : K8 <= 31 ? 64 : 32;  // of a stage
  static constexpr int resident = K8 <= 7 || (K8 <= 11 && Channels == 1) ? 2 : 1;
  using Rows = QueryRows<Channels, Weights, tiles, 16>;
  using Stages = KeyStages<words, keys, Rows::planes>;
  static constexpr KeyLayout layout{words, words == 2 ? 2 : 4, keys, Rows::planes};

  __device__ WholeImageBlock(const WholeImageCall& call, QuerySet which, float* shared)
      : rows_(call, which, static_cast<int>(blockIdx.x) * queries, queries,
              static_cast<int>(blockIdx.x) * queries + static_cast<int>(threadIdx.x) / 32 * 16 * tiles),
        stages_(call, shared) {
    rows_.template load<K8, words, layout.adjacent_words>(queries_);
  }

  __device__ void filter() {
    if (rows_.is_idle()) return;
    int from = 0;
    int to = 0;
    rows_.stages(keys, from, to);
    stages_.for_each(from, to, [&](int stage, int buffer) { add_stage(stage, buffer); });
    rows_.store();
  }

 private:
  using Products = float[2][tiles][4];  // of two tiles of keys

  __device__ void multiply(Products& products, int buffer, int pair) const {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      std::uint32_t key[words];
      const std::uint32_t* const from = stages_.keys(buffer) + (2 * pair + n) * words * 32;
      if constexpr (words == 2) {
        const uint2 two = reinterpret_cast<const uint2*>(from)[rows_.lane()];
        key[0] = two.x;
        key[1] = two.y;
      } else {
#pragma unroll
        for (int word = 0; word < words; word += 4) {
          const uint4 four = reinterpret_cast<const uint4*>(from + word * 32)[rows_.lane()];
          key[word] = four.x;
          key[word + 1] = four.y;
          key[word + 2] = four.z;
          key[word + 3] = four.w;
        }
      }
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
        for (float& product : products[n][tile]) product = 0;
      }
#pragma unroll
      for (int k = 0; k < K8; k += 2) {
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
          const std::uint32_t* const query = queries_[tile] + 2 * k;
          if (k + 1 < K8) {
            add_product(products[n][tile], query[0], query[1], query[2], query[3], key[k], key[k + 1]);
          } else {
            add_product(products[n][tile], query[0], query[1], key[k]);
          }
        }
      }
    }
  }

  __device__ void weigh(Products& products, int stage, int buffer, int pair, typename Rows::Sums& sums) {
    const int first_key = stage * keys + 16 * pair;
    const bool meet = rows_.meet(first_key, 16);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
        if (meet) rows_.leave_out_self(products[n][tile], tile, first_key + 8 * n);
        rows_.weigh(products[n][tile], tile, stages_.values(buffer), keys, 16 * pair + 8 * n, sums);
      }
    }
  }

  __device__ void add_stage(int stage, int buffer) {
    constexpr int pairs = keys / 16;
    static_assert(pairs % 2 == 0);
    typename Rows::Sums sums;
    Products even;
    Products odd;
    multiply(even, buffer, 0);
#pragma unroll 1
    for (int pair = 0; pair < pairs; pair += 2) {
      multiply(odd, buffer, pair + 1);
      weigh(even, stage, buffer, pair, sums);
      if (pair + 2 < pairs) multiply(even, buffer, pair + 2);
      weigh(odd, stage, buffer, pair + 1, sums);
    }
    rows_.fold(sums);
  }

  Rows rows_;
  Stages stages_;
  std::uint32_t queries_[tiles][2 * K8];
};

template <int K8, int Channels, SearchWeights Weights>
__global__ void __launch_bounds__(WholeImageBlock<K8, Channels, Weights>::threads,
                                  WholeImageBlock<K8, Channels, Weights>::resident)
    whole_image_kernel(const __grid_constant__ WholeImageCall call) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  extern __shared__ float shared[];
  search_whole_image<WholeImageBlock<K8, Channels, Weights>>(call, shared);
#endif
}

template <int K8, int Channels, SearchWeights Weights>
WholeImageKernel whole_image_instance() {
  return kernel_of<WholeImageBlock<K8, Channels, Weights>>(whole_image_kernel<K8, Channels, Weights>);
}

template <SearchWeights Weights>
WholeImageKernel whole_image_instances(int channels, int numbers) {
  if (channels == 1) {
    if (numbers <= 16) return whole_image_instance<2, 1, Weights>();
    if (numbers <= 32) return whole_image_instance<4, 1, Weights>();
    if (numbers <= 56) return whole_image_instance<7, 1, Weights>();
    if (numbers <= 88) return whole_image_instance<11, 1, Weights>();
    if (numbers <= 152) return whole_image_instance<19, 1, Weights>();
    if (numbers <= 248) return whole_image_instance<31, 1, Weights>();
  }
  if (channels == 3) {
    if (numbers <= 32) return whole_image_instance<4, 3, Weights>();
    if (numbers <= 88) return whole_image_instance<11, 3, Weights>();
    if (numbers <= 152) return whole_image_instance<19, 3, Weights>();
    if (numbers <= 248) return whole_image_instance<31, 3, Weights>();
    if (numbers <= 448) return whole_image_instance<56, 3, Weights>();
  }
  return {};
}

}  // namespace ungrain::cuda
