// nlm3d on a GPU. A first kernel smooths the volume and scales it, so that squared differences summed over a
// patch are exponents of 2. The second one searches.
//
// A block of 8 warps owns a box of voxels, 2 rows x 4 slices for each warp; its part of the volume lies in
// shared memory. A thread owns the voxels of 2 columns (1 for patches above 3) in all rows and slices of its
// warp. Their patches' rows and slices stay in registers, as do the voxels that they are compared with: the
// search goes along z innermost, so that each shift takes one new slice from shared memory. For each shift
// the squared differences are summed along y and z in registers and along x between lanes. Two neighbouring
// sums share the terms that both have.
//
// Blocks lie on a raster from the volume's origin, so that a voxel's sums have one order in every part of the
// volume.
//
// Bound by instruction issue: about 16 for each voxel and shift of patches of 3 (README.md).
#include <algorithm>
#include <memory>

#include "cuda/async_copy.cuh"
#include "cuda/launch.cuh"
#include "cuda/search_weights.cuh"
#include "cuda/warp.cuh"
#include "cuda/window.cuh"
#include "methods/nlm3d/nlm3d.h"

namespace ungrain {
namespace cuda {
namespace {

// ---- the copy that is compared

struct CopyCall {
  ConstSolid noisy;
  Solid out;
  SolidExtent extent;
  float own;  // shares of a voxel and of its neighbours along x and y
  float neighbour;
  float own_z;
  float neighbour_z;
  float scale;
};

constexpr int copy_threads = 128;

__global__ void __launch_bounds__(copy_threads) copy_kernel(CopyCall call) {
  const Box& box = call.out.box;
  const int x = box.x.begin + static_cast<int>(blockIdx.x * copy_threads + threadIdx.x);
  const int line = block_row();
  if (x >= box.x.end || line >= box.y.count() * box.z.count()) return;
  const int y = box.y.begin + line % box.y.count();
  const int z = box.z.begin + line / box.y.count();
  const Box& held = call.noisy.box;
  int columns[3];
#pragma unroll
  for (int i = 0; i < 3; ++i) columns[i] = held_index(x + i - 1, call.extent.width, held.x);
  float slices[3];
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    const int from_z = held_index(z + k - 1, call.extent.depth, held.z);
    float rows[3];
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      const float* from =
          call.noisy.at(held.x.begin, held_index(y + j - 1, call.extent.height, held.y), from_z) -
          held.x.begin;
      rows[j] = call.own * from[columns[1]] + call.neighbour * (from[columns[0]] + from[columns[2]]);
    }
    slices[k] = call.own * rows[1] + call.neighbour * (rows[0] + rows[2]);
  }
  const float mean = call.own_z * slices[1] + call.neighbour_z * (slices[0] + slices[2]);
  *call.out.at(x, y, z) = fminf(fmaxf(mean * call.scale, -most_scaled), most_scaled);
}

// ---- the search

struct VolumeSearchCall {
  ConstSolid guide;   // scaled
  ConstSolid values;  // that are averaged
  Solid out;
  SolidExtent extent;
  int radius;
  int radius_z;
  int around;
  int around_z;
  float noise;        // that noise alone adds to an exponent
  float noise_share;  // the same over the lines of a patch
  bool self_is_max;
  int first_column;  // of the raster of blocks, and how many of them
  int first_row;
  int first_slice;
  int across;
  int down;

  // The weight of a voxel for itself is still to be added.
  __device__ void store(int x, int y, int z, float values_sum, float weights_sum, float largest) const {
    const float self = self_weight(self_is_max, largest);
    *out.at(x, y, z) = (values_sum + self * *values.at(x, y, z)) / (weights_sum + self);
  }
};

constexpr int most_shared_bytes = 227 * 1024;
constexpr float never = 1000;  // an exponent whose weight is 0

// MostRadius: of the search, along any axis.
template <int Around, int AroundZ, int MostRadius>
class VolumeSearchBlock {
 public:
  static constexpr int warps_down = 4;
  static constexpr int warps_deep = 2;
  static constexpr int threads = 32 * warps_down * warps_deep;
  static constexpr int columns = Around <= 1 ? 2 : 1;  // of a thread
  static constexpr int rows = 2;
  static constexpr int slices = 4;
  static constexpr int patch_rows = rows + 2 * Around;
  static constexpr int patch_slices = slices + 2 * AroundZ;
  static constexpr int covered = 32 * columns;
  static constexpr int own_columns = covered - 2 * Around;
  static constexpr int own_rows = warps_down * rows;
  static constexpr int own_slices = warps_deep * slices;

