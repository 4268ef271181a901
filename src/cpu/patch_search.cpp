// Tile by tile and shift by shift: what a shift adds to a tile is patch_search_simd.cpp's. In a window each
// weight is used for both its pixels: half of the shifts are enough, each over the tile and as much around it
// as the shift is long. Shifts that are long beside a tile, and those of a whole-image search, are taken one
// way, in blocks for which the shifted pixels are gathered at once. Either way a pixel's sums are taken in an
// order that the shifts alone decide.
#include "cpu/patch_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/border.h"
#include "core/patches.h"
#include "core/window.h"
#include "cpu/exp.h"
#include "cpu/patch_search_simd.h"
#include "cpu/scratch.h"
#include "cpu/tiles.h"
#include "cpu/window_tile.h"

namespace ungrain {
namespace {

// Shifts up to this long are taken both ways: further ones would compute more around a tile than that saves.
constexpr int longest_pair = 48;
constexpr int tile_width = 176;
constexpr int tile_height = 64;
constexpr int far_tile_height = 128;  // beside long shifts
static_assert(tile_width + longest_pair <= widest_weights);
static_assert(far_tile_height + longest_pair <= highest_weights);

constexpr int block = 64;  // shifts a side for which the shifted pixels are gathered at once, one way

constexpr int up_to_vectors(int n) { return (n + longest_vector - 1) / longest_vector * longest_vector; }

struct Kernel : PatchKernel {
  Kernel(const PatchSearch& s, const ImageSpec& spec) : search(s.search), border(s.border), space(s.space) {
    reach = static_cast<int>(s.patch.size()) / 2;
    channels = channels_together(s.colour, spec.colour_channels());
    largest = s.self == SelfWeight::max;
    flat = std::all_of(s.patch.begin(), s.patch.end(), [&](double w) { return w == s.patch[0]; });
    // No weight is 0: it might meet a square that is infinite.
    for (const double weight : s.patch) patch.push_back(static_cast<float>(std::max(weight, 1e-37)));
    // Values near 1, so that no square leaves the numbers; a power of two, so that they come back as they
    // were.
    const double white = s.colour == ColourMode::lab ? 100 : spec.white();
    to_unit = std::exp2(-std::round(std::log2(white)));
    const int divisor = difference_divisor(s.colour, channels);
    const double side = flat ? static_cast<double>(s.patch.size()) : 1;
    scale = scale_of(s.strength * to_unit * side, divisor);
    noise = static_cast<float>(std::min(1e30, 2 * std::pow(s.noise / s.strength, 2) * log2_e));
    compares_pixels = !std::isinf(s.range) || !std::isinf(s.space);
    pixel_scale = scale_of(s.range * to_unit * std::sqrt(2.0), divisor);
    pairs = search != whole_image && search / 2 <= longest_pair;
    folds = search == whole_image || search / 2 > 16;
    height = pairs && folds ? far_tile_height : tile_height;
  }

  // What squared differences, summed over the channels, are multiplied by; never 0, as a square may be
  // infinite.
  static float scale_of(double strength, int divisor) {
    return static_cast<float>(std::clamp(log2_e / (divisor * strength * strength), 1e-37, 1e36));
  }

  // What the length of a shift adds to the negative exponent of 2.
  float exponent_of_shift(int dx, int dy) const {
    const double x = dx / space;
    const double y = dy / space;
    return static_cast<float>(std::min(1e30, (x * x + y * y) / 2 * log2_e));
  }

  int search;
  Border border;
  double space;
  double to_unit = 1;  // pixels times this are compared and summed
  bool pairs = false;
  bool folds = false;  // so many weights that their sums in float would lose digits
  int height = 0;      // of a tile
};

// The memory of one worker.
struct Memory {
  explicit Memory(const Kernel& kernel)
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
    return static_cast<std::size_t>(alignment + channels * (still_plane() + moving_plane()) + 2 * behind +
                                    shares_pitch * shifts_at_once +
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
    still = take(still_plane() * channels + behind);
    moving = take(moving_plane() * channels + behind);
    totals = doubles_in(memory);
  }

