// [003] §5.2, which the paper left out: patches overlap, so that shared memory holds pixels in place of
// patches, about 1 float in place of 49. Each difference takes one multiplication more: the Gaussian no
// longer lies in the patches.
//
// A piece of the picture is as many whole rows as the block has threads for, or a part of one row.
#include "study/nlm_whole_image/rungs.h"
#include "study/nlm_whole_image/whole_image.cuh"

namespace ungrain::study {
namespace {

struct Piece {
  int columns;
  int rows;

  __host__ __device__ Piece(int width, int threads)
      : columns(width < threads ? width : threads), rows(width < threads ? threads / width : 1) {}
};

template <int Entries>
struct SquaredGaussian {
  float weights[Entries];
};

template <int Reach>
__global__ void whole_image_overlapping_kernel(Picture picture, Search search,
                                               SquaredGaussian<(2 * Reach + 1) * (2 * Reach + 1)> gaussian) {
  extern __shared__ float tile[];
  constexpr int side = 2 * Reach + 1;
  const int threads = threads_of_block();
  const int thread = thread_of_block();
  const int searched_rows = search.searched / picture.width;
  const Piece piece(picture.width, threads);
  const int stride = piece.columns + 2 * Reach;
  for (int first = first_of_block(); first < search.pixels; first += threads_of_grid()) {
    const int at = min(first + thread, search.pixels - 1);  // threads past the end still copy
    const int own_x = at % picture.width;
    const int own_y = at / picture.width;
    float own[side][side];
#pragma unroll
    for (int y = 0; y < side; ++y) {
#pragma unroll
      for (int x = 0; x < side; ++x) own[y][x] = pixel(picture, own_x + x - Reach, own_y + y - Reach);
    }
    LongMean mean;
    for (int y0 = 0; y0 < searched_rows; y0 += piece.rows) {
      const int rows = min(piece.rows, searched_rows - y0);
      for (int x0 = 0; x0 < picture.width; x0 += piece.columns) {
        const int columns = min(piece.columns, picture.width - x0);
        for (int i = thread; i < stride * (rows + 2 * Reach); i += threads) {
          tile[i] = held_pixel(picture, x0 - Reach + i % stride, y0 - Reach + i / stride);
        }
        __syncthreads();
        SearchMean of_piece;
        for (int row = 0; row < rows; ++row) {
          for (int column = 0; column < columns; ++column) {
            if (x0 + column == own_x && y0 + row == own_y) continue;
            const float* corner = tile + row * stride + column;
            float distance = 0;
#pragma unroll
            for (int y = 0; y < side; ++y) {
#pragma unroll
              for (int x = 0; x < side; ++x) {
                const float difference = own[y][x] - corner[y * stride + x];
                distance += gaussian.weights[y * side + x] * (difference * difference);
              }
            }
            of_piece.add(expf(search.factor * distance), corner[Reach * stride + Reach]);
          }
        }
        mean.add(of_piece);
        __syncthreads();
      }
    }
    if (first + thread < search.pixels) picture.out[at] = mean.value(own[Reach][Reach]);
  }
}

template <int Reach>
std::optional<Prepared> prepare_for(const RungCall& call) {
  constexpr int entries = (2 * Reach + 1) * (2 * Reach + 1);
  const auto kernel = whole_image_overlapping_kernel<Reach>;
  const Picture picture = call.device;
  const int threads = call.shape.threads;
  const int blocks = call.shape.blocks;
  const int pixels = pixels_of(picture);
  if (!call.whole && pixels > most_pixels_a_thread * static_cast<long long>(threads) * blocks) return {};
  const Piece piece(picture.width, threads);
  const std::size_t shared =
      sizeof(float) * static_cast<std::size_t>((piece.columns + 2 * Reach) * (piece.rows + 2 * Reach));
  const auto use = kernel_use(kernel, threads, shared);
  if (!use) return {};
  SquaredGaussian<entries> gaussian{};
  const std::vector<float> patch = gaussian_patch(call.strengths);
  for (int k = 0; k < entries; ++k) {
    const float weight = patch[static_cast<std::size_t>(k)];
    gaussian.weights[k] = weight * weight;
  }
  const int rows = searched_rows(call, threads * blocks);
  const Search search{.patches = nullptr,
                      .pixels = pixels,
                      .searched = rows * picture.width,
                      .entries = entries,
                      .factor = whole_image_factor()};
  const auto enqueue = [=] {
    cuda::launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)), shared,
                 Stream{}, picture, search, gaussian);
  };
  return Prepared{.enqueue = enqueue, .use = use, .share = static_cast<double>(rows) / picture.height};
}

std::optional<Prepared> prepare(const RungCall& call) {
  switch (call.strengths.radius) {
    case 1:
      return prepare_for<1>(call);
    case 2:
      return prepare_for<2>(call);
    case 3:
      return prepare_for<3>(call);
    default:
      return {};
  }
}

}  // namespace

Rung nlm_whole_image_overlapping() {
  return {.name = "overlapping patches",
          .paper = "[003] §5.2",
          .idea = "pixels in shared memory in place of their patches",
          .shapes = Shapes::grids,
          .prepare = prepare};
}

}  // namespace ungrain::study
