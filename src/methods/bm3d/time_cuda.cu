// bm3d over time on a GPU. A step has two kernels for each part: the first finds the groups, one warp a
// reference; the second filters and sums them, one warp a group.
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "core/scratch.h"
#include "cuda/launch.cuh"
#include "cuda/warp.cuh"
#include "groups/tile_sums.h"
#include "methods/bm3d/cuda_filter.h"
#include "methods/bm3d/pilot.h"
#include "methods/bm3d/time.h"
#include "methods/bm3d/transforms.h"
#include "motion/cuda.h"

namespace ungrain {
namespace {

using cuda::all_lanes;
using cuda::blocks_for;
using cuda::Bm3dFinishCall;
using cuda::Bm3dSums;

// ---- Match pixels

constexpr int match_rows = 4;  // of pixels that a thread makes, and columns
constexpr int match_threads_x = 32;
constexpr int match_threads_y = 4;

struct MatchCall {
  ConstPlanes in;  // the matched plane
  BasicPlanes<std::uint16_t> out;
  Extent image;
  MatchPixels pixels;
  bool coarse;
};

__global__ void __launch_bounds__(match_threads_x* match_threads_y)
    match_kernel(const __grid_constant__ MatchCall call) {
  const Rect& area = call.out.rect;
  const int x0 = area.x0 / match_rows * match_rows +
                 match_rows * static_cast<int>(blockIdx.x * match_threads_x + threadIdx.x);
  const int y0 = area.y0 / match_rows * match_rows +
                 match_rows * (cuda::block_row() * match_threads_y + static_cast<int>(threadIdx.y));
  if (x0 >= area.x1 || y0 >= area.y1) return;
  const Rect& there = call.in.rect;
  int pixels[match_rows][match_rows];
#pragma unroll
  for (int j = 0; j < match_rows; ++j) {
#pragma unroll
    for (int i = 0; i < match_rows; ++i) {
      const int x = x0 + i;
      const int y = y0 + j;
      const bool exists = x >= there.x0 && x < there.x1 && y >= there.y0 && y < there.y1;
      pixels[j][i] = exists ? call.pixels(call.in.at(0, x, y)) : 0;
      if (x >= area.x0 && x < area.x1 && y >= area.y0 && y < area.y1)
        call.out.at(0, x, y) = static_cast<std::uint16_t>(pixels[j][i]);
    }
  }
  if (!call.coarse) return;
  int halves[2][2];
#pragma unroll
  for (int j = 0; j < 2; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      halves[j][i] = (pixels[2 * j][2 * i] + pixels[2 * j][2 * i + 1] + pixels[2 * j + 1][2 * i] +
                      pixels[2 * j + 1][2 * i + 1] + 2) /
                     4;
      const int x = x0 / 2 + i;
      const int y = y0 / 2 + j;
      const bool wanted = 2 * x >= area.x0 && 2 * x + 1 < area.x1 && x < level_length(call.image.width, 1) &&
                          2 * y >= area.y0 && 2 * y < area.y1 && y < level_length(call.image.height, 1);
      if (wanted)
        call.out.row(1, 2 * y)[x - divided_up(area.x0, 2)] = static_cast<std::uint16_t>(halves[j][i]);
    }
  }
  const int x = x0 / 4;
  const int y = y0 / 4;
  const bool wanted = x0 >= area.x0 && x0 + 3 < area.x1 && x < level_length(call.image.width, 2) &&
                      y0 + 1 >= area.y0 && y0 + 1 < area.y1 && y < level_length(call.image.height, 2);
  if (!wanted) return;
  call.out.row(1, y0 + 1)[x - divided_up(area.x0, 4)] =
      static_cast<std::uint16_t>((halves[0][0] + halves[0][1] + halves[1][0] + halves[1][1] + 2) / 4);
}

void launch_match(const DeviceStageCall& call, const std::vector<int>& matched,
                  const std::vector<MatchPixels>& pixels, bool coarse) {
  const auto out = call.typed_out.as<std::uint16_t>();
  for (std::size_t unit = 0; unit < matched.size(); ++unit) {
    MatchCall match{call.in[0], out, call.image, pixels[unit], coarse};
    match.in.data += matched[unit] * match.in.plane_stride;
    match.out.data += static_cast<std::ptrdiff_t>(unit) * match_planes * out.plane_stride;
    const int columns = divided_up(out.rect.x1, match_rows) - out.rect.x0 / match_rows;
    const int rows = divided_up(out.rect.y1, match_rows) - out.rect.y0 / match_rows;
    cuda::launch(match_kernel,
                 cuda::tall_grid(blocks_for(columns, match_threads_x), blocks_for(rows, match_threads_y)),
                 {match_threads_x, match_threads_y}, 0, call.stream, match);
  }
}

// ---- Groups

// References of a part that a call filters.
struct Grid {
  ReferenceAxis across;
  ReferenceAxis down;
  int first_i = 0;
  int first_j = 0;
  int count_i = 0;
  int count_j = 0;

  int count() const { return count_i * count_j; }
};

__device__ int position(const ReferenceAxis& axis, int index) { return min(index * axis.spacing, axis.last); }

// A group in memory: a word with the first image, their number and that of matches, then the places of the
// patches in the matched plane.
__host__ __device__ constexpr unsigned packed_head(int first, int images, int matches) {
  return static_cast<unsigned>(-first) | static_cast<unsigned>(images) << 8 |
         static_cast<unsigned>(matches) << 16;
}
__device__ unsigned packed_place(int x, int y) {
  return static_cast<unsigned>(y) << 16 | static_cast<unsigned>(x);
}

struct GroupsCall {
  TimeStep step;
  Grid grid;
  Subsampling part_step;
  LevelPixels pixels;                                // of all images; the data are below
  MotionFields fields;                               // likewise
  const std::uint16_t* pixels_of[most_time_images];  // earliest first; null: no image
  const std::uint16_t* motion_of[most_time_images];
  unsigned* groups;
  int stride;  // words of a group
};

constexpr int most_group_warps = 4;  // of a block; fewer for wide windows
constexpr int pixels_of_lane = 2;

struct LanePatch {
  int values[pixels_of_lane];
};

// A lane has a pixel of row lane / 8 and the one four rows below.
__device__ LanePatch load_patch(const std::uint16_t* first, std::ptrdiff_t stride) {
  const int lane = static_cast<int>(threadIdx.x);
  const std::uint16_t* const at = first + lane / 8 * stride + lane % 8;
  return {{at[0], at[4 * stride]}};
}

__device__ unsigned distance(const LanePatch& a, const LanePatch& b) {
  const int upper = a.values[0] - b.values[0];
  const int lower = a.values[1] - b.values[1];
  return static_cast<unsigned>(cuda::warp_sum(upper * upper + lower * lower));
}

// Pixels around some patches, in shared memory: patches that overlap are compared there.
struct Window {
  std::uint16_t* pixels;
  int pitch;