  // The tiles: columns of one remainder are adjacent, so that lanes read neighbouring words. Rows for
  // `dys` values of dy; searches of more load tiles several times.
  static constexpr int pitch = (covered + 2 * MostRadius + columns - 1) / columns;
  static constexpr int guide_slices = own_slices + 2 * AroundZ + 2 * MostRadius;
  static constexpr int value_slices = own_slices + 2 * MostRadius;
  static constexpr int shared_floats_for(int dys) {
    return columns * pitch *
           (guide_slices * (own_rows + 2 * Around + dys - 1) + value_slices * (own_rows + dys - 1));
  }
  static constexpr int dys_that_fit() {
    int count = 2 * MostRadius + 1;
    while (count > 1 && shared_floats_for(count) * static_cast<int>(sizeof(float)) > most_shared_bytes)
      --count;
    return count;
  }
  static constexpr int dys = dys_that_fit();
  static constexpr int shared_bytes = shared_floats_for(dys) * static_cast<int>(sizeof(float));
  static_assert(shared_bytes <= most_shared_bytes);

  __device__ VolumeSearchBlock(const VolumeSearchCall& call, float* shared)
      : call_(call), guide_(shared), values_(shared + columns * guide_remainder) {
    const int block = static_cast<int>(blockIdx.x);
    // The same for all lanes, and the compiler knows it: branches on it need no care for diverged lanes.
    const int warp = __shfl_sync(all_lanes, static_cast<int>(threadIdx.x) / 32, 0);
    lane_ = static_cast<int>(threadIdx.x) % 32;
    left_ = (call.first_column + block % call.across) * own_columns;
    block_y_ = (call.first_row + block / call.across % call.down) * own_rows;
    block_z_ = (call.first_slice + block / call.across / call.down) * own_slices;
    row_ = warp % warps_down * rows;
    slice_ = warp / warps_down * slices;
  }

  __device__ void filter() {
    load_own();
#pragma unroll
    for (int i = 0; i < columns; ++i) {
#pragma unroll
      for (int y = 0; y < rows; ++y) {
#pragma unroll
        for (int z = 0; z < slices; ++z) weight_sums_[i][y][z] = value_sums_[i][y][z] = largest_[i][y][z] = 0;
      }
    }
    for (int dy = -call_.radius; dy <= call_.radius; dy += dys) {
      const int end = min(dy + dys, call_.radius + 1);
      if (dy > -call_.radius) __syncthreads();
      load_tiles(dy, end - dy);
      wait_for_all_copies();
      __syncthreads();
      for (int at = dy; at < end; ++at) search_row(at, at - dy);
    }
    store();
  }

 private:
  static constexpr int guide_tile_rows = own_rows + 2 * Around + dys - 1;
  static constexpr int value_tile_rows = own_rows + dys - 1;
  static constexpr int guide_slice = guide_tile_rows * pitch;  // floats from one slice of a tile to the next
  static constexpr int value_slice = value_tile_rows * pitch;
  static constexpr int guide_remainder = guide_slices * guide_slice;
  static constexpr int value_remainder = value_slices * value_slice;
  // Where sums along x are found: a thread of one column sums it and those to its right.
  static constexpr int centre = columns == 1 ? Around : 0;

  // ---- voxels

  __device__ void load_own() {
    const Box& held = call_.guide.box;
    int at_columns[columns];
    int at_rows[patch_rows];
#pragma unroll
    for (int i = 0; i < columns; ++i)
      at_columns[i] = held_index(left_ - Around + lane_ * columns + i, call_.extent.width, held.x);
#pragma unroll
    for (int y = 0; y < patch_rows; ++y)
      at_rows[y] = held_index(block_y_ + row_ - Around + y, call_.extent.height, held.y);
#pragma unroll
    for (int z = 0; z < patch_slices; ++z) {
      const int at_slice = held_index(block_z_ + slice_ - AroundZ + z, call_.extent.depth, held.z);
#pragma unroll
      for (int y = 0; y < patch_rows; ++y) {
#pragma unroll
        for (int i = 0; i < columns; ++i)
          own_[i][y][z] = *call_.guide.at(at_columns[i], at_rows[y], at_slice);
      }
    }
  }

