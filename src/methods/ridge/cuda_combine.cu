// Combines groups of 6 x 6 patches: a warp takes a group at a time, by itself. README.md has the formulas.
//
//   X and Z, gathered and centred            shared memory: rows of 36 pixels, one for each patch
//   X^T X + d                                tensor cores
//   its factor L                             four columns at a time, a row for each lane
//   W = X L^-T                               four columns at a time, a patch or two for each lane
//   W^T W, then rows of W (W^T W) times W    tensor cores -> the noise left, weights
//   P = W^T Z, then W P - Z                  tensor cores
//   these, times weights                     added to integer sums in GPU memory
//
// The code is kept short: unrolled it exceeds the instruction cache, and warps wait for it (LOG.md).
// Rows of 36 floats: fours of them, one row for each lane, hit all banks, and so do the products' rows.
// Columns beyond 36 are the next row's: what is computed of them is not used.
#include "cuda/products.cuh"
#include "methods/ridge/cuda_group.cuh"

namespace ungrain::cuda {

void launch_ridge_combine_any(const RidgeCombineCall& call, Stream stream);

namespace {

constexpr int side = 6;
constexpr int pixels = side * side;
constexpr int first_pixels = warp_size;  // of a patch: a lane each
constexpr int other_pixels = pixels - first_pixels;
constexpr int fours = pixels / 4;
constexpr int column_tiles = 5;  // of 8: pixels
constexpr int row_tiles = 3;     // of 16
constexpr int matrix_rows = 40;  // whole steps of a product
constexpr int matrix_floats = matrix_rows * pixels + 8;

// Of a block: what the shared memory of a multiprocessor of compute capability 9.0 has room for.
constexpr int most_warps(int tiles) { return tiles == 3 ? 11 : 9; }

extern __shared__ float4 shared_fours[];

// A place in shared memory. The compiler does not know that a pointer lies there where it crosses a call.
__device__ float* shared_at(int place) { return reinterpret_cast<float*>(shared_fours) + place; }

// A warp's part of shared memory, and where it begins. Tiles: of 16 patches.
template <int Tiles>
struct Memory {
  static constexpr int patches = 16 * Tiles;
  static constexpr int matrix = patches * pixels;
  static constexpr int floats = 2 * matrix + matrix_floats + 2 * patches;

  int start;