  __device__ LanePatch patch(int x, int y) const { return load_patch(pixels + y * pitch + x, pitch); }
};

// Columns and rows from (x0, y0) on; pixels beyond the image are its edge's.
__device__ void fill(const Window& window, const LevelPixels& shape, const std::uint16_t* pixels, int x0,
                     int y0, int columns, int rows) {
  __syncwarp();
  int x = static_cast<int>(threadIdx.x) % columns;
  int y = static_cast<int>(threadIdx.x) / columns;
  const int down = 32 / columns;
  const int across = 32 % columns;
  while (y < rows) {
    const int from_x = min(max(x0 + x, 0), shape.width - 1);
    const int from_y = min(max(y0 + y, 0), shape.height - 1);
    window.pixels[y * window.pitch + x] =
        pixels[(from_y - shape.first_y) * shape.row_stride + (from_x - shape.first_x)];
    x += across;
    y += down;
    if (x >= columns) {
      x -= columns;
      ++y;
    }
  }
  __syncwarp();
}

// The pixels of a patch's nine places.
constexpr int near_side = time_patch + 2;
constexpr int near_pixels = near_side * near_side;

__host__ __device__ constexpr int window_side(int search) { return search + time_patch - 1; }
// Bytes of shared memory for a warp: distances, then the pixels of a window.
__host__ __device__ constexpr int group_bytes(int search) {
  const int pixels = window_side(search) * window_side(search);
  const int room = pixels > near_pixels ? pixels : near_pixels;
  return 4 * search * search + (2 * room + 3) / 4 * 4;
}

// Follows a patch of the image that is filtered in one direction, at most to the image `end`. Returns the
// last image that was reached and stores the places.
__device__ int follow(const GroupsCall& call, std::uint16_t* room, LanePatch compared, int x, int y,
                      int direction, int end, unsigned* places) {
  const int last_x = call.pixels.width - time_patch;
  const int last_y = call.pixels.height - time_patch;
  const int middle = call.step.radius;
  const Window near{room, near_side};
  int image = 0;
  while (image != end) {
    const int next = image + direction;
    const std::uint16_t* const pixels = call.pixels_of[middle + next];
    if (pixels == nullptr) break;
    const MotionFields& fields = call.fields;
    const std::uint16_t* const motion = call.motion_of[middle + image];
    const MotionVector v =
        unpacked(motion[(block_of_patch(y) - fields.first_y) * fields.row_stride +
                        (block_of_patch(x) - fields.first_x) + (direction > 0 ? fields.across : 0)]);
    const int guess_x = min(max(x + v.x, 0), last_x);
    const int guess_y = min(max(y + v.y, 0), last_y);
    fill(near, call.pixels, pixels, guess_x - 1, guess_y - 1, near_side, near_side);
    unsigned distances[9];
#pragma unroll
    for (int n = 0; n < 9; ++n) distances[n] = distance(compared, near.patch(n % 3, n / 3));
    // The place that the motion leads to comes first among equals.
    unsigned least = distances[4];
    int best = 4;
#pragma unroll
    for (int n = 0; n < 9; ++n) {
      const int try_x = guess_x + n % 3 - 1;
      const int try_y = guess_y + n / 3 - 1;
      const bool exists = try_x >= 0 && try_x <= last_x && try_y >= 0 && try_y <= last_y;
      if (!exists || distances[n] >= least) continue;
      least = distances[n];
      best = n;
    }
    if (least > call.step.follow_limit) break;
    x = guess_x + best % 3 - 1;
    y = guess_y + best / 3 - 1;
    image = next;
    if (call.step.index == 0) compared = near.patch(best % 3, best / 3);
    if (threadIdx.x == 0) places[image] = packed_place(x, y);
  }
  return image;
}

__global__ void __launch_bounds__(32 * most_group_warps)
    groups_kernel(const __grid_constant__ GroupsCall call) {
  extern __shared__ unsigned group_memory[];
  const int number = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
  if (number >= call.grid.count_i * call.grid.count_j) return;
  const int lane = static_cast<int>(threadIdx.x);
  const TimeStep& step = call.step;
  const int last_x = call.pixels.width - time_patch;
  const int last_y = call.pixels.height - time_patch;
  const int x = matched_position(position(call.grid.across, call.grid.first_i + number % call.grid.count_i),
                                 call.part_step.x, last_x);
  const int y = matched_position(position(call.grid.down, call.grid.first_j + number / call.grid.count_i),
                                 call.part_step.y, last_y);
  unsigned* const group = call.groups + static_cast<std::ptrdiff_t>(number) * call.stride;
  unsigned* const distances =
      group_memory + static_cast<std::ptrdiff_t>(threadIdx.y) * (group_bytes(step.search) / 4);
  auto* const room = reinterpret_cast<std::uint16_t*>(distances + step.search * step.search);
  const LevelPixels& shape = call.pixels;
  const std::uint16_t* const pixels = call.pixels_of[step.radius];
  const auto patch_at = [&](int at_x, int at_y) {
    return load_patch(pixels + (at_y - shape.first_y) * shape.row_stride + (at_x - shape.first_x),
                      shape.row_stride);
  };
  const LanePatch own = patch_at(x, y);
  // The own path's places may lie before the first that is kept, so it is written to the middle of the room.
  unsigned* places = group + 1 + step.radius;
  if (lane == 0) places[0] = packed_place(x, y);
  const int last = follow(call, room, own, x, y, 1, step.radius, places);
  const int first = follow(call, room, own, x, y, -1, -step.radius, places);
  __syncwarp();
  const int images = last - first + 1;
  if (first > -step.radius) {
    unsigned kept = 0;
    if (lane < images) kept = places[first + lane];
    __syncwarp();
    if (lane < images) group[1 + lane] = kept;
  }
  int matches = 1;
  const int wanted = matches_for(step.group, images);
  if (wanted > 1) {
    const int reach = step.search / 2;
    const int x0 = max(0, x - reach);
    const int y0 = max(0, y - reach);
    const int columns = min(last_x, x + reach) - x0 + 1;
    const int rows = min(last_y, y + reach) - y0 + 1;
    const int candidates = columns * rows;
    const Window window{room, window_side(step.search)};
    fill(window, shape, pixels, x0, y0, columns + time_patch - 1, rows + time_patch - 1);
    constexpr unsigned none = 0xffffffffU;
    int n = 0;
    for (int at_y = 0; at_y < rows; ++at_y) {
      for (int at_x = 0; at_x < columns; ++at_x, ++n) {
        unsigned d = distance(own, window.patch(at_x, at_y));
        if (d > step.match_limit || (x0 + at_x == x && y0 + at_y == y)) d = none;
        if (lane == n % 32) distances[n] = d;
      }
    }
    __syncwarp();
    for (int found = 1; found < wanted; ++found) {
      unsigned least = none;
      for (int i = lane; i < candidates; i += 32) least = min(least, distances[i]);
      least = cuda::warp_least(least);
      if (least == none) break;
      unsigned index = none;
      for (int i = lane; i < candidates; i += 32) {
        if (distances[i] == least) {
          index = static_cast<unsigned>(i);
          break;
        }
      }
      const int best = static_cast<int>(cuda::warp_least(index));
      if (lane == best % 32) distances[best] = none;
      __syncwarp();
      const int match_x = x0 + best % columns;
      const int match_y = y0 + best / columns;
      unsigned* const path = group + 1 + matches * images - first;
      if (lane == 0) path[0] = packed_place(match_x, match_y);
      const LanePatch match = patch_at(match_x, match_y);
      if (follow(call, room, match, match_x, match_y, 1, last, path) != last) continue;
      if (follow(call, room, match, match_x, match_y, -1, first, path) != first) continue;
      ++matches;
    }
    while ((matches & (matches - 1)) != 0) matches &= matches - 1;
  }
  if (lane == 0) group[0] = packed_head(first, images, matches);
}

// ---- Filtering

// Cosine transforms of up to most_time_images images. Their sizes' matrices follow each other.
constexpr double cosine(double angle) {
  // Reduced to [-pi, pi]; the series converges within twenty terms.
  constexpr double pi = 3.14159265358979323846;
  while (angle > pi) angle -= 2 * pi;
  double term = 1;
  double sum = 1;
  for (int n = 1; n < 20; ++n) {
    term *= -angle * angle / ((2 * n - 1) * (2 * n));
    sum += term;
    if (term < 1e-18 && term > -1e-18) break;
  }
  return sum;
}
constexpr double square_root(double value) {
  double root = value > 1 ? value : 1;
  for (int n = 0; n < 60; ++n) root = (root + value / root) / 2;
  return root;
}
constexpr int matrix_offset(int images) { return (images - 1) * images * (2 * images - 1) / 6; }

struct TimeMatrices {
  float values[matrix_offset(most_time_images + 1)] = {};
};
constexpr TimeMatrices make_time_matrices() {
  TimeMatrices matrices;
  for (int n = 1; n <= most_time_images; ++n) {
    for (int f = 0; f < n; ++f) {
      const double norm = square_root((f == 0 ? 1.0 : 2.0) / n);
      for (int i = 0; i < n; ++i) {
        matrices.values[matrix_offset(n) + f * n + i] =
            static_cast<float>(norm * cosine(3.14159265358979323846 * (2 * i + 1) * f / (2.0 * n)));
      }
    }
  }
  return matrices;
}
__constant__ constexpr TimeMatrices time_matrices = make_time_matrices();

// Offsets of a plane's numbers in a table of floats.
struct PlaneTable {
  int noise = 0;   // [8][8], step 1: thresholds; step 2: the noise's energy
  int scale = 0;   // [8][8]: the missing normalisation, in both directions
  int shares = 0;  // [8][8], with a model
  int levels = 0;
  int variances = 0;
  int level_count = 0;  // 0: no model
  float unit = 1;       // of the sums
  float mean_share = 1;
  float mean_variance = 1;
};

struct FilterGroupsCall {
  Grid grid;
  const unsigned* groups;
  int stride;
  int radius;
  Subsampling part_step;
  Extent extent;  // of the part's planes
  // Of the part's planes, earliest image first.
  const float* noisy[most_time_images];
  const float* basic[most_time_images];
  std::ptrdiff_t noisy_row_stride[most_time_images];  // a caller's images may lie differently
  std::ptrdiff_t noisy_plane_stride[most_time_images];
  std::ptrdiff_t basic_row_stride;
  std::ptrdiff_t basic_plane_stride;
  int first_x;  // of the pixels that the pointers above show
  int first_y;
  int basic_first_x;
  int basic_first_y;
  int planes;
  bool wavelet;
  bool one_level;  // all planes take the first one's level
  const float* table;
  PlaneTable plane[max_channels];
  Bm3dSums sums;
  float window[time_patch];
  int patches;  // room in shared memory
};

// A patch in shared memory: coefficient (i horizontal, j vertical) at 9 i + j, or pixel (x, y) at 9 y + x.
// The odd stride avoids bank conflicts.
constexpr int line = time_patch + 1;
constexpr int patch_floats = time_patch * line;
constexpr int most_filter_warps = 4;  // of a block; fewer for large groups

// As the CPU's transforms (filter_simd-inl.h): none normalises.
__device__ void forward_dct(float (&v)[time_patch]) {
  constexpr float half_root = 0.707106781F;
  const float s0 = v[0] + v[7], d0 = v[0] - v[7];
  const float s1 = v[1] + v[6], d1 = v[1] - v[6];
  const float s2 = v[2] + v[5], d2 = v[2] - v[5];
  const float s3 = v[3] + v[4], d3 = v[3] - v[4];
  const float outer = s0 + s3, inner = s1 + s2, outer_less = s0 - s3;
  const float turned = (s1 - s2) + outer_less;
  v[0] = outer + inner;
  v[4] = outer - inner;
  v[2] = fmaf(turned, half_root, outer_less);
  v[6] = fmaf(-turned, half_root, outer_less);
  const float o0 = d3 + d2, o1 = d2 + d1, o2 = d1 + d0;
  const float both = (o0 - o2) * 0.382683433F;
  const float z2 = fmaf(o0, 0.541196100F, both);
  const float z4 = fmaf(o2, 1.306562965F, both);
  const float z11 = fmaf(o1, half_root, d0);
  const float z13 = fmaf(-o1, half_root, d0);
  v[5] = z13 + z2;
  v[3] = z13 - z2;
  v[1] = z11 + z4;
  v[7] = z11 - z4;
}

__device__ void inverse_dct(float (&v)[time_patch]) {
  constexpr float root = 1.414213562F;
  const float e0 = v[0] + v[4], e1 = v[0] - v[4];
  const float e3 = v[2] + v[6];
  const float e2 = (v[2] - v[6]) * root - e3;
  const float t0 = e0 + e3, t3 = e0 - e3, t1 = e1 + e2, t2 = e1 - e2;
  const float z13 = v[5] + v[3], z10 = v[5] - v[3];
  const float z11 = v[1] + v[7], z12 = v[1] - v[7];
  const float t7 = z11 + z13;
  const float o1 = (z11 - z13) * root;
  const float z5 = (z10 + z12) * 1.847759065F;
  const float o0 = fmaf(-z12, 1.082392200F, z5);
  const float o2 = fmaf(-z10, 2.613125930F, z5);
  const float t6 = o2 - t7;
  const float t5 = o1 - t6;
  const float t4 = o0 - t5;
  v[0] = t0 + t7;
  v[7] = t0 - t7;
  v[1] = t1 + t6;
  v[6] = t1 - t6;
  v[2] = t2 + t5;
  v[5] = t2 - t5;
  v[3] = t3 + t4;
  v[4] = t3 - t4;
}

constexpr float inner_taps = 11.0F / 64;

__device__ void forward_wavelet(float (&v)[time_patch]) {
  float low[4], high[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    low[i] = v[2 * i] + v[2 * i + 1];
    high[i] = v[2 * i] - v[2 * i + 1];
  }
  const float of_even = high[1] - high[3];
  const float of_odd = high[2] - high[0];
  v[0] = fmaf(of_even, inner_taps, low[0]);
  v[1] = fmaf(of_odd, inner_taps, low[1]);
  v[2] = fmaf(-of_even, inner_taps, low[2]);
  v[3] = fmaf(-of_odd, inner_taps, low[3]);
#pragma unroll
  for (int i = 0; i < 4; ++i) v[4 + i] = high[i];
}

__device__ void inverse_wavelet(float (&v)[time_patch]) {
  const float of_even = v[5] - v[7];
  const float of_odd = v[6] - v[4];
  const float low[4] = {fmaf(-of_even, inner_taps, v[0]), fmaf(-of_odd, inner_taps, v[1]),
                        fmaf(of_even, inner_taps, v[2]), fmaf(of_odd, inner_taps, v[3])};
  const float high[4] = {v[4], v[5], v[6], v[7]};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    v[2 * i] = low[i] + high[i];
    v[2 * i + 1] = low[i] - high[i];
  }
}

