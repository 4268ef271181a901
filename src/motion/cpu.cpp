#include "motion/cpu.h"

#include <limits>

#include "motion/motion.h"
#include "motion/motion_simd.h"

namespace ungrain {
namespace {

// Blocks [x0, x1) x [y0, y1) of a level and their vectors.
struct LevelField {
  Rect blocks;
  MotionVector* vectors = nullptr;

  MotionVector& at(int x, int y) const { return vectors[(y - blocks.y0) * blocks.width() + (x - blocks.x0)]; }
};

// The blocks of the next coarser level that a level's blocks look at.
Rect coarser_blocks(const Rect& blocks, int across, int down) {
  return {std::clamp(blocks.x0 / 2 - 1, 0, across - 1), std::clamp(blocks.y0 / 2 - 1, 0, down - 1),
          std::clamp((blocks.x1 - 1) / 2 + 1, 0, across - 1) + 1,
          std::clamp((blocks.y1 - 1) / 2 + 1, 0, down - 1) + 1};
}

bool is_inside(const LevelPixels& level, int x, int y) {
  return x >= 0 && y >= 0 && x + motion_block <= level.width && y + motion_block <= level.height;
}

// The pixels of a block that reaches beyond the level.
void copy_clamped(const LevelPixels& level, int left, int top, std::uint16_t* to) {
  for (int y = 0; y < motion_block; ++y) {
    const int row = std::clamp(top + y, 0, level.height - 1);
    for (int x = 0; x < motion_block; ++x)
      to[y * motion_block + x] = *level.at(std::clamp(left + x, 0, level.width - 1), row);
  }
}

// One block at one level: the best of the vectors that were tried.
class BlockSearch {
 public:
  BlockSearch(const LevelPixels& from, const LevelPixels& to, int block_x, int block_y)
      : to_(to), left_(block_x * motion_block), top_(block_y * motion_block) {
    if (is_inside(from, left_, top_)) {
      block_ = from.at(left_, top_);
      stride_ = from.row_stride;
    } else {
      copy_clamped(from, left_, top_, own_);
      block_ = own_;
      stride_ = motion_block;
    }
  }

  void attempt(MotionVector v, int penalty) {
    const int x = left_ + v.x;
    const int y = top_ + v.y;
    std::uint32_t difference = 0;
    if (is_inside(to_, x, y)) {
      difference = block_difference(block_, stride_, to_.at(x, y), to_.row_stride);
    } else {
      std::uint16_t there[motion_block * motion_block];
      copy_clamped(to_, x, y, there);
      difference = block_difference(block_, stride_, there, motion_block);
    }
    const int cost = static_cast<int>(difference) + penalty;
    if (cost >= cost_) return;
    cost_ = cost;
    best_ = v;
  }
  MotionVector best() const { return best_; }

 private:
  const LevelPixels& to_;
  int left_;
  int top_;
  const std::uint16_t* block_ = nullptr;
  std::ptrdiff_t stride_ = 0;
  std::uint16_t own_[motion_block * motion_block];
  MotionVector best_;
  int cost_ = std::numeric_limits<int>::max();
};

MotionVector coarsest_vector(const LevelPixels& from, const LevelPixels& to, int x, int y, int penalty) {
  BlockSearch search(from, to, x, y);
  search.attempt({0, 0}, 0);
  for (int dy = -coarse_range; dy <= coarse_range; ++dy) {
    for (int dx = -coarse_range; dx <= coarse_range; ++dx) search.attempt({dx, dy}, penalty);
  }
  return search.best();
}

MotionVector finer_vector(const LevelPixels& from, const LevelPixels& to, const LevelField& coarser, int x,
                          int y, int penalty) {
  BlockSearch search(from, to, x, y);
  search.attempt({0, 0}, 0);
  // Neighbours often move alike.
  MotionVector tried[9];
  int count = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      const MotionVector v = coarser.at(std::clamp(x / 2 + dx, coarser.blocks.x0, coarser.blocks.x1 - 1),
                                        std::clamp(y / 2 + dy, coarser.blocks.y0, coarser.blocks.y1 - 1));
      const auto same = [&](const MotionVector& other) { return other.x == v.x && other.y == v.y; };
      if (std::any_of(tried, tried + count, same)) continue;
      tried[count++] = v;
      if (v.x != 0 || v.y != 0) search.attempt({2 * v.x, 2 * v.y}, 0);
    }
  }
  const MotionVector centre = search.best();
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      if (dx != 0 || dy != 0) search.attempt({centre.x + dx, centre.y + dy}, penalty);
    }
  }
  return search.best();
}

