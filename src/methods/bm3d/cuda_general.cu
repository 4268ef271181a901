// Any settings on a GPU, in float: what the fast kernel does not take, and the groups that it leaves.
//
//   grid     block b takes groups b, b + blocks, b + 2 blocks ...
//   block    one group at a time, 256 threads; in shared memory, or in the block's part of the scratch:
//            patches | spare | pilot (step 2) | variances (where coefficients have their own)
//            each [patch of the group][y][x], float or complex
//   thread   one number of a pass at a time; the block waits after each pass
//
//   basic -> 2-D transforms -> along the group -> pilot                                        (step 2)
//   noisy -> 2-D transforms -> along the group -> threshold or Wiener -> back along the group -> 2-D back
//         -> times weight and window, whole numbers -> the call's 64-bit sums, global atomics
//
// The search of this file has one block a reference: a thread computes a candidate's distance at a time into
// shared memory, and the block takes out the smallest again and again.
#include <algorithm>
#include <cmath>
#include <complex>

#include "cuda/launch.cuh"
#include "methods/bm3d/cuda_filter.h"
#include "methods/bm3d/transforms.h"

namespace ungrain::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr std::size_t most_shared_bytes = 99 * 1024;
constexpr std::size_t most_workspace_bytes = std::size_t{256} << 20U;
constexpr int most_blocks = 1056;
// Bound of an estimate times its weight, in the sums' units: a pixel has fewer than 2^14 of them in any
// profile.
constexpr float largest_sum = 0x1p48F;

struct Complex {
  float re;
  float im;
};
__device__ inline Complex zero_of(const Complex&) { return {0, 0}; }
__device__ inline float zero_of(float) { return 0; }
__device__ inline float product_sum(float a, float b, float sum) { return fmaf(a, b, sum); }
__device__ inline Complex product_sum(const Complex& a, const Complex& b, const Complex& sum) {
  return {fmaf(a.re, b.re, fmaf(-a.im, b.im, sum.re)), fmaf(a.re, b.im, fmaf(a.im, b.re, sum.im))};
}
__device__ inline float norm(float a) { return a * a; }
__device__ inline float norm(const Complex& a) { return fmaf(a.re, a.re, a.im * a.im); }
__device__ inline float real_product(float a, float b) { return a * b; }  // of a and the conjugate of b
__device__ inline float real_product(const Complex& a, const Complex& b) {
  return fmaf(a.re, b.re, a.im * b.im);
}
__device__ inline float scaled(float a, float by) { return a * by; }
__device__ inline Complex scaled(const Complex& a, float by) { return {a.re * by, a.im * by}; }
__device__ inline float real_part(float a) { return a; }
__device__ inline float real_part(const Complex& a) { return a.re; }
__device__ inline void set_real(float& to, float value) { to = value; }
__device__ inline void set_real(Complex& to, float value) { to = {value, 0}; }

// Calls f(item) for all items, spread over the block, and synchronises the block.
template <class Work>
__device__ void for_each(int items, Work work) {
  for (int item = static_cast<int>(threadIdx.x); item < items; item += threads) work(item);
  __syncthreads();
}

// Sums over the block in a fixed order.
__device__ inline double sum_over_block(double value, double* room) {
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(0xffffffffU, value, apart);
  if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = value;
  __syncthreads();
  double sum = 0;
  for (int warp = 0; warp < warps; ++warp) sum += room[warp];
  __syncthreads();
  return sum;
}

// `size` patches of coefficients, [patch][y][x].
template <class Value>
struct Transforms {
  const Bm3dGeneralShape& shape;
  const float* table;
  int size;

  __device__ const Value* matrix(int at) const { return reinterpret_cast<const Value*>(table + at); }

  __device__ void forward_patches(Value* patches, Value* spare) const {
    for (int level = 0; level < shape.level_count; ++level)
      apply(matrix(shape.levels[level].forward), shape.levels[level].side, patches, spare);
  }
  __device__ void inverse_patches(Value* patches, Value* spare) const {
    for (int level = shape.level_count - 1; level >= 0; --level)
      apply(matrix(shape.levels[level].inverse), shape.levels[level].side, patches, spare);
  }