  __device__ void load_tiles(int first_dy, int count) {
    const int radius_z = call_.radius_z;
    load_tile(call_.guide, block_y_ - Around + first_dy, own_rows + 2 * Around + count - 1,
              block_z_ - AroundZ - radius_z, own_slices + 2 * AroundZ + 2 * radius_z, guide_, guide_slice,
              guide_remainder);
    load_tile(call_.values, block_y_ + first_dy, own_rows + count - 1, block_z_ - radius_z,
              own_slices + 2 * radius_z, values_, value_slice, value_remainder);
  }

  // Warps take lines. Columns begin `radius` before the covered ones.
  __device__ void load_tile(const ConstSolid& from, int y0, int tile_rows, int z0, int tile_slices, float* to,
                            int to_slice, int to_remainder) {
    constexpr int most_columns = covered + 2 * MostRadius;
    constexpr int at_once = (most_columns + 31) / 32;
    const int wide = covered + 2 * call_.radius;
    int at_columns[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      at_columns[k] =
          held_index(left_ - Around - call_.radius + lane_ + 32 * k, call_.extent.width, from.box.x);
    }
    for (int line = static_cast<int>(threadIdx.x) / 32; line < tile_rows * tile_slices;
         line += threads / 32) {
      const int z = line / tile_rows;
      const int y = line % tile_rows;
      const float* source = from.at(from.box.x.begin, held_index(y0 + y, call_.extent.height, from.box.y),
                                    held_index(z0 + z, call_.extent.depth, from.box.z)) -
                            from.box.x.begin;
      float* const target = to + z * to_slice + y * pitch;
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        const int column = lane_ + 32 * k;
        if (column < wide) {
          copy_async(target + column % columns * to_remainder + column / columns, source + at_columns[k],
                     true);
        }
      }
    }
  }

  // ---- the search

  // `tile_row`: from the tiles' first row.
  __device__ void search_row(int dy, int tile_row) {
    const int y = block_y_ + row_;
    const int z = block_z_ + slice_;
    // Slices of the search with a candidate for any of the warp's.
    const int first = max(-call_.radius_z, -(z + slices - 1));
    const int last = min(call_.radius_z, call_.extent.depth - 1 - z);
    if (y + rows - 1 + dy < 0 || y + dy >= call_.extent.height || first > last) return;
    for (int dx = -call_.radius; dx <= call_.radius; ++dx) {
#pragma unroll
      for (int i = 0; i < columns; ++i) {
        const int qx = left_ - Around + centre + lane_ * columns + i + dx;
        const bool inside = qx >= 0 && qx < call_.extent.width;
#pragma unroll
        for (int k = 0; k < rows; ++k) {
          const int qy = y + k + dy;
          floor_[i][k] = inside && qy >= 0 && qy < call_.extent.height ? 0.0F : never;
        }
        const int column = dx + call_.radius + i;
        other_from_[i] = guide_ + column % columns * guide_remainder + (row_ + tile_row) * pitch + lane_ +
                         column / columns + (slice_ + first + call_.radius_z) * guide_slice;
        value_from_[i] = values_ + (column + centre) % columns * value_remainder + (row_ + tile_row) * pitch +
                         lane_ + (column + centre) / columns +
                         (slice_ + first + call_.radius_z) * value_slice;
      }
#pragma unroll
      for (int k = 0; k < patch_slices - 1; ++k) load_other(k, k);
#pragma unroll
      for (int k = 0; k < slices - 1; ++k) load_values(k, AroundZ + k);
      // Shifts along z that have candidates for all of the warp's slices.
      const bool has_self = dx == 0 && dy == 0;
      whole_first_ = -z;
      whole_count_ = has_self ? 0 : static_cast<unsigned>(max(0, call_.extent.depth - slices + 1));
      self_ = has_self;
      int dz = first;
      while (dz <= last) turn<0>(dz, last);
    }
  }

  __device__ void load_other(int slice, int slot) {
#pragma unroll
    for (int i = 0; i < columns; ++i) {
#pragma unroll
      for (int y = 0; y < patch_rows; ++y)
        other_[i][y][slot] = other_from_[i][slice * guide_slice + y * pitch];
    }
  }
  __device__ void load_values(int slice, int slot) {
#pragma unroll
    for (int i = 0; i < columns; ++i) {
#pragma unroll
      for (int y = 0; y < rows; ++y) value_[i][y][slot] = value_from_[i][slice * value_slice + y * pitch];
    }
  }

