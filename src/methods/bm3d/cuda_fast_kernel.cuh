// The fast filter of groups of 8 x 8 patches on a GPU: the kernel, for any way to filter a group.
#pragma once

#include "cuda/async_copy.cuh"
#include "cuda/launch.cuh"
#include "methods/bm3d/cuda_fast_group.cuh"

namespace ungrain::cuda::bm3d_fast {

// Shared memory: noisy pixels, the basic estimate's (step 2), sums of values, sums of weights, the tables of
// corners, the warps' own words.
template <class Filter>
__global__ void __launch_bounds__(threads, Filter::wiener || Filter::most > 16 ? 2 : 3)
    filter_kernel(const __grid_constant__ FastCall call) {
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
  constexpr int apart = Filter::pixels_apart;
  float* const noisy = shared;
  float* const basic = noisy + (!wiener ? 0 : apart == 2 ? 1 : pixels);
  int* const values = reinterpret_cast<int*>(shared + (wiener ? 2 : 1) * pixels);
  int* const weights = values + pixels;
  const int weight_rows = tile.height - (patch - 1);
  const int warp = same_in_all_lanes(static_cast<int>(threadIdx.x) / 32);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  auto* const corner_tables = reinterpret_cast<std::uint32_t*>(weights + weight_rows * tile.pitch);
  std::uint32_t* const own =
      corner_tables + (wavelet ? corner_table_words : 0) + warp * own_words(most, wiener, wavelet, Filter::halves);

  const int first_i = static_cast<int>(blockIdx.x) * tile.columns;
  const int first_j = block_row(filter.planes) * tile.rows;
  if (first_j >= grid.count_j) return;
  const int columns = min(tile.columns, grid.count_i - first_i);
  const int rows = min(tile.rows, grid.count_j - first_j);
  const int left = min((grid.first_i + first_i) * grid.spacing, grid.last_x) - tile.reach;
  const int top = min((grid.first_j + first_j) * grid.spacing, grid.last_y) - tile.reach;

  const auto copy_rows = [&](const ConstPlanes& planes, float* to) {
    const Rect& rect = planes.rect;
    for (int y = warp; y < tile.height; y += warps) {
      // Clamped, so that every address lies in the plane.
      const float* const row = &planes.at(plane, rect.x0, min(max(top + y, rect.y0), rect.y1 - 1)) - rect.x0;
      const bool row_there = top + y >= rect.y0 && top + y < rect.y1;
      for (int x = lane; x < tile.pitch; x += 32) {
        const int from = min(max(left + x, rect.x0), rect.x1 - 1);
        copy_async(to + (y * tile.pitch + x) * apart, row + from, row_there && from == left + x);
      }
    }
  };
  copy_rows(filter.noisy, noisy);
  if constexpr (wiener) copy_rows(filter.basic, basic);
  Filter group(call, plane, own, corner_tables);
  for (int i = static_cast<int>(threadIdx.x); i < pixels + weight_rows * tile.pitch; i += threads)
    values[i] = 0;
  if constexpr (wavelet) {
    for (int i = static_cast<int>(threadIdx.x); i < corner_table_words; i += threads)
      corner_tables[i] = (&call.tables.corner[0][0][0])[i];
  }
  wait_for_all_copies();
  if constexpr (Filter::halves) {
    for (int y = warp; y < tile.height; y += warps)
      group.to_halves(noisy + y * tile.pitch * apart, tile.pitch);
  }
  __syncthreads();

  const int references = columns * rows;
  const int lane_at = Filter::lane_at(tile.pitch);
  using Pixel = typename Filter::Pixel;
  const Pixel* const own_noisy = reinterpret_cast<const Pixel*>(noisy + lane_at * apart);
  const Pixel* const own_basic = reinterpret_cast<const Pixel*>(basic + lane_at * apart);
  int* const own_values = values + lane_at;
  const float* const deviations =
      model ? filter.noise.deviations + static_cast<std::size_t>(plane) * filter.references() : nullptr;
  // A group as the search stored it. It is loaded while the previous group is filtered, and used only
  // afterwards, so that the loads overlap.
  struct FoundGroup {
    int i;  // in the tile
    int j;
    int count;
    char2 offset;  // of the patch of this lane's number
    float deviation;
  };
  const auto read = [&](int i, int j) {
    const std::size_t index = static_cast<std::size_t>(first_j + j) * grid.count_i + first_i + i;
    FoundGroup found{i, j, filter.found[index], make_char2(0, 0), 1};
    if constexpr (model) found.deviation = deviations[index];
    if (lane < filter.count)
      found.offset = reinterpret_cast<const char2*>(filter.offsets)[index * filter.count + lane];
    return found;
  };
  const int columns_on = warps % columns;
  const int rows_on = warps / columns;
  FoundGroup next = read(warp % columns, min(warp / columns, rows - 1));
  for (int reference = warp; reference < references; reference += warps) {
    const int size = same_in_all_lanes(1 << (31 - __clz(min(next.count, min(filter.count, most)))));
    const int x = min((grid.first_i + first_i + next.i) * grid.spacing, grid.last_x) + next.offset.x - left;
    const int y = min((grid.first_j + first_j + next.j) * grid.spacing, grid.last_y) + next.offset.y - top;
    const int place = 4 * (y * tile.pitch + x);
    const float deviation = next.deviation;
    const bool wraps = next.i + columns_on >= columns;
    next =
        read(next.i + columns_on - (wraps ? columns : 0), min(next.j + rows_on + (wraps ? 1 : 0), rows - 1));
    group.set_places(place);
    if (group.filter(own_noisy, own_basic, size, deviation)) {
      group.add(own_values, weights, place, size);
    } else if (lane == 0) {
      const int i = first_i + reference % columns;
      const int j = first_j + reference / columns;
      const unsigned at = atomicAdd(filter.left_over, 1U);
      filter.left_over[1 + at] = static_cast<unsigned>(plane - filter.first_plane) * filter.references() +
                                 static_cast<unsigned>(j * grid.count_i + i);
    }
  }
  __syncthreads();

  const Rect weight_rect = filter.sums.weight_rect();
  const auto flush = [&](int value, unsigned long long* to, const Rect& rect, int x, int y) {
    if (value == 0 || !Bm3dSums::holds(rect, x, y)) return;
    atomicAdd(&to[Bm3dSums::index(rect, plane, x, y)],
              static_cast<unsigned long long>(static_cast<long long>(value)));
  };
  for (int y = warp; y < tile.height; y += warps) {
    for (int x = lane; x < tile.width; x += 32) {
      const int at = y * tile.pitch + x;
      flush(values[at], filter.sums.values, filter.sums.rect, left + x, top + y);
      if (y < weight_rows) flush(weights[at], filter.sums.weights, weight_rect, left + x, top + y);
    }
  }
}

// Launches the kernel for groups that `Filter` filters.
template <class Filter>
void launch_filter(const FastCall& call, Stream stream) {
  const dim3 blocks = tall_grid(blocks_for(call.filter.grid.count_i, call.tile.columns),
                                blocks_for(call.filter.grid.count_j, call.tile.rows), call.filter.planes);
  launch(filter_kernel<Filter>, blocks, dim3(threads), call.tile.bytes, stream, call);
}

void launch_halves(const Bm3dFast& fast, const FastCall& call, Stream stream);

}  // namespace ungrain::cuda::bm3d_fast
