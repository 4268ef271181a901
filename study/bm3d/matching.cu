#include "study/bm3d/matching.cuh"

namespace ungrain::study::bm3d {

// Every thread by itself, as the definition says.
class OwnDistances {
 public:
  static constexpr int words = 0;

  __device__ OwnDistances(const MatchCall& call, int, int x, int y, unsigned*)
      : call_(call), x_(x), own_(call.picture.bytes + y * call.picture.stride + x) {}

  __device__ unsigned to(int dx, int dy) const {
    if (x_ + dx < 0 || x_ + dx > call_.references.last_x) return no_key;
    const int stride = call_.picture.stride;
    const std::uint8_t* other = own_ + dy * stride + dx;
    unsigned sum = 0;
    for (int r = 0; r < patch; ++r) {
#pragma unroll
      for (int c = 0; c < patch; ++c) {
        const int difference = own_[r * stride + c] - other[r * stride + c];
        sum += static_cast<unsigned>(difference * difference);
      }
    }
    return sum;
  }

 private:
  const MatchCall& call_;
  int x_;
  const std::uint8_t* own_;
};

// §4.3.1: patches of neighbouring reference patches overlap. A warp first computes the distances of columns,
// then a lane sums those of its patch. The reference patches' pixels lie in shared memory.
class SharedColumns {
 public:
  static constexpr int words = patch * area_pitch / 4 + match_warps * area_pitch;

  __device__ SharedColumns(const MatchCall& call, int x0, int x, int y, unsigned* room)
      : picture_(call.picture),
        x0_(x0),
        y_(y),
        own_(reinterpret_cast<std::uint8_t*>(room)),
        columns_(room + patch * area_pitch / 4 + thread_x() / warp_lanes * area_pitch),
        first_(x - x0) {
    auto* own = reinterpret_cast<std::uint8_t*>(room);
    for (int i = thread_x(); i < patch * area_columns; i += match_threads) {
      const int c = i % area_columns;
      const int r = i / area_columns;
      own[r * area_pitch + c] =
          x0 + c < picture_.width ? picture_.bytes[(y + r) * picture_.stride + x0 + c] : 0;
    }
    __syncthreads();
  }

  __device__ unsigned to(int dx, int dy) const {
    for (int c = thread_x() % warp_lanes; c < area_columns; c += warp_lanes) {
      const int other_x = x0_ + c + dx;
      unsigned sum = 0;
      if (x0_ + c < picture_.width && other_x >= 0 && other_x < picture_.width) {
        const std::uint8_t* other = picture_.bytes + (y_ + dy) * picture_.stride + other_x;
#pragma unroll
        for (int r = 0; r < patch; ++r) {
          const int difference = own_[r * area_pitch + c] - other[r * picture_.stride];
          sum += static_cast<unsigned>(difference * difference);
        }
      }
      columns_[c] = sum;
    }
    __syncwarp();
    const unsigned sum = sum_of_columns(columns_ + first_);
    __syncwarp();
    return sum;
  }

 private:
  const Picture& picture_;
  int x0_;
  int y_;
  const std::uint8_t* own_;
  unsigned* columns_;  // of this warp
  int first_;
};

// [002]'s future work: four pixels in one instruction. A word holds a pixel and the three below it, so that a
// column of a patch is two words.
class FourPixels {
 public:
  static constexpr int words = 2 * area_pitch + match_warps * area_pitch;

  __device__ FourPixels(const MatchCall& call, int x0, int x, int y, unsigned* room)
      : quads_(call.quads),
        width_(call.picture.width),
        x0_(x0),
        y_(y),
        own_(room),
        columns_(room + 2 * area_pitch + thread_x() / warp_lanes * area_pitch),
        first_(x - x0) {
    for (int i = thread_x(); i < 2 * area_columns; i += match_threads) {
      const int c = i % area_columns;
      const int half = i / area_columns;
      room[half * area_pitch + c] = x0 + c < width_ ? quads_[(y + 4 * half) * width_ + x0 + c] : 0;
    }
    __syncthreads();
  }

