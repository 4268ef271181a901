// The search for similar patches on a GPU, by differences of floats, or of whole numbers.
//
//   block   8 warps, each on its own
//   warp    one reference at a time; 32 candidates at a time, in reading order
//   lane l  one candidate's distance; of the nearest so far, sorted over the warp, those of rank l and l + 32
//
//   pixels -> 32 distances -> keys -> those below the last that is wanted, inserted one by one -> offsets
//   key: bits of the distance | position in reading order, from 1
//
// Neighbouring lanes have neighbouring candidates, so that each pixel of all their patches is one coalesced
// load. No two keys are equal: the result does not depend on which came first. Bound by loads, two for each
// pixel of a candidate's patch. It takes any patch and any values; where products of halves serve
// (cuda_match_octet.cuh) it only does the references that they leave out.
#include "cuda/launch.cuh"
#include "groups/cuda_match.h"
#include "groups/cuda_match_halves.h"

namespace ungrain::cuda {
namespace {

constexpr int warp_size = 32;
constexpr int warps_of_block = 8;
constexpr unsigned all_lanes = ~0U;

using Key = unsigned long long;
constexpr Key nothing = ~0ULL;
constexpr Key the_reference = 0;  // smaller than all others, whose positions count from 1

// Distances are not negative, so their bits are ordered as they are.
__device__ Key key_of(float distance, int position) {
  return static_cast<Key>(__float_as_uint(distance)) << 32 | static_cast<unsigned>(position);
}

// The window around a reference, its positions counted in reading order from 1.
struct SearchWindow {
  int side;

  __device__ int reach() const { return side / 2; }
  __device__ int position(int dx, int dy) const { return (dy + reach()) * side + dx + reach() + 1; }
  __device__ char2 offset(Key key) const {
    const int position = static_cast<int>(key & 0xFFFFFFFFU) - 1;
    if (key == the_reference || key == nothing) return make_char2(0, 0);
    return make_char2(static_cast<signed char>(position % side - reach()),
                      static_cast<signed char>(position / side - reach()));
  }
};

struct Reference {
  int index;  // of the call
  int x;
  int y;

  __device__ Reference(const GroupMatchCall& call, int index_of_call) : index(index_of_call) {
    x = call.grid.x(call.grid.first_i + index % call.grid.count_i);
    y = call.grid.y(call.grid.first_j + index / call.grid.count_i);
  }
  __device__ char2* offsets(const GroupMatchCall& call) const {
    return reinterpret_cast<char2*>(call.offsets) + static_cast<std::ptrdiff_t>(index) * call.count;
  }
};

// The smallest keys in order: lane l holds ranks l and l + 32.
class SmallestKeys {
 public:
  __device__ explicit SmallestKeys(int wanted) : lane_(threadIdx.x % warp_size), wanted_(wanted) {}

  // Inserts each lane's key; `nothing` is ignored.
  __device__ void offer(Key key) {
    unsigned lanes = __ballot_sync(all_lanes, key < last_);
    while (lanes != 0) {
      const Key next = __shfl_sync(all_lanes, key, __ffs(static_cast<int>(lanes)) - 1);
      if (next < last_) insert(next);
      lanes &= lanes - 1;
    }
  }

  // Writes the offsets, 0 for missing ones; returns how many there are.
  __device__ int store(const SearchWindow& window, char2* offsets, int places) const {
    int found = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int rank = half * warp_size + lane_;
      const Key key = rank < wanted_ ? keys_[half] : nothing;
      if (rank < places) offsets[rank] = window.offset(key);
      found += __popc(__ballot_sync(all_lanes, key != nothing));
    }
    return found;
  }