  __device__ float* guide() const { return shared_at(start); }            // X, then W
  __device__ float* partly() const { return shared_at(start + matrix); }  // Z, then differences
  // X^T X, then its factor, then W^T W, then P
  __device__ float* square() const { return shared_at(start + 2 * matrix); }
  // Of the patches' precisions.
  __device__ float* roots() const { return shared_at(start + 2 * matrix + matrix_floats); }
  __device__ float* weights() const { return shared_at(start + 2 * matrix + matrix_floats + patches); }
};

__device__ float4 four_of(const float* row, int four) { return reinterpret_cast<const float4*>(row)[four]; }

// The group's patches less their mean, with the patches' precisions as weights, and each multiplied with the
// root of its precision. The mean is taken of differences from the reference: of equal patches it is exact.
// `from`: the reference; `places`: of the lane's patches, from there.
template <int Tiles, bool Weighted>
__device__ void gather_centred(const float* from, int pitch, const int (&places)[most_of_lane],
                               const Group& group, const float* roots, float* to) {
  constexpr int patches = Memory<Tiles>::patches;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int count = group.count;
  const float share = 1 / group.all_precisions;
  const float* own = from + lane / side * pitch + lane % side;
  asm("" : "+l"(own));  // or the compiler adds up indices first, with twice the instructions
  // Of patches beyond the last all differences are 0: their places are the reference's.
  float values[patches];
#pragma unroll
  for (int i = 0; i < patches; ++i)
    values[i] = __ldg(own + __shfl_sync(all_lanes, places[i / warp_size], i % warp_size));
  // Four patches' other pixels in each of 8 lanes.
  const int pixel = first_pixels + lane % other_pixels;
  const float* const other_own = from + pixel / side * pitch + pixel % side;
  float others[2 * Tiles];
#pragma unroll
  for (int i = 0; i < 2 * Tiles; ++i) {
    const int patch = 8 * i + lane / other_pixels;
    others[i] = __ldg(other_own + __shfl_sync(all_lanes, places[8 * i / warp_size], patch % warp_size));
  }

  const auto weighted = [&](float difference, int patch) {
    return Weighted ? difference * (roots[patch] * roots[patch]) : difference;
  };
  constexpr int chains = 4;  // of additions that do not wait for each other
  float sums[chains] = {};
#pragma unroll
  for (int i = patches - 1; i >= 0; --i) {
    values[i] -= values[0];
    sums[i % chains] += weighted(values[i], i);
  }
  const float mean = ((sums[0] + sums[1]) + (sums[2] + sums[3])) * share;
  float largest = fabsf(mean);
#pragma unroll
  for (int i = 0; i < patches; ++i) {
    const float difference = values[i] - mean;
    largest = fmaxf(largest, fabsf(difference));
    to[i * pixels + lane] = Weighted ? difference * roots[i] : difference;
  }

  const float first = __shfl_sync(all_lanes, others[0], lane % other_pixels);
  float other_mean = 0;
#pragma unroll
  for (int i = 0; i < 2 * Tiles; ++i) {
    others[i] -= first;
    other_mean += weighted(others[i], 8 * i + lane / other_pixels);
  }
#pragma unroll
  for (int apart = other_pixels; apart < warp_size; apart *= 2)
    other_mean += __shfl_xor_sync(all_lanes, other_mean, apart);
  other_mean *= share;
  largest = fmaxf(largest, fabsf(other_mean));
#pragma unroll
  for (int i = 0; i < 2 * Tiles; ++i) {
    const int patch = 8 * i + lane / other_pixels;
    const float difference = others[i] - other_mean;
    largest = fmaxf(largest, fabsf(difference));
    to[patch * pixels + pixel] = Weighted ? difference * roots[patch] : difference;
  }
  __syncwarp();
  for (int i = count * pixels + lane; i < patches * pixels; i += warp_size) to[i] = 0;
  if (__any_sync(all_lanes, largest > largest_difference)) {
    for (int i = lane; i < count * pixels; i += warp_size)
      to[i] = fminf(fmaxf(to[i], -largest_difference), largest_difference);
  }
  __syncwarp();
}

// A number of a product, exact or rounded to 11 bits.
struct RoundedFloat {
  float value;
  __device__ explicit RoundedFloat(float from) : value(FloatParts(from).high) {}
};

__device__ void add_product(float (&c)[4], const RoundedFloat& a0, const RoundedFloat& a1,
                            const RoundedFloat& a2, const RoundedFloat& a3, const RoundedFloat& b0,
                            const RoundedFloat& b1) {
  add_product_of_parts(c, a0.value, a1.value, a2.value, a3.value, b0.value, b1.value);
}

// Two numbers of a column of 8: those of rows t and t + 4 at column g.
template <class Number>
struct Column {
  Number upper;
  Number lower;

  __device__ Column(const float* rows)  // the first row, at column g
      : upper(rows[0]), lower(rows[4 * pixels]) {}
};

// The guide's matrix, transposed, times itself: X^T X or W^T W. Rows beyond the last are 0.
template <class Number, int Tiles>
__device__ void fill_square(const Memory<Tiles>& memory) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int g = lane / 4;
  const int t = lane % 4;
  float c[row_tiles][column_tiles][4] = {};
#pragma unroll 1
  for (int k = 0; k < Memory<Tiles>::patches; k += 8) {
    const float* const rows = memory.guide() + (k + t) * pixels + g;
    using Numbers = Column<Number>;
    const Numbers columns[column_tiles] = {Numbers(rows), Numbers(rows + 8), Numbers(rows + 16),
                                           Numbers(rows + 24), Numbers(rows + 32)};
    const Number none(0);
#pragma unroll
    for (int m = 0; m < row_tiles; ++m) {
      const Numbers& left = columns[2 * m];
      const Number& right_upper = m < 2 ? columns[min(2 * m + 1, column_tiles - 1)].upper : none;
      const Number& right_lower = m < 2 ? columns[min(2 * m + 1, column_tiles - 1)].lower : none;
#pragma unroll
      for (int n = 2 * m; n < column_tiles; ++n)
        add_product(c[m][n], left.upper, right_upper, left.lower, right_lower, columns[n].upper,
                    columns[n].lower);
    }
  }
#pragma unroll
  for (int m = 0; m < row_tiles; ++m) {
#pragma unroll
    for (int n = 2 * m; n < column_tiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = 16 * m + g + i / 2 * 8;
        const int column = 8 * n + 2 * t + i % 2;
        if (row <= column && column < pixels) {
          memory.square()[column * pixels + row] = c[m][n][i];
          memory.square()[row * pixels + column] = c[m][n][i];
        }
      }
    }
  }
  for (int i = pixels * pixels + lane; i < matrix_floats; i += warp_size) memory.square()[i] = 0;
  __syncwarp();
}

