// The whole-image search by the asynchronous products of compute capability 9.0 (wgmma).
//
// Four warps hold 64 queries in registers and multiply them with `step` keys at a time, which the tensor
// cores read from shared memory; meanwhile the multiprocessor's other warps compute exponentials. Sums of
// weights and of weighted values are products too, but for general weights, whose smallest count. An eighth
// or a quarter of the exponentials are polynomials on other pipes.
#pragma once

#include <type_traits>

#include "cuda/whole_image_call.cuh"

namespace ungrain::cuda::hopper {

// Descriptor of a matrix of keys in shared memory: its address and layout, in units of 16 bytes. 8 keys of 8
// numbers are 128 contiguous bytes; the next 8 numbers are `along` bytes further, the next 8 keys `down`
// bytes. Two words, so that only the lower one changes from matrix to matrix.
struct KeyMatrix {
  std::uint32_t low;
  std::uint32_t high;

  __device__ KeyMatrix(const void* shared, int along, int down)
      : low((static_cast<std::uint32_t>(__cvta_generic_to_shared(shared)) & 0x3FFFFU) >> 4U |
            static_cast<std::uint32_t>(along) >> 4U << 16U),
        high(static_cast<std::uint32_t>(down) >> 4U) {}

  __device__ void move(int bytes) { low += static_cast<std::uint32_t>(bytes) >> 4U; }
};

__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void end_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// A barrier in shared memory that counts arrivals and bytes. The parity distinguishes consecutive phases.
class Barrier {
 public:
  __device__ void start(int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
  }
  // Arrives; the phase then also waits for this many bytes.
  __device__ void arrive_for(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes)
                 : "memory");
  }
  __device__ void wait(unsigned parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}\n" ::"r"(address()),
        "r"(parity)
        : "memory");
  }
  // Starts a copy into shared memory by the copy engine.
  __device__ void copy(void* to, const void* from, int bytes) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            static_cast<unsigned>(__cvta_generic_to_shared(to))),
        "l"(from), "r"(bytes), "r"(address())
        : "memory");
  }

 private:
  __device__ unsigned address() const { return static_cast<unsigned>(__cvta_generic_to_shared(this)); }

  std::uint64_t state_;
};

// The keys of each stage, copied into shared memory some stages ahead of their use. One thread starts the
// copies; a buffer is refilled when every thread has released it, so that warps need not run in step. Every
// thread arrives at the barrier: one arrival a warp would do and takes as long, but racecheck does not see
// that it counts for the whole warp.
template <int Words, int Keys, int Planes, int Threads, bool OfHalves>
class KeyStages {
 public:
  static constexpr int buffers = 4;
  static constexpr int ahead = 2;
  static constexpr int stage_words = Keys / 8 * Words * 32;
  static constexpr int stage_values = Keys * Planes;
  static constexpr int stage_bytes = static_cast<int>(sizeof(float)) * (stage_words + stage_values);
  static constexpr std::size_t shared_bytes =
      buffers * (static_cast<std::size_t>(stage_bytes) + 2 * sizeof(Barrier)) +
      (OfHalves ? Keys * sizeof(float) : 0);