  // One slice of the search after the other: the compared voxels stay in their registers, whose roles rotate
  // and repeat after patch_slices slices.
  template <int Turn>
  __device__ void turn(int& dz, int last) {
    load_other(Turn + patch_slices - 1, slot_of<Turn>(patch_slices - 1));
    load_values(Turn + slices - 1, slot_of<Turn>(AroundZ + slices - 1));
    if (static_cast<unsigned>(dz - whole_first_) < whole_count_) {
      compare<Turn, true>(dz);
    } else {
      compare<Turn, false>(dz);
    }
    ++dz;
    if constexpr (Turn + 1 < patch_slices) {
      if (dz <= last) turn<Turn + 1>(dz, last);
    } else {
#pragma unroll
      for (int i = 0; i < columns; ++i) {
        other_from_[i] += patch_slices * guide_slice;
        value_from_[i] += patch_slices * value_slice;
      }
    }
  }

  template <int Turn>
  __device__ static constexpr int slot_of(int slice) {
    return (slice + Turn) % patch_slices;
  }

  // Whole: there is a candidate in every slice, and none is the voxel itself.
  template <int Turn, bool Whole>
  __device__ void compare(int dz) {
    float sums[columns][rows][slices];
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      float lines[rows][patch_slices];
#pragma unroll
      for (int z = 0; z < patch_slices; ++z) {
        float squares = -call_.noise_share;
        float first = 0;
        float last = 0;
#pragma unroll
        for (int y = 0; y < patch_rows; ++y) {
          const float difference = own_[i][y][z] - other_[i][y][slot_of<Turn>(z)];
          if (y == 0) {
            first = difference;
          } else if (y == patch_rows - 1) {
            last = difference;
          } else {
            squares = fmaf(difference, difference, squares);
          }
        }
        lines[0][z] = fmaf(first, first, squares);
        lines[1][z] = fmaf(last, last, squares);
      }
#pragma unroll
      for (int y = 0; y < rows; ++y) sum_slices(lines[y], sums[i][y]);
    }
#pragma unroll
    for (int z = 0; z < slices; ++z) {
      const int qz = block_z_ + slice_ + z + dz;
      const bool counts = Whole || (qz >= 0 && qz < call_.extent.depth && !(self_ && dz == 0));
#pragma unroll
      for (int y = 0; y < rows; ++y) {
        float exponents[columns];
        sum_columns(sums, y, z, exponents);
#pragma unroll
        for (int i = 0; i < columns; ++i) {
          const float weight = exp2_fast(-fmaxf(exponents[i], counts ? floor_[i][y] : never));
          weight_sums_[i][y][z] += weight;
          value_sums_[i][y][z] = fmaf(weight, value_[i][y][slot_of<Turn>(AroundZ + z)], value_sums_[i][y][z]);
          largest_[i][y][z] = fmaxf(largest_[i][y][z], weight);
        }
      }
    }
  }

  // Two neighbouring sums share what both have.
  __device__ static void sum_slices(const float (&line)[patch_slices], float (&sums)[slices]) {
#pragma unroll
    for (int z = 0; z < slices; z += 2) {
      if constexpr (AroundZ == 0) {
        sums[z] = line[z];
        sums[z + 1] = line[z + 1];
      } else {
        float shared = line[z + 1];
#pragma unroll
        for (int k = 2; k <= 2 * AroundZ; ++k) shared += line[z + k];
        sums[z] = line[z] + shared;
        sums[z + 1] = shared + line[z + 2 * AroundZ + 1];
      }
    }
  }

  __device__ static void sum_columns(const float (&sums)[columns][rows][slices], int y, int z,
                                     float (&exponents)[columns]) {
    if constexpr (Around == 0) {
#pragma unroll
      for (int i = 0; i < columns; ++i) exponents[i] = sums[i][y][z];
    } else if constexpr (columns == 2) {
      const float before = __shfl_up_sync(all_lanes, sums[1][y][z], 1);
      const float after = __shfl_down_sync(all_lanes, sums[0][y][z], 1);
      const float both = sums[0][y][z] + sums[1][y][z];
      exponents[0] = before + both;
      exponents[1] = both + after;
    } else {
      // Of the lane and those to its right: 2, then 4, then 5 or 7.
      const float one = sums[0][y][z];
      const float two = one + __shfl_down_sync(all_lanes, one, 1);
      const float four = two + __shfl_down_sync(all_lanes, two, 2);
      if constexpr (Around == 2) {
        exponents[0] = four + __shfl_down_sync(all_lanes, one, 4);
      } else {
        exponents[0] = four + __shfl_down_sync(all_lanes, two, 4) + __shfl_down_sync(all_lanes, one, 6);
      }
    }
  }

  __device__ void store() const {
    const Box& out = call_.out.box;
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      const int column = lane_ * columns + i + centre - Around;
      const int x = left_ + column;
      if (column < 0 || column >= own_columns || x < out.x.begin || x >= out.x.end) continue;
#pragma unroll
      for (int y = 0; y < rows; ++y) {
        const int at_y = block_y_ + row_ + y;
        if (at_y < out.y.begin || at_y >= out.y.end) continue;
#pragma unroll
        for (int z = 0; z < slices; ++z) {
          const int at_z = block_z_ + slice_ + z;
          if (at_z < out.z.begin || at_z >= out.z.end) continue;
          call_.store(x, at_y, at_z, value_sums_[i][y][z], weight_sums_[i][y][z], largest_[i][y][z]);
        }
      }
    }
  }

  const VolumeSearchCall& call_;
  float* guide_;
  float* values_;
  int lane_;
  int left_;  // the block's first voxel
  int block_y_;
  int block_z_;
  int row_;  // the warp's first, from the block's
  int slice_;
  int whole_first_;
  unsigned whole_count_;
  bool self_;  // whether dz 0 is the voxel itself
  const float* other_from_[columns];
  const float* value_from_[columns];
  float floor_[columns][rows];  // of exponents: where there is no candidate, `never`
  float own_[columns][patch_rows][patch_slices];
  float other_[columns][patch_rows][patch_slices];
  float value_[columns][rows][patch_slices];
  float weight_sums_[columns][rows][slices];
  float value_sums_[columns][rows][slices];
  float largest_[columns][rows][slices];
};

