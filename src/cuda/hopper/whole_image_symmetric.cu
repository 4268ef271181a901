// The whole-image search with plain weights that finds the weight of two pixels once and adds it to the sums
// of both.
//
// Blocks of queries lie in a circle: a block meets itself, every weight twice, and the half of the others
// that follows it, every weight once. As the factor of one product the weights go into the sums of the
// queries, and transposed into those of the keys. A warp leaves its sums of a stage's keys in shared memory;
// a stage later some warps add up those of all warps, in one order, and add them to the integer sums in
// global memory.
#include "cuda/hopper/whole_image.cuh"

namespace ungrain::cuda::hopper {
namespace {

// Of 8 x 8 halves, of which a lane has two neighbours of a row.
__device__ std::uint32_t transposed(std::uint32_t halves) {
  std::uint32_t result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(halves));
  return result;
}

// For vectors of 16 K16 numbers.
template <int K16, int Channels>
class SymmetricBlock {
 public:
  static constexpr int warps = K16 <= 6 ? 12 : 8;
  static constexpr int queries = 16 * warps;
  static constexpr int step = 32;
  static constexpr int resident = 2;
  static constexpr int threads = 32 * warps;
  static constexpr int words = 2 * K16;
  static constexpr int keys = Channels != 1 || K16 > 4 ? 32 : K16 <= 2 ? 96 : 64;  // of a stage
  static_assert(queries % keys == 0 && keys % step == 0);
  static constexpr int polynomials = K16 <= 2 ? 2 : 0;  // of every eight exponentials
  using Keys = KeyStages<words, keys, Channels, threads, true>;
  static constexpr KeyLayout layout{words, 1, keys, Channels, true};

  static constexpr int kinds = Channels + 1;  // of sums: each channel's values, the weights
  static constexpr int key_sums = kinds * keys * warps;
  // Sums of a stage are read at the end of the next one. A warp that writes has waited for every thread to
  // end the stage `Keys::buffers` before, and with it the reading of the sums of the one before that.
  static constexpr int sum_buffers = Keys::buffers + 1;
  static constexpr int sums_from = static_cast<int>((Keys::shared_bytes + 15) / 16 * 4);  // in shared memory
  struct Stages {
    static constexpr std::size_t shared_bytes =
        sizeof(float) * (static_cast<std::size_t>(sums_from) + sum_buffers * key_sums);
  };

  __device__ SymmetricBlock(const WholeImageCall& call, float* shared)
      : call_(call),
        stages_(call, shared),
        lane_(static_cast<int>(threadIdx.x) % 32),
        warp_(static_cast<int>(threadIdx.x) / 32),
        first_query_(static_cast<int>(blockIdx.x) * queries + 16 * warp_),
        key_sums_(shared + sums_from) {
    const int column = lane_ / 4;
    const int lower = column % 2 * KeyLayout::to_lower_half / 2;
    const bool of_value = column < 2 * Channels;
    values_of_keys_ =
        (of_value ? stages_.values(0) + column / 2 * keys + lower : stages_.ones()) + 4 * (lane_ % 4);
    to_next_buffer_ = of_value ? Keys::stage_values : 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int position = min(query(half), call.pixels() - 1);
      const float norm = call.norms[position];
#pragma unroll
      for (int k = 0; k < 2 * K16; ++k) {
        queries_[2 * k + half] = query_word<words, 1>(call, position, norm, 8 * k + 2 * (lane_ % 4));
      }
    }
    load_values();
  }

  __device__ void filter() {
    const int blocks = static_cast<int>(gridDim.x);
    const bool meets_opposite = blocks % 2 == 0 && static_cast<int>(blockIdx.x) < blocks / 2;
    const int met = (blocks + 1) / 2 + (meets_opposite ? 1 : 0);
    const long long stages = static_cast<long long>(met) * stages_of_block;
    first_ = static_cast<int>(stages * blockIdx.y / call_.groups);
    const int count = static_cast<int>(stages * (blockIdx.y + 1) / call_.groups) - first_;
    stages_.for_each(
        count, [&](int number) { return stage_at(number); },
        [&](int number, int buffer) {
          if (meets_itself(number)) {
            add_stage<false>(number, buffer);
          } else {
            add_stage<true>(number, buffer);
          }
          if (number > 0) add_key_sums(number - 1);
        });
    if (count > 0) add_key_sums(count - 1);
    add_query_sums();
  }

