// One warp a block of pixels; each level is a launch.
#include "cuda/launch.cuh"
#include "cuda/warp.cuh"
#include "motion/cuda.h"
#include "motion/motion.h"

namespace ungrain::cuda {
namespace {

constexpr int warps = 4;  // of a block of threads
constexpr int pixels_of_lane = motion_block * motion_block / 32;

// Blocks of a level and their vectors, before all the blocks of the image before, then those of the image
// after.
struct LevelField {
  std::uint16_t* vectors = nullptr;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t to_after = 0;  // from a vector to the image before to that to the image after
  int x0 = 0;
  int y0 = 0;
  int across = 0;
  int down = 0;
};

struct MotionCall {
  LevelPixels from;
  LevelPixels to[2];  // no data: there is no image
  LevelField field;
  LevelField coarser;
  int penalty = 0;
  bool coarsest = false;
};

struct LanePixels {
  int values[pixels_of_lane];
};

// A lane has pixels of one column, of every other row.
__device__ LanePixels load_block(const LevelPixels& level, int left, int top) {
  const int lane = static_cast<int>(threadIdx.x);
  const int x = min(max(left + lane % motion_block, 0), level.width - 1);
  LanePixels pixels;
#pragma unroll
  for (int i = 0; i < pixels_of_lane; ++i) {
    const int y = min(max(top + lane / motion_block + 2 * i, 0), level.height - 1);
    pixels.values[i] = *level.at(x, y);
  }
  return pixels;
}

struct Best {
  MotionVector vector;
  int cost = 0x7fffffff;
};

__device__ void attempt(const MotionCall& call, const LevelPixels& to, const LanePixels& own, int left,
                        int top, MotionVector v, int penalty, Best& best) {
  const LanePixels there = load_block(to, left + v.x, top + v.y);
  int difference = 0;
#pragma unroll
  for (int i = 0; i < pixels_of_lane; ++i) difference += abs(own.values[i] - there.values[i]);
  const int cost = warp_sum(difference) + penalty;
  if (cost >= best.cost) return;
  best.cost = cost;
  best.vector = v;
}

__global__ void __launch_bounds__(32 * warps) motion_kernel(const __grid_constant__ MotionCall call) {
  const int block = static_cast<int>(blockIdx.x) * warps + static_cast<int>(threadIdx.y);
  const int after = static_cast<int>(blockIdx.y);
  const LevelField& field = call.field;
  if (block >= field.across * field.down) return;
  const int x = field.x0 + block % field.across;
  const int y = field.y0 + block / field.across;
  const int left = x * motion_block;
  const int top = y * motion_block;
  const LevelPixels& to = call.to[after];
  Best best;
  if (to.data != nullptr) {
    const LanePixels own = load_block(call.from, left, top);
    attempt(call, to, own, left, top, {0, 0}, 0, best);
    if (call.coarsest) {
      for (int dy = -coarse_range; dy <= coarse_range; ++dy) {
        for (int dx = -coarse_range; dx <= coarse_range; ++dx)
          attempt(call, to, own, left, top, {dx, dy}, call.penalty, best);
      }
    } else {
      const LevelField& coarser = call.coarser;
      // Neighbours often move alike.
      int previous = packed({0, 0});
      for (int n = 0; n < 9; ++n) {
        const int cx = min(max(x / 2 + n % 3 - 1, coarser.x0), coarser.x0 + coarser.across - 1);
        const int cy = min(max(y / 2 + n / 3 - 1, coarser.y0), coarser.y0 + coarser.down - 1);
        const std::uint16_t vector = coarser.vectors[(cy - coarser.y0) * coarser.row_stride +
                                                     (cx - coarser.x0) + after * coarser.to_after];
        if (vector == previous) continue;
        previous = vector;
        const MotionVector v = unpacked(vector);
        attempt(call, to, own, left, top, {2 * v.x, 2 * v.y}, 0, best);
      }
      const MotionVector centre = best.vector;
      for (int n = 0; n < 9; ++n) {
        if (n == 4) continue;
        attempt(call, to, own, left, top, {centre.x + n % 3 - 1, centre.y + n / 3 - 1}, call.penalty, best);
      }
    }
  } else {
    best.vector = {};
  }
  if (threadIdx.x != 0) return;
  field.vectors[(y - field.y0) * field.row_stride + (x - field.x0) + after * field.to_after] =
      packed(best.vector);
}

// The blocks of the next coarser level that a level's blocks look at.
LevelField coarser_field(const LevelField& field, const LevelPixels& level, std::uint16_t* memory) {
  const int across = divided_up(level.width, motion_block);
  const int down = divided_up(level.height, motion_block);
  LevelField coarser;
  coarser.x0 = std::clamp(field.x0 / 2 - 1, 0, across - 1);
  coarser.y0 = std::clamp(field.y0 / 2 - 1, 0, down - 1);
  coarser.across = std::clamp((field.x0 + field.across - 1) / 2 + 1, 0, across - 1) + 1 - coarser.x0;
  coarser.down = std::clamp((field.y0 + field.down - 1) / 2 + 1, 0, down - 1) + 1 - coarser.y0;
  coarser.vectors = memory;
  coarser.row_stride = coarser.across;
  coarser.to_after = static_cast<std::ptrdiff_t>(coarser.across) * coarser.down;
  return coarser;
}

}  // namespace

std::size_t motion_scratch(const Extent& image, int units) {
  std::size_t vectors = 0;
  for (int level = 1; level < motion_levels; ++level) {
    vectors += 2 * static_cast<std::size_t>(divided_up(level_length(image.width, level), motion_block)) *
               divided_up(level_length(image.height, level), motion_block);
  }
  return (vectors * static_cast<std::size_t>(units) + 1) / 2 + 16;
}

void launch_motion(const DeviceStageCall& call, const std::vector<int>& penalties) {
  const auto out = call.typed_out.as<std::uint16_t>();
  const auto image_at = [&](int offset) -> const TypedPlanes& {
    return call.typed_in[static_cast<std::size_t>(call.reach.before + offset)];
  };
  auto* memory = reinterpret_cast<std::uint16_t*>(call.scratch.data());
  for (int unit = 0; unit < static_cast<int>(penalties.size()); ++unit) {
    const MotionFields fields = fields_of(out, unit);
    LevelField of_level[motion_levels];
    of_level[0] = {const_cast<std::uint16_t*>(fields.data),
                   fields.row_stride,
                   fields.across,
                   fields.first_x,
                   fields.first_y,
                   fields.across,
                   divided_up(out.rect.y1, motion_block) - fields.first_y};
    if (of_level[0].down <= 0) continue;
    const auto level_at = [&](int offset, int level) {
      const TypedPlanes& planes = image_at(offset);
      if (planes.data == nullptr) return LevelPixels{};
      return level_of(planes.as<const std::uint16_t>(), unit, call.image, level);
    };
    for (int level = 1; level < motion_levels; ++level) {
      of_level[level] = coarser_field(of_level[level - 1], level_at(0, level), memory);
      memory += 2 * of_level[level].to_after;
    }
    for (int level = motion_levels - 1; level >= 0; --level) {
      MotionCall motion;
      motion.from = level_at(0, level);
      motion.to[0] = level_at(-1, level);
      motion.to[1] = level_at(1, level);
      motion.field = of_level[level];
      motion.coarsest = level == motion_levels - 1;
      if (!motion.coarsest) motion.coarser = of_level[level + 1];
      motion.penalty = penalties[unit];
      const dim3 grid(static_cast<unsigned>(blocks_for(motion.field.across * motion.field.down, warps)), 2);
      launch(motion_kernel, grid, {32, warps}, 0, call.stream, motion);
    }
  }
}

}  // namespace ungrain::cuda
