// Groups that never leave the multiprocessor: one kernel brings their patches into shared memory, transforms,
// shrinks, transforms back and aggregates. Only lists of patches lie in global memory, so that the picture
// needs no batches.
//
// Then three steps of the aggregation: sums of a block in shared memory, added to the picture's once; of the
// weights one number for each patch; sums of whole numbers, which shared memory can add to by itself, and
// which do not depend on the order.
//
// A block has 8 x 4 reference patches, four at a time; 64 threads for each, one for each number of a patch.
#include "study/bm3d/pipeline.cuh"
#include "study/bm3d/rungs.h"

namespace ungrain::study {
namespace bm3d {
namespace {

enum class Sums {
  global,        // every estimate and its weight are added to the picture's sums
  on_chip,       // to the block's
  one_weight,    // one weight for each patch, at its first pixel
  whole_numbers  // in units of 1 / value_steps and 1 / weight_steps
};

constexpr int teams = 4;
constexpr int tile_columns = 8;
constexpr int tile_rows = 4;
constexpr int rounds = tile_columns * tile_rows / teams;
constexpr int fused_threads = teams * patch_pixels;
// The pixels that patches of the tile's groups may lie on.
constexpr int tile_width = (tile_columns - 1) * spacing + patch + 2 * most_reach;
constexpr int tile_height = (tile_rows - 1) * spacing + patch + 2 * most_reach;
constexpr int tile_pixels = tile_width * tile_height;

// Whole numbers are of what an estimate is above mid-gray. 512 patches at most are added at one pixel, one
// patch at most 32 times.
constexpr float mid_gray = 128;
constexpr float value_steps = 0x1p13F;
constexpr float weight_steps = 0x1p25F;

struct FusedCall {
  Picture picture;
  References references;
  const Key* lists;
  const int* sizes;
  const float* table;
  float threshold;
  void* values;   // [row][column] of the picture: float, or 64-bit whole numbers
  void* weights;  // the same
};

struct alignas(16) TeamMemory {
  float work[most_patches][patch_pixels];
  float along[square];
  Key keys[most_patches];
  int kept;
};

template <class Number>
struct Tile {
  Number values[tile_pixels];
  Number weights[tile_pixels];
};

__device__ inline int whole_number(float value) { return __float2int_rn(value); }

// Where a tile's sums go.
__device__ inline void add_to(void* sums, int at, float value) {
  atomicAdd(static_cast<float*>(sums) + at, value);
}
__device__ inline void add_to(void* sums, int at, int value) {
  atomicAdd(static_cast<unsigned long long*>(sums) + at,
            static_cast<unsigned long long>(static_cast<long long>(value)));
}

// A row or a column of a patch's numbers, `apart` from each other, times one of the matrix.
__device__ inline float product(const float* matrix, int matrix_apart, const float* numbers, int apart) {
  float sum = 0;
#pragma unroll
  for (int k = 0; k < patch; ++k) sum += matrix[k * matrix_apart] * numbers[k * apart];
  return sum;
}

template <Sums Kind>
__global__ void __launch_bounds__(fused_threads, 4) fused_kernel(FusedCall call) {
  using Number = std::conditional_t<Kind == Sums::whole_numbers, int, float>;
  constexpr bool on_chip = Kind != Sums::global;
  extern __shared__ __align__(16) unsigned fused_memory[];
  auto* memories = reinterpret_cast<TeamMemory*>(fused_memory);
  auto* tile = reinterpret_cast<Tile<Number>*>(memories + teams);
  constexpr int matrix_pitch = patch + 1;
  __shared__ float matrix[patch * matrix_pitch];

  const Picture& picture = call.picture;
  const References& references = call.references;
  const int thread = thread_x();
  const int c = thread % patch_pixels;  // of the team's threads, and of a patch's numbers
  const int px = c % patch;
  const int py = c / patch;
  TeamMemory& memory = memories[thread / patch_pixels];
  const int i0 = static_cast<int>(blockIdx.x) * tile_columns;
  const int j0 = static_cast<int>(blockIdx.y) * tile_rows;
  const int tile_x = references.x(i0) - most_reach;
  const int tile_y = references.y(j0) - most_reach;
  if (thread < patch_pixels)
    matrix[py * matrix_pitch + px] = call.table[patch * square + py * most_patches + px];
  if constexpr (on_chip) {
    for (int i = thread; i < tile_pixels; i += fused_threads) {
      tile->values[i] = 0;
      tile->weights[i] = 0;
    }
  }

  for (int round = 0; round < rounds; ++round) {
    const int number = round * teams + thread / patch_pixels;
    const int i = i0 + number % tile_columns;
    const int j = j0 + number / tile_columns;
    const int x = references.x(i);
    const int y = references.y(j);
    const int group = j * references.columns + i;
    // Teams past the last reference patch wait with the others.
    const int size = i < references.columns && j < references.rows ? call.sizes[group] : 0;
    __syncthreads();
    if (c < size) memory.keys[c] = call.lists[group * most_patches + c];
    for (int k = c; k < square; k += patch_pixels) memory.along[k] = call.table[size * square + k];
    if (c == 0) memory.kept = 0;
    __syncthreads();

    float numbers[most_patches];
#pragma unroll
    for (int n = 0; n < most_patches; ++n) {
      float pixel_value = 0;
      if (n < size) {
        const Shift shift = shift_of(memory.keys[n]);
        pixel_value = picture.bytes[(y + shift.y + py) * picture.stride + x + shift.x + px];
      }
      memory.work[n][c] = pixel_value;
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < most_patches; ++n)
      numbers[n] = product(matrix + px * matrix_pitch, 1, memory.work[n] + py * patch, 1);
    __syncthreads();
#pragma unroll
    for (int n = 0; n < most_patches; ++n) memory.work[n][c] = numbers[n];
    __syncthreads();
#pragma unroll
    for (int n = 0; n < most_patches; ++n)
      numbers[n] = product(matrix + py * matrix_pitch, 1, memory.work[n] + px, patch);

    float estimates[most_patches];
    const int count = shrink_along(memory.along, size, call.threshold, numbers, estimates);
    atomicAdd(&memory.kept, count);
    __syncthreads();
#pragma unroll
    for (int n = 0; n < most_patches; ++n) memory.work[n][c] = estimates[n];
    __syncthreads();
#pragma unroll
    for (int n = 0; n < most_patches; ++n)
      numbers[n] = product(matrix + px, matrix_pitch, memory.work[n] + py * patch, 1);
    __syncthreads();
#pragma unroll
    for (int n = 0; n < most_patches; ++n) memory.work[n][c] = numbers[n];
    __syncthreads();

    const float weight = 1 / static_cast<float>(max(memory.kept, 1));
#pragma unroll
    for (int n = 0; n < most_patches; ++n) {
      if (n >= size) break;
      const float estimate = product(matrix + py, matrix_pitch, memory.work[n] + px, patch);
      const Shift shift = shift_of(memory.keys[n]);
      const int at_x = x + shift.x;
      const int at_y = y + shift.y;
      if constexpr (on_chip) {
        const int at = (at_y + py - tile_y) * tile_width + at_x + px - tile_x;
        if constexpr (Kind == Sums::whole_numbers) {
          atomicAdd(&tile->values[at], whole_number(weight * (estimate - mid_gray) * value_steps));
          if (c == 0) atomicAdd(&tile->weights[at], whole_number(weight * weight_steps));
        } else {
          atomicAdd(&tile->values[at], weight * estimate);
          if (Kind == Sums::on_chip || c == 0) atomicAdd(&tile->weights[at], weight);
        }
      } else {
        const int at = (at_y + py) * picture.width + at_x + px;
        add_to(call.values, at, weight * estimate);
        add_to(call.weights, at, weight);
      }
    }
  }
  if constexpr (on_chip) {
    __syncthreads();
    for (int i = thread; i < tile_pixels; i += fused_threads) {
      const int at_x = tile_x + i % tile_width;
      const int at_y = tile_y + i / tile_width;
      if (!in_picture(picture, at_x, at_y)) continue;
      const int at = at_y * picture.width + at_x;
      if (tile->values[i] != 0) add_to(call.values, at, tile->values[i]);
      if (tile->weights[i] != 0) add_to(call.weights, at, tile->weights[i]);
    }
  }
}

template <Sums Kind>
__global__ void divide_sums_kernel(FusedCall call) {
  const Picture& picture = call.picture;
  const int x = first_column() + thread_x();
  const int y = static_cast<int>(blockIdx.y);
  if (x >= picture.width) return;
  const int at = y * picture.width + x;
  if constexpr (Kind == Sums::global || Kind == Sums::on_chip) {
    picture.out[at] =
        static_cast<const float*>(call.values)[at] / static_cast<const float*>(call.weights)[at];
  } else {
    // Of all patches that reach the pixel.
    using Number = std::conditional_t<Kind == Sums::whole_numbers, long long, float>;
    const auto* weights = static_cast<const Number*>(call.weights);
    Number weight = 0;
    for (int from_y = max(0, y - patch + 1); from_y <= y; ++from_y) {
      for (int from_x = max(0, x - patch + 1); from_x <= x; ++from_x)
        weight += weights[from_y * picture.width + from_x];
    }
    const auto value = static_cast<float>(static_cast<const Number*>(call.values)[at]);
    picture.out[at] = Kind == Sums::whole_numbers
                          ? mid_gray + value / static_cast<float>(weight) * (weight_steps / value_steps)
                          : value / static_cast<float>(weight);
  }
}

struct FusedBuffers {
  cuda::DeviceBuffer lists;
  cuda::DeviceBuffer sizes;
  cuda::DeviceBuffer sums;
  std::shared_ptr<const cuda::DeviceBuffer> table;
};

template <Sums Kind>
std::optional<Prepared> prepare(const RungCall& call) {
  constexpr std::size_t number_bytes = Kind == Sums::whole_numbers ? sizeof(long long) : sizeof(float);
  constexpr std::size_t shared =
      teams * sizeof(TeamMemory) + (Kind == Sums::global ? 0 : sizeof(Tile<float>));
  const auto use = kernel_use(fused_kernel<Kind>, fused_threads, shared);
  if (!use || !match_rows_use(fused_match_rows)) return {};
  const Picture picture = call.device;
  const References references(picture);
  const Batch all{0, 0, references.columns, references.rows};
  const auto groups = static_cast<std::size_t>(all.groups());
  const auto pixels = static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height);
  const auto buffers = std::make_shared<FusedBuffers>();
  buffers->lists = cuda::DeviceBuffer(groups * most_patches * sizeof(Key));
  buffers->sizes = cuda::DeviceBuffer(groups * sizeof(int));
  buffers->sums = cuda::DeviceBuffer(2 * pixels * number_bytes);
  buffers->table = cosine_table();
  const FusedCall fused{.picture = picture,
                        .references = references,
                        .lists = static_cast<const Key*>(buffers->lists.data()),
                        .sizes = static_cast<const int*>(buffers->sizes.data()),
                        .table = static_cast<const float*>(buffers->table->data()),
                        .threshold = squared_threshold(call.strengths),
                        .values = buffers->sums.data(),
                        .weights = static_cast<std::byte*>(buffers->sums.data()) + pixels * number_bytes};
  const auto parts = [=, reach = call.strengths.radius](const PartBegins& begin) {
    begin("matching");
    launch_match_rows({picture, references, all, reach, static_cast<Key*>(buffers->lists.data()),
                       static_cast<int*>(buffers->sizes.data())},
                      fused_match_rows);
    begin("the rest");
    cuda::check(cudaMemsetAsync(buffers->sums.data(), 0, buffers->sums.size(), nullptr), "clearing memory");
    begin("filtering and aggregation");
    const dim3 tiles(static_cast<unsigned>(cuda::blocks_for(references.columns, tile_columns)),
                     static_cast<unsigned>(cuda::blocks_for(references.rows, tile_rows)));
    cuda::launch(fused_kernel<Kind>, tiles, dim3(fused_threads), shared, Stream{}, fused);
    begin("the rest");
    constexpr int threads = 256;
    const dim3 rows(static_cast<unsigned>(cuda::blocks_for(picture.width, threads)),
                    static_cast<unsigned>(picture.height));
    cuda::launch(divide_sums_kernel<Kind>, rows, dim3(threads), 0, Stream{}, fused);
  };
  return prepared_parts(parts, use);
}

template <Sums Kind>
Rung fused_rung(const char* name, const char* idea) {
  return {.name = name,
          .paper = "ours",
          .idea = idea,
          .shapes = Shapes::none,
          .computes = "dct",
          .prepare = prepare<Kind>};
}

}  // namespace
}  // namespace bm3d

std::vector<Rung> bm3d_fused() {
  using namespace bm3d;
  return {
      fused_rung<Sums::global>("7 fused filtering",
                               "6 with groups assembled, filtered and aggregated by one kernel, no batches"),
      fused_rung<Sums::on_chip>("8 on-chip aggregation", "7 with a block's sums in shared memory"),
      fused_rung<Sums::one_weight>("9 one weight a patch",
                                   "8 with weights added once for a patch, spread over it at the end"),
      fused_rung<Sums::whole_numbers>("10 whole numbers", "9 with sums of whole numbers")};
}

}  // namespace ungrain::study