template <int Around, int AroundZ, int MostRadius>
__global__ void __launch_bounds__(VolumeSearchBlock<Around, AroundZ, MostRadius>::threads, 1)
    search_kernel(VolumeSearchCall call) {
  extern __shared__ float shared[];
  VolumeSearchBlock<Around, AroundZ, MostRadius>(call, shared).filter();
}

// Any patch: a voxel for each thread.
constexpr int any_threads = 128;

__global__ void __launch_bounds__(any_threads) any_search_kernel(VolumeSearchCall call) {
  const Box& box = call.out.box;
  const int x = box.x.begin + static_cast<int>(blockIdx.x * any_threads + threadIdx.x);
  const int line = block_row();
  if (x >= box.x.end || line >= box.y.count() * box.z.count()) return;
  const int y = box.y.begin + line % box.y.count();
  const int z = box.z.begin + line / box.y.count();
  const Box& held = call.guide.box;
  const auto at = [&](int column, int row, int slice) {
    return *call.guide.at(held_index(column, call.extent.width, held.x),
                          held_index(row, call.extent.height, held.y),
                          held_index(slice, call.extent.depth, held.z));
  };
  float weights = 0;
  float values = 0;
  float largest = 0;
  for (int dy = -call.radius; dy <= call.radius; ++dy) {
    if (y + dy < held.y.begin || y + dy >= held.y.end) continue;
    for (int dx = -call.radius; dx <= call.radius; ++dx) {
      if (x + dx < held.x.begin || x + dx >= held.x.end) continue;
      for (int dz = -call.radius_z; dz <= call.radius_z; ++dz) {
        if (z + dz < held.z.begin || z + dz >= held.z.end) continue;
        if (dx == 0 && dy == 0 && dz == 0) continue;
        float sum = -call.noise;
        for (int k = -call.around_z; k <= call.around_z; ++k) {
          for (int j = -call.around; j <= call.around; ++j) {
            for (int i = -call.around; i <= call.around; ++i) {
              const float difference = at(x + i, y + j, z + k) - at(x + dx + i, y + dy + j, z + dz + k);
              sum = fmaf(difference, difference, sum);
            }
          }
        }
        const float weight = exp2_fast(-fmaxf(sum, 0.0F));
        weights += weight;
        values = fmaf(weight, *call.values.at(x + dx, y + dy, z + dz), values);
        largest = fmaxf(largest, weight);
      }
    }
  }
  call.store(x, y, z, values, weights, largest);
}