// Vectors from one image to another. Only blocks that the output needs are looked at.
void find_field(Workers& workers, const Rect& blocks, const LevelPixels* from, const LevelPixels* to,
                int penalty, MotionVector* memory, const LevelField& result) {
  LevelField fields[motion_levels];
  fields[0] = result;
  fields[0].blocks = blocks;
  for (int level = 1; level < motion_levels; ++level) {
    fields[level].blocks =
        coarser_blocks(fields[level - 1].blocks, divided_up(from[level].width, motion_block),
                       divided_up(from[level].height, motion_block));
    fields[level].vectors = memory;
    memory += static_cast<std::ptrdiff_t>(fields[level].blocks.width()) * fields[level].blocks.height();
  }
  for (int level = motion_levels - 1; level >= 0; --level) {
    const LevelField& field = fields[level];
    workers.for_each_quietly(field.blocks.height(), [&](std::int64_t row, int) {
      const int y = field.blocks.y0 + static_cast<int>(row);
      for (int x = field.blocks.x0; x < field.blocks.x1; ++x) {
        field.at(x, y) = level == motion_levels - 1
                             ? coarsest_vector(from[level], to[level], x, y, penalty)
                             : finer_vector(from[level], to[level], fields[level + 1], x, y, penalty);
      }
    });
  }
}

int blocks_of(const Extent& image, int level) {
  return divided_up(level_length(image.width, level), motion_block) *
         divided_up(level_length(image.height, level), motion_block);
}

}  // namespace

std::size_t motion_scratch(const Extent& image) {
  std::size_t blocks = 0;
  for (int level = 0; level < motion_levels; ++level)
    blocks += static_cast<std::size_t>(blocks_of(image, level));
  return blocks * sizeof(MotionVector) / sizeof(float) + 16;
}

void run_motion(const StageCall& call, const std::vector<int>& penalties) {
  const auto out = call.typed_out.as<std::uint16_t>();
  const auto image_at = [&](int offset) -> const TypedPlanes& {
    return call.typed_in[static_cast<std::size_t>(call.reach.before + offset)];
  };
  auto* memory = reinterpret_cast<MotionVector*>(call.shared.data());
  for (int unit = 0; unit < static_cast<int>(penalties.size()); ++unit) {
    const MotionFields fields = fields_of(out, unit);
    const Rect blocks{fields.first_x, fields.first_y, fields.first_x + fields.across,
                      divided_up(out.rect.y1, motion_block)};
    if (blocks.height() <= 0) continue;
    for (const bool after : {false, true}) {
      const TypedPlanes& other = image_at(after ? 1 : -1);
      LevelField found{blocks, memory};
      const std::ptrdiff_t count = static_cast<std::ptrdiff_t>(blocks.width()) * blocks.height();
      if (other.data == nullptr) {
        std::fill_n(found.vectors, count, MotionVector{});
      } else {
        LevelPixels from[motion_levels];
        LevelPixels to[motion_levels];
        for (int level = 0; level < motion_levels; ++level) {
          from[level] = level_of(image_at(0).as<const std::uint16_t>(), unit, call.image, level);
          to[level] = level_of(other.as<const std::uint16_t>(), unit, call.image, level);
        }
        find_field(call.workers, blocks, from, to, penalties[unit], memory + count, found);
      }
      for (int y = blocks.y0; y < blocks.y1; ++y) {
        std::uint16_t* row = out.row(unit, y * motion_block) + (after ? fields.across : 0);
        for (int x = blocks.x0; x < blocks.x1; ++x) row[x - blocks.x0] = packed(found.at(x, y));
      }
    }
  }
}

}  // namespace ungrain
