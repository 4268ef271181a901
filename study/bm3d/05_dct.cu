// [002] §5.3.3: cosine transforms in place of Fourier's, within patches and along groups. Numbers are real: a
// group takes four fifths of the memory. cuFFT has none, so a kernel of ours stands in its place, by the
// definition, and like it transforms all patches that a group may have.
#include "study/bm3d/pipeline.cuh"
#include "study/bm3d/rungs.h"

namespace ungrain::study {
namespace bm3d {
namespace {

constexpr int patches_at_once = 4;

// A block for each group, a thread for each number of a patch: rows first, then columns.
template <bool Inverse>
__global__ void transform_patches_kernel(GroupCall call, const float* table) {
  __shared__ float numbers[patches_at_once * patch_pixels];
  const float* matrix = table + patch * square;
  const int thread = thread_x();
  const int x = thread % patch;
  const int y = thread % patch_pixels / patch;
  float along_x[patch];
  float along_y[patch];
#pragma unroll
  for (int k = 0; k < patch; ++k) {
    along_x[k] = matrix[Inverse ? k * most_patches + x : x * most_patches + k];
    along_y[k] = matrix[Inverse ? k * most_patches + y : y * most_patches + k];
  }
  const float* own = numbers + thread / patch_pixels * patch_pixels;
  float* from = call.patch_of(static_cast<int>(blockIdx.x), 0) + thread;
  for (int first = 0; first < most_patches; first += patches_at_once) {
    float* number = from + first * patch_pixels;
    numbers[thread] = *number;
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = 0; k < patch; ++k) sum += along_x[k] * own[y * patch + k];
    __syncthreads();
    numbers[thread] = sum;
    __syncthreads();
    sum = 0;
#pragma unroll
    for (int k = 0; k < patch; ++k) sum += along_y[k] * own[k * patch + x];
    *number = sum;
    __syncthreads();
  }
}

// A block for each group, a thread for each coefficient of a patch.
__global__ void threshold_dct_kernel(GroupCall call, const float* table) {
  __shared__ __align__(16) float matrix[square];
  __shared__ int kept_count;
  const int group = static_cast<int>(blockIdx.x);
  const int c = thread_x();
  const int size = call.sizes[group];
  if (c == 0) kept_count = 0;
  for (int k = c; k < square; k += patch_pixels) matrix[k] = table[size * square + k];
  float* coefficients = call.patch_of(group, 0) + c;
  float values[most_patches];
#pragma unroll
  for (int n = 0; n < most_patches; ++n) values[n] = n < size ? coefficients[n * patch_pixels] : 0.0F;
  __syncthreads();
  float estimates[most_patches];
  const int count = shrink_along(matrix, size, call.threshold, values, estimates);
  atomicAdd(&kept_count, count);
#pragma unroll
  for (int n = 0; n < most_patches; ++n) {
    if (n < size) coefficients[n * patch_pixels] = estimates[n];
  }
  __syncthreads();
  if (c == 0) call.weights[group] = 1 / static_cast<float>(max(kept_count, 1));
}

}  // namespace

BatchVersion dct_version(std::function<void(const MatchCall&)> match, const std::optional<KernelUse>& use) {
  const auto filter = [memory = cosine_table()](const GroupCall& groups, const PartBegins& begin) {
    const auto* table = static_cast<const float*>(memory->data());
    const dim3 grid(static_cast<unsigned>(groups.batch.groups()));
    const dim3 transform_threads(patches_at_once * patch_pixels);
    begin("2-D transforms");
    cuda::launch(transform_patches_kernel<false>, grid, transform_threads, 0, Stream{}, groups, table);
    begin("1-D transforms and threshold");
    cuda::launch(threshold_dct_kernel, grid, dim3(patch_pixels), 0, Stream{}, groups, table);
    begin("2-D transforms");
    cuda::launch(transform_patches_kernel<true>, grid, transform_threads, 0, Stream{}, groups, table);
  };
  return {.match = std::move(match), .filter = filter, .use = use};
}

}  // namespace bm3d

Rung bm3d_dct() {
  return {.name = "5 DCT for DFT",
          .paper = "[002] §5.3.3",
          .idea = "3 with cosine transforms, by kernels of ours",
          .shapes = Shapes::batches,
          .computes = "dct",
          .prepare = [](const RungCall& call) {
            using namespace bm3d;
            return in_batches(call, dct_version(launch_match<SharedColumns>, match_use<SharedColumns>()));
          }};
}

}  // namespace ungrain::study