 private:
  __device__ void insert(Key key) {
    const int rank =
        __popc(__ballot_sync(all_lanes, keys_[0] < key)) + __popc(__ballot_sync(all_lanes, keys_[1] < key));
    const Key middle = __shfl_sync(all_lanes, keys_[0], warp_size - 1);
    const Key before_first = __shfl_up_sync(all_lanes, keys_[0], 1);
    const Key up = __shfl_up_sync(all_lanes, keys_[1], 1);
    const Key before_second = lane_ == 0 ? middle : up;
    if (lane_ >= rank) keys_[0] = lane_ == rank ? key : before_first;
    if (lane_ + warp_size >= rank) keys_[1] = lane_ + warp_size == rank ? key : before_second;
    last_ = __shfl_sync(all_lanes, wanted_ > warp_size ? keys_[1] : keys_[0], (wanted_ - 1) % warp_size);
  }

  int lane_;
  int wanted_;
  Key keys_[2] = {nothing, nothing};
  Key last_ = nothing;  // the largest of the wanted keys
};

__device__ float distance_of(const GroupMatchCall& call, const Reference& reference, int x, int y) {
  float sum = 0;
  for (int row = 0; row < call.patch; ++row) {
    const float* const a = &call.plane.at(0, reference.x, reference.y + row);
    const float* const b = &call.plane.at(0, x, y + row);
    for (int column = 0; column < call.patch; ++column) {
      const float difference = a[column] - b[column];
      sum = fmaf(difference, difference, sum);
    }
  }
  return sum;
}

// The candidates' places.
struct Candidates {
  int first_x;
  int last_x;
  int first_y;
  int last_y;

  __device__ Candidates(const GroupMatchCall& call, const Reference& reference, int reach) {
    first_x = max(0, reference.x - reach);
    last_x = min(call.image.width - call.patch, reference.x + reach);
    first_y = max(0, reference.y - reach);
    last_y = min(call.image.height - call.patch, reference.y + reach);
  }
  __device__ int columns() const { return last_x - first_x + 1; }
  __device__ int count() const { return columns() * (last_y - first_y + 1); }
};

// Differences of whole numbers.
class IntegerDistances {
 public:
  __device__ IntegerDistances(const GroupMatchCall& call, const Reference& reference,
                              const Candidates& candidates)
      : call_(call), reference_(reference) {
    middle_ = call.middle;
    scale_ = call.scale;
    most_ = call.integers.most;
    if (!window_is_within(candidates)) {
      middle_ = 0;
      for (int i = 0; i < call.patch * call.patch; ++i)
        middle_ += at(reference.x + i % call.patch, reference.y + i / call.patch) / pixels();
      scale_ = call.integers.beyond_scale;
      most_ = call.integers.beyond_most;
    }
    int sum = 0;
    for (int i = 0; i < call.patch * call.patch; ++i) {
      const int own = integer(reference.x + i % call.patch, reference.y + i / call.patch);
      sum += own * own;
    }
    own_half_ = (sum + 1) / 2;
  }

  // Half the distance.
  __device__ int operator()(int x, int y) const {
    int squares = 0;
    int products = 0;
    for (int row = 0; row < call_.patch; ++row) {
      for (int column = 0; column < call_.patch; ++column) {
        const int a = integer(reference_.x + column, reference_.y + row);
        const int b = integer(x + column, y + row);
        squares += b * b;
        products += a * b;
      }
    }
    return own_half_ + (squares + 1) / 2 - products;
  }

 private:
  __device__ float at(int x, int y) const { return call_.plane.at(0, x, y); }
  __device__ float pixels() const { return static_cast<float>(call_.patch * call_.patch); }
  __device__ float level(int x, int y) const { return __fmul_rn(at(x, y) - middle_, scale_); }
  __device__ int integer(int x, int y) const {
    return __float2int_rn(fminf(fmaxf(level(x, y), -most_), most_));
  }
  __device__ bool window_is_within(const Candidates& candidates) const {
    bool within = true;
    for (int y = candidates.first_y; y < candidates.last_y + call_.patch; ++y) {
      for (int x = candidates.first_x + static_cast<int>(threadIdx.x) % warp_size;
           x < candidates.last_x + call_.patch; x += warp_size) {
        within = within && fabsf(level(x, y)) <= most_;
      }
    }
    return __all_sync(all_lanes, within) != 0;
  }