 private:
  static constexpr int stages_of_block = queries / keys;
  static constexpr int adders = kinds * keys / 32;  // warps that add up a stage's sums of keys
  static_assert(kinds * keys % 32 == 0 && adders <= warps);

  __device__ int query(int half) const { return first_query_ + 8 * half + lane_ / 4; }

  // The stages of the blocks that this one meets, around the circle from itself on.
  __device__ int stage_at(int number) const {
    const int stage = static_cast<int>(blockIdx.x) * stages_of_block + first_ + number;
    const int all = static_cast<int>(gridDim.x) * stages_of_block;
    return stage >= all ? stage - all : stage;
  }
  __device__ bool meets_itself(int number) const { return first_ + number < stages_of_block; }

  // The queries' values as the factor b of a product. Its columns are the upper and the lower half of each
  // channel's value, then ones, then zeros; a row without a query is zero.
  __device__ void load_values() {
    const ValueRange range(call_);
    const int column = lane_ / 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      __half halves[2];
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int position = first_query_ + 8 * i + 2 * (lane_ % 4) + k;
        float value = 0;
        if (position < call_.pixels() && column <= 2 * Channels) {
          const int width = call_.in.image.width;
          value = column == 2 * Channels
                      ? 1.0F
                      : range.narrowed(call_.in.inside(call_.first_channel + column / 2, position % width,
                                                       position / width));
        }
        const bool is_lower = column < 2 * Channels && column % 2 == 1;
        halves[k] = is_lower ? low_half(value) : high_half(value);
      }
      const __half2 both = __halves2half2(halves[0], halves[1]);
      values_[i] = reinterpret_cast<const std::uint32_t&>(both);
    }
  }

  // `ForBoth`: adds to the sums of the keys as well. Otherwise the keys are queries of the same block.
  template <bool ForBoth>
  __device__ void add_stage(int number, int buffer) {
    float sums[4] = {};
    const auto* const of_keys = reinterpret_cast<const uint4*>(values_of_keys_ + buffer * to_next_buffer_);
    float* const to =
        key_sums_ + number % sum_buffers * key_sums + (lane_ % 4 * keys + lane_ / 4) * warps + warp_;
    KeyMatrix matrix(stages_.keys(buffer), bytes_of_eight, words * bytes_of_eight);
#pragma unroll
    for (int first = 0; first < keys; first += step) {
      float products[step / 8][4];
      multiply_vectors(queries_, matrix, products);
      matrix.move(step / 8 * words * bytes_of_eight);
      if constexpr (!ForBoth) leave_out_self(products, stage_at(number) * keys + first);
      std::uint32_t weights[step / 8][2];
#pragma unroll
      for (int n = 0; n < step / 8; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float second = products[n][2 * half + 1];
          const __half2 both =
              __floats2half2_rn(exp2_fast(products[n][2 * half]),
                                n < polynomials ? exp2_by_polynomial<4>(second) : exp2_fast(second));
          weights[n][half] = reinterpret_cast<const std::uint32_t&>(both);
        }
      }
      const uint4 value = of_keys[first / 4];
      add_product(sums, weights[0][0], weights[0][1], weights[1][0], weights[1][1], value.x, value.y);
      add_product(sums, weights[2][0], weights[2][1], weights[3][0], weights[3][1], value.z, value.w);
      if constexpr (ForBoth) {
#pragma unroll
        for (int n = 0; n < step / 8; n += 2) {
          float of_key[4];
          cuda::multiply(of_key, transposed(weights[n][0]), transposed(weights[n + 1][0]),
                         transposed(weights[n][1]), transposed(weights[n + 1][1]), values_[0], values_[1]);
          if (lane_ % 4 <= Channels) {
            to[(first + 8 * n) * warps] = of_key[0] + of_key[1];
            to[(first + 8 * n + 8) * warps] = of_key[2] + of_key[3];
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) sums_[i] += sums[i];
  }

  // A pixel is not compared with itself.
  __device__ void leave_out_self(float (&products)[step / 8][4], int first_key) const {
#pragma unroll
    for (int n = 0; n < step / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (first_key + 8 * n + 2 * (lane_ % 4) + i % 2 == query(i / 2)) products[n][i] = -1e30F;
      }
    }
  }

  // The warps take turns.
  __device__ void add_key_sums(int number) {
    const int turn = (warp_ + warps - number * adders % warps) % warps;
    if (meets_itself(number) || turn >= adders) return;
    stages_.wait_until_used(number);
    const int which = 32 * turn + lane_;  // kind and key
    const auto* const from =
        reinterpret_cast<const float4*>(key_sums_ + number % sum_buffers * key_sums + which * warps);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < warps / 4; ++i) sum += (from[i].x + from[i].y) + (from[i].z + from[i].w);
    add_to_pixel(which / keys, stage_at(number) * keys + which % keys, sum);
  }

  // Lane 4 g + t has the kind t of queries g and g + 8, the weights in one column of the product only.
  __device__ void add_query_sums() const {
    const int kind = lane_ % 4;
    if (kind > Channels) return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      add_to_pixel(kind, query(half), sums_[2 * half] + (kind < Channels ? sums_[2 * half + 1] : 0.0F));
    }
  }

  __device__ void add_to_pixel(int kind, int pixel, float sum) const {
    if (pixel >= call_.pixels()) return;
    const long long integer = __float2ll_rn(sum * integer_sums_scale);
    atomicAdd(call_.integer_sums + static_cast<std::ptrdiff_t>(kind) * call_.pixels() + pixel,
              static_cast<unsigned long long>(integer));
  }

  const WholeImageCall& call_;
  Keys stages_;
  int lane_;
  int warp_;
  int first_query_;              // of the warp
  int first_ = 0;                // stage of this block, of those of the blocks that it meets
  float* key_sums_;              // [buffer][kind][key][warp]
  const float* values_of_keys_;  // of the lane, as a factor of a product, in the first buffer
  int to_next_buffer_;
  std::uint32_t queries_[4 * K16];
  std::uint32_t values_[2];
  float sums_[4] = {};
};