  static constexpr int alignment = longest_vector;
  static constexpr int behind = 2 * longest_vector;  // floats that are read behind the last row

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
  float* shares = nullptr;   // of patches that lie inside, for each shift
  float* still = nullptr;    // the tile and what is around it
  float* moving = nullptr;   // what a block of shifts moves over it
  double* totals = nullptr;  // of the sums, where they are folded
};

// A tile and what is summed over it.
class Tile {
 public:
  Tile(const Kernel& kernel, const StageCall& call, const Rect& tile, int first_channel, float* memory)
      : kernel_(kernel), call_(call), tile_(tile), first_(first_channel), memory_(kernel) {
    memory_.lay_out(memory);
    const int r = memory_.still_reach;
    still_ = gather_scaled({tile.x0 - r, tile.y0 - r, tile.x1 + r, tile.y1 + r}, memory_.still,
                           memory_.still_pitch, memory_.still_plane());
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
    } else if (kernel_.search != whole_image) {
      const int reach = kernel_.search / 2;
      add_blocks({-reach, -reach, reach + 1, reach + 1});
    } else {
      // Every shift that leads from some pixel of the tile to one of the image.
      add_blocks(
          {-(tile_.x1 - 1), -(tile_.y1 - 1), call_.image.width - tile_.x0, call_.image.height - tile_.y0});
    }
    if (kernel_.folds) unfold();
    finish();
  }

 private:
  ConstPlanes gather_scaled(const Rect& want, float* memory, int pitch, std::ptrdiff_t plane) {
    constexpr float most = 8e37F;  // whose differences are numbers
    const auto factor = static_cast<float>(kernel_.to_unit);
    for (int c = 0; c < kernel_.channels; ++c) {
      float* first = memory + c * plane + rows_around * pitch;
      std::fill_n(first - rows_around * pitch, rows_around * pitch, 0.0F);
      std::fill_n(first + static_cast<std::ptrdiff_t>(want.height()) * pitch, rows_around * pitch, 0.0F);
      gather(call_.in[0], first_ + c, call_.image, kernel_.border, want, first, pitch);
      for (int y = 0; y < want.height(); ++y) {
        float* row = first + static_cast<std::ptrdiff_t>(y) * pitch;
        for (int x = 0; x < want.width(); ++x) row[x] = std::clamp(row[x] * factor, -most, most);
        std::fill(row + want.width(), row + pitch, 0.0F);
      }
    }
    std::fill_n(memory + kernel_.channels * plane, Memory::behind, 0.0F);
    return {memory + rows_around * pitch, want, pitch, plane, kernel_.channels};
  }

  // In blocks that lie the same for all tiles.
  void add_blocks(const Rect& shifts) {
    const auto block_below = [](int shift) {
      return (shift >= 0 ? shift / block : -((block - 1 - shift) / block)) * block;
    };
    for (int dy = block_below(shifts.y0); dy < shifts.y1; dy += block) {
      for (int dx = block_below(shifts.x0); dx < shifts.x1; dx += block) {
        const Rect part{std::max(dx, shifts.x0), std::max(dy, shifts.y0), std::min(dx + block, shifts.x1),
                        std::min(dy + block, shifts.y1)};
        const int r = kernel_.reach;
        moving_ = gather_scaled({tile_.x0 + part.x0 - r, tile_.y0 + part.y0 - r, tile_.x1 + part.x1 - 1 + r,
                                 tile_.y1 + part.y1 - 1 + r},
                                memory_.moving, memory_.moving_pitch, memory_.moving_plane());
        add_shifts(part);
      }
    }
  }

  void add_shifts(const Rect& shifts) {
    for (int dy = shifts.y0; dy < shifts.y1; ++dy) {
      if (kernel_.folds) fold();
      for (int dx = shifts.x0; dx < shifts.x1;) {
        const int end = dy == 0 && dx <= 0 ? std::min(shifts.x1, 0) : shifts.x1;  // a pixel is not its own
        const int count = std::min(shifts_at_once, end - dx);
        if (count > 0) add_row_of_shifts(dx, dy, count);
        dx += std::max(count, 1);
      }
    }
  }

  // Calls body(sum, total) for each sum of a pixel but the largest weight.
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