__device__ void sum_and_difference(float* patch, int first, int second) {
  const float a = patch[first];
  const float b = patch[second];
  patch[first] = a + b;
  patch[second] = a - b;
}

// The coarser levels of a patch's wavelets, by one lane.
__device__ void forward_coarse_wavelets(float* patch) {
  for (int j = 0; j < 4; ++j) {
    sum_and_difference(patch, j, line + j);
    sum_and_difference(patch, 2 * line + j, 3 * line + j);
  }
  for (int i = 0; i < 4; ++i) {
    sum_and_difference(patch, i * line, i * line + 1);
    sum_and_difference(patch, i * line + 2, i * line + 3);
  }
  for (int j = 0; j < 4; j += 2) sum_and_difference(patch, j, 2 * line + j);
  for (int i = 0; i < 4; i += 2) sum_and_difference(patch, i * line, i * line + 2);
}
__device__ void inverse_coarse_wavelets(float* patch) {
  for (int i = 0; i < 4; i += 2) sum_and_difference(patch, i * line, i * line + 2);
  for (int j = 0; j < 4; j += 2) sum_and_difference(patch, j, 2 * line + j);
  for (int i = 0; i < 4; ++i) {
    sum_and_difference(patch, i * line, i * line + 1);
    sum_and_difference(patch, i * line + 2, i * line + 3);
  }
  for (int j = 0; j < 4; ++j) {
    sum_and_difference(patch, j, line + j);
    sum_and_difference(patch, 2 * line + j, 3 * line + j);
  }
}

