// Works tile by tile and shift by shift: patch_search_simd.cpp adds a shift to a tile. In a window each
// weight serves both its pixels: half of the shifts are enough, each over the tile and a halo as wide as the
// shift is long. Shifts that are long compared with a tile serve one pixel only; they are taken in blocks for
// which the shifted pixels are gathered at once. Either way the shifts alone decide the order of a pixel's
// sums. whole_image_search.cpp searches the whole image.
//
// Other images of a sequence are searched in full, because no shift is another one's reverse. Where memory
// allows, the weights between two images serve the pixels of both.
//
// short_search.cpp searches windows of images of 8 bits where 16 bits are enough for distances and weights.
#include "cpu/patch_search.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/patches.h"
#include "core/window.h"
#include "cpu/patch_search_kernel.h"
#include "cpu/scratch.h"
#include "cpu/short_search.h"
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

// More weights than this are summed in double, a row of shifts at a time: float sums would lose digits.
constexpr int most_float_weights = 2500;
constexpr int most_float_reach = 16;

struct WindowKernel : SearchKernel {
  // `windows`: whose weights a pixel sums, in its own image and in others.
  WindowKernel(const SearchKernel& kernel, int windows)
      : SearchKernel(kernel),
        pairs(search / 2 <= longest_pair),
        folds(search / 2 > most_float_reach || windows * search * search > most_float_weights),
        height(pairs && (search / 2 > most_float_reach || radius_t > 0) ? far_tile_height : tile_height) {}

  bool pairs;
  bool folds;
  int height;  // of a tile
};

// The memory of one worker.
struct Memory {
  explicit Memory(const WindowKernel& kernel)
      : still_reach(kernel.reach + (kernel.pairs ? kernel.search / 2 : 0)),
        still_pitch(tile_width + 2 * still_reach),
        still_rows(kernel.height + 2 * (still_reach + rows_around)),
        moving_pitch(kernel.pairs ? (kernel.radius_t > 0 ? still_pitch : 0) : still_pitch + block - 1),
        moving_rows(kernel.pairs ? (kernel.radius_t > 0 ? still_rows : 0) : still_rows + block - 1),
        sums_pitch(tile_width + longest_vector),
        sums_plane(static_cast<std::ptrdiff_t>(sums_pitch) * kernel.height),
        sums_planes(PatchSums::values + kernel.channels),
        widest(tile_width + (kernel.pairs ? kernel.search / 2 : 0)),
        shares_pitch(up_to_vectors(widest)),
        channels(kernel.channels),
        back_planes(kernel.pairs && kernel.radius_t > 0 ? sums_planes : 0),
        totals_count(kernel.folds ? (1 + kernel.channels) * tile_width * kernel.height : 0) {}

  std::size_t floats() const {
    return static_cast<std::size_t>(alignment + channels * (still_plane() + moving_plane()) +
                                    2 * SearchPlanes::behind + shares_pitch * most_shifts_at_once +
                                    (sums_planes + back_planes) * sums_plane + 2 + 2 * totals_count) +
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
    sums = take(sums_planes * sums_plane);
    back = take(back_planes * sums_plane);
    shares = take(static_cast<std::ptrdiff_t>(shares_pitch) * most_shifts_at_once);
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
  int sums_planes;
  int widest;  // rectangle of weights
  int shares_pitch;
  int channels;
  int back_planes;
  std::ptrdiff_t totals_count;
  float* rows = nullptr;     // add_patch_shifts's
  float* sums = nullptr;     // over the tile
  float* back = nullptr;     // the same of another image
  float* shares = nullptr;   // of patches that lie inside the image, for each shift
  float* still = nullptr;    // the tile and its halo
  float* moving = nullptr;   // pixels that are compared with the tile: of a block of shifts, or another image
  double* totals = nullptr;  // of the sums, where they are folded
};

// A tile and its sums.
class Tile {
 public:
  Tile(const WindowKernel& kernel, const StageCall& call, const Rect& tile, int first_channel, float* memory)
      : kernel_(kernel), call_(call), tile_(tile), first_(first_channel), memory_(kernel) {
    memory_.lay_out(memory);
    prepare_patch_shifts(memory_.rows);
    still_ = gather_scaled(kernel, call.at(0, 0), call.image, first_channel, with_halo(),
                           {memory_.still, memory_.still_pitch, memory_.still_plane()});
    sums_ = {memory_.sums, tile, memory_.sums_pitch, memory_.sums_plane, memory_.sums_planes};
    back_ = {memory_.back, tile, memory_.sums_pitch, memory_.sums_plane, memory_.back_planes};
    clear(sums_);
    if (kernel.folds) for_totals([](float&, double& total) { total = 0; });
  }

