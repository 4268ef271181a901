// Works tile by tile and shift by shift: patch_search_simd.cpp adds a shift to a tile. In a window each
// weight serves both its pixels: half of the shifts are enough, each over the tile and a halo as wide as the
// shift is long. Shifts that are long compared with a tile serve one pixel only; they are taken in blocks for
// which the shifted pixels are gathered at once. Either way the shifts alone decide the order of a pixel's
// sums. whole_image_search.cpp searches the whole image.
#include "cpu/patch_search.h"

#include <algorithm>
#include <cstdint>

#include "core/patches.h"
#include "core/window.h"
#include "cpu/patch_search_kernel.h"
#include "cpu/scratch.h"
#include "cpu/tiles.h"
#include "cpu/window_tile.h"

namespace ungrain {
namespace {

// Shifts up to this long serve both pixels: for longer ones the halo would cost more than that saves.
constexpr int longest_pair = 48;
constexpr int tile_width = 176;
constexpr int tile_height = 64;
constexpr int far_tile_height = 128;  // beside long shifts
static_assert(tile_width + longest_pair <= widest_weights);
static_assert(far_tile_height + longest_pair <= highest_weights);

constexpr int block = 64;  // shifts a side for which the shifted pixels are gathered at once

struct WindowKernel : SearchKernel {
  explicit WindowKernel(const SearchKernel& kernel)
      : SearchKernel(kernel),
        pairs(search / 2 <= longest_pair),
        folds(search / 2 > 16),
        height(pairs && folds ? far_tile_height : tile_height) {}

  bool pairs;
  bool folds;  // has so many weights that float sums would lose digits
  int height;  // of a tile
};

// The memory of one worker.
struct Memory {
  explicit Memory(const WindowKernel& kernel)
      : still_reach(kernel.reach + (kernel.pairs ? kernel.search / 2 : 0)),
        still_pitch(tile_width + 2 * still_reach),
        still_rows(kernel.height + 2 * (still_reach + rows_around)),
        moving_pitch(kernel.pairs ? 0 : still_pitch + block - 1),
        moving_rows(kernel.pairs ? 0 : still_rows + block - 1),
        sums_pitch(tile_width + longest_vector),
        sums_plane(static_cast<std::ptrdiff_t>(sums_pitch) * kernel.height),
        widest(tile_width + (kernel.pairs ? kernel.search / 2 : 0)),
        shares_pitch(up_to_vectors(widest)),
        channels(kernel.channels),
        totals_count(kernel.folds ? (1 + kernel.channels) * tile_width * kernel.height : 0) {}

  std::size_t floats() const {
    return static_cast<std::size_t>(alignment + channels * (still_plane() + moving_plane()) +
                                    2 * SearchPlanes::behind + shares_pitch * shifts_at_once +
                                    (PatchSums::values + channels) * sums_plane + 2 + 2 * totals_count) +
           patch_shifts_floats();
  }
  std::ptrdiff_t still_plane() const { return static_cast<std::ptrdiff_t>(still_pitch) * still_rows; }
  std::ptrdiff_t moving_plane() const { return static_cast<std::ptrdiff_t>(moving_pitch) * moving_rows; }

  void lay_out(float* memory) {
    const auto take = [&memory](std::ptrdiff_t count) {
      float* part = memory;
      memory += count;
      return part;
    };
    const auto address = reinterpret_cast<std::uintptr_t>(memory) / sizeof(float);
    take(static_cast<std::ptrdiff_t>((alignment - address % alignment) % alignment));
    rows = take(static_cast<std::ptrdiff_t>(patch_shifts_floats()));
    sums = take((PatchSums::values + channels) * sums_plane);
    shares = take(static_cast<std::ptrdiff_t>(shares_pitch) * shifts_at_once);
    still = take(still_plane() * channels + SearchPlanes::behind);
    moving = take(moving_plane() * channels + SearchPlanes::behind);
    totals = doubles_in(memory);
  }

  static constexpr int alignment = longest_vector;