  __device__ KeyStages(const WholeImageCall& call, float* shared)
      : call_(call),
        keys_(reinterpret_cast<std::uint32_t*>(shared)),
        values_(shared + buffers * stage_words),
        ones_(values_ + buffers * stage_values),
        come_(reinterpret_cast<Barrier*>(ones_ + (OfHalves ? Keys : 0))),
        done_(come_ + buffers) {
    if constexpr (OfHalves) {
      constexpr std::uint32_t two_ones = 0x3C003C00U;
      for (int i = static_cast<int>(threadIdx.x); i < Keys; i += Threads) {
        reinterpret_cast<std::uint32_t*>(ones_)[i] = two_ones;
      }
    }
    if (threadIdx.x == 0) {
      for (int i = 0; i < buffers; ++i) {
        come_[i].start(1);
        done_[i].start(Threads);
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
  }

  __device__ const std::uint32_t* keys(int buffer) const { return keys_ + buffer * stage_words; }
  __device__ const float* values(int buffer) const { return values_ + buffer * stage_values; }
  __device__ const float* ones() const { return ones_; }  // halves, as many words as keys

  // use(number, buffer) for `count` stages; stage_of(number) says which stage that is.
  template <class StageOf, class Use>
  __device__ void for_each(int count, StageOf stage_of, Use use) {
    if (threadIdx.x == 0) {
      for (int i = 0; i < ahead && i < count; ++i) copy(stage_of(i), i);
    }
    for (int i = 0; i < count; ++i) {
      if (threadIdx.x == 0 && i + ahead < count) {
        const int next = i + ahead;
        if (next >= buffers) done_[next % buffers].wait((next / buffers - 1) % 2);
        copy(stage_of(next), next % buffers);
      }
      __syncwarp();
      come_[i % buffers].wait(i / buffers % 2);
      use(i, i % buffers);
      done_[i % buffers].arrive();
    }
  }

  // Until every thread has used this stage, one of the last `buffers` ones.
  __device__ void wait_until_used(int number) { done_[number % buffers].wait(number / buffers % 2); }

 private:
  __device__ void copy(int stage, int buffer) {
    come_[buffer].arrive_for(stage_bytes);
    come_[buffer].copy(keys_ + buffer * stage_words,
                       call_.keys + static_cast<std::size_t>(stage) * stage_words,
                       static_cast<int>(sizeof(float)) * stage_words);
    come_[buffer].copy(values_ + buffer * stage_values,
                       call_.values + static_cast<std::size_t>(stage) * stage_values,
                       static_cast<int>(sizeof(float)) * stage_values);
  }

  const WholeImageCall& call_;
  std::uint32_t* keys_;
  float* values_;
  float* ones_;
  Barrier* come_;
  Barrier* done_;
};

// c = a b, or c += a b: 64 queries and 32 or 64 keys, 16 numbers.
__device__ inline void multiply(float (&c)[4][4], const std::uint32_t* a, const KeyMatrix& b, int adds) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 b;\nsetp.ne.b32 p, %22, 0;\nmov.b64 b, {%20, %21};\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19}, b, p, 1, 1, 0;\n}\n"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),
        "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.low), "r"(b.high), "r"(adds));
}
__device__ inline void multiply(float (&c)[8][4], const std::uint32_t* a, const KeyMatrix& b, int adds) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 b;\nsetp.ne.b32 p, %38, 0;\nmov.b64 b, {%36, %37};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,"
      "%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, b, p, 1, 1, 0;\n}\n"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),
        "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]),
        "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]),
        "+f"(c[7][2]), "+f"(c[7][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.low), "r"(b.high), "r"(adds));
}

inline constexpr int bytes_of_eight = 128;  // 8 numbers of 8 keys

// The products of a warp's 16 queries with the 8 Tiles keys at the matrix's beginning.
template <int Tiles, int Words>
__device__ void multiply_vectors(const std::uint32_t (&queries)[Words], KeyMatrix matrix,
                                 float (&products)[Tiles][4]) {
  begin_products();
#pragma unroll
  for (int k = 0; k < Words / 4; ++k) {
    multiply(products, queries + 4 * k, matrix, k > 0 ? 1 : 0);
    matrix.move(2 * bytes_of_eight);
  }
  end_products();
  // The products are final after end_products(). The compiler does not know this and must not read them
  // earlier.
#pragma unroll
  for (auto& of_keys : products) {
#pragma unroll
    for (float& product : of_keys) asm volatile("" : "+f"(product)::"memory");
  }
}

// For vectors of 16 K16 numbers.
template <int K16, int Channels, SearchWeights Weights>
class WholeImageBlock {
 public:
  static constexpr bool of_halves = Weights != SearchWeights::general;  // the sums
  static constexpr bool has_space = Weights == SearchWeights::bilateral;
  // Short vectors leave registers for more warps, so that exponentials wait less for products. For vectors of
  // 64 numbers four warps more and half the products at a time are 2 % faster (256², patch 7).
  static constexpr bool is_crowded = K16 == 4 && !has_space;
  static constexpr int warps = is_crowded ? 16 : K16 <= 6 ? 12 : 8;
  static constexpr int queries = 16 * warps;
  static constexpr int step = (K16 <= 4 && !is_crowded) || K16 == 10 ? 64 : 32;
  static constexpr int resident = 2;
  static constexpr int threads = 32 * warps;
  static constexpr int words = 2 * K16;
  static constexpr int keys = K16 <= 6 ? 128 : K16 <= 10 ? 64 : 32;  // of a stage
  static_assert(keys % step == 0);
  // Of every eight exponentials: more while the products leave instruction slots.
  static constexpr int polynomials = has_space || K16 == 16 ? 0 : K16 <= 2 ? 2 : 1;
  using Rows = QueryRows<Channels, Weights, 1, 0, of_halves>;
  using Stages = KeyStages<words, keys, Rows::planes, threads, of_halves>;
  using Sums = std::conditional_t<of_halves, typename Rows::Products, typename Rows::Sums>;
  static constexpr KeyLayout layout{words, 1, keys, Rows::planes, of_halves};