  void search_own_image() {
    const int reach = kernel_.search / 2;
    skips_self_ = true;
    if (kernel_.pairs) {
      moving_ = still_;
      use_ = WeightUse::around;
      add_shifts({1, 0, reach + 1, 1});
      add_shifts({-reach, 1, reach + 1, reach + 1});
    } else {
      use_ = WeightUse::forth;
      add_blocks(call_.at(0, 0));
    }
  }

  // Another image, for the tile's own pixels.
  void search_image(const ConstPlanes& image) {
    skips_self_ = false;
    use_ = WeightUse::forth;
    if (kernel_.pairs) {
      gather_moving(image);
      add_shifts(window());
    } else {
      add_blocks(image);
    }
  }

  // Another image, for the tile's own pixels and for those of the same tile of that image: returns the sums
  // of these. For pairs that are not folded.
  const Planes& search_images_of_each_other(const ConstPlanes& image) {
    skips_self_ = false;
    use_ = WeightUse::across;
    clear(back_);
    gather_moving(image);
    add_shifts(window());
    return back_;
  }

  const Planes& sums() {
    if (kernel_.folds) unfold();
    return sums_;
  }

  void finish() {
    sums();
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

 private:
  Rect with_halo() const {
    const int r = memory_.still_reach;
    return {tile_.x0 - r, tile_.y0 - r, tile_.x1 + r, tile_.y1 + r};
  }
  Rect window() const {
    const int reach = kernel_.search / 2;
    return {-reach, -reach, reach + 1, reach + 1};
  }

  void clear(const Planes& sums) const {
    for (int plane = 0; plane < sums.count; ++plane) {
      std::fill_n(sums.row(plane, tile_.y0), tile_.height() * memory_.sums_pitch, 0.0F);
    }
  }

  void gather_moving(const ConstPlanes& image) {
    moving_ = gather_scaled(kernel_, image, call_.image, first_, with_halo(),
                            {memory_.moving, memory_.moving_pitch, memory_.moving_plane()});
  }

  // The window, in blocks at the same positions for all tiles.
  void add_blocks(const ConstPlanes& image) {
    const Rect shifts = window();
    const auto block_below = [](int shift) {
      return (shift >= 0 ? shift / block : -((block - 1 - shift) / block)) * block;
    };
    for (int dy = block_below(shifts.y0); dy < shifts.y1; dy += block) {
      for (int dx = block_below(shifts.x0); dx < shifts.x1; dx += block) {
        const Rect part{std::max(dx, shifts.x0), std::max(dy, shifts.y0), std::min(dx + block, shifts.x1),
                        std::min(dy + block, shifts.y1)};
        const int r = kernel_.reach;
        moving_ = gather_scaled(kernel_, image, call_.image, first_,
                                {tile_.x0 + part.x0 - r, tile_.y0 + part.y0 - r, tile_.x1 + part.x1 - 1 + r,
                                 tile_.y1 + part.y1 - 1 + r},
                                {memory_.moving, memory_.moving_pitch, memory_.moving_plane()});
        add_shifts(part);
      }
    }
  }

  // How many of the next `left` shifts are added at once.
  int count_of(int left) const {
    const bool keeps_weights = use_ == WeightUse::around;
    return keeps_weights || left < most_shifts_at_once ? std::min(shifts_at_once, left) : most_shifts_at_once;
  }

  void add_shifts(const Rect& shifts) {
    for (int dy = shifts.y0; dy < shifts.y1; ++dy) {
      if (kernel_.folds) fold();
      for (int dx = shifts.x0; dx < shifts.x1;) {
        const bool self_is_ahead = skips_self_ && dy == 0 && dx <= 0;
        const int end = self_is_ahead ? std::min(shifts.x1, 0) : shifts.x1;
        const int count = count_of(end - dx);
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
    if (shrinks && use_ == WeightUse::forth) {
      const Rect first = both_inside(call_.image, dx, dy);
      const Rect last = both_inside(call_.image, dx + count - 1, dy);
      area = {std::max(area.x0, std::min(first.x0, last.x0)), std::max(area.y0, first.y0),
              std::min(area.x1, std::max(first.x1, last.x1)), std::min(area.y1, first.y1)};
    }
    if (area.width() <= 0 || area.height() <= 0) return;
    Rect weights = area;
    if (use_ != WeightUse::forth) {
      weights = {area.x0 - std::max(dx + count - 1, 0), area.y0 - std::max(dy, 0), area.x1 - std::min(dx, 0),
                 area.y1 - std::min(dy, 0)};
    }
    PatchShifts group{.count = count, .use = use_};
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
    add_patch_shifts(kernel_, still_, moving_, group, area, sums_, memory_.rows, back_);
  }

  bool leaves_image() const {
    const Rect image{0, 0, call_.image.width, call_.image.height};
    return !image.contains(still_.rect) || !image.contains(moving_.rect);
  }

  const WindowKernel& kernel_;
  const StageCall& call_;
  Rect tile_;
  int first_;
  Memory memory_;
  bool skips_self_ = true;
  WeightUse use_ = WeightUse::forth;
  ConstPlanes still_;
  ConstPlanes moving_;
  Planes sums_;
  Planes back_;
};

// Calls body(tile, first channel, memory) for all tiles and channels that share a weight.
template <class Body>
void for_search_tiles(const WindowKernel& kernel, const StageCall& call, int channels, Body body) {
  for_tiles(call.workers, call.out.rect, tile_width, kernel.height, [&](const Rect& tile, int worker) {
    for (int first = 0; first < channels; first += kernel.channels) {
      body(tile, first, call.scratch_of(worker));
    }
  });
}

// `shorts`: where images of 8 bits may be compared with distances of 16 bits.
Stage window_search(std::string name, const WindowKernel& kernel, const std::optional<ShortKernel>& shorts) {
  const std::size_t scratch =
      std::max(Memory(kernel).floats(), shorts ? short_search_floats(*shorts, kernel.search) : 0);
  return {.name = std::move(name), .scratch = scratch, .run = [kernel, shorts](const StageCall& call) {
            if (shorts && has_short_search()) {
              run_short_search(*shorts, kernel, call);
              return;
            }
            for_search_tiles(kernel, call, call.out.count, [&](const Rect& area, int first, float* memory) {
              Tile tile(kernel, call, area, first, memory);
              tile.search_own_image();
              for (int offset = -call.reach.before; offset <= call.reach.after; ++offset) {
                const ConstPlanes& image = call.at(0, offset);
                if (offset != 0 && image.data != nullptr) tile.search_image(image);
              }
              tile.finish();
            });
          }};
}

// ---- every pair of images once
//
// One stage makes the sums of an image over itself and the images after it, and what these images sum over
// it. The next adds up what the stage made for an image, and divides.

// The planes of the first stage's result, for each set of channels that share a weight.
struct PairSums {
  PairSums(const WindowKernel& kernel, int colour_channels)
      : each(PatchSums::values + kernel.channels),
        set(each * (1 + kernel.radius_t)),
        count(set * (colour_channels / kernel.channels)),
        channels(kernel.channels) {}

  // What the image sums over itself and the images after it.
  int own(int first_channel) const { return first_channel / channels * set; }
  // What the image `after` images after it sums over it. Undefined where there is none.
  int of_later(int first_channel, int after) const { return own(first_channel) + after * each; }

  int each;
  int set;
  int count;
  int channels;
};

void keep(const Planes& sums, const Planes& out, int first_plane) {
  const Rect& area = sums.rect;
  for (int plane = 0; plane < sums.count; ++plane) {
    for (int y = area.y0; y < area.y1; ++y) {
      std::copy_n(sums.row(plane, y), area.width(), &out.at(first_plane + plane, area.x0, y));
    }
  }
}

Stage search_of_pairs(std::string name, const WindowKernel& kernel, const PairSums& planes, int channels) {
  return {.name = std::move(name),
          .planes = planes.count,
          .reads = {0},
          .scratch = Memory(kernel).floats(),
          .run = [kernel, planes, channels](const StageCall& call) {
            for_search_tiles(kernel, call, channels, [&](const Rect& area, int first, float* memory) {
              Tile tile(kernel, call, area, first, memory);
              tile.search_own_image();
              for (int after = 1; after <= kernel.radius_t; ++after) {
                const ConstPlanes& image = call.at(0, after);
                if (image.data == nullptr) continue;
                keep(tile.search_images_of_each_other(image), call.out, planes.of_later(first, after));
              }
              keep(tile.sums(), call.out, planes.own(first));
            });
          }};
}

// One row of the channels that share a weight, from the result of search_of_pairs() and the images before.
void add_up_row(const WindowKernel& kernel, const PairSums& planes, const StageCall& call, int first, int y) {
  constexpr int piece = 512;  // pixels whose sums stay in the first-level cache
  const Rect& area = call.out.rect;
  const auto to_unit = static_cast<float>(kernel.to_unit);
  const auto from_unit = static_cast<float>(1 / kernel.to_unit);
  float weights[piece];
  float largest[piece];
  float values[piece];
  for (int x0 = area.x0; x0 < area.x1; x0 += piece) {
    const int width = std::min(piece, area.x1 - x0);
    // Calls add(row) for what each of the images before, and the image itself, summed of this kind.
    const auto for_sums = [&](int kind, auto add) {
      add(&call.at(1, 0).at(planes.own(first) + kind, x0, y));
      for (int before = 1; before <= kernel.radius_t; ++before) {
        const ConstPlanes& sums = call.at(1, -before);
        if (sums.data != nullptr) add(&sums.at(planes.of_later(first, before) + kind, x0, y));
      }
    };
    const auto sum_up = [&](int kind, float* sum) {
      std::fill_n(sum, width, 0.0F);
      for_sums(kind, [&](const float* row) {
        for (int x = 0; x < width; ++x) sum[x] += row[x];
      });
    };
    sum_up(PatchSums::weights, weights);
    std::fill_n(largest, width, 0.0F);
    for_sums(PatchSums::largest, [&](const float* row) {
      for (int x = 0; x < width; ++x) largest[x] = std::max(largest[x], row[x]);
    });
    for (int c = 0; c < kernel.channels; ++c) {
      sum_up(PatchSums::values + c, values);
      const float* own = &call.at(0, 0).at(first + c, x0, y);
      float* out = &call.out.at(first + c, x0, y);
      for (int x = 0; x < width; ++x) {
        const float self = kernel.self_weight(largest[x]);
        const float centre = std::clamp(own[x] * to_unit, -most_scaled_value, most_scaled_value);
        out[x] = (values[x] + self * centre) / (weights[x] + self) * from_unit;
      }
    }
  }
}

Stage sum_of_pairs(std::string name, const WindowKernel& kernel, const PairSums& planes) {
  return {.name = std::move(name), .reads = {0, 1}, .run = [kernel, planes](const StageCall& call) {
            call.workers.for_each(call.out.rect.height(), [&](std::int64_t row, int) {
              for (int first = 0; first < call.out.count; first += kernel.channels) {
                add_up_row(kernel, planes, call, first, call.out.rect.y0 + static_cast<int>(row));
              }
            });
          }};
}

// Planes for more images would take more memory than the images themselves by far.
constexpr int most_images_in_pairs = 2;

bool takes_pairs(const PatchSearch& search, const WindowKernel& kernel) {
  return search.radius_t > 0 && search.radius_t <= most_images_in_pairs && search.colour != ColourMode::lab &&
         kernel.pairs && !kernel.folds;
}

Pipeline pair_search(const std::string& name, const WindowKernel& kernel, const Pipeline& reference,
                     const ImageSpec& spec) {
  const PairSums planes(kernel, spec.colour_channels());
  Stage search = search_of_pairs(name + " pairs", kernel, planes, spec.colour_channels());
  search.reach = reference.stages[0].reach;
  search.reach.before = 0;
  Stage sum = sum_of_pairs(name, kernel, planes);
  sum.reach = {.before = kernel.radius_t};
  sum.planes = spec.colour_channels();
  return {.stages = {std::move(search), std::move(sum)},
          .wraps = reference.wraps,
          .slow_border = reference.slow_border};
}

}  // namespace

Pipeline patch_search_cpu(std::string name, const PatchSearch& search, const Pipeline& reference,
                          const ImageSpec& spec) {
  const SearchKernel kernel(search, spec);
  if (const WindowKernel window(kernel, 1 + search.radius_t); takes_pairs(search, window)) {
    return pair_search(name, window, reference, spec);
  }
  Stage filter = search.search == whole_image
                     ? whole_image_search_cpu(std::move(name), kernel, spec)
                     : window_search(std::move(name), WindowKernel(kernel, 1 + 2 * search.radius_t),
                                     short_search_kernel(search, kernel, spec));
  filter.reach = search_reach(search.search, static_cast<int>(search.patch.size()), search.radius_t);
  filter.planes = spec.colour_channels();
  return in_colour_mode(search.colour, {std::move(filter)}, reference, spec.white());
}

}  // namespace ungrain