  int still_reach;
  int still_pitch;
  int still_rows;
  int moving_pitch;
  int moving_rows;
  int sums_pitch;
  std::ptrdiff_t sums_plane;
  int widest;  // rectangle of weights
  int shares_pitch;
  int channels;
  std::ptrdiff_t totals_count;
  float* rows = nullptr;     // add_patch_shifts's
  float* sums = nullptr;     // over the tile
  float* shares = nullptr;   // of patches that lie inside the image, for each shift
  float* still = nullptr;    // the tile and its halo
  float* moving = nullptr;   // pixels that a block of shifts compares with the tile
  double* totals = nullptr;  // of the sums, where they are folded
};

// A tile and its sums.
class Tile {
 public:
  Tile(const WindowKernel& kernel, const StageCall& call, const Rect& tile, int first_channel, float* memory)
      : kernel_(kernel), call_(call), tile_(tile), first_(first_channel), memory_(kernel) {
    memory_.lay_out(memory);
    prepare_patch_shifts(memory_.rows);
    const int r = memory_.still_reach;
    still_ = gather_scaled(kernel, call, first_channel, {tile.x0 - r, tile.y0 - r, tile.x1 + r, tile.y1 + r},
                           {memory_.still, memory_.still_pitch, memory_.still_plane()});
    sums_ = {memory_.sums, tile, memory_.sums_pitch, memory_.sums_plane, PatchSums::values + kernel.channels};
    for (int plane = 0; plane < sums_.count; ++plane) {
      std::fill_n(sums_.row(plane, tile.y0), tile.height() * memory_.sums_pitch, 0.0F);
    }
    if (kernel.folds) for_totals([](float&, double& total) { total = 0; });
  }

  void filter() {
    if (kernel_.pairs) {
      moving_ = still_;
      const int reach = kernel_.search / 2;
      add_shifts({1, 0, reach + 1, 1});
      add_shifts({-reach, 1, reach + 1, reach + 1});
    } else {
      const int reach = kernel_.search / 2;
      add_blocks({-reach, -reach, reach + 1, reach + 1});
    }
    if (kernel_.folds) unfold();
    finish();
  }

 private:
  // In blocks at the same positions for all tiles.
  void add_blocks(const Rect& shifts) {
    const auto block_below = [](int shift) {
      return (shift >= 0 ? shift / block : -((block - 1 - shift) / block)) * block;
    };
    for (int dy = block_below(shifts.y0); dy < shifts.y1; dy += block) {
      for (int dx = block_below(shifts.x0); dx < shifts.x1; dx += block) {
        const Rect part{std::max(dx, shifts.x0), std::max(dy, shifts.y0), std::min(dx + block, shifts.x1),
                        std::min(dy + block, shifts.y1)};
        const int r = kernel_.reach;
        moving_ = gather_scaled(kernel_, call_, first_,
                                {tile_.x0 + part.x0 - r, tile_.y0 + part.y0 - r, tile_.x1 + part.x1 - 1 + r,
                                 tile_.y1 + part.y1 - 1 + r},
                                {memory_.moving, memory_.moving_pitch, memory_.moving_plane()});
        add_shifts(part);
      }
    }
  }

  void add_shifts(const Rect& shifts) {
    for (int dy = shifts.y0; dy < shifts.y1; ++dy) {
      if (kernel_.folds) fold();
      for (int dx = shifts.x0; dx < shifts.x1;) {
        const int end = dy == 0 && dx <= 0 ? std::min(shifts.x1, 0) : shifts.x1;  // skips the pixel itself
        const int count = std::min(shifts_at_once, end - dx);
        if (count > 0) add_row_of_shifts(dx, dy, count);
        dx += std::max(count, 1);
      }
    }
  }

  // Calls body(sum, total) for each sum of a pixel except the largest weight.
  template <class Body>
  void for_totals(Body body) {
    double* total = memory_.totals;
    for (int plane = 0; plane < sums_.count; ++plane) {
      if (plane == PatchSums::largest) continue;
      for (int y = tile_.y0; y < tile_.y1; ++y, total += tile_.width()) {
        float* sums = sums_.row(plane, y);
        for (int x = 0; x < tile_.width(); ++x) body(sums[x], total[x]);
      }
    }
  }

  // Adds the sums of a row of shifts to the totals.
  void fold() {
    for_totals([](float& sum, double& total) {
      total += static_cast<double>(sum);
      sum = 0;
    });
  }