// Patches in shared memory, from pixels to coefficients: eight lanes a patch.
__device__ void transform_patches(float* patches, int count, bool wavelet) {
  const int lane = static_cast<int>(threadIdx.x);
  for (int begin = 0; begin < count; begin += 4) {
    const bool busy = begin + lane / 8 < count;
    float* const patch = patches + (begin + lane / 8) * patch_floats;
    const int of = lane % 8;
    float v[time_patch];
    if (busy) {
#pragma unroll
      for (int i = 0; i < time_patch; ++i) v[i] = patch[of * line + i];
      if (wavelet) {
        forward_wavelet(v);
      } else {
        forward_dct(v);
      }
    }
    __syncwarp();
    if (busy) {
#pragma unroll
      for (int i = 0; i < time_patch; ++i) patch[i * line + of] = v[i];
    }
    __syncwarp();
    if (busy) {
#pragma unroll
      for (int i = 0; i < time_patch; ++i) v[i] = patch[of * line + i];
      if (wavelet) {
        forward_wavelet(v);
      } else {
        forward_dct(v);
      }
#pragma unroll
      for (int i = 0; i < time_patch; ++i) patch[of * line + i] = v[i];
    }
  }
  __syncwarp();
  if (!wavelet) return;
  for (int i = lane; i < count; i += 32) forward_coarse_wavelets(patches + i * patch_floats);
  __syncwarp();
}

// And back, each pixel times its weight.
__device__ void transform_back(float* patches, int count, bool wavelet, const float* window, float weight) {
  const int lane = static_cast<int>(threadIdx.x);
  if (wavelet) {
    for (int i = lane; i < count; i += 32) inverse_coarse_wavelets(patches + i * patch_floats);
    __syncwarp();
  }
  for (int begin = 0; begin < count; begin += 4) {
    const bool busy = begin + lane / 8 < count;
    float* const patch = patches + (begin + lane / 8) * patch_floats;
    const int of = lane % 8;
    float v[time_patch];
    if (busy) {
#pragma unroll
      for (int i = 0; i < time_patch; ++i) v[i] = patch[of * line + i];
      if (wavelet) {
        inverse_wavelet(v);
      } else {
        inverse_dct(v);
      }
    }
    __syncwarp();
    if (busy) {
#pragma unroll
      for (int i = 0; i < time_patch; ++i) patch[of * line + i] = v[i];
    }
    __syncwarp();
    if (busy) {
#pragma unroll
      for (int i = 0; i < time_patch; ++i) v[i] = patch[i * line + of];
      if (wavelet) {
        inverse_wavelet(v);
      } else {
        inverse_dct(v);
      }
    }
    __syncwarp();
    if (busy) {
      const float row = window[of] * weight;
#pragma unroll
      for (int i = 0; i < time_patch; ++i) patch[of * line + i] = v[i] * (row * window[i]);
    }
  }
  __syncwarp();
}

// Along the images of each match, for the lane's coefficient at `at`.
template <int Images>
__device__ void along_time(float* at, int matches) {
  constexpr int pairs = Images / 2;
  constexpr int offset = matrix_offset(Images);
  for (int m = 0; m < matches; ++m, at += Images * patch_floats) {
    float sums[pairs + 1];
    float differences[pairs + 1];
#pragma unroll
    for (int i = 0; i < pairs; ++i) {
      const float early = at[i * patch_floats];
      const float late = at[(Images - 1 - i) * patch_floats];
      sums[i] = early + late;
      differences[i] = early - late;
    }
    if constexpr (Images % 2 == 1) sums[pairs] = at[pairs * patch_floats];
#pragma unroll
    for (int f = 0; f < Images; ++f) {
      float sum = 0;
      if (f % 2 == 0) {
#pragma unroll
        for (int i = 0; i < Images - pairs; ++i)
          sum = fmaf(sums[i], time_matrices.values[offset + f * Images + i], sum);
      } else {
#pragma unroll
        for (int i = 0; i < pairs; ++i)
          sum = fmaf(differences[i], time_matrices.values[offset + f * Images + i], sum);
      }
      at[f * patch_floats] = sum;
    }
  }
}

