// Each step: one kernel finds the groups of all references, one filters them and adds their estimates, one
// divides. Sums are integers, so that their order does not matter.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/convert.h"
#include "core/rows.h"
#include "core/scratch.h"
#include "cuda/launch.cuh"
#include "cuda/warp.cuh"
#include "methods/bm4d/bm4d.h"

namespace ungrain {
namespace {

constexpr int warp = 32;

// References along an axis: from the `first`-th on.
struct ReferenceRange {
  CubeAxis axis;
  int first = 0;
  int count = 0;
  __host__ __device__ int position(int index) const { return axis.position(first + index); }
};

struct References {
  ReferenceRange x;
  ReferenceRange y;
  ReferenceRange z;
  __host__ __device__ std::size_t count() const {
    return static_cast<std::size_t>(x.count) * y.count * z.count;
  }
};

// A group's members as places in the search box, (z * side + y) * side + x with 0 at the box's first corner
// though it may lie outside the volume. The reference itself is the first.
using Place = std::uint16_t;

struct MatchCall {
  ConstSolid guide;
  SolidExtent extent;
  Bm4dStep step;
  References references;
  float scale = 1;
  Place* places = nullptr;        // step.group for each reference
  std::uint8_t* sizes = nullptr;  // of groups; 0: the search box is not held
  // The block's voxels in shared memory.
  int line = 0;
  int slice = 0;
  int candidates = 0;  // of a whole search box
};

// A block searches for 2 x 2 x 2 references, one each warp or several one after the other.
constexpr int block_side = 2;
constexpr int block_references = block_side * block_side * block_side;
constexpr int candidates_at_once = 4;  // of a thread, side by side
constexpr unsigned no_candidate = 0xffffffffU;

struct MatchShape {
  int side = 0;  // voxels of a block's box along x and y
  int side_z = 0;
  int line = 0;   // floats; odd, so that lanes with one line each read different banks
  int slice = 0;  // likewise where the lanes' lines go on in the next slice
  int candidates = 0;
  int warps = block_references;