// Adds the noise, which is at least what float can tell, and returns it.
template <int Tiles>
__device__ float add_noise(const Memory<Tiles>& memory, float noise, float least_noise) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  float* const own = memory.square() + lane * (pixels + 1);
  float* const other = memory.square() + (first_pixels + lane % other_pixels) * (pixels + 1);
  float energy = fmaxf(*own, *other);
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2)
    energy = fmaxf(energy, __shfl_xor_sync(all_lanes, energy, apart));
  const float larger = fmaxf(noise, least_noise * energy);
  __syncwarp();
  *own += larger;
  if (lane < other_pixels) *other += larger;
  __syncwarp();
  return larger;
}

// Four numbers of a row less the products of this row with four others, over the columns before.
__device__ float4 less_products(float4 start, const float* row, const float* others, int end) {
#pragma unroll 1
  for (int q = 0; q < end; ++q) {
    const float4 own = four_of(row, q);
    const float4 by[4] = {four_of(others, q), four_of(others + pixels, q), four_of(others + 2 * pixels, q),
                          four_of(others + 3 * pixels, q)};
    const auto product = [&](const float4& other, float sum) {
      return fmaf(-own.w, other.w, fmaf(-own.z, other.z, fmaf(-own.y, other.y, fmaf(-own.x, other.x, sum))));
    };
    start = make_float4(product(by[0], start.x), product(by[1], start.y), product(by[2], start.z),
                        product(by[3], start.w));
  }
  return start;
}

// Four rows of the factor at their own columns, with 1 over the diagonal.
struct Corner {
  float4 rows[4];

  // From the four rows of the matrix there, less the products of the columns before. No pivot is below the
  // noise, unless rounding makes it so beside pixels that are millions of times as far apart.
  __device__ void factorise(float noise) {
    rows[0].x = rsqrtf(fmaxf(noise, rows[0].x));
    rows[1].x *= rows[0].x;
    rows[2].x *= rows[0].x;
    rows[3].x *= rows[0].x;
    rows[1].y = rsqrtf(fmaxf(noise, fmaf(-rows[1].x, rows[1].x, rows[1].y)));
    rows[2].y = fmaf(-rows[2].x, rows[1].x, rows[2].y) * rows[1].y;
    rows[3].y = fmaf(-rows[3].x, rows[1].x, rows[3].y) * rows[1].y;
    rows[2].z = rsqrtf(fmaxf(noise, fmaf(-rows[2].y, rows[2].y, fmaf(-rows[2].x, rows[2].x, rows[2].z))));
    rows[3].z = fmaf(-rows[3].y, rows[2].y, fmaf(-rows[3].x, rows[2].x, rows[3].z)) * rows[2].z;
    rows[3].w =
        rsqrtf(fmaxf(noise, fmaf(-rows[3].z, rows[3].z,
                                 fmaf(-rows[3].y, rows[3].y, fmaf(-rows[3].x, rows[3].x, rows[3].w)))));
  }

  // Four numbers of a row divided by this corner's transpose.
  __device__ float4 solved(float4 row) const {
    row.x *= rows[0].x;
    row.y = fmaf(-rows[1].x, row.x, row.y) * rows[1].y;
    row.z = fmaf(-rows[2].y, row.y, fmaf(-rows[2].x, row.x, row.z)) * rows[2].z;
    row.w = fmaf(-rows[3].z, row.z, fmaf(-rows[3].y, row.y, fmaf(-rows[3].x, row.x, row.w))) * rows[3].w;
    return row;
  }
};