  __device__ WholeImageBlock(const WholeImageCall& call, QuerySet which, float* shared)
      : rows_(call, which, static_cast<int>(blockIdx.x) * queries, queries,
              static_cast<int>(blockIdx.x) * queries + static_cast<int>(threadIdx.x) / 32 * 16),
        stages_(call, shared),
        values_(rows_.values_of_lane(stages_.values(0), Stages::stage_values, stages_.ones(), keys)) {
    rows_.template load<2 * K16, words, layout.adjacent_words>(queries_);
  }

  __device__ void filter() {
    if (rows_.is_idle()) return;
    int from = 0;
    int to = 0;
    rows_.stages(keys, from, to);
    stages_.for_each(
        to - from, [=](int number) { return from + number; },
        [&](int number, int buffer) { add_stage(from + number, buffer); });
    rows_.store();
  }

 private:
  __device__ void add_stage(int stage, int buffer) {
    Sums sums;
    const uint4* const of_values = values_.of(buffer);
    KeyMatrix matrix(stages_.keys(buffer), bytes_of_eight, words * bytes_of_eight);
    const bool meets = rows_.meet(stage * keys, keys);
#pragma unroll
    for (int first = 0; first < keys; first += step) {
      float products[step / 8][4];
      multiply_vectors(queries_[0], matrix, products);
      matrix.move(step / 8 * words * bytes_of_eight);
      if (meets) {
#pragma unroll
        for (int n = 0; n < step / 8; ++n) {
          rows_.leave_out_self(products[n], 0, stage * keys + first + 8 * n);
        }
      }
      constexpr int together = of_halves ? 4 : 1;  // tiles of keys
#pragma unroll
      for (int n = 0; n < step / 8; n += together) {
        const float* const values = stages_.values(buffer);
        if constexpr (of_halves) {
          rows_.template weigh<polynomials>(products + n, 0, of_values, values, keys, first + 8 * n, sums);
        } else {
          rows_.weigh(products[n], 0, values, keys, first + 8 * n, sums);
        }
      }
    }
    rows_.fold(sums);
  }

  Rows rows_;
  Stages stages_;
  typename Rows::LaneValues values_;
  std::uint32_t queries_[1][4 * K16];
};

template <int K16, int Channels, SearchWeights Weights>
__global__ void __launch_bounds__(WholeImageBlock<K16, Channels, Weights>::threads,
                                  WholeImageBlock<K16, Channels, Weights>::resident)
    whole_image_kernel(const __grid_constant__ WholeImageCall call) {
  extern __shared__ __align__(128) float shared[];
  search_whole_image<WholeImageBlock<K16, Channels, Weights>>(call, shared);
}

template <int K16, int Channels, SearchWeights Weights>
WholeImageKernel whole_image_instance() {
  return kernel_of<WholeImageBlock<K16, Channels, Weights>>(whole_image_kernel<K16, Channels, Weights>);
}

template <SearchWeights Weights>
WholeImageKernel whole_image_instances(int channels, int numbers) {
  if (channels == 1) {
    if (numbers <= 16) return whole_image_instance<1, 1, Weights>();
    if (numbers <= 32) return whole_image_instance<2, 1, Weights>();
    if (numbers <= 64) return whole_image_instance<4, 1, Weights>();
    if (numbers <= 96) return whole_image_instance<6, 1, Weights>();
    if (numbers <= 160) return whole_image_instance<10, 1, Weights>();
    if (numbers <= 256) return whole_image_instance<16, 1, Weights>();
  }
  if (channels == 3) {
    if (numbers <= 32) return whole_image_instance<2, 3, Weights>();
    if (numbers <= 96) return whole_image_instance<6, 3, Weights>();
    if (numbers <= 160) return whole_image_instance<10, 3, Weights>();
    if (numbers <= 256) return whole_image_instance<16, 3, Weights>();
  }
  return {};
}

}  // namespace ungrain::cuda::hopper