  void unfold() {
    fold();
    for_totals([](float& sum, double& total) { sum = static_cast<float>(total); });
  }

  void add_row_of_shifts(int dx, int dy, int count) {
    // Only tiles at the edge have pixels that are left out.
    const bool shrinks = kernel_.border == Border::shrink && leaves_image();
    Rect area = tile_;
    if (shrinks && !kernel_.pairs) {
      const Rect first = both_inside(call_.image, dx, dy);
      const Rect last = both_inside(call_.image, dx + count - 1, dy);
      area = {std::max(area.x0, std::min(first.x0, last.x0)), std::max(area.y0, first.y0),
              std::min(area.x1, std::max(first.x1, last.x1)), std::min(area.y1, first.y1)};
    }
    if (area.width() <= 0 || area.height() <= 0) return;
    Rect weights = area;
    if (kernel_.pairs) {
      weights = {area.x0 - std::max(dx + count - 1, 0), area.y0 - dy, area.x1 - std::min(dx, 0), area.y1};
    }
    PatchShifts group{.count = count, .use = kernel_.pairs ? WeightUse::around : WeightUse::forth};
    for (int s = 0; s < count; ++s) {
      PatchShift& shift = group.shift[s];
      shift.dx = dx + s;
      shift.dy = dy;
      shift.exponent = kernel_.exponent_of_shift(shift.dx, dy);
      shift.weights = weights;
      const Rect inside = both_inside(call_.image, shift.dx, dy);
      shift.counted = shrinks ? inside : everywhere;
      shift.compared = shift.counted;
      if (!shrinks) continue;
      float* shares = memory_.shares + s * memory_.shares_pitch;
      find_inverse_shares(kernel_, shift, shares, memory_.shares_pitch);
      shift.inverse_shares = shares;
    }
    add_patch_shifts(kernel_, still_, moving_, group, area, sums_, memory_.rows);
  }

  bool leaves_image() const {
    const Rect image{0, 0, call_.image.width, call_.image.height};
    return !image.contains(still_.rect) || !image.contains(moving_.rect);
  }

  void finish() {
    const auto from_unit = static_cast<float>(1 / kernel_.to_unit);
    for (int y = tile_.y0; y < tile_.y1; ++y) {
      const float* weights = sums_.row(PatchSums::weights, y);
      const float* largest = sums_.row(PatchSums::largest, y);
      for (int c = 0; c < kernel_.channels; ++c) {
        const float* centre = &still_.at(c, tile_.x0, y);
        const float* sums = sums_.row(PatchSums::values + c, y);
        float* out = &call_.out.at(first_ + c, tile_.x0, y);
        for (int x = 0; x < tile_.width(); ++x) {
          const float self = kernel_.self_weight(largest[x]);
          out[x] = (sums[x] + self * centre[x]) / (weights[x] + self) * from_unit;
        }
      }
    }
  }

  const WindowKernel& kernel_;
  const StageCall& call_;
  Rect tile_;
  int first_;
  Memory memory_;
  ConstPlanes still_;
  ConstPlanes moving_;
  Planes sums_;
};

Stage window_search(std::string name, const WindowKernel& kernel) {
  return {
      .name = std::move(name), .scratch = Memory(kernel).floats(), .run = [kernel](const StageCall& call) {
        for_tiles(call.workers, call.out.rect, tile_width, kernel.height, [&](const Rect& tile, int worker) {
          for (int first = 0; first < call.out.count; first += kernel.channels) {
            Tile(kernel, call, tile, first, call.scratch_of(worker)).filter();
          }
        });
      }};
}

}  // namespace

Pipeline patch_search_cpu(std::string name, const PatchSearch& search, const Pipeline& reference,
                          const ImageSpec& spec) {
  const SearchKernel kernel(search, spec);
  Stage filter = search.search == whole_image ? whole_image_search_cpu(std::move(name), kernel, spec)
                                              : window_search(std::move(name), WindowKernel(kernel));
  filter.reach = search_reach(search.search, static_cast<int>(search.patch.size()));
  filter.planes = spec.colour_channels();
  return in_colour_mode(search.colour, {std::move(filter)}, reference, spec.white());
}

}  // namespace ungrain