  // Down the columns of the first side x side coefficients, then along their rows.
  __device__ void apply(const Value* m, int side, Value* patches, Value* spare) const {
    const int k = shape.patch;
    for_each(size * side * side, [&](int item) {
      const int x = item % side;
      const int f = item / side % side;
      const int n = item / (side * side);
      const Value* const from = patches + n * k * k + x;
      Value sum = zero_of(Value{});
      for (int y = 0; y < side; ++y) sum = product_sum(m[f * side + y], from[y * k], sum);
      spare[n * k * k + f * k + x] = sum;
    });
    for_each(size * side * side, [&](int item) {
      const int f = item % side;
      const int y = item / side % side;
      const int n = item / (side * side);
      const Value* const from = spare + n * k * k + y * k;
      Value sum = zero_of(Value{});
      for (int x = 0; x < side; ++x) sum = product_sum(m[f * side + x], from[x], sum);
      patches[n * k * k + y * k + f] = sum;
    });
  }

  __device__ void along(const Value* m, const Value* from, Value* to) const {
    const int count = shape.patch * shape.patch;
    for_each(size * count, [&](int item) {
      const int c = item % count;
      const int f = item / count;
      Value sum = zero_of(Value{});
      for (int n = 0; n < size; ++n) sum = product_sum(m[f * size + n], from[n * count + c], sum);
      to[item] = sum;
    });
  }

  // Turns variances of pixels into those of coefficients, in `variances`.
  __device__ void variances_of(float* variances, float* spare, float* columns) const {
    const int k = shape.patch;
    for (int level = 0; level < shape.level_count; ++level) {
      const int side = shape.levels[level].side;
      const float* const squares = table + shape.levels[level].squares;
      for_each(size * side * k, [&](int item) {
        const int x = item % k;
        const int f = item / k % side;
        const int n = item / (side * k);
        float sum = 0;
        for (int y = 0; y < k; ++y) sum = fmaf(squares[f * k + y], variances[n * k * k + y * k + x], sum);
        columns[n * k * k + f * k + x] = sum;
      });
      // Each level overwrites the low-low corner of the previous level.
      for_each(size * side * side, [&](int item) {
        const int f = item % side;
        const int y = item / side % side;
        const int n = item / (side * side);
        float sum = 0;
        for (int x = 0; x < k; ++x) sum = fmaf(columns[n * k * k + y * k + x], squares[f * k + x], sum);
        spare[n * k * k + y * k + f] = sum;
      });
    }
    const Value* const m = matrix(shape.group_forward[size]);
    for_each(size * k * k, [&](int item) {
      const int c = item % (k * k);
      const int f = item / (k * k);
      float sum = 0;
      for (int n = 0; n < size; ++n) sum = fmaf(norm(m[f * size + n]), spare[n * k * k + c], sum);
      variances[item] = sum;
    });
  }
};

// The patches of a group of one plane.
struct Places {
  const Bm3dFilterCall& call;
  std::size_t reference;
  int x;  // of the reference
  int y;

  __device__ Places(const Bm3dFilterCall& filter, unsigned index) : call(filter), reference(index) {
    const ReferenceGrid& grid = filter.grid;
    x = min((grid.first_i + static_cast<int>(index) % grid.count_i) * grid.spacing, grid.last_x);
    y = min((grid.first_j + static_cast<int>(index) / grid.count_i) * grid.spacing, grid.last_y);
  }
  __device__ int column(int n) const { return x + call.offsets[2 * (reference * call.count + n)]; }
  __device__ int row(int n) const { return y + call.offsets[2 * (reference * call.count + n) + 1]; }
};

template <class Value>
__device__ void load_patches(const ConstPlanes& planes, int plane, const Places& places, int size, int k,
                             Value* to) {
  for_each(size * k * k, [&](int item) {
    const int n = item / (k * k);
    const int x = places.column(n) + item % k;
    const int y = places.row(n) + item / k % k;
    set_real(to[item], planes.at(plane, x, y));
  });
}

// Computes the variances of a group's coefficients if its patches share noise: a thread sums all pairs of
// patches for one coefficient. Most of a Haar transform's numbers are 0 and are skipped.
template <class Value>
__device__ void find_variances(const Bm3dCommonNoise& common, const Transforms<Value>& transforms,
                               const Places& places, float of_level, float* variances) {
  constexpr int coefficients = 64;
  const int size = transforms.size;
  const int row_length = 2 * common.reach_x + 1;
  const Value* const matrix = transforms.matrix(transforms.shape.group_forward[size]);
  for_each(size * coefficients, [&](int item) {
    const int c = item % coefficients;
    const Value* const row = matrix + item / coefficients * size;
    float sum = 0;
    for (int m = 0; m < size; ++m) {
      const Value of_m = row[m];
      if (norm(of_m) == 0) continue;
      const int x = places.column(m);
      const int y = places.row(m);
      for (int n = 0; n <= m; ++n) {
        const float weight = real_product(of_m, row[n]) * (n == m ? 1 : 2);
        const int down = y - places.row(n);
        const int sign = down < 0 ? -1 : 1;
        const int dx = sign * (x - places.column(n));
        const int dy = sign * down;
        if (weight == 0 || dy > common.reach_y || abs(dx) > common.reach_x) continue;
        sum = fmaf(weight, common.values[(dy * row_length + dx + common.reach_x) * coefficients + c], sum);
      }
    }
    variances[item] = of_level * fmaxf(sum, static_cast<float>(least_share));
  });
}