template <int Images = most_time_images>
__device__ void along_time_of(int images, float* at, int matches) {
  if constexpr (Images > 1) {
    if (images < Images) {
      along_time_of<Images - 1>(images, at, matches);
    } else {
      along_time<Images>(at, matches);
    }
  }
}

// Haar's transform of a few numbers in place, and back.
template <int Count>
__device__ void haar(float (&v)[Count]) {
#pragma unroll
  for (int apart = 1; apart < Count; apart *= 2) {
#pragma unroll
    for (int m = 0; m < Count; m += 2 * apart) {
      const float a = v[m];
      const float b = v[m + apart];
      v[m] = (a + b) * 0.707106781F;
      v[m + apart] = (a - b) * 0.707106781F;
    }
  }
}
template <int Count>
__device__ void inverse_haar(float (&v)[Count]) {
#pragma unroll
  for (int apart = Count / 2; apart > 0; apart /= 2) {
#pragma unroll
    for (int m = 0; m < Count; m += 2 * apart) {
      const float a = v[m];
      const float b = v[m + apart];
      v[m] = (a + b) * 0.707106781F;
      v[m + apart] = (a - b) * 0.707106781F;
    }
  }
}

// What the shrinkage of a lane's coefficient needs.
struct Shrinkage {
  float noise;
  float share;
  float scale;
  bool keeps_mean;  // this is the coefficient of patches' means, and a group's mean is kept
};

// Shrinks the coefficients of all patches at one place. What they lose, in the own image, replaces the first
// `Matches` coefficients. Returns the sum of the squared factors times the share.
template <bool Wiener, int Matches>
__device__ float shrink(float* noisy, const float* basic, int images, int own, const Shrinkage& by) {
  const float* const back = time_matrices.values + matrix_offset(images) + own;
  float lost[Matches];
#pragma unroll
  for (int m = 0; m < Matches; ++m) lost[m] = 0;
  float left = 0;
  for (int f = 0; f < images; ++f) {
    float v[Matches];
    float pilot[Matches];
#pragma unroll
    for (int m = 0; m < Matches; ++m) v[m] = noisy[(m * images + f) * patch_floats];
    haar(v);
    if constexpr (Wiener) {
#pragma unroll
      for (int m = 0; m < Matches; ++m) pilot[m] = basic[(m * images + f) * patch_floats];
      haar(pilot);
    }
    const float weight = back[f * images];
#pragma unroll
    for (int m = 0; m < Matches; ++m) {
      if constexpr (Wiener) {
        const float energy = fminf(pilot[m] * pilot[m], 1e36F);
        const float all = energy + by.noise;
        const float factor = all > 0 ? __fdividef(energy, all) : 1.0F;
        left = fmaf(factor, factor, left);
        lost[m] = fmaf(weight, v[m] - factor * v[m], lost[m]);
      } else {
        const bool kept = fabsf(v[m]) > by.noise || (by.keeps_mean && f == 0 && m == 0);
        if (kept) {
          left += 1;
        } else {
          lost[m] = fmaf(weight, v[m], lost[m]);
        }
      }
    }
  }
  inverse_haar(lost);
#pragma unroll
  for (int m = 0; m < Matches; ++m) noisy[m * patch_floats] = lost[m] * by.scale;
  return left * by.share;
}

template <bool Wiener, int Matches = most_time_matches>
__device__ float shrink_of(int matches, float* noisy, const float* basic, int images, int own,
                           const Shrinkage& by) {
  if constexpr (Matches > 1) {
    if (matches < Matches) return shrink_of<Wiener, Matches / 2>(matches, noisy, basic, images, own, by);
  }
  return shrink<Wiener, Matches>(noisy, basic, images, own, by);
}

__device__ float variance_at(const float* table, const PlaneTable& plane, float level) {
  const float* const levels = table + plane.levels;
  const float* const variances = table + plane.variances;
  int i = 0;
  while (i < plane.level_count && levels[i] <= level) ++i;
  if (i == 0) return variances[0];
  if (i == plane.level_count) return variances[i - 1];
  const float share = (level - levels[i - 1]) / (levels[i] - levels[i - 1]);
  return fmaf(share, variances[i] - variances[i - 1], variances[i - 1]);
}

struct PatchPlace {
  int x;
  int y;
};

__device__ PatchPlace place_of(const FilterGroupsCall& call, unsigned packed) {
  return {
      plane_position(static_cast<int>(packed & 0xffffU), call.part_step.x, call.extent.width - time_patch),
      plane_position(static_cast<int>(packed >> 16), call.part_step.y, call.extent.height - time_patch)};
}