  // What a row of shifts summed goes to the totals.
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
    // Of all tiles only those by the edge have pixels that are left out.
    const bool shrinks = kernel_.border == Border::shrink && leaves_image();
    const bool only_inside = shrinks || kernel_.search == whole_image;
    Rect area = tile_;
    if (only_inside && !kernel_.pairs) {
      const Rect first = both_inside(dx, dy);
      const Rect last = both_inside(dx + count - 1, dy);
      area = {std::max(area.x0, std::min(first.x0, last.x0)), std::max(area.y0, first.y0),
              std::min(area.x1, std::max(first.x1, last.x1)), std::min(area.y1, first.y1)};
    }
    if (area.width() <= 0 || area.height() <= 0) return;
    Rect weights = area;
    if (kernel_.pairs) {
      weights = {area.x0 - std::max(dx + count - 1, 0), area.y0 - dy, area.x1 - std::min(dx, 0), area.y1};
    }
    PatchShifts group{.count = count, .pairs = kernel_.pairs};
    for (int s = 0; s < count; ++s) {
      PatchShift& shift = group.shift[s];
      shift.dx = dx + s;
      shift.dy = dy;
      shift.exponent = kernel_.exponent_of_shift(shift.dx, dy);
      shift.weights = weights;
      const Rect inside = both_inside(shift.dx, dy);
      shift.counted = only_inside ? inside : everywhere;
      shift.compared = shrinks ? inside : everywhere;
      if (shrinks) shift.inverse_shares = find_shares(shift, memory_.shares + s * memory_.shares_pitch);
    }
    add_patch_shifts(kernel_, still_, moving_, group, area, sums_, memory_.rows);
  }

  bool leaves_image() const {
    const Rect image{0, 0, call_.image.width, call_.image.height};
    return !image.contains(still_.rect) || !image.contains(moving_.rect);
  }

  // The pixels that lie inside and are shifted to one inside.
  Rect both_inside(int dx, int dy) const {
    return {std::max(0, -dx), std::max(0, -dy), std::min(call_.image.width, call_.image.width - dx),
            std::min(call_.image.height, call_.image.height - dy)};
  }

  // 1 / the share of a patch's weights that are compared, along x. A whole patch has exactly 1, as elsewhere.
  const float* find_shares(const PatchShift& shift, float* shares) const {
    const int side = 2 * kernel_.reach + 1;
    for (int x = 0; x < shift.weights.width(); ++x) {
      const int left = shift.weights.x0 + x - kernel_.reach;
      const int begin = std::max(0, shift.compared.x0 - left);
      const int end = std::min(side, shift.compared.x1 - left);
      float share = 0;
      for (int k = begin; k < end; ++k) share += kernel_.patch[static_cast<std::size_t>(k)];
      const bool whole = begin == 0 && end == side;
      shares[x] = whole ? 1 : share > 0 ? 1 / share : 0;
    }
    std::fill(shares + shift.weights.width(), shares + memory_.shares_pitch, 0.0F);
    return shares;
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
          const float self =
              largest[x] > 0 ? largest[x] : 1.0F;  // the largest is 0 too where it is not wanted
          out[x] = (sums[x] + self * centre[x]) / (weights[x] + self) * from_unit;
        }
      }
    }
  }

  static constexpr int far = 1 << 30;
  static constexpr Rect everywhere{-far, -far, far, far};

  const Kernel& kernel_;
  const StageCall& call_;
  Rect tile_;
  int first_;
  Memory memory_;
  ConstPlanes still_;
  ConstPlanes moving_;
  Planes sums_;
};

}  // namespace

Pipeline patch_search_cpu(std::string name, const PatchSearch& search, const ImageSpec& spec) {
  const Kernel kernel(search, spec);
  Stage filter{.name = std::move(name),
               .reach = search_reach(search.search, static_cast<int>(search.patch.size())),
               .planes = spec.colour_channels(),
               .scratch = Memory(kernel).floats(),
               .run = [kernel](const StageCall& call) {
                 for_tiles(call.workers, call.out.rect, tile_width, kernel.height,
                           [&](const Rect& tile, int worker) {
                             for (int first = 0; first < call.out.count; first += kernel.channels) {
                               Tile(kernel, call, tile, first, call.scratch_of(worker)).filter();
                             }
                           });
               }};
  return in_colour_mode(search.colour, {std::move(filter)}, spec.white(), search.border == Border::wrap);
}

}  // namespace ungrain