// The Cholesky factor in place, with 1 over its diagonal. A lane has a row; of the first four columns, which
// have more rows than lanes, some have two.
__device__ void factorise(float* square, float noise) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
#pragma unroll 1
  for (int q = 0; q < fours; ++q) {
    float* const first = square + 4 * q * pixels;  // of the rows
    const bool mine = 4 * q + lane < pixels;
    float* const row = first + (mine ? lane : 0) * pixels;
    const float4 less = less_products(four_of(row, q), row, first, q);
    __syncwarp();
    if (mine) reinterpret_cast<float4*>(row)[q] = less;
    __syncwarp();
    Corner corner;
#pragma unroll
    for (int i = 0; i < 4; ++i) corner.rows[i] = four_of(first + i * pixels, q);
    corner.factorise(noise);
    __syncwarp();
    if (lane < 4) {
      const float4 own = lane == 0   ? corner.rows[0]
                         : lane == 1 ? corner.rows[1]
                         : lane == 2 ? corner.rows[2]
                                     : corner.rows[3];
      reinterpret_cast<float4*>(row)[q] = own;
      if (q == 0) {
        float* const other = row + first_pixels * pixels;
        *reinterpret_cast<float4*>(other) = corner.solved(four_of(other, 0));
      }
    } else if (mine) {
      reinterpret_cast<float4*>(row)[q] = corner.solved(less);
    }
    __syncwarp();
  }
}

// Rows of X become those of W. A lane has one patch, or two.
template <int Tiles>
__device__ void combine(const Memory<Tiles>& memory) {
  constexpr int patches = Memory<Tiles>::patches;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const bool has_other = lane + warp_size < patches;
  float* const row = memory.guide() + lane * pixels;
  float* const other = memory.guide() + (has_other ? lane + warp_size : lane) * pixels;
  float length = 0;
  float other_length = 0;
#pragma unroll 1
  for (int q = 0; q < fours; ++q) {
    const float* const factor = memory.square() + 4 * q * pixels;
    float4 own = four_of(row, q);
    float4 others = four_of(other, q);
#pragma unroll 1
    for (int before = 0; before < q; ++before) {
      const float4 by[4] = {four_of(factor, before), four_of(factor + pixels, before),
                            four_of(factor + 2 * pixels, before), four_of(factor + 3 * pixels, before)};
      const auto less = [&](const float4& w, const float4& from) {
        const auto product = [&](const float4& l, float sum) {
          return fmaf(-w.w, l.w, fmaf(-w.z, l.z, fmaf(-w.y, l.y, fmaf(-w.x, l.x, sum))));
        };
        return make_float4(product(by[0], from.x), product(by[1], from.y), product(by[2], from.z),
                           product(by[3], from.w));
      };
      own = less(four_of(row, before), own);
      others = less(four_of(other, before), others);
    }
    Corner corner;
#pragma unroll
    for (int i = 0; i < 4; ++i) corner.rows[i] = four_of(factor + i * pixels, q);
    own = corner.solved(own);
    others = corner.solved(others);
    __syncwarp();  // without another patch both are the same
    reinterpret_cast<float4*>(row)[q] = own;
    if (has_other) reinterpret_cast<float4*>(other)[q] = others;
    const auto squares = [](const float4& v, float sum) {
      return fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, fmaf(v.x, v.x, sum))));
    };
    length = squares(own, length);
    other_length = squares(others, other_length);
  }
  // At most 1, unless rounding makes it more beside pixels that are millions of times as far apart.
  const auto shorten = [](float* of, float squares) {
    constexpr float rounding = 1.01F;
    if (squares <= rounding) return;
    const float scale = squares < INFINITY ? rsqrtf(squares) : 0.0F;
    for (int i = 0; i < pixels; ++i) of[i] = scale > 0 ? of[i] * scale : 0.0F;
  };
  shorten(row, length);
  if (has_other) shorten(other, other_length);
  __syncwarp();
}

// P = W^T Z, in whole steps of the next product: further rows are 0.
template <int Tiles>
__device__ void fill_product(const Memory<Tiles>& memory) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int g = lane / 4;
  const int t = lane % 4;
  float c[row_tiles][column_tiles][4] = {};
