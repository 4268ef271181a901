// Combines groups of patches of any side, on any GPU: a block takes a group at a time, all in shared memory.
// cuda_combine.cu does the same for the usual patches, several times as fast.
#include "methods/ridge/cuda_group.cuh"

namespace ungrain::cuda {

void launch_ridge_combine_any(const RidgeCombineCall& call, Stream stream);

namespace {

constexpr int threads = 128;
constexpr int blocks_of_processor = 4;

// A block's part of shared memory: rows of `pixels` floats.
struct Matrices {
  int pixels;
  float* guide;   // X, then W
  float* partly;  // W L^-1, then Z
  float* square;  // X^T X, then its factor, then P
  float* roots;   // of the patches' precisions
  float* weights;

  __device__ Matrices(float* start, int patches, int pixels_of_patch) : pixels(pixels_of_patch) {
    guide = start;
    partly = guide + patches * pixels;
    square = partly + patches * pixels;
    roots = square + pixels * pixels;
    weights = roots + patches;
  }
};

std::size_t shared_bytes(int patches, int pixels) {
  return (2 * static_cast<std::size_t>(patches) * pixels + static_cast<std::size_t>(pixels) * pixels +
          2 * static_cast<std::size_t>(patches)) *
         sizeof(float);
}

// As in cuda_combine.cu; a thread has one pixel of all patches.
__device__ void gather_centred(const RidgeCombineCall& call, const ConstPlanes& plane, const Group& group,
                               const char2* offsets, const Matrices& m, float* to) {
  const auto pixel = static_cast<int>(threadIdx.x);
  if (pixel < m.pixels) {
    const int x = group.x + pixel % call.patch;
    const int y = group.y + pixel / call.patch;
    const float first = plane.at(0, x, y);
    float sum = 0;
    for (int i = 1; i < group.count; ++i) {
      const float difference = plane.at(0, x + offsets[i].x, y + offsets[i].y) - first;
      sum += difference * m.roots[i] * m.roots[i];
    }
    const float mean = sum / group.all_precisions;
    for (int i = 0; i < group.count; ++i) {
      const float difference = (plane.at(0, x + offsets[i].x, y + offsets[i].y) - first) - mean;
      to[i * m.pixels + pixel] =
          fminf(fmaxf(difference, -largest_difference), largest_difference) * m.roots[i];
    }
  }
  __syncthreads();
}

// X^T X and the noise, which is at least what float can tell; returns it.
__device__ float fill_square(const RidgeCombineCall& call, const Group& group, const Matrices& m) {
  for (int place = static_cast<int>(threadIdx.x); place < m.pixels * m.pixels; place += threads) {
    const int row = place / m.pixels;
    const int column = place % m.pixels;
    if (column > row) continue;
    float sum = 0;
    for (int i = 0; i < group.count; ++i)
      sum = fmaf(m.guide[i * m.pixels + row], m.guide[i * m.pixels + column], sum);
    m.square[place] = sum;
  }
  __syncthreads();
  float energy = 0;
  for (int i = 0; i < m.pixels; ++i) energy = fmaxf(energy, m.square[i * (m.pixels + 1)]);
  const float noise = fmaxf(group.noise, call.least_noise * energy);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < m.pixels; i += threads)
    m.square[i * (m.pixels + 1)] += noise;
  __syncthreads();
  return noise;
}

// The Cholesky factor in place, with 1 over its diagonal.
__device__ void factorise(const Matrices& m, float noise) {
  const auto row = static_cast<int>(threadIdx.x);
  for (int j = 0; j < m.pixels; ++j) {
    const float reciprocal = rsqrtf(fmaxf(noise, m.square[j * (m.pixels + 1)]));
    __syncthreads();
    if (row < m.pixels && row >= j)
      m.square[row * m.pixels + j] = row == j ? reciprocal : m.square[row * m.pixels + j] * reciprocal;
    __syncthreads();
    if (row < m.pixels) {
      for (int k = j + 1; k <= row; ++k)
        m.square[row * m.pixels + k] -= m.square[row * m.pixels + j] * m.square[k * m.pixels + j];
    }
    __syncthreads();
  }
}

// Rows of X become those of W, and the patches get their weights: a thread for each patch.
__device__ void combine(const Group& group, const Matrices& m, float noise) {
  const auto patch = static_cast<int>(threadIdx.x);
  if (patch < group.count) {
    float* const w = m.guide + patch * m.pixels;
    float* const v = m.partly + patch * m.pixels;
    float length = 0;
    for (int j = 0; j < m.pixels; ++j) {
      float sum = w[j];
      for (int k = 0; k < j; ++k) sum = fmaf(-m.square[j * m.pixels + k], w[k], sum);
      w[j] = sum * m.square[j * (m.pixels + 1)];
      length = fmaf(w[j], w[j], length);
    }
    constexpr float rounding = 1.01F;  // see cuda_combine.cu
    if (!(length <= rounding)) {
      const float scale = length < INFINITY ? rsqrtf(length) : 0.0F;
      for (int j = 0; j < m.pixels; ++j) w[j] = scale > 0 ? w[j] * scale : 0.0F;
      length = scale > 0 ? 1.0F : 0.0F;
    }
    float squares = 0;
    for (int j = m.pixels - 1; j >= 0; --j) {
      float sum = w[j];
      for (int k = j + 1; k < m.pixels; ++k) sum = fmaf(-m.square[k * m.pixels + j], v[k], sum);
      v[j] = sum * m.square[j * (m.pixels + 1)];
      squares = fmaf(v[j], v[j], squares);
    }
    const float left = fmaf(-noise, squares, length) / (m.roots[patch] * m.roots[patch]);
    m.weights[patch] =
        group.weight / fmaxf(1 / static_cast<float>(group.count), 1 / group.all_precisions + left);
  }
  __syncthreads();
}

// W P - Z with P = W^T Z, added to the sums.
__device__ void add_differences(const RidgeCombineCall& call, const Group& group, const char2* offsets,
                                const Matrices& m) {
  for (int place = static_cast<int>(threadIdx.x); place < m.pixels * m.pixels; place += threads) {
    const int row = place / m.pixels;
    const int column = place % m.pixels;
    float sum = 0;
    for (int i = 0; i < group.count; ++i)
      sum = fmaf(m.guide[i * m.pixels + row], m.partly[i * m.pixels + column], sum);
    m.square[place] = sum;
  }
  __syncthreads();
  const RidgeSums& sums = call.sums;
  const Rect& rect = sums.rect;
  for (int place = static_cast<int>(threadIdx.x); place < group.count * m.pixels; place += threads) {
    const int patch = place / m.pixels;
    const int pixel = place % m.pixels;
    float sum = -m.partly[place];
    for (int j = 0; j < m.pixels; ++j)
      sum = fmaf(m.guide[patch * m.pixels + j], m.square[j * m.pixels + pixel], sum);
    const int x = group.x + offsets[patch].x;
    const int y = group.y + offsets[patch].y;
    if (pixel == 0) add_weight(sums, x, y, m.weights[patch]);
    const int to_x = x + pixel % call.patch;
    const int to_y = y + pixel / call.patch;
    if (to_x < rect.x0 || to_x >= rect.x1 || to_y < rect.y0 || to_y >= rect.y1) continue;
    add_value(sums, RidgeSums::index(rect, to_x, to_y), m.weights[patch] * sum / m.roots[patch], group.step);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(threads) combine_any_kernel(const __grid_constant__ RidgeCombineCall call) {
  extern __shared__ float shared[];
  const Matrices m(shared, call.count, call.patch * call.patch);
  const auto thread = static_cast<int>(threadIdx.x);
  for (int reference = static_cast<int>(blockIdx.x); reference < call.grid.references();
       reference += static_cast<int>(gridDim.x)) {
    const Group group(call, reference);
    const auto* const offsets =
        reinterpret_cast<const char2*>(call.offsets) + static_cast<std::size_t>(reference) * call.count;
    if (!group.has_noise()) {
      if (thread < group.count)
        add_weight(call.sums, group.x + offsets[thread].x, group.y + offsets[thread].y, group.weight);
      continue;
    }
    if (thread < warp_size) {
#pragma unroll
      for (int i = 0; i < most_of_lane; ++i) {
        if (thread + i * warp_size < group.count)
          m.roots[thread + i * warp_size] = sqrtf(group.precisions[i]);
      }
    }
    __syncthreads();
    gather_centred(call, call.guide, group, offsets, m, m.guide);
    const float noise = fill_square(call, group, m);
    factorise(m, noise);
    combine(group, m, noise);
    gather_centred(call, call.partly, group, offsets, m, m.partly);
    add_differences(call, group, offsets, m);
  }
}

}  // namespace

void launch_ridge_combine_any(const RidgeCombineCall& call, Stream stream) {
  int device = 0;
  int processors = 0;
  check(cudaGetDevice(&device), "asking for the GPU");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "asking for the GPU");
  const int blocks = std::min(call.grid.references(), processors * blocks_of_processor);
  launch(combine_any_kernel, dim3(static_cast<unsigned>(blocks)), dim3(threads),
         shared_bytes(call.count, call.patch * call.patch), stream, call);
}

}  // namespace ungrain::cuda