  const GroupMatchCall& call_;
  const Reference& reference_;
  float middle_;
  float scale_;
  float most_;
  int own_half_;
};

// distance_key(x, y, position): a candidate's key, or `nothing`.
template <class DistanceKey>
__device__ void keep_nearest(const GroupMatchCall& call, const Reference& reference,
                             const Candidates& candidates, const DistanceKey& distance_key) {
  const int lane = threadIdx.x % warp_size;
  const SearchWindow window{call.search};
  const int columns = candidates.columns();
  const int count = candidates.count();
  SmallestKeys nearest(call.count);
  nearest.offer(lane == 0 ? the_reference : nothing);
  for (int first = 0; first < count; first += warp_size) {
    const int candidate = first + lane;
    Key key = nothing;
    if (candidate < count) {
      const int x = candidates.first_x + candidate % columns;
      const int y = candidates.first_y + candidate / columns;
      const bool is_reference = x == reference.x && y == reference.y;
      if (!is_reference) key = distance_key(x, y, window.position(x - reference.x, y - reference.y));
    }
    nearest.offer(key);
  }
  const int found = nearest.store(window, reference.offsets(call), call.count);
  if (lane == 0) call.found[reference.index] = static_cast<std::uint8_t>(found);
}

__device__ void find_nearest(const GroupMatchCall& call, const Reference& reference) {
  const Candidates candidates(call, reference, call.search / 2);
  if (call.integers.most > 0) {
    const IntegerDistances half_distance(call, reference, candidates);
    keep_nearest(call, reference, candidates, [&](int x, int y, int position) {
      return static_cast<Key>(half_distance(x, y)) << 32 | static_cast<unsigned>(position);
    });
    return;
  }
  keep_nearest(call, reference, candidates, [&](int x, int y, int position) {
    float distance = distance_of(call, reference, x, y);
    if (call.corrections != nullptr) distance += call.corrections[position - 1];
    return distance <= call.max_distance ? key_of(distance, position) : nothing;
  });
}

// A warp takes `each` references, at most 32. With `left_out` it takes only those for which the search by
// halves found nothing.
__global__ void __launch_bounds__(warps_of_block* warp_size)
    find_nearest_kernel(GroupMatchCall call, int each, bool left_out) {
  const int lane = threadIdx.x % warp_size;
  const int warp = static_cast<int>(blockIdx.x) * warps_of_block + static_cast<int>(threadIdx.x) / warp_size;
  const long long first = static_cast<long long>(warp) * each;
  const bool mine = lane < each && first + lane < call.grid.references();
  const bool wanted = mine && (!left_out || call.found[first + lane] == 0);
  for (unsigned lanes = __ballot_sync(all_lanes, wanted); lanes != 0; lanes &= lanes - 1) {
    const int next = static_cast<int>(first) + __ffs(static_cast<int>(lanes)) - 1;
    find_nearest(call, Reference(call, next));
  }
}

void launch_find_nearest(const GroupMatchCall& call, bool left_out, Stream stream) {
  const int each = left_out ? warp_size : 1;
  launch(find_nearest_kernel, blocks_for(call.grid.references(), each * warps_of_block),
         warps_of_block * warp_size, 0, stream, call, each, left_out);
}

}  // namespace

std::size_t group_match_scratch(const GroupMatchCall& call) { return halves_match::scratch_floats(call); }

void launch_group_match(const GroupMatchCall& call, Stream stream) {
  if (call.grid.references() == 0) return;
  const bool by_halves = call.corrections == nullptr && halves_match::suits(call);
  if (by_halves) halves_match::launch_match(call, stream);
  launch_find_nearest(call, by_halves, stream);
}

}  // namespace ungrain::cuda