  explicit MatchShape(const Bm4dStep& step) {
    const int touched = (block_side - 1) * step.spacing + step.cube;
    side = touched + 2 * step.radius;
    side_z = touched + 2 * step.radius_z;
    line = (side + candidates_at_once) | 1;
    const int across = 2 * step.radius + 1;
    slice = line * side;
    while (slice % warp != line * across % warp) ++slice;
    candidates = across * across * (2 * step.radius_z + 1);
    constexpr std::size_t most = 98 * 1024;  // that GPUs have; Hopper has it twice
    while (warps > 1 && shared() > most) warps /= 2;
  }
  std::size_t voxels() const { return static_cast<std::size_t>(slice) * side_z; }
  std::size_t shared() const {
    const std::size_t places = (static_cast<std::size_t>(candidates) + 1) / 2 * 2;
    return (voxels() + 4 + warps * largest_cube * largest_cube * 8) * sizeof(float) +
           warps * (candidates * sizeof(unsigned) + places * sizeof(Place));
  }
};

__device__ unsigned warp_most(unsigned value) {
  for (int apart = warp / 2; apart > 0; apart /= 2) {
    value = max(value, __shfl_xor_sync(cuda::all_lanes, value, apart));
  }
  return value;
}

// The distances of all candidates of one reference, by place. `tile` is the search box's first voxel.
template <int Cube>
__device__ void find_distances(const MatchCall& call, const float* tile, const float* reference, int x, int y,
                               int z, const CubeSearch& search, unsigned* distances) {
  const int lane = threadIdx.x % warp;
  const int across = 2 * call.step.radius + 1;
  const int lines = across * (2 * call.step.radius_z + 1);
  const int parts = (across + candidates_at_once - 1) / candidates_at_once;
  for (int item = lane; item < lines * parts; item += warp) {
    const int part = item / lines;
    const int row = item - part * lines;
    const int dz = row / across;
    const int dy = row - dz * across;
    const int dx = part * candidates_at_once;
    const float* from = tile + dz * call.slice + dy * call.line + dx;
    float sums[candidates_at_once] = {};
    const int qy = y - call.step.radius + dy;
    const int qz = z - call.step.radius_z + dz;
    const bool inside = qy >= search.y0 && qy <= search.y1 && qz >= search.z0 && qz <= search.z1;
    if (inside) {
      for (int c = 0; c < Cube; ++c) {
#pragma unroll
        for (int b = 0; b < Cube; ++b) {
          const float* line = from + c * call.slice + b * call.line;
          const float4 four = *reinterpret_cast<const float4*>(reference + (c * Cube + b) * 8);
          float own[8] = {four.x, four.y, four.z, four.w};
          if constexpr (Cube == 5) own[4] = reference[(c * Cube + b) * 8 + 4];
          float voxels[candidates_at_once + Cube - 1];
#pragma unroll
          for (int i = 0; i < candidates_at_once + Cube - 1; ++i) voxels[i] = line[i];
#pragma unroll
          for (int a = 0; a < Cube; ++a) {
#pragma unroll
            for (int i = 0; i < candidates_at_once; ++i) {
              const float difference = fminf(fabsf(voxels[i + a] - own[a]), largest_difference);
              sums[i] = fmaf(difference, difference, sums[i]);
            }
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < candidates_at_once; ++i) {
      const int qx = x - call.step.radius + dx + i;
      if (dx + i >= across) continue;
      const bool counts = inside && qx >= search.x0 && qx <= search.x1;
      distances[row * across + dx + i] = counts ? static_cast<unsigned>(sums[i]) : no_candidate;
    }
  }
  __syncwarp();
}

// Keeps the candidates that may be among the nearest 32, in the order of their places: every lane has
// one that is at most as far as the farthest of the lanes' nearest. Returns how many.
__device__ int keep_near(int candidates, int self, unsigned* distances, Place* places) {
  const int lane = threadIdx.x % warp;
  unsigned nearest = no_candidate;
  for (int i = lane; i < candidates; i += warp) {
    if (i != self) nearest = min(nearest, distances[i]);
  }
  const unsigned limit = warp_most(nearest);  // no_candidate: keeps all, there are few
  int kept = 0;
  for (int begin = 0; begin < candidates; begin += warp) {
    const int i = begin + lane;
    const unsigned distance = i < candidates ? distances[i] : no_candidate;
    const bool keep = i < candidates && i != self && distance != no_candidate && distance <= limit;
    const unsigned lanes = __ballot_sync(cuda::all_lanes, keep);
    const int at = kept + __popc(lanes & ((1U << lane) - 1));
    __syncwarp();
    if (keep) {
      distances[at] = distance;
      places[at] = static_cast<Place>(i);
    }
    kept += __popc(lanes);
    __syncwarp();
  }
  return kept;
}

// The distance of the `wanted`-th nearest of the candidates.
__device__ unsigned distance_of_rank(int wanted, int count, const unsigned* distances) {
  const int lane = threadIdx.x % warp;
  unsigned low = 0;  // the answer lies in [low, high]
  unsigned high = 1U << 24U;
  while (low < high) {
    const unsigned middle = low + (high - low) / 2;
    int nearer = 0;
    for (int i = lane; i < count; i += warp) nearer += distances[i] <= middle;
    if (cuda::warp_sum(nearer) >= wanted) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Sorts one key of each lane.
__device__ std::uint64_t sorted(std::uint64_t key) {
  const unsigned lane = threadIdx.x % warp;
  for (unsigned size = 2; size <= warp; size *= 2) {
    for (unsigned apart = size / 2; apart > 0; apart /= 2) {
      const std::uint64_t other = __shfl_xor_sync(cuda::all_lanes, key, static_cast<int>(apart));
      const bool ascends = (lane & size) == 0;
      const bool first = (lane & apart) == 0;
      if ((key > other) == (ascends == first)) key = other;
    }
  }
  return key;
}

// A warp's memory.
struct MatchMemory {
  float* reference = nullptr;
  unsigned* distances = nullptr;
  Place* places = nullptr;
};

// Of the candidates that were kept, the `wanted` nearest in order, one for each lane from 0 on.
__device__ Place nearest_places(int wanted, int kept, const MatchMemory& memory) {
  const int lane = threadIdx.x % warp;
  const unsigned farthest = distance_of_rank(wanted, kept, memory.distances);
  // Those nearer than the farthest, and the first that are as far.
  int nearer = 0;
  for (int c = lane; c < kept; c += warp) nearer += memory.distances[c] < farthest;
  const int equals = wanted - cuda::warp_sum(nearer);
  std::uint64_t key = ~std::uint64_t{0};
  int taken = 0;
  int equal = 0;
  for (int begin = 0; begin < kept; begin += warp) {
    const int c = begin + lane;
    const unsigned distance = c < kept ? memory.distances[c] : no_candidate;
    const unsigned as_far = __ballot_sync(cuda::all_lanes, distance == farthest);
    const int before = equal + __popc(as_far & ((1U << lane) - 1));
    const bool take = distance < farthest || (distance == farthest && before < equals);
    const unsigned lanes = __ballot_sync(cuda::all_lanes, take);
    // The taken one that this lane will hold: the n-th of them.
    const int number = lane - taken;
    const bool holds = number >= 0 && number < __popc(lanes);
    const int from = holds ? static_cast<int>(__fns(lanes, 0, number + 1)) : 0;
    const std::uint64_t mine =
        static_cast<std::uint64_t>(distance) << 32U | (c < kept ? memory.places[c] : Place{0});
    const std::uint64_t given = __shfl_sync(cuda::all_lanes, mine, from);
    if (holds) key = given;
    taken += __popc(lanes);
    equal += __popc(as_far);
  }
  return static_cast<Place>(sorted(key));
}

// The group of one reference. `tile` begins at the voxel (x0, y0, z0).
template <int Cube>
__device__ void find_group(const MatchCall& call, const float* tile, int x0, int y0, int z0, int i, int j,
                           int k, const MatchMemory& memory) {
  const int lane = threadIdx.x % warp;
  const Bm4dStep& step = call.step;
  const References& all = call.references;
  const Box& held = call.guide.box;
  const std::size_t index = (static_cast<std::size_t>(k) * all.y.count + j) * all.x.count + i;
  const int x = all.x.position(i);
  const int y = all.y.position(j);
  const int z = all.z.position(k);
  const CubeSearch search = cube_search(step, call.extent, x, y, z);
  const bool is_held = search.x0 >= held.x.begin && search.x1 + Cube <= held.x.end &&
                       search.y0 >= held.y.begin && search.y1 + Cube <= held.y.end &&
                       search.z0 >= held.z.begin && search.z1 + Cube <= held.z.end;
  if (!is_held) {
    if (lane == 0) call.sizes[index] = 0;
    return;
  }
  const float* const box = tile + (z - step.radius_z - z0) * call.slice + (y - step.radius - y0) * call.line +
                           (x - step.radius - x0);
  for (int item = lane; item < Cube * Cube * Cube; item += warp) {
    const int c = item / (Cube * Cube);
    const int b = item / Cube % Cube;
    const int a = item % Cube;
    memory.reference[(c * Cube + b) * 8 + a] =
        box[(step.radius_z + c) * call.slice + (step.radius + b) * call.line + step.radius + a];
  }
  __syncwarp();
  find_distances<Cube>(call, box, memory.reference, x, y, z, search, memory.distances);

  const int in_box = (search.x1 - search.x0 + 1) * (search.y1 - search.y0 + 1) * (search.z1 - search.z0 + 1);
  const int count = cubes_taken(step.group, in_box);
  const int across = 2 * step.radius + 1;
  const int self = (step.radius_z * across + step.radius) * across + step.radius;
  Place* const to = call.places + index * step.group;
  if (lane == 0) {
    call.sizes[index] = static_cast<std::uint8_t>(count);
    to[0] = static_cast<Place>(self);
  }
  const int wanted = count - 1;
  if (wanted == 0) return;
  const int kept = keep_near(call.candidates, self, memory.distances, memory.places);
  const Place place = nearest_places(wanted, kept, memory);
  if (lane < wanted) to[lane + 1] = place;
}

template <int Cube>
__global__ void __launch_bounds__(block_references* warp)
    find_groups(const __grid_constant__ MatchCall call) {
  extern __shared__ float tile[];
  const int own = threadIdx.x / warp;
  const int warps = blockDim.x / warp;
  const Bm4dStep& step = call.step;
  const References& all = call.references;
  const int side = (block_side - 1) * step.spacing + step.cube + 2 * step.radius;
  const int side_z = (block_side - 1) * step.spacing + step.cube + 2 * step.radius_z;
  const int x0 = all.x.position(blockIdx.x * block_side) - step.radius;
  const int y0 = all.y.position(blockIdx.y * block_side) - step.radius;
  const int z0 = all.z.position(blockIdx.z * block_side) - step.radius_z;
  const Box& held = call.guide.box;
  for (int item = threadIdx.x; item < side * side * side_z; item += blockDim.x) {
    const int z = item / (side * side);
    const int y = item / side % side;
    const int x = item % side;
    const bool inside = x0 + x >= held.x.begin && x0 + x < held.x.end && y0 + y >= held.y.begin &&
                        y0 + y < held.y.end && z0 + z >= held.z.begin && z0 + z < held.z.end;
    tile[z * call.slice + y * call.line + x] =
        inside ? rintf(*call.guide.at(x0 + x, y0 + y, z0 + z) * call.scale) : 0;
  }
  __syncthreads();

  const int voxels = (call.slice * side_z + 3) / 4 * 4;
  float* const references = tile + voxels;
  auto* const distances = reinterpret_cast<unsigned*>(references + warps * largest_cube * largest_cube * 8);
  auto* const places = reinterpret_cast<Place*>(distances + warps * call.candidates);
  const MatchMemory memory{references + own * largest_cube * largest_cube * 8,
                           distances + own * call.candidates, places + own * ((call.candidates + 1) / 2 * 2)};
  for (int number = own; number < block_references; number += warps) {
    const int i = blockIdx.x * block_side + number % block_side;
    const int j = blockIdx.y * block_side + number / block_side % block_side;
    const int k = blockIdx.z * block_side + number / (block_side * block_side);
    if (i < all.x.count && j < all.y.count && k < all.z.count)
      find_group<Cube>(call, tile, x0, y0, z0, i, j, k, memory);
    __syncwarp();
  }
}

// Sums of weighted estimates, in units that are integers.
struct Sums {
  unsigned long long* values = nullptr;
  unsigned long long* weights = nullptr;
  Box box;
  std::ptrdiff_t slice = 0;
  float value_units = 1;  // of a value
};
constexpr float weight_units = 0x1p40F;
constexpr float value_units_of_deviation = 0x1p28F;

struct FilterCallOnGpu {
  ConstSolid noisy;
  ConstSolid guide;
  Bm4dStep step;
  References references;
  const Place* places = nullptr;
  const std::uint8_t* sizes = nullptr;
  float threshold = 0;  // of the deviation 1 where there is a map
  float variance = 0;   // the least one where there is a map
  ConstSolid map;       // of deviations; no data: none
  Sums sums;
  float transform[largest_cube * largest_cube];
  float window[largest_cube];
  bool white;  // else the noise's deviation in each coefficient of a cube, in units of a voxel's:
  float deviations[largest_cube * largest_cube * largest_cube];
};

constexpr int filter_warps = 4;

// Where a group's coefficients lie in shared memory: distances that spread a warp's accesses over banks.
template <int Cube>
struct CoefficientLayout {
  static constexpr int line = Cube;
  static constexpr int slice = Cube == 4 ? 20 : 25;
  static constexpr int cube = Cube == 4 ? 80 : 125;
};

template <int Cube, bool Back>
__device__ void transform_line(const float* matrix, const float* in, float* out) {
#pragma unroll
  for (int k = 0; k < Cube; ++k) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Cube; ++i) sum = fmaf(Back ? matrix[i * Cube + k] : matrix[k * Cube + i], in[i], sum);
    out[k] = sum;
  }
}

// Along y or z of all cubes, in place. `Along` and `Other` are the distances of the axis and of the remaining
// one.
template <int Cube, bool Back, int Along, int Other>
__device__ void transform_across(const float* matrix, int count, float* cubes) {
  for (int item = threadIdx.x % warp; item < count * Cube * Cube; item += warp) {
    const int m = item / (Cube * Cube);
    const int other = item / Cube % Cube;
    float* const at = cubes + m * CoefficientLayout<Cube>::cube + other * Other + item % Cube;
    float in[Cube];
    float out[Cube];
#pragma unroll
    for (int i = 0; i < Cube; ++i) in[i] = at[i * Along];
    transform_line<Cube, Back>(matrix, in, out);
#pragma unroll
    for (int i = 0; i < Cube; ++i) at[i * Along] = out[i];
  }
  __syncwarp();
}

struct CubePlace {
  int x, y, z;
};

__device__ CubePlace position_of(const Bm4dStep& step, const CubePlace& reference, Place place) {
  const int across = 2 * step.radius + 1;
  const int x = place % across;
  const int y = place / across % across;
  const int z = place / (across * across);
  return {reference.x - step.radius + x, reference.y - step.radius + y, reference.z - step.radius_z + z};
}

template <int Cube>
__device__ void load_cubes(const FilterCallOnGpu& call, const ConstSolid& from, const CubePlace& reference,
                           const Place* places, int count, float* cubes) {
  using L = CoefficientLayout<Cube>;
  for (int item = threadIdx.x % warp; item < count * Cube * Cube; item += warp) {
    const int m = item / (Cube * Cube);
    const int row = item % (Cube * Cube);
    const CubePlace at = position_of(call.step, reference, places[m]);
    const float* line = from.at(at.x, at.y + row % Cube, at.z + row / Cube);
    float in[Cube];
    float out[Cube];
#pragma unroll
    for (int i = 0; i < Cube; ++i) in[i] = __ldg(line + i);
    transform_line<Cube, false>(call.transform, in, out);
    float* to = cubes + m * L::cube + row / Cube * L::slice + row % Cube * L::line;
#pragma unroll
    for (int i = 0; i < Cube; ++i) to[i] = out[i];
  }
  __syncwarp();
  transform_across<Cube, false, L::line, L::slice>(call.transform, count, cubes);
  transform_across<Cube, false, L::slice, L::line>(call.transform, count, cubes);
}

template <int Count, bool Back>
__device__ void haar(float* values) {
  constexpr float half = 0.70710678118654752F;
#pragma unroll
  for (int level = 1; level < Count; level *= 2) {
    const int step = Back ? Count / 2 / level : level;
#pragma unroll
    for (int first = 0; first < Count; first += 2) {
      // The pairs of this level: `step` apart, at multiples of twice that.
      if (first % (2 * step) != 0) continue;
      const float a = values[first] * half;
      const float b = values[first + step] * half;
      values[first] = a + b;
      values[first + step] = a - b;
    }
  }
}

// The transform along the group, the shrinking of coefficients, and the transform back. Returns this lane's
// share of the squares of the factors.
template <int Cube, int Count, bool Wiener>
__device__ float shrink(const FilterCallOnGpu& call, float white_threshold, float white_variance,
                        float* cubes, const float* guide) {
  using L = CoefficientLayout<Cube>;
  float squares = 0;
  for (int voxel = threadIdx.x % warp; voxel < Cube * Cube * Cube; voxel += warp) {
    const float deviation = call.white ? 1 : call.deviations[voxel];
    const float threshold = white_threshold * deviation;
    const float variance = white_variance * deviation * deviation;
    const int at = voxel / (Cube * Cube) * L::slice + voxel / Cube % Cube * L::line + voxel % Cube;
    float values[Count];
#pragma unroll
    for (int m = 0; m < Count; ++m) values[m] = cubes[m * L::cube + at];
    haar<Count, false>(values);
    if constexpr (Wiener) {
      float signal[Count];
#pragma unroll
      for (int m = 0; m < Count; ++m) signal[m] = guide[m * L::cube + at];
      haar<Count, false>(signal);
#pragma unroll
      for (int m = 0; m < Count; ++m) {
        const float energy = signal[m] * signal[m];
        const float factor = __fdividef(energy, energy + variance);
        values[m] *= factor;
        squares = fmaf(factor, factor, squares);
      }
    } else {
#pragma unroll
      for (int m = 0; m < Count; ++m) {
        const bool mean = m == 0 && voxel == 0;
        const bool keep = mean || (fabsf(values[m]) >= threshold && values[m] != 0);
        if (!keep) values[m] = 0;
        squares += keep ? 1.0F : 0.0F;
      }
    }
    haar<Count, true>(values);
#pragma unroll
    for (int m = 0; m < Count; ++m) cubes[m * L::cube + at] = values[m];
  }
  __syncwarp();
  return squares;
}

template <int Cube, bool Wiener>
__device__ float shrink_group(const FilterCallOnGpu& call, float threshold, float variance, int count,
                              float* cubes, const float* guide) {
  switch (count) {
    case 32:
      return shrink<Cube, 32, Wiener>(call, threshold, variance, cubes, guide);
    case 16:
      return shrink<Cube, 16, Wiener>(call, threshold, variance, cubes, guide);
    case 8:
      return shrink<Cube, 8, Wiener>(call, threshold, variance, cubes, guide);
    case 4:
      return shrink<Cube, 4, Wiener>(call, threshold, variance, cubes, guide);
    case 2:
      return shrink<Cube, 2, Wiener>(call, threshold, variance, cubes, guide);
    default:
      return shrink<Cube, 1, Wiener>(call, threshold, variance, cubes, guide);
  }
}

// The variance of a group by the map: that at the middle of its cubes.
template <int Cube>
__device__ float variance_of(const FilterCallOnGpu& call, const CubePlace& reference, const Place* places,
                             int count) {
  const int lane = threadIdx.x % warp;
  float square = 0;
  if (lane < count) {
    const CubePlace at = position_of(call.step, reference, places[lane]);
    const float deviation = *call.map.at(at.x + Cube / 2, at.y + Cube / 2, at.z + Cube / 2);
    square = deviation * deviation;
  }
  return fmaxf(cuda::warp_sum(square) / static_cast<float>(count), call.variance);
}

template <int Cube>
__device__ void add_cubes(const FilterCallOnGpu& call, const CubePlace& reference, const Place* places,
                          int count, float weight, const float* cubes) {
  using L = CoefficientLayout<Cube>;
  const Sums& sums = call.sums;
  for (int item = threadIdx.x % warp; item < count * Cube * Cube; item += warp) {
    const int m = item / (Cube * Cube);
    const int row = item % (Cube * Cube);
    const CubePlace at = position_of(call.step, reference, places[m]);
    const int z = at.z + row / Cube;
    const int y = at.y + row % Cube;
    if (z < sums.box.z.begin || z >= sums.box.z.end) continue;
    const float* from = cubes + m * L::cube + row / Cube * L::slice + row % Cube * L::line;
    float in[Cube];
    float out[Cube];
#pragma unroll
    for (int i = 0; i < Cube; ++i) in[i] = from[i];
    transform_line<Cube, true>(call.transform, in, out);
    const float share = weight * call.window[row / Cube] * call.window[row % Cube];
    const std::ptrdiff_t to = (z - sums.box.z.begin) * sums.slice +
                              static_cast<std::ptrdiff_t>(y - sums.box.y.begin) * sums.box.x.count() +
                              (at.x - sums.box.x.begin);
#pragma unroll
    for (int i = 0; i < Cube; ++i) {
      const float own = share * call.window[i];
      const long long value = __float2ll_rn(own * out[i] * sums.value_units);
      atomicAdd(sums.values + to + i, static_cast<unsigned long long>(value));
      atomicAdd(sums.weights + to + i, static_cast<unsigned long long>(__float2ll_rn(own * weight_units)));
    }
  }
}

template <int Cube, bool Wiener>
__global__ void __launch_bounds__(filter_warps* warp)
    filter_groups(const __grid_constant__ FilterCallOnGpu call) {
  extern __shared__ float shared[];
  using L = CoefficientLayout<Cube>;
  __shared__ Place group[filter_warps][most_cubes];
  const int lane = threadIdx.x % warp;
  const int own = threadIdx.x / warp;
  const References& all = call.references;
  const std::size_t index = static_cast<std::size_t>(blockIdx.x) * filter_warps + own;
  if (index >= all.count()) return;
  const int count = call.sizes[index];
  if (count == 0) return;
  if (lane < count) group[own][lane] = call.places[index * call.step.group + lane];
  __syncwarp();
  const CubePlace reference{
      all.x.position(static_cast<int>(index % all.x.count)),
      all.y.position(static_cast<int>(index / all.x.count % all.y.count)),
      all.z.position(static_cast<int>(index / (static_cast<std::size_t>(all.x.count) * all.y.count)))};
  float* const cubes = shared + own * (Wiener ? 2 : 1) * call.step.group * L::cube;
  float* const guide = cubes + call.step.group * L::cube;
  load_cubes<Cube>(call, call.noisy, reference, group[own], count, cubes);
  if constexpr (Wiener) load_cubes<Cube>(call, call.guide, reference, group[own], count, guide);
  float variance = call.variance;
  float threshold = call.threshold;
  if (call.map.data != nullptr) {
    variance = variance_of<Cube>(call, reference, group[own], count);
    threshold *= sqrtf(variance);
  }
  const float squares =
      cuda::warp_sum(shrink_group<Cube, Wiener>(call, threshold, variance, count, cubes, guide));
  transform_across<Cube, true, L::slice, L::line>(call.transform, count, cubes);
  transform_across<Cube, true, L::line, L::slice>(call.transform, count, cubes);
  add_cubes<Cube>(call, reference, group[own], count, 1 / fmaxf(squares, 1.0F), cubes);
}

__global__ void divide(const __grid_constant__ Sums sums, const __grid_constant__ Solid out) {
  const auto voxels = static_cast<std::ptrdiff_t>(out.box.x.count()) * out.box.y.count();
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= voxels) return;
  const std::ptrdiff_t from = blockIdx.y * sums.slice + at;
  const auto value = static_cast<double>(static_cast<long long>(sums.values[from]));
  const auto weight = static_cast<double>(sums.weights[from]);
  const double units = static_cast<double>(weight_units) / sums.value_units;
  out.data[blockIdx.y * out.slice + at] = weight > 0 ? static_cast<float>(value / weight * units) : 0.0F;
}

class CudaStep {
 public:
  CudaStep(const Bm4dSettings& settings, bool wiener)
      : settings_(settings),
        step_(wiener ? settings.wiener : settings.threshold),
        wiener_(wiener),
        extent_(solid_extent(settings.spec)),
        transform_(cube_transform(step_.cube)),
        window_(cube_window(step_.cube)),
        deviations_(coefficient_deviations(settings, step_.cube)) {}

  std::size_t scratch(int slices) const {
    ScratchPieces pieces(nullptr, alignment);
    take(pieces, slices);
    return pieces.floats();
  }

  void launch(const DeviceStageCall& call) const {
    ScratchPieces pieces(call.scratch.data(), alignment);
    const Memory memory = take(pieces, call.out.rect.height());
    for (int channel = 0; channel < call.out.count; ++channel) launch_channel(call, channel, memory);
  }

 private:
  static constexpr std::size_t alignment = 256;

  struct Memory {
    unsigned long long* values = nullptr;
    unsigned long long* weights = nullptr;
    Place* places = nullptr;
    std::uint8_t* sizes = nullptr;
    float* map = nullptr;
  };

  // Slices that the groups of so many slices of output lie in.
  int slices_of_groups(int slices) const {
    return std::min(extent_.depth, slices + 2 * step_.reach(step_.radius_z));
  }

  std::size_t slice_voxels() const { return static_cast<std::size_t>(settings_.spec.width); }

  Memory take(ScratchPieces& pieces, int slices) const {
    const std::size_t voxels = slice_voxels() * slices;
    // References that reach the slices.
    const int deep =
        std::min(axis(extent_.depth).count(), (slices + 2 * step_.radius_z + step_.cube) / step_.spacing + 2);
    const std::size_t references =
        static_cast<std::size_t>(axis(extent_.width).count()) * axis(extent_.height).count() * deep;
    Memory memory;
    memory.values = pieces.take<unsigned long long>(voxels);
    memory.weights = pieces.take<unsigned long long>(voxels);
    memory.places = pieces.take<Place>(references * step_.group);
    memory.sizes = pieces.take<std::uint8_t>(references);
    if (settings_.sigma_map.data != nullptr)
      memory.map = pieces.take<float>(slice_voxels() * slices_of_groups(slices));
    return memory;
  }

  CubeAxis axis(int size) const { return {size - step_.cube, step_.spacing}; }

  // The references whose groups may touch the range.
  ReferenceRange reaching(int size, const RowRange& made, int radius) const {
    ReferenceRange range{axis(size)};
    int end = range.axis.count();
    while (range.first < end && range.axis.position(range.first) + step_.cube - 1 + radius < made.begin)
      ++range.first;
    while (end > range.first && range.axis.position(end - 1) - radius >= made.end) --end;
    range.count = end - range.first;
    return range;
  }

  void launch_channel(const DeviceStageCall& call, int channel, const Memory& memory) const {
    const ConstSolid noisy = solid_of(call.in[0], channel, settings_.spec.slice);
    const ConstSolid guide = wiener_ ? solid_of(call.in[1], channel, settings_.spec.slice) : noisy;
    const Solid out = solid_of(call.out, channel, settings_.spec.slice);
    const double sigma = settings_.sigma[static_cast<std::size_t>(channel)];
    cudaStream_t stream = cuda::handle(call.stream);
    if (sigma == 0) {
      cuda::check(
          cudaMemcpy2DAsync(out.data, out.slice * sizeof(float),
                            noisy.at(out.box.x.begin, out.box.y.begin, out.box.z.begin),
                            noisy.slice * sizeof(float), slice_voxels() * sizeof(float),
                            static_cast<std::size_t>(out.box.z.count()), cudaMemcpyDeviceToDevice, stream),
          "copying a channel");
      return;
    }
    const References references{reaching(extent_.width, out.box.x, step_.radius),
                                reaching(extent_.height, out.box.y, step_.radius),
                                reaching(extent_.depth, out.box.z, step_.radius_z)};
    find(guide, references, channel, memory, call.stream);
    Sums sums{memory.values, memory.weights, out.box, static_cast<std::ptrdiff_t>(slice_voxels()),
              static_cast<float>(value_units_of_deviation / sigma)};
    const std::size_t bytes = slice_voxels() * out.box.z.count() * sizeof(unsigned long long);
    cuda::check(cudaMemsetAsync(sums.values, 0, bytes, stream), "clearing sums");
    cuda::check(cudaMemsetAsync(sums.weights, 0, bytes, stream), "clearing sums");
    ConstSolid map;
    if (settings_.sigma_map.data != nullptr) map = upload_map(noisy.box, out.box.z, channel, memory, stream);
    filter(noisy, guide, references, sigma, map, sums, memory, call.stream);
    constexpr int threads = 256;
    const dim3 grid(cuda::blocks_for(static_cast<int>(slice_voxels()), threads), out.box.z.count());
    cuda::launch(divide, grid, threads, 0, call.stream, sums, out);
  }

  // The map lies in host memory: the slices that groups lie in are uploaded.
  ConstSolid upload_map(const Box& held, const RowRange& made, int channel, const Memory& memory,
                        cudaStream_t stream) const {
    const int reach = step_.reach(step_.radius_z);
    Box box = held;
    box.z = {std::max(0, made.begin - reach), std::min(extent_.depth, made.end + reach)};
    std::vector<float> deviations(slice_voxels() * static_cast<std::size_t>(box.z.count()));
    const ConstImageView& map = settings_.sigma_map;
    std::size_t to = 0;
    for (int z = box.z.begin; z < box.z.end; ++z) {
      for (int y = box.y.begin; y < box.y.end; ++y, to += static_cast<std::size_t>(box.x.count())) {
        load_row(columns_of(map, y * extent_.width + box.x.begin, box.x.count()), z,
                 map.spec.channels == 1 ? 0 : channel, deviations.data() + to);
      }
    }
    // From pageable memory: the call returns after the memory was read.
    cuda::check(cudaMemcpyAsync(memory.map, deviations.data(), deviations.size() * sizeof(float),
                                cudaMemcpyHostToDevice, stream),
                "uploading a sigma map");
    return {memory.map, box, box.x.count(), static_cast<std::ptrdiff_t>(slice_voxels())};
  }

  void find(const ConstSolid& guide, const References& references, int channel, const Memory& memory,
            Stream stream) const {
    const MatchShape shape(step_);
    const MatchCall match{
        guide,         extent_,      step_,      references,  compared_scale(settings_, channel),
        memory.places, memory.sizes, shape.line, shape.slice, shape.candidates};
    const dim3 grid(cuda::blocks_for(references.x.count, block_side),
                    cuda::blocks_for(references.y.count, block_side),
                    cuda::blocks_for(references.z.count, block_side));
    cuda::launch(step_.cube == 4 ? find_groups<4> : find_groups<5>, grid, shape.warps * warp, shape.shared(),
                 stream, match);
  }

  void filter(const ConstSolid& noisy, const ConstSolid& guide, const References& references, double sigma,
              const ConstSolid& map, const Sums& sums, const Memory& memory, Stream stream) const {
    FilterCallOnGpu call{
        noisy,
        guide,
        step_,
        references,
        memory.places,
        memory.sizes,
        static_cast<float>(map.data != nullptr ? settings_.lambda : settings_.lambda * sigma),
        static_cast<float>(map.data != nullptr ? least_variance_share * sigma * sigma : sigma * sigma),
        map,
        sums,
        {},
        {},
        deviations_.empty(),
        {}};
    std::copy(transform_.begin(), transform_.end(), call.transform);
    std::copy(window_.begin(), window_.end(), call.window);
    std::copy(deviations_.begin(), deviations_.end(), call.deviations);
    const int cube_floats = step_.cube == 4 ? CoefficientLayout<4>::cube : CoefficientLayout<5>::cube;
    const std::size_t shared = sizeof(float) * filter_warps * (wiener_ ? 2 : 1) *
                               static_cast<std::size_t>(step_.group) * cube_floats;
    const auto blocks = static_cast<unsigned>((references.count() + filter_warps - 1) / filter_warps);
    auto* kernel = step_.cube == 4 ? (wiener_ ? filter_groups<4, true> : filter_groups<4, false>)
                                   : (wiener_ ? filter_groups<5, true> : filter_groups<5, false>);
    cuda::launch(kernel, blocks, filter_warps * warp, shared, stream, call);
  }

  Bm4dSettings settings_;
  Bm4dStep step_;
  bool wiener_;
  SolidExtent extent_;
  std::vector<double> transform_;
  std::vector<double> window_;
  std::vector<double> deviations_;  // of coefficients; empty: white noise
};

}  // namespace

Pipeline bm4d_cuda(const Bm4dParams& params, const ImageSpec& spec) {
  const Bm4dSettings settings = bm4d_settings(params, spec);
  if (is_identity(settings)) return {};
  Pipeline pipeline = bm4d_stages(settings);
  for (std::size_t index = 0; index < pipeline.stages.size(); ++index) {
    const auto step = std::make_shared<const CudaStep>(settings, index > 0);
    pipeline.stages[index].scratch_for = [step](int slices) { return step->scratch(slices); };
    pipeline.stages[index].launch = [step](const DeviceStageCall& call) { step->launch(call); };
  }
  return pipeline;
}

}  // namespace ungrain
