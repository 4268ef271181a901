// The fast filter of groups of 8 x 8 patches on a GPU: the kernel, for any way to filter a group.
#pragma once

#include "cuda/launch.cuh"
#include "methods/bm3d/cuda_fast_group.cuh"
#include "methods/bm3d/cuda_fast_tile.cuh"

namespace ungrain::cuda::bm3d_fast {

constexpr int pair_columns = 4;

template <class Filter>
constexpr BlockShape shape_of = block_shape(Filter::most, Filter::wiener, Filter::halves);
template <class Filter>
constexpr int threads_of = shape_of<Filter>.threads();

template <bool Inside, class Filter>
__device__ void load_tile(const Filter& group, const Bm3dTile& tile, const TilePlane (&planes)[2],
                          float* shared) {
  constexpr int images = Filter::wiener ? 2 : 1;
  for_pixels<threads_of<Filter>>(tile.pitch, tile.height, [&](int x, int y, int at) {
    if constexpr (Filter::halves) {
      float pixels[images];
      float right[images];
#pragma unroll
      for (int i = 0; i < images; ++i) {
        pixels[i] = planes[i].template pixel<Inside>(x, y);
        right[i] = planes[i].template pixel<Inside>(x + pair_columns, y);
      }
      reinterpret_cast<typename Filter::Pixel*>(shared)[at] = group.pairs_of(pixels, right);
    } else {
#pragma unroll
      for (int i = 0; i < images; ++i)
        planes[i].template copy_pixel<Inside>(x, y, shared + i * tile.height * tile.pitch + at);
    }
  });
}

template <int Threads, bool Inside>
__device__ void flush_tile(const Bm3dTile& tile, const int* values, const TileSums& to_values,
                           const int* weights, const TileSums& to_weights) {
  const int weight_rows = tile.height - (patch - 1);
  for_pixels<Threads>(tile.pitch, tile.height, [&](int x, int y, int at) {
    if (x >= tile.width) return;
    to_values.template add<Inside>(values[at], x, y);
    if (y < weight_rows) to_weights.template add<Inside>(weights[at], x, y);
  });
}

// A reference patch of the tile.
struct TileReference {
  int index;  // among the plane's
  int place;  // in the tile, of its first pixel, in bytes
};

template <int Threads>
__device__ void list_references(const Bm3dTile& tile, const ReferenceGrid& grid, int first_i, int first_j,
                                int columns, int rows, int left, int top, TileReference* list) {
  for (int n = static_cast<int>(threadIdx.x); n < columns * rows; n += Threads) {
    const int i = first_i + n % columns;
    const int j = first_j + n / columns;
    const int x = min((grid.first_i + i) * grid.spacing, grid.last_x) - left;
    const int y = min((grid.first_j + j) * grid.spacing, grid.last_y) - top;
    list[n] = {j * grid.count_i + i, 4 * (y * tile.pitch + x)};
  }
}

// Shared memory: noisy pixels, the basic estimate's (step 2), sums of values, sums of weights, the tables of
// corners, the warps' own words, the tile's references.
template <class Filter>
__global__ void __launch_bounds__(threads_of<Filter>, shape_of<Filter>.resident)
    filter_kernel(const __grid_constant__ FastCall call) {
  constexpr int warps = shape_of<Filter>.warps;
  constexpr int threads = threads_of<Filter>;
  constexpr int most = Filter::most;
  constexpr bool wiener = Filter::wiener;
  constexpr bool wavelet = Filter::wavelet;
  constexpr bool model = Filter::model;
  extern __shared__ float shared[];
  const Bm3dTile& tile = call.tile;
  const Bm3dFilterCall& filter = call.filter;
  const ReferenceGrid& grid = filter.grid;
  const int plane = filter.first_plane + block_plane(filter.planes);
  const int pixels = tile.height * tile.pitch;
  int* const values = reinterpret_cast<int*>(shared + (wiener ? 2 : 1) * pixels);
  int* const weights = values + pixels;
  const int weight_rows = tile.height - (patch - 1);
  const int warp = same_in_all_lanes(static_cast<int>(threadIdx.x) / 32);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  auto* const corner_tables = reinterpret_cast<std::uint32_t*>(weights + weight_rows * tile.pitch);
  std::uint32_t* const own = corner_tables + (wavelet ? corner_table_words : 0) +
                             warp * own_words(most, wiener, wavelet, Filter::halves);

  const int first_i = static_cast<int>(blockIdx.x) * tile.columns;
  const int first_j = block_row(filter.planes) * tile.rows;
  if (first_j >= grid.count_j) return;
  const int columns = min(tile.columns, grid.count_i - first_i);
  const int rows = min(tile.rows, grid.count_j - first_j);
  const int left = min((grid.first_i + first_i) * grid.spacing, grid.last_x) - tile.reach;
  const int top = min((grid.first_j + first_j) * grid.spacing, grid.last_y) - tile.reach;

  auto* const references =
      reinterpret_cast<TileReference*>(corner_tables + (wavelet ? corner_table_words : 0) +
                                       warps * own_words(most, wiener, wavelet, Filter::halves));
  const int count = columns * rows;
  list_references<threads>(tile, grid, first_i, first_j, columns, rows, left, top, references);

  Filter group(call, plane, own, corner_tables);
  // Pairs of pixels reach `pair_columns` beyond the tile.
  const Rect needed{0, 0, tile.pitch + pair_columns, tile.height};
  const TilePlane planes[2] = {{filter.noisy, plane, left, top},
                               {wiener ? filter.basic : filter.noisy, plane, left, top}};
  planes[0].there.contains(needed) && planes[1].there.contains(needed)
      ? load_tile<true>(group, tile, planes, shared)
      : load_tile<false>(group, tile, planes, shared);
  for (int i = static_cast<int>(threadIdx.x); i < (pixels + weight_rows * tile.pitch) / 4; i += threads)
    reinterpret_cast<int4*>(values)[i] = make_int4(0, 0, 0, 0);
  if constexpr (wavelet) {
    for (int i = static_cast<int>(threadIdx.x); i < corner_table_words; i += threads)
      corner_tables[i] = (&call.tables.corner[0][0][0])[i];
  }
  wait_for_all_copies();
  __syncthreads();

  const int lane_at = Filter::lane_at(tile.pitch);
  const auto* const own_pixels = reinterpret_cast<const typename Filter::Pixel*>(shared) + lane_at;
  int* const own_values = values + lane_at;
  const float* const deviations =
      model ? filter.noise.deviations + static_cast<std::size_t>(plane) * filter.references() : nullptr;
  // A group as the search stored it. It is loaded while the previous group is filtered, and used only
  // afterwards, so that the loads overlap.
  struct FoundGroup {
    TileReference reference;
    int count;
    char2 offset;  // of the patch of this lane's number
    float deviation;
  };
  const auto read = [&](int number) {
    const TileReference reference = references[min(number, count - 1)];
    FoundGroup found{reference, filter.found[reference.index], make_char2(0, 0), 1};
    if constexpr (model) found.deviation = deviations[reference.index];
    if (lane < filter.count) {
      const auto first = static_cast<std::size_t>(reference.index) * filter.count;
      found.offset = reinterpret_cast<const char2*>(filter.offsets)[first + lane];
    }
    return found;
  };
  FoundGroup next = read(warp);
  for (int number = warp; number < count; number += warps) {
    const FoundGroup found = next;
    const int size = same_in_all_lanes(1 << (31 - __clz(min(found.count, min(filter.count, most)))));
    const int place = found.reference.place + 4 * (found.offset.y * tile.pitch + found.offset.x);
    next = read(number + warps);
    group.set_places(place);
    if (group.filter(own_pixels, own_pixels + pixels, size, found.deviation)) {
      group.add(own_values, weights, place, size);
    } else if (lane == 0) {
      const unsigned at = atomicAdd(filter.left_over, 1U);
      filter.left_over[1 + at] = static_cast<unsigned>(plane - filter.first_plane) * filter.references() +
                                 static_cast<unsigned>(found.reference.index);
    }
  }
  __syncthreads();

  const TileSums to_values(filter.sums.values, filter.sums.rect, plane, left, top);
  const TileSums to_weights(filter.sums.weights, filter.sums.weight_rect(), plane, left, top);
  const Rect whole{0, 0, tile.width, tile.height};
  to_values.there.contains(whole) && to_weights.there.contains(whole)
      ? flush_tile<threads, true>(tile, values, to_values, weights, to_weights)
      : flush_tile<threads, false>(tile, values, to_values, weights, to_weights);
}

// Launches the kernel for groups that `Filter` filters.
template <class Filter>
void launch_filter(const FastCall& call, Stream stream) {
  const dim3 blocks = tall_grid(blocks_for(call.filter.grid.count_i, call.tile.columns),
                                blocks_for(call.filter.grid.count_j, call.tile.rows), call.filter.planes);
  launch(filter_kernel<Filter>, blocks, dim3(threads_of<Filter>), call.tile.bytes, stream, call);
}

void launch_halves(const Bm3dFast& fast, const FastCall& call, Stream stream);

}  // namespace ungrain::cuda::bm3d_fast
