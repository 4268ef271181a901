// [004] §6: a block for each pixel, as many threads as its search window has pixels; they bring the window
// into shared memory, then the one in the middle filters and the others idle. 64 x 64 pixels a launch. Two
// things are put right: patches at the window's edge reach beyond it, so that three more pixels on every side
// are brought; windows come from the image, where the paper first copies each into one large buffer on the
// host (441 images) and sends that to the GPU, which its times contain.
//
// And the step that suggests itself: every thread compares the patches of one shift.
#include <algorithm>

#include "study/nlm/nlm.cuh"
#include "study/nlm/rungs.h"

namespace ungrain::study {
namespace {

constexpr int launch_side = 64;
// Enough of a large picture to time: a launch takes a few ms.
constexpr int most_launches = 64;

struct Place {
  int x;
  int y;
};

// The pixel's window with what its patches need, of one pixel a block.
__device__ void load_window(const Picture& picture, int x, int y, int reach, float* window) {
  const int stride = 2 * reach + 1;
  load_tile(picture, x - reach, y - reach, stride, stride, window, stride);
  __syncthreads();
}

__global__ void middle_thread_kernel(Picture picture, Place first, NlmFactors factors) {
  extern __shared__ float window[];
  const int x = first.x + static_cast<int>(blockIdx.x);
  const int y = first.y + static_cast<int>(blockIdx.y);
  const int reach = factors.radius + factors.patch;
  const int stride = 2 * reach + 1;
  load_window(picture, x, y, reach, window);
  if (thread_x() != factors.radius || thread_y() != factors.radius) return;
  const float* middle = window + reach * stride + reach;
  picture.out[y * picture.width + x] =
      filter_nlm(factors, [&](int dx, int dy) { return middle[dy * stride + dx]; });
}

__global__ void thread_a_shift_kernel(Picture picture, Place first, NlmFactors factors) {
  extern __shared__ float window[];
  const int x = first.x + static_cast<int>(blockIdx.x);
  const int y = first.y + static_cast<int>(blockIdx.y);
  const int reach = factors.radius + factors.patch;
  const int stride = 2 * reach + 1;
  const int threads = block_side() * block_side();
  float* weights = window + stride * stride;
  float* values = weights + threads;
  float* largest = values + threads;
  load_window(picture, x, y, reach, window);
  const float* middle = window + reach * stride + reach;
  const auto value_at = [&](int dx, int dy) { return middle[dy * stride + dx]; };
  const int dx = thread_x() - factors.radius;
  const int dy = thread_y() - factors.radius;
  const int number = thread_number();
  float weight = 0;  // of the pixel itself: it comes last
  if (dx != 0 || dy != 0) weight = factors.weight(patch_distance(value_at, dx, dy, factors.patch));
  weights[number] = weight;
  values[number] = weight * value_at(dx, dy);
  largest[number] = weight;
  __syncthreads();
  for (int count = threads; count > 1; count = (count + 1) / 2) {
    const int other = number + (count + 1) / 2;
    if (other < count) {
      weights[number] += weights[other];
      values[number] += values[other];
      largest[number] = fmaxf(largest[number], largest[other]);
    }
    __syncthreads();
  }
  if (number == 0) {
    const SearchMean mean{weights[0], values[0], largest[0]};
    picture.out[y * picture.width + x] = mean.value(*middle);
  }
}

using Kernel = void (*)(Picture, Place, NlmFactors);

std::optional<Prepared> prepare(Kernel kernel, const RungCall& call, int floats_a_thread) {
  const int side = 2 * call.strengths.radius + 1;
  const int window_side = 2 * search_reach(call.strengths) + 1;
  const std::size_t shared =
      sizeof(float) * static_cast<std::size_t>(window_side * window_side + floats_a_thread * side * side);
  const auto use = kernel_use(kernel, side * side, shared);
  if (!use) return {};
  const Picture picture = call.device;
  const int across = cuda::blocks_for(picture.width, launch_side);
  const int all = across * cuda::blocks_for(picture.height, launch_side);
  const int launches = call.whole ? all : std::min(all, most_launches);
  struct Launch {
    Place first;
    dim3 pixels;
  };
  std::vector<Launch> pieces;
  double filtered = 0;
  for (int i = 0; i < launches; ++i) {
    const Place first{i % across * launch_side, i / across * launch_side};
    const int width = std::min(launch_side, picture.width - first.x);
    const int height = std::min(launch_side, picture.height - first.y);
    pieces.push_back({first, dim3(static_cast<unsigned>(width), static_cast<unsigned>(height))});
    filtered += static_cast<double>(width) * height;
  }
  const dim3 block(static_cast<unsigned>(side), static_cast<unsigned>(side));
  const auto enqueue = [=, factors = NlmFactors(call.strengths)] {
    for (const Launch& piece : pieces) {
      cuda::launch(kernel, piece.pixels, block, shared, Stream{}, picture, piece.first, factors);
    }
  };
  return Prepared{.enqueue = enqueue,
                  .use = use,
                  .share = filtered / (static_cast<double>(picture.width) * picture.height)};
}

}  // namespace

std::vector<Rung> nlm_block_a_pixel() {
  return {
      {.name = "one block a pixel",
       .paper = "[004] parallelized NLM",
       .idea = "one block a pixel, of which one thread filters; 64 x 64 pixels a launch",
       .shapes = Shapes::none,
       .prepare = [](const RungCall& call) { return prepare(middle_thread_kernel, call, 0); }},
      {.name = "one block a pixel, a thread a shift",
       .paper = "[004] without idle threads",
       .idea = "every thread compares the patches of one shift",
       .shapes = Shapes::none,
       .prepare = [](const RungCall& call) { return prepare(thread_a_shift_kernel, call, 3); }},
  };
}

}  // namespace ungrain::study