// Device version of weight_of_varying().
__device__ inline double weight_by_variance(double left, double one, double mean) {
  constexpr double most = 1024;
  const double variance = left > one ? left : one;
  return variance * most > mean ? mean / variance : most;
}

template <class Value>
__device__ void filter_group(const Bm3dGeneralCall& call, int plane, unsigned reference, Value* memory,
                             double* room) {
  const Bm3dFilterCall& filter = call.filter;
  const Bm3dGeneralShape& shape = call.shape;
  const int k = shape.patch;
  const Places places(filter, reference);
  const int found = min(static_cast<int>(filter.found[reference]), min(filter.count, shape.most));
  const int size = shape.any_size ? found : 1 << (31 - __clz(found));
  const Transforms<Value> transforms{shape, call.table, size};
  const std::size_t room_of_group = static_cast<std::size_t>(shape.most) * k * k;
  Value* const patches = memory;
  Value* const spare = memory + room_of_group;
  Value* next = memory + 2 * room_of_group;
  const bool wiener = filter.basic.data != nullptr;
  const bool varies = call.variance.data != nullptr;
  const int count = size * k * k;

  Value* const pilot = next;
  if (wiener) {
    next += room_of_group;
    load_patches(filter.basic, plane, places, size, k, patches);
    transforms.forward_patches(patches, spare);
    transforms.along(transforms.matrix(shape.group_forward[size]), patches, pilot);
  }
  auto* const variances = reinterpret_cast<float*>(next);
  if (varies) {
    load_patches(call.variance, plane, places, size, k, variances);
    transforms.variances_of(variances, reinterpret_cast<float*>(spare), reinterpret_cast<float*>(patches));
  }
  load_patches(filter.noisy, plane, places, size, k, patches);
  transforms.forward_patches(patches, spare);
  transforms.along(transforms.matrix(shape.group_forward[size]), patches, spare);

  const float sigma = filter.sigma[plane];
  const bool by_model = filter.noise.shares != nullptr;
  float strength = filter.strength * filter.strength;
  float everywhere = sigma * sigma;
  const float* shares = nullptr;
  if (by_model) {
    const std::size_t references = static_cast<std::size_t>(filter.references());
    const float deviation = filter.noise.deviations[plane * references + reference];
    strength *= filter.noise.strength[plane] * filter.noise.strength[plane];
    everywhere *= deviation * deviation;
    shares = filter.noise.shares + plane * k * k;
  }
  const bool exact = by_model && filter.noise.common[plane].values != nullptr;
  if (exact) find_variances(filter.noise.common[plane], transforms, places, everywhere, variances);
  double factors = 0;
  double left = 0;
  double all = 0;
  for_each(count, [&](int item) {
    const float variance = varies || exact ? variances[item]
                           : by_model      ? everywhere * shares[item % (k * k)]
                                           : everywhere;
    float factor = 1;
    float lost = 0;
    if (wiener) {
      const float signal = norm(pilot[item]);
      const float both = signal + strength * variance;
      if (both > 0) {
        factor = isinf(both) ? 1.0F : signal / both;
        lost = isinf(both) ? 0.0F : strength * variance / both;
      }
    } else if (!(norm(spare[item]) > strength * variance) && !(by_model && item == 0)) {
      factor = 0;
      lost = 1;
    }
    spare[item] = scaled(spare[item], call.only_left ? lost : factor);
    factors += static_cast<double>(factor) * factor;
    left += static_cast<double>(factor) * factor * variance;
    all += variance;
  });
  double weight = 0;
  if (varies || by_model) {
    left = sum_over_block(left, room);
    all = sum_over_block(all, room);
    weight = weight_by_variance(left, all / count, static_cast<double>(sigma) * sigma);
  } else {
    weight = 1 / fmax(sum_over_block(factors, room), 1.0);
  }
  transforms.along(transforms.matrix(shape.group_inverse[size]), spare, patches);
  transforms.inverse_patches(patches, spare);

  // All kernels round weights to the same steps, because the fast kernel's have few bits.
  const Bm3dSums& sums = filter.sums;
  const long long steps = max(1LL, __double2ll_rn(weight * sums.weight_steps));
  const double rounded_weight = static_cast<double>(steps) / sums.weight_steps;
  const float unit = call.only_left ? 1 / sigma : call.value_scale;
  const Rect weight_rect = sums.weight_rect();
  for_each(count, [&](int item) {
    const int n = item / (k * k);
    const int column = item % k;
    const int row = item / k % k;
    const int x = places.column(n) + column;
    const int y = places.row(n) + row;
    if (column == 0 && row == 0 && Bm3dSums::holds(weight_rect, x, y)) {
      atomicAdd(&sums.weights[Bm3dSums::index(weight_rect, plane, x, y)],
                static_cast<unsigned long long>(steps));
    }
    if (!Bm3dSums::holds(sums.rect, x, y)) return;
    const float scale =
        static_cast<float>(rounded_weight) * filter.window[row] * filter.window[column] * sums.value_steps;
    const float value = real_part(patches[item]) * unit * scale;
    // fmaxf() returns the other number if one is NaN.
    const long long fixed = __float2ll_rn(fminf(fmaxf(value, -largest_sum), largest_sum));
    atomicAdd(&sums.values[Bm3dSums::index(sums.rect, plane, x, y)], static_cast<unsigned long long>(fixed));
  });
}