template <bool Wiener>
__global__ void __launch_bounds__(32 * most_filter_warps)
    filter_groups_kernel(const __grid_constant__ FilterGroupsCall call) {
  extern __shared__ float shared[];
  const int number = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
  if (number >= call.grid.count_i * call.grid.count_j) return;
  const int lane = static_cast<int>(threadIdx.x);
  const int room = call.patches * patch_floats;
  float* const noisy = shared + static_cast<std::ptrdiff_t>(threadIdx.y) * (Wiener ? 2 : 1) * room;
  float* const basic = noisy + room;
  const unsigned* const group = call.groups + static_cast<std::ptrdiff_t>(number) * call.stride;
  const unsigned head = group[0];
  const int own = static_cast<int>(head & 0xffU);
  const int images = static_cast<int>(head >> 8 & 0xffU);
  const int matches = static_cast<int>(head >> 16);
  const int patches = matches * images;
  const PatchPlace reference{position(call.grid.across, call.grid.first_i + number % call.grid.count_i),
                             position(call.grid.down, call.grid.first_j + number / call.grid.count_i)};
  const int row = lane / 8;
  const int column = lane % 8;
  float level = 0;
  for (int plane = 0; plane < call.planes; ++plane) {
    const PlaneTable& numbers = call.plane[plane];
    int image = 0;
    for (int i = 0; i < patches; ++i) {
      PatchPlace place = place_of(call, group[1 + i]);
      if (i == own) place = reference;
      const int slice = call.radius - own + image;
      image = image + 1 == images ? 0 : image + 1;
      const auto copy = [&](const float* data, std::ptrdiff_t row_stride, std::ptrdiff_t plane_stride,
                            int first_x, int first_y, float* to) {
        const float* const from = data + plane * plane_stride + (place.y - first_y + row) * row_stride +
                                  (place.x - first_x + column);
        to[i * patch_floats + row * line + column] = from[0];
        to[i * patch_floats + (row + 4) * line + column] = from[4 * row_stride];
      };
      copy(call.noisy[slice], call.noisy_row_stride[slice], call.noisy_plane_stride[slice], call.first_x,
           call.first_y, noisy);
      if constexpr (Wiener)
        copy(call.basic[slice], call.basic_row_stride, call.basic_plane_stride, call.basic_first_x,
             call.basic_first_y, basic);
    }
    __syncwarp();
    transform_patches(noisy, patches, call.wavelet);
    if constexpr (Wiener) transform_patches(basic, patches, call.wavelet);
    float variance = 1;
    const bool by_model = numbers.level_count > 0;
    if (by_model) {
      if (plane == 0 || !call.one_level) {
        const float* const of = Wiener ? basic : noisy;
        float sum = 0;
        for (int i = lane; i < patches; i += 32) sum += of[i * patch_floats];
        level = cuda::warp_sum(sum) / static_cast<float>(patches * time_patch * time_patch);
      }
      variance = variance_at(call.table, numbers, level);
    }
    float left = 0;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int element = lane + 32 * part;
      const int at = element / time_patch * line + element % time_patch;
      along_time_of(images, noisy + at, matches);
      if constexpr (Wiener) along_time_of(images, basic + at, matches);
      Shrinkage by;
      by.noise = call.table[numbers.noise + element];
      by.share = 1;
      if (by_model) {
        by.noise *= Wiener ? variance : sqrtf(variance);
        by.share = call.table[numbers.shares + element];
      }
      by.scale = call.table[numbers.scale + element];
      by.keeps_mean = by_model && element == 0;
      left += shrink_of<Wiener>(matches, noisy + at, basic + at, images, own, by);
    }
    left = cuda::warp_sum(left);
    float weight = 1 / fmaxf(left, 1.0F);
    if (by_model) {
      const float remaining = fmaxf(left * variance, numbers.mean_share * variance);
      constexpr float most = 1024;
      weight = remaining * most > numbers.mean_variance ? numbers.mean_variance / remaining : most;
    }
    __syncwarp();
    transform_back(noisy, matches, call.wavelet, call.window, weight * call.sums.value_steps);
    const Rect& rect = call.sums.rect;
    const Rect weight_rect = call.sums.weight_rect();
    for (int m = 0; m < matches; ++m) {
      PatchPlace place = place_of(call, group[1 + m * images + own]);
      if (m == 0) place = reference;
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const int x = place.x + column;
        const int y = place.y + row + 4 * part;
        if (!Bm3dSums::holds(rect, x, y)) continue;
        const float value = noisy[m * patch_floats + (row + 4 * part) * line + column];
        atomicAdd(call.sums.values + Bm3dSums::index(rect, plane, x, y),
                  static_cast<unsigned long long>(__float2ll_rn(value)));
      }
      if (lane == m && Bm3dSums::holds(weight_rect, place.x, place.y)) {
        atomicAdd(call.sums.weights + Bm3dSums::index(weight_rect, plane, place.x, place.y),
                  static_cast<unsigned long long>(__float2ll_rn(weight * call.sums.weight_steps)));
      }
    }
    __syncwarp();
  }
}

// ---- Steps

constexpr int most_shared_bytes = 96 * 1024;  // of a block: every GPU from compute capability 8.0 on has it
constexpr double sum_steps = 0x1p30;
constexpr std::size_t scratch_alignment = 256;

// Norms of the transforms here, along one axis or for a coefficient: filter_simd-inl.h has the same.
double norm_of(PatchTransform transform, int i, int j) {
  if (transform == PatchTransform::bior15) {
    const int level = i >= 4 || j >= 4 ? 1 : i % 2 == 1 || j % 2 == 1 ? 2 : 3;
    return 1.0 / (2 << (level - 1));
  }
  const auto along = [](int n) {
    return 1 / (std::sqrt(8.0) * (n == 0 ? 1 : std::sqrt(2.0) * std::cos(n * std::acos(-1.0) / 16)));
  };
  return along(i) * along(j);
}
double back_of(PatchTransform transform, int i, int j) {
  return transform == PatchTransform::bior15 ? std::pow(norm_of(transform, i, j), 2) : 1.0 / 64;
}

// One step of one part's planes.
class PartStep {
 public:
  PartStep(const Bm3dSettings& settings, const ImageSpec& spec, const TimePart& part, int matched_plane,
           int index)
      : part_(part),
        image_{spec.width, spec.height},
        step_(time_step(settings, spec, index, matched_plane)),
        from_(index == 0 ? settings.first : settings.second),
        opponent_(settings.opponent),
        to_rgb_(settings.opponent && index + 1 == settings.steps),
        across_{part.extent.width - time_patch, step_.spacing},
        down_{part.extent.height - time_patch, step_.spacing},
        reach_(std::max(part_reach(step_.search, part.step.x), part_reach(step_.search, part.step.y))) {
    for (int images = 1; images <= 2 * step_.radius + 1; ++images)
      patches_ = std::max(patches_, images * matches_for(step_.group, images));
    for (int plane = 0; plane < part.planes; ++plane) append_plane(settings, spec, plane);
  }
  PartStep(const PartStep&) = delete;
  PartStep& operator=(const PartStep&) = delete;

  // Floats for a call of so many rows.
  std::size_t scratch(int rows) const {
    const Rect out{0, 0, part_.extent.width,
                   std::min(divided_up(rows, part_.step.y) + 1, part_.extent.height)};
    Grid grid = grid_of(out);
    grid.count_j = std::min(down_.count(), (out.height() + 2 * (reach_ + time_patch)) / step_.spacing + 2);
    return Memory(*this, nullptr, out, grid).floats;
  }

  void launch(const DeviceStageCall& call) const {
    const Planes out = of_part(call.out);
    if (out.rect.height() <= 0) return;
    const Grid grid = grid_of(out.rect);
    const Memory memory(*this, call.scratch.data(), out.rect, grid);
    const cudaStream_t stream = cuda::handle(call.stream);
    cuda::check(
        cudaMemsetAsync(
            memory.sums.values, 0,
            Bm3dSums::floats(part_.planes, out.rect.width(), out.rect.height(), time_patch) * sizeof(float),
            stream),
        "clearing memory");
    upload_table(memory.table, stream);
    find_groups(call, grid, memory);
    filter_groups(call, grid, memory);
    finish(call, out, memory.sums);
  }