#pragma unroll 1
  for (int k = 0; k < Memory<Tiles>::patches; k += 8) {
    const float* const left = memory.guide() + (k + t) * pixels + g;
    const float* const right = memory.partly() + (k + t) * pixels + g;
    using Numbers = Column<FloatParts>;
    const Numbers columns[column_tiles] = {Numbers(left), Numbers(left + 8), Numbers(left + 16),
                                           Numbers(left + 24), Numbers(left + 32)};
    const FloatParts none(0);
#pragma unroll
    for (int n = 0; n < column_tiles; ++n) {
      const Numbers column(right + 8 * n);
#pragma unroll
      for (int m = 0; m < row_tiles; ++m) {
        const Numbers& first = columns[2 * m];
        const FloatParts& second_upper = m < 2 ? columns[min(2 * m + 1, column_tiles - 1)].upper : none;
        const FloatParts& second_lower = m < 2 ? columns[min(2 * m + 1, column_tiles - 1)].lower : none;
        add_product(c[m][n], first.upper, second_upper, first.lower, second_lower, column.upper,
                    column.lower);
      }
    }
  }
#pragma unroll
  for (int m = 0; m < row_tiles; ++m) {
#pragma unroll
    for (int n = 0; n < column_tiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const int row = 16 * m + g + i / 2 * 8;
        const int column = 8 * n + 2 * t;
        if (row < matrix_rows && column < pixels) {
          const float2 both = row < pixels ? make_float2(c[m][n][i], c[m][n][i + 1]) : make_float2(0, 0);
          *reinterpret_cast<float2*>(memory.square() + row * pixels + column) = both;
        }
      }
    }
  }
  __syncwarp();
}

// W times the square matrix: c[tile][n] are columns 8 n ... 8 n + 7 of 16 patches.
template <class Number, int Tiles>
__device__ void multiply(const Memory<Tiles>& memory, float (&c)[Tiles][column_tiles][4]) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int g = lane / 4;
  const int t = lane % 4;
#pragma unroll 1
  for (int k = 0; k < matrix_rows; k += 8) {
    const float* const right = memory.square() + (k + t) * pixels + g;
    using Numbers = Column<Number>;
    const Numbers columns[column_tiles] = {Numbers(right), Numbers(right + 8), Numbers(right + 16),
                                           Numbers(right + 24), Numbers(right + 32)};
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
      const float* const left = memory.guide() + (16 * tile + g) * pixels + t + k;
      const Number a0(left[0]);
      const Number a1(left[8 * pixels]);
      const Number a2(left[4]);
      const Number a3(left[8 * pixels + 4]);
#pragma unroll
      for (int n = 0; n < column_tiles; ++n)
        add_product(c[tile][n], a0, a1, a2, a3, columns[n].upper, columns[n].lower);
    }
  }
}

// The patches' weights, from the noise left in each: the row of W (W^T W) times that of W. Products of 11
// bits do: an error of a thousandth in a weight moves a mean by less than float can tell.
template <int Tiles, bool Weighted>
__device__ void fill_weights(const Group& group, const Memory<Tiles>& memory) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int g = lane / 4;
  const int t = lane % 4;
  const float least = 1 / static_cast<float>(group.count);
  float c[Tiles][column_tiles][4] = {};
  multiply<RoundedFloat>(memory, c);
#pragma unroll
  for (int i = 0; i < 2 * Tiles; ++i) {
    const int patch = 8 * i + g;
    float left = 0;
#pragma unroll
    for (int n = 0; n < column_tiles; ++n) {
      const int pixel = 8 * n + 2 * t;
      if (pixel >= pixels) continue;
      const float2 w = *reinterpret_cast<const float2*>(memory.guide() + patch * pixels + pixel);
      const float(&own)[4] = c[i / 2][n];
      left = fmaf(w.y, own[i % 2 * 2 + 1], fmaf(w.x, own[i % 2 * 2], left));
    }
    left += __shfl_xor_sync(all_lanes, left, 1);
    left += __shfl_xor_sync(all_lanes, left, 2);
    if (Weighted) left /= memory.roots()[patch] * memory.roots()[patch];
    if (t == 0) memory.weights()[patch] = group.weight / fmaxf(least, 1 / group.all_precisions + left);
  }
  __syncwarp();
}