template <class Value>
__global__ void __launch_bounds__(threads) general_kernel(const __grid_constant__ Bm3dGeneralCall call) {
  extern __shared__ double2 general_shared[];
  __shared__ double room[warps];
  Value* const memory = call.workspace != nullptr
                            ? reinterpret_cast<Value*>(call.workspace + blockIdx.x * call.workspace_floats)
                            : reinterpret_cast<Value*>(general_shared);
  const auto references = static_cast<unsigned>(call.filter.references());
  const unsigned groups =
      call.only_left ? call.filter.left_over[0] : references * static_cast<unsigned>(call.filter.planes);
  for (unsigned item = blockIdx.x; item < groups; item += gridDim.x) {
    const unsigned group = call.only_left ? call.filter.left_over[1 + item] : item;
    filter_group(call, call.filter.first_plane + static_cast<int>(group / references), group % references,
                 memory, room);
  }
}

// ---- The search

// The compared values: a patch's pixels, or planes of coefficients.
struct ComparedValues {
  const float* source;
  std::ptrdiff_t row;  // distance from a place to the one below
  int parts_across;    // pixels: the patch's side; coefficients: 1
  int parts_down;
  std::ptrdiff_t part_down;

  __device__ float at(std::ptrdiff_t place, int across, int down) const {
    return source[place + down * part_down + across];
  }
};

template <class Value>
__global__ void __launch_bounds__(threads) compared_kernel(const __grid_constant__ Bm3dGeneralMatch call) {
  extern __shared__ double2 general_shared[];
  const int k = call.shape.patch;
  auto* const patches = reinterpret_cast<Value*>(general_shared);
  Value* const spare = patches + k * k;
  const Rect& rect = call.match.plane.rect;
  const int columns = rect.width() - k + 1;
  const int rows = rect.height() - k + 1;
  const Transforms<Value> transforms{call.shape, call.table, 1};
  const std::size_t plane = static_cast<std::size_t>(rect.width()) * rect.height();
  for (int place = static_cast<int>(blockIdx.x); place < columns * rows; place += gridDim.x) {
    const int x = place % columns;
    const int y = place / columns;
    for_each(k * k, [&](int item) {
      set_real(patches[item], call.match.plane.at(0, rect.x0 + x + item % k, rect.y0 + y + item / k));
    });
    transforms.forward_patches(patches, spare);
    float* const to = call.compared + static_cast<std::size_t>(y) * rect.width() + x;
    for_each(k * k, [&](int item) {
      const bool keep = norm(patches[item]) > call.threshold * call.threshold;
      const auto* const numbers = reinterpret_cast<const float*>(patches + item);
      constexpr int each = sizeof(Value) / sizeof(float);
      for (int i = 0; i < each; ++i)
        to[static_cast<std::size_t>(each * item + i) * plane] = keep ? numbers[i] : 0.0F;
    });
  }
}