template <int K16, int Channels>
__global__ void __launch_bounds__(SymmetricBlock<K16, Channels>::threads,
                                  SymmetricBlock<K16, Channels>::resident)
    symmetric_kernel(const __grid_constant__ WholeImageCall call) {
  extern __shared__ __align__(128) float shared[];
  if (query_set(call) != QuerySet::none) SymmetricBlock<K16, Channels>(call, shared).filter();
}

template <int K16, int Channels>
WholeImageKernel symmetric_instance() {
  WholeImageKernel kernel = kernel_of<SymmetricBlock<K16, Channels>>(symmetric_kernel<K16, Channels>);
  kernel.is_symmetric = true;
  return kernel;
}

}  // namespace

WholeImageKernel whole_image_symmetric(int channels, int numbers) {
  if (channels == 1) {
    if (numbers <= 16) return symmetric_instance<1, 1>();
    if (numbers <= 32) return symmetric_instance<2, 1>();
    if (numbers <= 64) return symmetric_instance<4, 1>();
    if (numbers <= 96) return symmetric_instance<6, 1>();
  }
  if (channels == 3) {
    // Patches of 3 have short vectors: three channels' sums of keys take longer than finding weights again.
    if (numbers <= 32) return {};
    if (numbers <= 96) return symmetric_instance<6, 3>();
    if (numbers <= 160) return symmetric_instance<10, 3>();
  }
  return {};
}

}  // namespace ungrain::cuda::hopper