// (W P - Z) times the patches' weights, in place of Z. Returns the largest magnitude.
template <int Tiles, bool Weighted>
__device__ float fill_differences(const Memory<Tiles>& memory) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int g = lane / 4;
  const int t = lane % 4;
  float largest = 0;
  float c[Tiles][column_tiles][4] = {};
  multiply<FloatParts>(memory, c);
#pragma unroll
  for (int i = 0; i < 2 * Tiles; ++i) {
    const int patch = 8 * i + g;
    float factor = memory.weights()[patch];
    if (Weighted) factor /= memory.roots()[patch];
#pragma unroll
    for (int n = 0; n < column_tiles; ++n) {
      const int pixel = 8 * n + 2 * t;
      if (pixel >= pixels) continue;
      const float(&own)[4] = c[i / 2][n];
      auto& z = *reinterpret_cast<float2*>(memory.partly() + patch * pixels + pixel);
      z = make_float2(factor * (own[i % 2 * 2] - z.x), factor * (own[i % 2 * 2 + 1] - z.y));
      largest = fmaxf(largest, fmaxf(fabsf(z.x), fabsf(z.y)));
    }
  }
  __syncwarp();
  return largest;
}

// Adds the differences and weights to the sums. Neighbouring lanes have neighbouring pixels: additions to a
// sector of memory are then one.
template <int Tiles>
__device__ void add_differences(const RidgeSums& sums, const Group& group, const Memory<Tiles>& memory,
                                float largest) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const Rect& rect = sums.rect;
  const int width = rect.width();
#pragma unroll
  for (int i = 0; i < most_of_lane; ++i) {
    const int patch = lane + i * warp_size;
    if (patch < group.count)
      add_weight(sums, group.x + group.offsets[i].x, group.y + group.offsets[i].y, memory.weights()[patch]);
  }
  const int places[most_of_lane] = {group.offsets[0].y * width + group.offsets[0].x,
                                    group.offsets[1].y * width + group.offsets[1].x};
  const int other = first_pixels + lane % other_pixels;
  if (__all_sync(all_lanes, largest <= sums.limit) && group_is_inside(group, rect)) {
    unsigned long long* const first = sums.values + RidgeSums::index(rect, group.x, group.y);
    unsigned long long* own = first + lane / side * width + lane % side;
    asm("" : "+l"(own));  // as in gather_centred()
    const float* const values = memory.partly() + lane;
#pragma unroll
    for (int i = 0; i < most_of_lane; ++i) {
      const int end = min(warp_size, group.count - i * warp_size);
#pragma unroll 8
      for (int of_lane = 0; of_lane < end; ++of_lane) {
        add_small_value(own + __shfl_sync(all_lanes, places[i], of_lane),
                        values[(i * warp_size + of_lane) * pixels] * sums.value_steps, group.step);
      }
    }
    unsigned long long* const other_own = first + other / side * width + other % side;
#pragma unroll
    for (int i = 0; i < 2 * Tiles; ++i) {
      const int patch = 8 * i + lane / other_pixels;
      const int place = __shfl_sync(all_lanes, places[8 * i / warp_size], patch % warp_size);
      if (patch < group.count)
        add_small_value(other_own + place, memory.partly()[patch * pixels + other] * sums.value_steps,
                        group.step);
    }
  } else {
#pragma unroll 1
    for (int first = 0; first < group.count * pixels; first += warp_size) {
      const int i = min(first + lane, group.count * pixels - 1);
      const int patch = i / pixels;
      const int pixel = i % pixels;
      const int packed[most_of_lane] = {group.offsets[0].y * 256 + group.offsets[0].x,
                                        group.offsets[1].y * 256 + group.offsets[1].x};
      const int low = __shfl_sync(all_lanes, packed[0], patch % warp_size);
      const int high = __shfl_sync(all_lanes, packed[1], patch % warp_size);
      const int offset = patch < warp_size ? low : high;
      const int dx = static_cast<signed char>(offset & 0xFF);
      const int x = group.x + dx + pixel % side;
      const int y = group.y + (offset - dx) / 256 + pixel / side;
      if (first + lane < group.count * pixels && x >= rect.x0 && x < rect.x1 && y >= rect.y0 && y < rect.y1)
        add_value(sums, RidgeSums::index(rect, x, y), memory.partly()[i], group.step);
    }
  }
  __syncwarp();
}