__device__ inline unsigned long long smallest_over_block(unsigned long long key, unsigned long long* room) {
  for (int apart = 16; apart > 0; apart /= 2) key = min(key, __shfl_xor_sync(0xffffffffU, key, apart));
  if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = key;
  __syncthreads();
  for (int warp = 0; warp < warps; ++warp) key = min(key, room[warp]);
  __syncthreads();
  return key;
}

// Key of an excluded candidate; bits of distances are ordered as distances are.
constexpr unsigned no_candidate = ~0U;

// Extracts the candidates in order of distance, ties in reading order.
__device__ int take_smallest(unsigned* distances, int search, int wanted, std::int8_t* offsets,
                             unsigned long long* room) {
  constexpr unsigned long long no_key = ~0ULL;
  const int candidates = search * search;
  const int reach = search / 2;
  const auto key_of = [&](int c) {
    const int dx = c % search - reach;
    const int dy = c / search - reach;
    return static_cast<unsigned long long>(distances[c]) << 32U |
           static_cast<unsigned long long>(dy + 128) << 8U | static_cast<unsigned long long>(dx + 128);
  };
  int found = 1;
  for (; found < wanted; ++found) {
    unsigned long long smallest = no_key;
    for (int c = static_cast<int>(threadIdx.x); c < candidates; c += threads) {
      if (distances[c] != no_candidate) smallest = min(smallest, key_of(c));
    }
    smallest = smallest_over_block(smallest, room);
    if (smallest == no_key) break;
    for_each(candidates, [&](int c) {
      if (key_of(c) == smallest) distances[c] = no_candidate;
    });
    if (threadIdx.x == 0) {
      offsets[2 * found] = static_cast<std::int8_t>(static_cast<int>(smallest & 0xffU) - 128);
      offsets[2 * found + 1] = static_cast<std::int8_t>(static_cast<int>((smallest >> 8U) & 0xffU) - 128);
    }
  }
  return found;
}

__global__ void __launch_bounds__(threads) match_kernel(const __grid_constant__ GroupMatchCall call,
                                                        const __grid_constant__ ComparedValues compared) {
  extern __shared__ unsigned distances[];
  __shared__ unsigned long long room[warps];
  const ReferenceGrid& grid = call.grid;
  const int reach = call.search / 2;
  const int index = static_cast<int>(blockIdx.x);
  const int x = min((grid.first_i + index % grid.count_i) * grid.spacing, grid.last_x);
  const int y = min((grid.first_j + index / grid.count_i) * grid.spacing, grid.last_y);
  const int candidates = call.search * call.search;
  const Rect& rect = call.plane.rect;
  const auto place_of = [&](int px, int py) {
    return static_cast<std::ptrdiff_t>(py - rect.y0) * compared.row + (px - rect.x0);
  };
  for_each(candidates, [&](int c) {
    const int dx = c % call.search - reach;
    const int dy = c / call.search - reach;
    const bool there =
        x + dx >= 0 && x + dx <= grid.last_x && y + dy >= 0 && y + dy <= grid.last_y && (dx != 0 || dy != 0);
    distances[c] = no_candidate;
    if (!there) return;
    const std::ptrdiff_t own = place_of(x, y);
    const std::ptrdiff_t other = place_of(x + dx, y + dy);
    float sum = 0;
    for (int down = 0; down < compared.parts_down; ++down) {
      for (int across = 0; across < compared.parts_across; ++across) {
        const float d = compared.at(own, across, down) - compared.at(other, across, down);
        sum = fmaf(d, d, sum);
      }
    }
    if (call.corrections != nullptr) sum += call.corrections[c];
    if (sum <= call.max_distance) distances[c] = __float_as_uint(sum);
  });
  std::int8_t* const offsets = call.offsets + 2 * static_cast<std::size_t>(index) * call.count;
  for_each(2 * call.count, [&](int i) { offsets[i] = 0; });
  const int found = take_smallest(distances, call.search, call.count, offsets, room);
  if (threadIdx.x == 0) call.found[index] = static_cast<std::uint8_t>(found);
}

}  // namespace