 private:
  // The scratch memory of a call, or its size.
  struct Memory {
    Memory(const PartStep& step, float* start, const Rect& out, const Grid& grid) {
      ScratchPieces pieces(start, scratch_alignment);
      const int planes = step.part_.planes;
      sums.rect = out;
      sums.patch = time_patch;
      sums.value_steps = static_cast<float>(sum_steps);
      sums.weight_steps = static_cast<float>(sum_steps);
      sums.values = pieces.take<unsigned long long>(
          Bm3dSums::floats(planes, out.width(), out.height(), time_patch) / 2);
      if (start != nullptr)
        sums.weights = sums.values + static_cast<std::size_t>(planes) * out.width() * out.height();
      groups = pieces.take<unsigned>(static_cast<std::size_t>(grid.count()) * step.group_words());
      table = pieces.take<float>(step.table_.size());
      floats = pieces.floats();
    }

    Bm3dSums sums;
    unsigned* groups = nullptr;
    float* table = nullptr;
    std::size_t floats = 0;
  };

  // Room for the head, the patches, and the path of a match that is not kept.
  std::size_t group_words() const {
    return static_cast<std::size_t>(1 + patches_ + 2 * step_.radius + 1 + 2 * step_.radius + 1);
  }

  void append_plane(const Bm3dSettings& settings, const ImageSpec& spec, int plane) {
    const int number = part_.first_plane + plane;
    const PlaneNoise* const model = settings.model.empty() ? nullptr : &settings.model[number];
    const double sigma = settings.sigma[number];
    PlaneTable& numbers = planes_[plane];
    const double unit = sigma > 0 ? sigma : spec.white();
    numbers.unit = static_cast<float>(unit);
    numbers.mean_variance = static_cast<float>(sigma * sigma);
    const auto add = [&](const auto& value) {
      const int offset = static_cast<int>(table_.size());
      for (int i = 0; i < time_patch; ++i) {
        for (int j = 0; j < time_patch; ++j) table_.push_back(static_cast<float>(value(i, j)));
      }
      return offset;
    };
    numbers.noise = add([&](int i, int j) {
      const double deviation =
          model != nullptr ? model->strength * std::sqrt(model->shares[j * time_patch + i]) : sigma;
      const double noise = from_.strength * deviation / norm_of(from_.transform, i, j);
      return step_.index == 1 ? noise * noise : noise;
    });
    numbers.scale = add([&](int i, int j) { return back_of(from_.transform, i, j) / unit; });
    if (model == nullptr) return;
    numbers.shares = add([&](int i, int j) { return model->shares[j * time_patch + i]; });
    numbers.mean_share = static_cast<float>(mean_share(*model));
    numbers.level_count = static_cast<int>(model->levels.size());
    numbers.levels = static_cast<int>(table_.size());
    for (const double level : model->levels) table_.push_back(static_cast<float>(level));
    numbers.variances = static_cast<int>(table_.size());
    for (const double variance : model->variances) table_.push_back(static_cast<float>(variance));
  }

  // Page-locked, so that copies do not block; allocated only when a GPU is known to be present.
  void upload_table(float* to, cudaStream_t stream) const {
    const std::size_t bytes = table_.size() * sizeof(float);
    std::call_once(pinned_made_, [&] {
      pinned_ = cuda::PinnedBuffer(bytes);
      std::copy(table_.begin(), table_.end(), reinterpret_cast<float*>(pinned_.data()));
    });
    cuda::check(cudaMemcpyAsync(to, pinned_.data(), bytes, cudaMemcpyHostToDevice, stream),
                "uploading a table");
  }

  // A part with fewer samples has its rows in those of the image, from the first column on.
  template <class T>
  BasicPlanes<T> of_part(const BasicPlanes<T>& planes) const {
    BasicPlanes<T> part = planes;
    part.rect = {divided_up(planes.rect.x0, part_.step.x), divided_up(planes.rect.y0, part_.step.y),
                 std::min(divided_up(planes.rect.x1, part_.step.x), part_.extent.width),
                 std::min(divided_up(planes.rect.y1, part_.step.y), part_.extent.height)};
    part.data = planes.row(part_.first_plane, part.rect.y0 * part_.step.y);
    part.row_stride = planes.row_stride * part_.step.y;
    part.count = part_.planes;
    return part;
  }

  Grid grid_of(const Rect& out) const {
    Grid grid{across_, down_};
    const auto range = [&](const ReferenceAxis& axis, int begin, int end, int& first, int& count) {
      first = axis.index_from(begin - (time_patch - 1) - reach_);
      const int to = end - 1 + reach_;
      count = (to >= axis.last ? axis.count() : to / axis.spacing + 1) - first;
    };
    range(across_, out.x0, out.x1, grid.first_i, grid.count_i);
    range(down_, out.y0, out.y1, grid.first_j, grid.count_j);
    return grid;
  }

  void find_groups(const DeviceStageCall& call, const Grid& grid, const Memory& memory) const {
    GroupsCall groups{};
    groups.step = step_;
    groups.grid = grid;
    groups.part_step = part_.step;
    groups.groups = memory.groups;
    groups.stride = static_cast<int>(group_words());
    const int slices = call.reach.slices();
    for (int offset = -step_.radius; offset <= step_.radius; ++offset) {
      const int slice = call.reach.before + offset;
      const TypedPlanes& pixels = call.typed_in[static_cast<std::size_t>(slices + slice)];
      const TypedPlanes& motion = call.typed_in[static_cast<std::size_t>(2 * slices + slice)];
      if (pixels.data == nullptr) continue;
      // Images of one ring lie alike.
      groups.pixels = level_of(pixels.as<const std::uint16_t>(), part_.unit, image_, 0);
      groups.fields = fields_of(motion.as<const std::uint16_t>(), part_.unit);
      groups.pixels_of[step_.radius + offset] = groups.pixels.data;
      groups.motion_of[step_.radius + offset] = groups.fields.data;
    }
    const int bytes = group_bytes(step_.search);
    const int warps = std::clamp(most_shared_bytes / bytes, 1, most_group_warps);
    cuda::launch(groups_kernel, dim3(static_cast<unsigned>(blocks_for(grid.count(), warps))),
                 dim3(32, static_cast<unsigned>(warps)), static_cast<std::size_t>(warps) * bytes, call.stream,
                 groups);
  }