template <int Around, int AroundZ, int MostRadius>
void launch_search(VolumeSearchCall call, Stream stream) {
  using Block = VolumeSearchBlock<Around, AroundZ, MostRadius>;
  const auto raster = [](const RowRange& range, int side, int& first) {
    first = range.begin / side;
    return (range.end - 1) / side - first + 1;
  };
  call.across = raster(call.out.box.x, Block::own_columns, call.first_column);
  call.down = raster(call.out.box.y, Block::own_rows, call.first_row);
  const int deep = raster(call.out.box.z, Block::own_slices, call.first_slice);
  launch(search_kernel<Around, AroundZ, MostRadius>,
         dim3(static_cast<unsigned>(call.across * call.down * deep)), dim3(Block::threads),
         Block::shared_bytes, stream, call);
}

template <int Around, int AroundZ>
void launch_search(const VolumeSearchCall& call, Stream stream) {
  if (std::max(call.radius, call.radius_z) <= 5) {
    launch_search<Around, AroundZ, 5>(call, stream);
  } else {
    launch_search<Around, AroundZ, largest_volume_search / 2>(call, stream);
  }
}

dim3 lines_of(const Box& box, int threads_each) {
  return tall_grid(blocks_for(box.x.count(), threads_each), box.y.count() * box.z.count());
}

void launch_search(const VolumeSearchCall& call, Stream stream) {
  if (call.around == 1 && call.around_z == 1) return launch_search<1, 1>(call, stream);
  if (call.around == 1 && call.around_z == 0) return launch_search<1, 0>(call, stream);
  if (call.around == 2 && call.around_z == 2) return launch_search<2, 2>(call, stream);
  if (call.around == 2 && call.around_z == 1) return launch_search<2, 1>(call, stream);
  if (call.around == 0 && call.around_z == 0) return launch_search<0, 0>(call, stream);
  if (call.around == 3 && call.around_z == 3) return launch_search<3, 3>(call, stream);
  launch(any_search_kernel, lines_of(call.out.box, any_threads), dim3(any_threads), 0, stream, call);
}

}  // namespace
}  // namespace cuda

Pipeline nlm3d_cuda(const NlmVolumeParams& params, const ImageSpec& spec) {
  const NlmVolumeSettings settings = nlm3d_settings(params, spec);
  if (is_identity(settings)) return {};
  Pipeline pipeline = nlm3d_stages(settings, true);
  const SolidExtent extent = solid_extent(spec);
  pipeline.stages.front().launch = [settings, extent](const DeviceStageCall& call) {
    for (int channel = 0; channel < call.out.count; ++channel) {
      const Solid out = solid_of(call.out, channel, settings.spec.slice);
      const cuda::CopyCall copy{.noisy = solid_of(call.in[0], channel, settings.spec.slice),
                                .out = out,
                                .extent = extent,
                                .own = static_cast<float>(1 - 2 * settings.prefilter),
                                .neighbour = static_cast<float>(settings.prefilter),
                                .own_z = static_cast<float>(1 - 2 * settings.prefilter_z),
                                .neighbour_z = static_cast<float>(settings.prefilter_z),
                                .scale = static_cast<float>(settings.exponent_scale())};
      cuda::launch(cuda::copy_kernel, cuda::lines_of(out.box, cuda::copy_threads), dim3(cuda::copy_threads),
                   0, call.stream, copy);
    }
  };
  pipeline.stages.back().launch = [settings, extent](const DeviceStageCall& call) {
    for (int channel = 0; channel < call.out.count; ++channel) {
      cuda::VolumeSearchCall search{};
      search.guide = solid_of(call.in[1], channel, settings.spec.slice);
      search.values = solid_of(call.in[0], channel, settings.spec.slice);
      search.out = solid_of(call.out, channel, settings.spec.slice);
      search.extent = extent;
      search.radius = settings.radius;
      search.radius_z = settings.radius_z;
      search.around = settings.around;
      search.around_z = settings.around_z;
      search.noise = static_cast<float>(settings.noise_exponent());
      search.noise_share = static_cast<float>(settings.noise_exponent() /
                                              ((2 * settings.around + 1) * (2 * settings.around_z + 1)));
      search.self_is_max = settings.self == SelfWeight::max;
      cuda::launch_search(search, call.stream);
    }
  };
  return pipeline;
}

}  // namespace ungrain