Bm3dGeneral bm3d_general_filter(const Bm3dStep& step, bool wiener, bool variances) {
  Bm3dGeneral general;
  Bm3dGeneralShape& shape = general.shape;
  shape.patch = step.patch;
  shape.most = step.group;
  shape.any_size = step.along == GroupTransform::dct || step.along == GroupTransform::dft;
  shape.complex = step.transform == PatchTransform::dft || step.along == GroupTransform::dft;
  const auto append = [&](const TransformMatrix& matrix) {
    const int at = static_cast<int>(general.table.size());
    for (const std::complex<double>& value : matrix.values) {
      general.table.push_back(static_cast<float>(value.real()));
      if (shape.complex) general.table.push_back(static_cast<float>(value.imag()));
    }
    // Complex numbers are stored at even offsets.
    if (general.table.size() % 2 != 0) general.table.push_back(0);
    return at;
  };
  // Row f of `so_far`: the composition of coefficient f up to this level.
  TransformMatrix so_far(step.patch);
  for (int i = 0; i < step.patch; ++i) so_far.at(i, i) = 1;
  for (const TransformPair& pair : patch_transform(step.transform, step.patch)) {
    Bm3dGeneralShape::Level& level = shape.levels[shape.level_count++];
    level.side = pair.forward.side;
    level.forward = append(pair.forward);
    level.inverse = append(pair.inverse);
    TransformMatrix next = so_far;
    for (int f = 0; f < level.side; ++f) {
      for (int x = 0; x < step.patch; ++x) {
        std::complex<double> sum = 0;
        for (int i = 0; i < level.side; ++i) sum += pair.forward.at(f, i) * so_far.at(i, x);
        next.at(f, x) = sum;
      }
    }
    so_far = next;
    level.squares = static_cast<int>(general.table.size());
    for (int f = 0; f < level.side; ++f) {
      for (int x = 0; x < step.patch; ++x)
        general.table.push_back(static_cast<float>(std::norm(so_far.at(f, x))));
    }
    if (general.table.size() % 2 != 0) general.table.push_back(0);
  }
  for (int size = 1; size <= step.group; size = shape.any_size ? size + 1 : 2 * size) {
    const TransformPair pair = group_transform(step.along, size);
    shape.group_forward[size] = append(pair.forward);
    shape.group_inverse[size] = append(pair.inverse);
  }

  const std::size_t group = static_cast<std::size_t>(step.group) * step.patch * step.patch;
  const std::size_t floats = group * (shape.complex ? 2 : 1) * (wiener ? 3 : 2) + (variances ? group : 0);
  general.blocks = most_blocks;
  if (floats * sizeof(float) <= most_shared_bytes) {
    general.shared_bytes = floats * sizeof(float);
  } else {
    general.workspace = (floats + 63) / 64 * 64;
    const std::size_t fit = most_workspace_bytes / (general.workspace * sizeof(float));
    general.blocks = static_cast<int>(std::clamp<std::size_t>(fit, 16, most_blocks));
  }
  return general;
}

void launch_bm3d_general(const Bm3dGeneral& general, const Bm3dGeneralCall& call, Stream stream) {
  launch(general.shape.complex ? general_kernel<Complex> : general_kernel<float>,
         dim3(static_cast<unsigned>(general.blocks)), dim3(threads), general.shared_bytes, stream, call);
}

std::size_t bm3d_compared_floats(const Bm3dGeneralShape& shape, int columns, int rows) {
  return static_cast<std::size_t>(shape.complex ? 2 : 1) * shape.patch * shape.patch * columns * rows;
}

void launch_bm3d_general_match(const Bm3dGeneralMatch& call, Stream stream) {
  const Rect& rect = call.match.plane.rect;
  const int k = call.match.patch;
  ComparedValues compared{call.match.plane.data, call.match.plane.row_stride, k, k,
                          call.match.plane.row_stride};
  if (call.threshold >= 0) {
    const std::size_t shared = 2 * sizeof(float) * (call.shape.complex ? 2 : 1) * k * k;
    launch(call.shape.complex ? compared_kernel<Complex> : compared_kernel<float>, dim3(4 * most_blocks),
           dim3(threads), shared, stream, call);
    const std::ptrdiff_t plane = static_cast<std::ptrdiff_t>(rect.width()) * rect.height();
    compared = {call.compared, rect.width(), 1, k * k * (call.shape.complex ? 2 : 1), plane};
  }
  const std::size_t distances =
      sizeof(unsigned) * static_cast<std::size_t>(call.match.search) * call.match.search;
  const int references = call.match.grid.count_i * call.match.grid.count_j;
  launch(match_kernel, dim3(static_cast<unsigned>(references)), dim3(threads), distances, stream, call.match,
         compared);
}

}  // namespace ungrain::cuda
