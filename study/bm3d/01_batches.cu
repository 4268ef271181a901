// [002]: batches of reference patches, one after the other through six kernels. The search keeps sorted
// stacks in shared memory (§4.3), patches are assembled into groups (§4.4.1), cuFFT transforms them (§4.4.2),
// a kernel transforms along the group by the definition, sets coefficients to 0 and transforms back (§4.4.3),
// cuFFT goes back to pixels, and atomic additions aggregate them (§4.5).
//
// Before it the same without the shared sums of columns (§4.3.1), to show what those bring; after it two
// improvements that the paper names as future work.
#include <cufft.h>

#include <stdexcept>
#include <string>

#include "study/bm3d/pipeline.cuh"
#include "study/bm3d/rungs.h"

namespace ungrain::study {
namespace bm3d {
namespace {

constexpr int spectrum_columns = patch / 2 + 1;  // of a real patch's transform: the others mirror these
constexpr int spectrum = patch * spectrum_columns;
constexpr int padded_row = 2 * spectrum_columns;  // floats: in place

void check_fft(cufftResult status, const char* what) {
  if (status != CUFFT_SUCCESS)
    throw std::runtime_error(std::string(what) + ": cuFFT's error " +
                             std::to_string(static_cast<int>(status)));
}

// 2-D transforms of so many patches, in place; made once and used for all batches.
class PatchTransforms {
 public:
  explicit PatchTransforms(int patches) {
    int sides[] = {patch, patch};
    int pixels[] = {patch, padded_row};
    int coefficients[] = {patch, spectrum_columns};
    check_fft(cufftPlanMany(&forward_, 2, sides, pixels, 1, patch * padded_row, coefficients, 1, spectrum,
                            CUFFT_R2C, patches),
              "planning a transform");
    const cufftResult status = cufftPlanMany(&inverse_, 2, sides, coefficients, 1, spectrum, pixels, 1,
                                             patch * padded_row, CUFFT_C2R, patches);
    if (status != CUFFT_SUCCESS) cufftDestroy(forward_);
    check_fft(status, "planning a transform");
  }
  ~PatchTransforms() {
    cufftDestroy(forward_);
    cufftDestroy(inverse_);
  }
  PatchTransforms(const PatchTransforms&) = delete;
  PatchTransforms& operator=(const PatchTransforms&) = delete;

  void forward(float* groups) const {
    check_fft(cufftExecR2C(forward_, groups, reinterpret_cast<cufftComplex*>(groups)), "transforming");
  }
  void inverse(float* groups) const {
    check_fft(cufftExecC2R(inverse_, reinterpret_cast<cufftComplex*>(groups), groups), "transforming");
  }

 private:
  cufftHandle forward_ = 0;
  cufftHandle inverse_ = 0;
};

// exp(-2 pi i k / size).
__device__ inline float2 root(int k, int size) {
  float2 value;
  sincospif(-2.0F * static_cast<float>(k) / static_cast<float>(size), &value.y, &value.x);
  return value;
}

// A block for each group, a thread for each coefficient of a patch. No transform is normalised: the threshold
// and the last sum make up for it.
template <bool Table>
__global__ void threshold_dft_kernel(GroupCall call) {
  __shared__ float2 values[most_patches][spectrum];
  __shared__ float2 kept[most_patches][spectrum];
  __shared__ float2 roots[most_patches];
  __shared__ int kept_count;
  const int group = static_cast<int>(blockIdx.x);
  const int c = thread_x();
  const int size = call.sizes[group];
  auto* coefficients = reinterpret_cast<float2*>(call.patch_of(group, 0)) + c;
  if (c == 0) kept_count = 0;
  if (Table && c < size) roots[c] = root(c, size);
  for (int n = 0; n < size; ++n) values[n][c] = coefficients[n * spectrum];
  __syncthreads();

  const float limit = call.threshold * static_cast<float>(patch_pixels * size);
  int count = 0;
  for (int u = 0; u < size; ++u) {
    float2 sum{0, 0};
    int k = 0;  // u n, modulo size
    for (int n = 0; n < size; ++n) {
      const float2 w = Table ? roots[k] : root(k, size);
      const float2 v = values[n][c];
      sum.x += v.x * w.x - v.y * w.y;
      sum.y += v.x * w.y + v.y * w.x;
      k += u;
      if (k >= size) k -= size;
    }
    const bool keep = sum.x * sum.x + sum.y * sum.y > limit;
    kept[u][c] = keep ? sum : float2{0, 0};
    count += keep ? 1 : 0;
  }
  // Those between the first and the last column stand for their mirror images too.
  const int column = c % spectrum_columns;
  atomicAdd(&kept_count, column == 0 || column == patch / 2 ? count : 2 * count);
  const float scale = 1 / static_cast<float>(patch_pixels * size);
  for (int n = 0; n < size; ++n) {
    float2 sum{0, 0};
    int k = 0;
    for (int u = 0; u < size; ++u) {
      const float2 w = Table ? roots[k] : root(k, size);
      const float2 v = kept[u][c];
      sum.x += v.x * w.x + v.y * w.y;
      sum.y += v.y * w.x - v.x * w.y;
      k += n;
      if (k >= size) k -= size;
    }
    coefficients[n * spectrum] = {sum.x * scale, sum.y * scale};
  }
  __syncthreads();
  if (c == 0) call.weights[group] = 1 / static_cast<float>(max(kept_count, 1));
}

template <class Distances, bool Table>
std::optional<Prepared> prepare(const RungCall& call) {
  const Size batch = batch_of(call);
  const auto transforms = std::make_shared<const PatchTransforms>(batch.width * batch.height * most_patches);
  const auto filter = [transforms](const GroupCall& groups, const PartBegins& begin) {
    begin("2-D transforms");
    transforms->forward(groups.groups);
    begin("1-D transforms and threshold");
    cuda::launch(threshold_dft_kernel<Table>, dim3(static_cast<unsigned>(groups.batch.groups())),
                 dim3(spectrum), 0, Stream{}, groups);
    begin("2-D transforms");
    transforms->inverse(groups.groups);
  };
  return in_batches(call, {.match = launch_match<Distances>,
                           .filter = filter,
                           .pitch = padded_row,
                           .use = match_use<Distances>(),
                           .quads = std::is_same_v<Distances, FourPixels>});
}

}  // namespace
}  // namespace bm3d

std::vector<Rung> bm3d_batches() {
  using namespace bm3d;
  return {
      {.name = "1 own distances",
       .paper = "[002] without §4.3.1",
       .idea = "batches as in 2, every thread computes its own distances",
       .shapes = Shapes::batches,
       .prepare = prepare<OwnDistances, false>},
      {.name = "2 batches",
       .paper = "[002]",
       .idea = "sorted stacks in shared memory, columns' distances shared by a warp, cuFFT, atomic additions",
       .shapes = Shapes::batches,
       .prepare = prepare<SharedColumns, false>},
      {.name = "3 table of roots",
       .paper = "[002] future work",
       .idea = "2 with the roots of unity of the 1-D transforms computed once for a group",
       .shapes = Shapes::batches,
       .prepare = prepare<SharedColumns, true>},
      {.name = "4 four pixels at once",
       .paper = "[002] future work",
       .idea = "3 with four pixels of bytes compared in one instruction",
       .shapes = Shapes::batches,
       .prepare = prepare<FourPixels, true>}};
}

std::string bm3d_left_out() { return {}; }

}  // namespace ungrain::study