template <int Tiles, bool Weighted>
__global__ void __launch_bounds__(most_warps(Tiles) * warp_size, 1)
    combine_kernel(const __grid_constant__ RidgeCombineCall call) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const auto warp = static_cast<int>(threadIdx.x) / warp_size;
  const auto warps = static_cast<int>(blockDim.x) / warp_size;
  const Memory<Tiles> memory{warp * Memory<Tiles>::floats};
  const int references = call.grid.references();
  for (int reference = static_cast<int>(blockIdx.x) * warps + warp; reference < references;
       reference += static_cast<int>(gridDim.x) * warps) {
    const Group group(call, reference);
    if (!group.has_noise()) {
#pragma unroll
      for (int i = 0; i < most_of_lane; ++i) {
        if (lane + i * warp_size < group.count)
          add_weight(call.sums, group.x + group.offsets[i].x, group.y + group.offsets[i].y, group.weight);
      }
      continue;
    }
    if (Weighted) {
#pragma unroll
      for (int i = 0; i < most_of_lane; ++i) {
        if (lane + i * warp_size < Memory<Tiles>::patches)
          memory.roots()[lane + i * warp_size] = sqrtf(group.precisions[i]);
      }
      __syncwarp();
    }
    const auto pitch = static_cast<int>(call.guide.row_stride);
    const int places[most_of_lane] = {group.offsets[0].y * pitch + group.offsets[0].x,
                                      group.offsets[1].y * pitch + group.offsets[1].x};
    const float* from = &call.guide.at(0, group.x, group.y);
    const float* const next_from = &call.partly.at(0, group.x, group.y);
    float* to = memory.guide();
#pragma unroll 1
    for (int which = 0; which < 2; ++which) {
      gather_centred<Tiles, Weighted>(from, pitch, places, group, memory.roots(), to);
      from = next_from;
      to = memory.partly();
    }
    fill_square<FloatParts>(memory);
    factorise(memory.square(), add_noise(memory, group.noise, call.least_noise));
    combine(memory);
    fill_square<RoundedFloat>(memory);
    fill_weights<Tiles, Weighted>(group, memory);
    fill_product(memory);
    const float largest = fill_differences<Tiles, Weighted>(memory);
    add_differences(call.sums, group, memory, largest);
  }
}

int attribute(cudaDeviceAttr which) {
  int device = 0;
  int value = 0;
  check(cudaGetDevice(&device), "asking for the GPU");
  check(cudaDeviceGetAttribute(&value, which, device), "asking for the GPU");
  return value;
}

template <int Tiles, bool Weighted>
void launch_tiles(const RidgeCombineCall& call, Stream stream) {
  constexpr int bytes = Memory<Tiles>::floats * static_cast<int>(sizeof(float));
  const int warps = std::min(most_warps(Tiles), attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) / bytes);
  const int blocks =
      std::min(attribute(cudaDevAttrMultiProcessorCount), blocks_for(call.grid.references(), warps));
  launch(combine_kernel<Tiles, Weighted>, dim3(static_cast<unsigned>(blocks)),
         dim3(static_cast<unsigned>(warps * warp_size)), static_cast<std::size_t>(warps) * bytes, stream,
         call);
}

}  // namespace

void launch_ridge_combine(const RidgeCombineCall& call, Stream stream) {
  constexpr int first_with_products = 8;
  if (call.grid.references() == 0) return;
  if (call.patch != side || attribute(cudaDevAttrComputeCapabilityMajor) < first_with_products) {
    launch_ridge_combine_any(call, stream);
  } else if (call.count <= Memory<3>::patches) {
    call.variances != nullptr ? launch_tiles<3, true>(call, stream) : launch_tiles<3, false>(call, stream);
  } else {
    call.variances != nullptr ? launch_tiles<4, true>(call, stream) : launch_tiles<4, false>(call, stream);
  }
}

}  // namespace ungrain::cuda