  __device__ unsigned to(int dx, int dy) const {
    for (int c = thread_x() % warp_lanes; c < area_columns; c += warp_lanes) {
      const int other_x = x0_ + c + dx;
      unsigned sum = 0;
      if (x0_ + c < width_ && other_x >= 0 && other_x < width_) {
        const std::uint32_t* other = quads_ + (y_ + dy) * width_ + other_x;
        const unsigned upper = __vabsdiffu4(own_[c], other[0]);
        const unsigned lower = __vabsdiffu4(own_[area_pitch + c], other[4 * width_]);
        sum = __dp4a(lower, lower, __dp4a(upper, upper, 0U));
      }
      columns_[c] = sum;
    }
    __syncwarp();
    const unsigned sum = sum_of_columns(columns_ + first_);
    __syncwarp();
    return sum;
  }

 private:
  const std::uint32_t* quads_;
  int width_;
  int x0_;
  int y_;
  const unsigned* own_;
  unsigned* columns_;  // of this warp
  int first_;
};

namespace {

// All lanes of a warp ask for the distances of one shift together.
template <class Distances>
__global__ void match_kernel(MatchCall call) {
  extern __shared__ unsigned match_memory[];
  Key* keys = match_memory;
  int* counts = reinterpret_cast<int*>(keys + most_patches * match_threads);
  unsigned* room = match_memory + (most_patches + 1) * match_threads;
  const int thread = thread_x();
  const int lane = thread % warp_lanes;
  const int warp = thread / warp_lanes;
  const int first_of_block = static_cast<int>(blockIdx.x) * warp_lanes;
  const int row = static_cast<int>(blockIdx.y);
  // Lanes past the batch's end repeat its last column.
  const int column = min(first_of_block + lane, call.batch.columns - 1);
  const int x0 = call.references.x(call.batch.i + first_of_block);
  const int x = call.references.x(call.batch.i + column);
  const int y = call.references.y(call.batch.j + row);
  const Distances distances(call, x0, x, y, room);
  Stack stack{keys + thread, match_threads};
  for (int dy = -call.reach; dy <= call.reach; ++dy) {
    if (y + dy < 0 || y + dy > call.references.last_y) continue;
    for (int dx = warp - call.reach; dx <= call.reach; dx += match_warps) {
      const unsigned distance = distances.to(dx, dy);
      const bool inside = x + dx >= 0 && x + dx <= call.references.last_x;
      if (inside && distance <= most_distance) stack.add(key_of(distance, dx, dy));
    }
  }
  counts[thread] = stack.count;
  __syncthreads();
  if (warp == 0 && first_of_block + lane < call.batch.columns) {
    const int group = row * call.batch.columns + column;
    call.sizes[group] = merge_stacks(keys + lane, match_threads, counts + lane, match_warps,
                                     call.lists + group * most_patches);
  }
}

template <class Distances>
constexpr std::size_t match_bytes = sizeof(unsigned) *
                                    ((most_patches + 1) * match_threads + Distances::words);

}  // namespace

template <class Distances>
void launch_match(const MatchCall& call) {
  const dim3 grid(static_cast<unsigned>(cuda::blocks_for(call.batch.columns, warp_lanes)),
                  static_cast<unsigned>(call.batch.rows));
  cuda::launch(match_kernel<Distances>, grid, dim3(match_threads), match_bytes<Distances>, Stream{}, call);
}

template <class Distances>
std::optional<KernelUse> match_use() {
  return kernel_use(match_kernel<Distances>, match_threads, match_bytes<Distances>);
}

template void launch_match<OwnDistances>(const MatchCall&);
template void launch_match<SharedColumns>(const MatchCall&);
template void launch_match<FourPixels>(const MatchCall&);
template std::optional<KernelUse> match_use<OwnDistances>();
template std::optional<KernelUse> match_use<SharedColumns>();
template std::optional<KernelUse> match_use<FourPixels>();

}  // namespace ungrain::study::bm3d
