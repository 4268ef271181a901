// [003] v1: a thread goes through all pixels for each of its own; patches in global memory. A grid of any
// size strides over the picture.
#include <limits>

#include "study/nlm_whole_image/rungs.h"
#include "study/nlm_whole_image/whole_image.cuh"

namespace ungrain::study {
namespace {

// A thread an entry of a patch.
__global__ void lay_out_patches(Picture picture, float* patches, int reach, const float* gaussian) {
  const int side = 2 * reach + 1;
  const int entries = side * side;
  const int all = picture.width * picture.height * entries;
  const int first = first_of_block() + thread_of_block();
  for (int i = first; i < all; i += threads_of_grid()) {
    const int at = i / entries;
    const int entry = i % entries;
    const int x = at % picture.width + entry % side - reach;
    const int y = at / picture.width + entry / side - reach;
    patches[i] = pixel(picture, x, y) * gaussian[entry];
  }
}

__global__ void whole_image_global_kernel(Picture picture, Search search) {
  const int middle = search.entries / 2;
  const int first = first_of_block() + thread_of_block();
  for (int at = first; at < search.pixels; at += threads_of_grid()) {
    const float* own = search.patches + at * search.entries;
    LongMean mean;
    for (int row = 0; row < search.searched; row += picture.width) {
      SearchMean of_row;
      for (int other = row; other < row + picture.width; ++other) {
        if (other == at) continue;
        const float* patch = search.patches + other * search.entries;
        of_row.add(expf(search.factor * squared_distance(own, patch, search.entries)), patch[middle]);
      }
      mean.add(of_row);
    }
    picture.out[at] = mean.value(own[middle]);
  }
}

}  // namespace

std::optional<Prepared> stride_over(SearchKernel kernel, const RungCall& call, std::size_t shared) {
  const int threads = call.shape.threads;
  const int blocks = call.shape.blocks;
  const Picture picture = call.device;
  const int pixels = pixels_of(picture);
  const int entries = patch_entries(call.strengths);
  const bool counts_in_32_bits = pixels <= std::numeric_limits<int>::max() / entries;
  const bool busy = call.whole || pixels <= most_pixels_a_thread * static_cast<long long>(threads) * blocks;
  if (kernel == nullptr || !counts_in_32_bits || !busy) return {};
  const auto use = kernel_use(kernel, threads, shared);
  if (!use) return {};
  const int rows = searched_rows(call, threads * blocks);
  const auto gaussian = upload(gaussian_patch(call.strengths));
  const auto patches = std::make_shared<const cuda::DeviceBuffer>(
      static_cast<std::size_t>(pixels) * static_cast<std::size_t>(entries) * sizeof(float));
  const Search search{.patches = patches->floats().data(),
                      .pixels = pixels,
                      .searched = rows * picture.width,
                      .entries = entries,
                      .factor = whole_image_factor()};
  const auto enqueue = [=, reach = call.strengths.radius] {
    constexpr int layout_threads = 256;
    const dim3 layout_blocks(static_cast<unsigned>(cuda::blocks_for(pixels * entries, layout_threads)));
    cuda::launch(lay_out_patches, layout_blocks, dim3(layout_threads), 0, Stream{}, picture,
                 patches->floats().data(), reach, static_cast<const float*>(gaussian->data()));
    cuda::launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)), shared,
                 Stream{}, picture, search);
  };
  return Prepared{.enqueue = enqueue, .use = use, .share = static_cast<double>(rows) / picture.height};
}

Rung nlm_whole_image_global_memory() {
  return {.name = "v1 global memory",
          .paper = "[003] v1",
          .idea = "a thread a pixel, patches in global memory",
          .shapes = Shapes::grids,
          .prepare = [](const RungCall& call) { return stride_over(whole_image_global_kernel, call, 0); }};
}

}  // namespace ungrain::study