  void filter_groups(const DeviceStageCall& call, const Grid& grid, const Memory& memory) const {
    FilterGroupsCall filter{};
    filter.grid = grid;
    filter.groups = memory.groups;
    filter.stride = static_cast<int>(group_words());
    filter.radius = step_.radius;
    filter.part_step = part_.step;
    filter.extent = part_.extent;
    for (int offset = -step_.radius; offset <= step_.radius; ++offset) {
      const ConstPlanes& noisy = call.at(0, offset);
      if (noisy.data == nullptr) continue;
      const ConstPlanes part = of_part(noisy);
      filter.noisy[step_.radius + offset] = part.data;
      filter.noisy_row_stride[step_.radius + offset] = part.row_stride;
      filter.noisy_plane_stride[step_.radius + offset] = part.plane_stride;
      filter.first_x = part.rect.x0;
      filter.first_y = part.rect.y0;
      if (step_.index == 0) continue;
      const ConstPlanes basic = of_part(call.at(3, offset));
      filter.basic[step_.radius + offset] = basic.data;
      filter.basic_row_stride = basic.row_stride;
      filter.basic_plane_stride = basic.plane_stride;
      filter.basic_first_x = basic.rect.x0;
      filter.basic_first_y = basic.rect.y0;
    }
    filter.planes = part_.planes;
    filter.wavelet = from_.transform == PatchTransform::bior15;
    filter.one_level = opponent_;
    filter.table = memory.table;
    std::copy_n(planes_, part_.planes, filter.plane);
    filter.sums = memory.sums;
    const std::vector<double> window = patch_window(time_patch, from_.kaiser);
    for (int i = 0; i < time_patch; ++i) filter.window[i] = static_cast<float>(window[i]);
    filter.patches = patches_;
    const bool wiener = step_.index == 1;
    const int bytes = (wiener ? 2 : 1) * patches_ * patch_floats * static_cast<int>(sizeof(float));
    const int warps = std::clamp(most_shared_bytes / bytes, 1, most_filter_warps);
    cuda::launch(wiener ? filter_groups_kernel<true> : filter_groups_kernel<false>,
                 dim3(static_cast<unsigned>(blocks_for(grid.count(), warps))),
                 dim3(32, static_cast<unsigned>(warps)), static_cast<std::size_t>(warps) * bytes, call.stream,
                 filter);
  }

  void finish(const DeviceStageCall& call, const Planes& out, const Bm3dSums& sums) const {
    Bm3dFinishCall finish{};
    finish.sums = sums;
    finish.noisy = of_part(call.at(0, 0));
    finish.out = out;
    for (int plane = 0; plane < 3; ++plane) {
      for (int c = 0; c < 3; ++c) finish.to_colours[plane][c] = static_cast<float>(opponent_matrix[plane][c]);
    }
    finish.lost = true;
    for (int plane = 0; plane < part_.planes; ++plane) finish.unit[plane] = planes_[plane].unit;
    finish.to_rgb = to_rgb_;
    const std::vector<double> window = patch_window(time_patch, from_.kaiser);
    for (int i = 0; i < time_patch; ++i) finish.window[i] = static_cast<float>(window[i]);
    cuda::launch_bm3d_finish(finish, call.stream);
  }

  TimePart part_;
  Extent image_;
  TimeStep step_;
  Bm3dStep from_;
  bool opponent_;
  bool to_rgb_;
  ReferenceAxis across_;
  ReferenceAxis down_;
  int reach_;
  int patches_ = 1;  // of a group at most
  PlaneTable planes_[max_channels];
  std::vector<float> table_;
  mutable std::once_flag pinned_made_;
  mutable cuda::PinnedBuffer pinned_;
};

// A step's planes that are copied.
void copy_planes(const DeviceStageCall& call, const TimeLayout& layout) {
  const Rect rect = call.out.rect;
  for (const TimeLayout::Copied& copied : layout.copied) {
    const int step = copied.rows_between;
    const int first = divided_up(rect.y0, step) * step;
    const int rows = divided_up(rect.y1 - first, step);
    if (rows <= 0) continue;
    const ConstPlanes& from = call.at(0, 0);
    const auto pitch = [step](std::ptrdiff_t stride) {
      return static_cast<std::size_t>(stride * step) * sizeof(float);
    };
    cuda::check(cudaMemcpy2DAsync(call.out.row(copied.plane, first), pitch(call.out.row_stride),
                                  &from.at(copied.plane, rect.x0, first), pitch(from.row_stride),
                                  static_cast<std::size_t>(rect.width()) * sizeof(float),
                                  static_cast<std::size_t>(rows), cudaMemcpyDeviceToDevice,
                                  static_cast<cudaStream_t>(call.stream.handle)),
                "copying a plane");
  }
}

// Rows of the pilot are made on the host. A copy from memory that is not page-locked returns when that may be
// used again.
void upload_pilot(const PilotRows& pilot, const DeviceStageCall& call) {
  const Rect rect = call.out.rect;
  const auto width = static_cast<std::size_t>(rect.width());
  const auto plane = width * static_cast<std::size_t>(rect.height());
  std::vector<float> pixels(plane * static_cast<std::size_t>(call.out.count));
  const Planes host{pixels.data(), rect, rect.width(), static_cast<std::ptrdiff_t>(plane), call.out.count};
  pilot.read(call.slice, host);
  for (int index = 0; index < call.out.count; ++index) {
    cuda::check(cudaMemcpy2DAsync(call.out.row(index, rect.y0),
                                  static_cast<std::size_t>(call.out.row_stride) * sizeof(float),
                                  host.row(index, rect.y0), width * sizeof(float), width * sizeof(float),
                                  static_cast<std::size_t>(rect.height()), cudaMemcpyHostToDevice,
                                  static_cast<cudaStream_t>(call.stream.handle)),
                "copying a pilot to the GPU");
  }
}

}  // namespace

Pipeline bm3d_time_cuda(const Bm3dSettings& settings, const ImageSpec& spec) {
  const TimeLayout layout = time_layout(settings, spec);
  std::vector<MatchPixels> pixels;
  std::vector<int> penalties;
  for (const int plane : layout.matched) {
    pixels.push_back(match_pixels(settings, spec, plane));
    penalties.push_back(motion_penalty(settings, spec, plane));
  }
  TimeStages stages;
  stages.pilot.launch = [pilot = PilotRows(settings, spec)](const DeviceStageCall& call) {
    upload_pilot(pilot, call);
  };
  stages.colour.launch = cuda::launch_bm3d_opponent;
  stages.match.launch = [=](const DeviceStageCall& call) {
    launch_match(call, layout.matched, pixels, true);
  };
  stages.match_again.launch = [=](const DeviceStageCall& call) {
    launch_match(call, layout.matched, pixels, false);
  };
  stages.motion.launch = [=](const DeviceStageCall& call) { cuda::launch_motion(call, penalties); };
  stages.motion.scratch = cuda::motion_scratch({spec.width, spec.height}, static_cast<int>(penalties.size()));
  for (int index = 0; index < settings.steps; ++index) {
    std::vector<std::shared_ptr<const PartStep>> parts;
    for (const TimePart& part : layout.parts)
      parts.push_back(
          std::make_shared<const PartStep>(settings, spec, part, layout.matched[part.unit], index));
    stages.steps[index].scratch_for = [parts](int rows) {
      std::size_t most = 0;
      for (const auto& part : parts) most = std::max(most, part->scratch(rows));
      return most;
    };
    stages.steps[index].launch = [parts, layout](const DeviceStageCall& call) {
      copy_planes(call, layout);
      for (const auto& part : parts) part->launch(call);
    };
  }
  return time_pipeline(settings, spec, stages);
}

}  // namespace ungrain
