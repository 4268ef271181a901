// Shift by shift over a tile in a core's cache: squared differences of the tile and the tile shifted, summed
// over patches along rows and then along columns, are the exponents of the whole tile's weights for that
// shift. Sums are float; a pixel's are taken in the order of the shifts, dy then dx within blocks of shifts
// that do not depend on the tile.
#include "cpu/patch_search.h"

#include <algorithm>
#include <cmath>

#include "core/border.h"
#include "core/patches.h"
#include "core/window.h"
#include "cpu/exp.h"
#include "cpu/tiles.h"
#include "cpu/window_tile.h"

namespace ungrain {
namespace {

constexpr int width = 64;  // of a tile
constexpr int height = 32;
constexpr int block = 64;  // shifts a side for which the shifted pixels are gathered at once

struct Kernel {
  Kernel(const PatchSearch& s, int channels)
      : search(s.search),
        reach(static_cast<int>(s.patch.size()) / 2),
        together(channels_together(s.colour, channels)),
        self(s.self),
        border(s.border),
        space(s.space) {
    const int divisor = difference_divisor(s.colour, together);
    inverse = inverse_range(s.strength / std::sqrt(2.0), divisor);
    noise = static_cast<float>(std::min(1e30, 2 * std::pow(s.noise / s.strength, 2) * log2_e));
    compares_pixels = !std::isinf(s.range);
    inverse_pixel = inverse_range(s.range, divisor);
    for (const double weight : s.patch) patch.push_back(static_cast<float>(weight));
  }

  // What the distance of a shift adds to the negative exponent of 2.
  float exponent_of_shift(int dx, int dy) const {
    const double distance = std::pow(dx / space, 2) + std::pow(dy / space, 2);
    return static_cast<float>(std::min(1e30, distance / 2 * log2_e));
  }

  int search;
  int reach;  // of a patch
  int together;
  SelfWeight self;
  Border border;
  double space;
  float inverse;  // differences times this, squared and summed over the channels, are negative exponents of 2
  float noise;    // what the noise adds to them
  bool compares_pixels;
  float inverse_pixel;  // as `inverse`, of the two pixels alone
  std::vector<float> patch;
};

// The memory of one worker.
struct Memory {
  explicit Memory(const Kernel& kernel)
      : still_pitch(width + 2 * kernel.reach),
        still_rows(height + 2 * kernel.reach),
        moving_pitch(still_pitch + block - 1),
        moving_rows(still_rows + block - 1),
        channels(kernel.together) {}

  std::size_t floats() const {
    return static_cast<std::size_t>(channels) * static_cast<std::size_t>(still_plane() + moving_plane()) +
           static_cast<std::size_t>(still_pitch) + static_cast<std::size_t>(still_rows) * width + 2 * width +
           static_cast<std::size_t>(2 + channels) * width * height;
  }
  std::ptrdiff_t still_plane() const { return static_cast<std::ptrdiff_t>(still_pitch) * still_rows; }
  std::ptrdiff_t moving_plane() const { return static_cast<std::ptrdiff_t>(moving_pitch) * moving_rows; }

  void lay_out(float* memory) {
    const auto take = [&memory](std::ptrdiff_t count) {
      float* part = memory;
      memory += count;
      return part;
    };
    still = take(still_plane() * channels);
    moving = take(moving_plane() * channels);
    line = take(still_pitch);
    row_sums = take(static_cast<std::ptrdiff_t>(still_rows) * width);
    exponents = take(width);
    shares = take(width);
    weights = take(width * height);
    largest = take(width * height);
    sums = take(static_cast<std::ptrdiff_t>(width) * height * channels);
  }

  int still_pitch;
  int still_rows;
  int moving_pitch;
  int moving_rows;
  int channels;
  float* still = nullptr;      // the tile with a patch's reach around, each channel
  float* moving = nullptr;     // what a block of shifts moves over it
  float* line = nullptr;       // squared differences of one row
  float* row_sums = nullptr;   // of patches, along rows
  float* exponents = nullptr;  // of one row of the tile
  float* shares = nullptr;     // of a patch's weights that lie inside, along x, under a shrinking border
  float* weights = nullptr;
  float* largest = nullptr;
  float* sums = nullptr;
};

// A tile and what is summed over it.
class Tile {
 public:
  Tile(const Kernel& kernel, const StageCall& call, const Rect& tile, int first_channel, float* memory)
      : kernel_(kernel), call_(call), tile_(tile), first_(first_channel), memory_(kernel) {
    memory_.lay_out(memory);
    const int r = kernel.reach;
    for (int c = 0; c < kernel.together; ++c) {
      gather(call.in[0], first_ + c, call.image, kernel.border,
             {tile.x0 - r, tile.y0 - r, tile.x1 + r, tile.y1 + r}, memory_.still + c * memory_.still_plane(),
             memory_.still_pitch);
    }
    std::fill_n(memory_.weights, width * height, 0.0F);
    std::fill_n(memory_.largest, width * height, 0.0F);
    std::fill_n(memory_.sums, width * height * kernel.together, 0.0F);
  }

  void filter() {
    if (kernel_.search == whole_image) {
      // Every shift that leads from some pixel of the tile to one of the image, in blocks that lie the same
      // for all.
      const auto block_below = [](int shift) {
        return (shift >= 0 ? shift / block : -((block - 1 - shift) / block)) * block;
      };
      const Rect shifts{-(tile_.x1 - 1), -(tile_.y1 - 1), call_.image.width - tile_.x0,
                        call_.image.height - tile_.y0};
      for (int dy = block_below(shifts.y0); dy < shifts.y1; dy += block) {
        for (int dx = block_below(shifts.x0); dx < shifts.x1; dx += block) {
          add_block({std::max(dx, shifts.x0), std::max(dy, shifts.y0), std::min(dx + block, shifts.x1),
                     std::min(dy + block, shifts.y1)});
        }
      }
    } else {
      const int reach = kernel_.search / 2;
      for (int dy = -reach; dy <= reach; dy += block) {
        for (int dx = -reach; dx <= reach; dx += block) {
          add_block({dx, dy, std::min(dx + block, reach + 1), std::min(dy + block, reach + 1)});
        }
      }
    }
    finish();
  }

 private:
  bool only_inside() const { return kernel_.border == Border::shrink || kernel_.search == whole_image; }

  void add_block(const Rect& shifts) {
    const int r = kernel_.reach;
    for (int c = 0; c < kernel_.together; ++c) {
      gather(call_.in[0], first_ + c, call_.image, kernel_.border,
             {tile_.x0 + shifts.x0 - r, tile_.y0 + shifts.y0 - r, tile_.x1 + shifts.x1 - 1 + r,
              tile_.y1 + shifts.y1 - 1 + r},
             memory_.moving + c * memory_.moving_plane(), memory_.moving_pitch);
    }
    for (int dy = shifts.y0; dy < shifts.y1; ++dy) {
      for (int dx = shifts.x0; dx < shifts.x1; ++dx) {
        if (dx != 0 || dy != 0) add_shift(dx, dy, dx - shifts.x0, dy - shifts.y0);
      }
    }
  }

  // (left, top): where the shifted tile begins in what was gathered.
  void add_shift(int dx, int dy, int left, int top) {
    // Rows and columns of the tile whose shifted pixel counts.
    Rect counts{0, 0, tile_.width(), tile_.height()};
    if (only_inside()) {
      counts = {std::max(0, -dx - tile_.x0), std::max(0, -dy - tile_.y0),
                std::min(counts.x1, call_.image.width - dx - tile_.x0),
                std::min(counts.y1, call_.image.height - dy - tile_.y0)};
    }
    if (counts.width() <= 0 || counts.height() <= 0) return;
    for (int row = counts.y0; row < counts.y1 + 2 * kernel_.reach; ++row) sum_row(row, dx, dy, left, top);
    if (kernel_.border == Border::shrink) find_shares(dx);
    const float of_shift = kernel_.exponent_of_shift(dx, dy);
    for (int y = counts.y0; y < counts.y1; ++y) {
      find_exponents(y, dy);
      take_noise_off(of_shift);
      if (kernel_.compares_pixels) compare_pixels(y, left, top);
      add_row(y, counts.x0, counts.x1, left, top);
    }
  }

  // Whether a pixel and the one it is compared with both lie inside, along one axis.
  static bool both_inside(int position, int shift, int n) {
    return position >= 0 && position < n && position + shift >= 0 && position + shift < n;
  }

  void sum_row(int row, int dx, int dy, int left, int top) {
    const int r = kernel_.reach;
    const int count = tile_.width() + 2 * r;
    float* sums = memory_.row_sums + static_cast<std::ptrdiff_t>(row) * width;
    std::fill_n(sums, width, 0.0F);
    const bool shrink = kernel_.border == Border::shrink;
    if (shrink && !both_inside(tile_.y0 - r + row, dy, call_.image.height)) return;
    float* __restrict line = memory_.line;
    const float* still = memory_.still + static_cast<std::ptrdiff_t>(row) * memory_.still_pitch;
    const float* moving =
        memory_.moving + static_cast<std::ptrdiff_t>(row + top) * memory_.moving_pitch + left;
    constexpr float most = 1e30F;  // so that no weight of 0 meets an infinity
    for (int c = 0; c < kernel_.together; ++c) {
      const float* a = still + c * memory_.still_plane();
      const float* b = moving + c * memory_.moving_plane();
      for (int x = 0; x < count; ++x) {
        const float d = (a[x] - b[x]) * kernel_.inverse;
        const float square = d * d;
        const float bounded = square < most ? square : most;
        line[x] = c == 0 ? bounded : line[x] + bounded;
      }
    }
    if (shrink) {
      for (int x = 0; x < count; ++x) {
        if (!both_inside(tile_.x0 - r + x, dx, call_.image.width)) line[x] = 0;
      }
    }
    for (std::size_t k = 0; k < kernel_.patch.size(); ++k) {
      const float weight = kernel_.patch[k];
      const float* from = line + k;
      for (int x = 0; x < width && x < tile_.width(); ++x) sums[x] += weight * from[x];
    }
  }

  void find_shares(int dx) {
    const int r = kernel_.reach;
    for (int x = 0; x < tile_.width(); ++x) {
      float share = 0;
      for (int k = -r; k <= r; ++k) {
        if (both_inside(tile_.x0 + x + k, dx, call_.image.width))
          share += kernel_.patch[static_cast<std::size_t>(k + r)];
      }
      memory_.shares[x] = share;
    }
  }

  void find_exponents(int y, int dy) {
    float* __restrict exponents = memory_.exponents;
    std::fill_n(exponents, width, 0.0F);
    float share = 0;  // of the patch's rows that lie inside
    for (std::size_t k = 0; k < kernel_.patch.size(); ++k) {
      const float weight = kernel_.patch[k];
      const int row = y + static_cast<int>(k);
      const float* from = memory_.row_sums + static_cast<std::ptrdiff_t>(row) * width;
      for (int x = 0; x < width; ++x) exponents[x] += weight * from[x];
      if (both_inside(tile_.y0 - kernel_.reach + row, dy, call_.image.height)) share += weight;
    }
    if (kernel_.border != Border::shrink) return;
    for (int x = 0; x < tile_.width(); ++x) exponents[x] /= share * memory_.shares[x];
  }

  void take_noise_off(float exponent_of_shift) {
    float* __restrict exponents = memory_.exponents;
    for (int x = 0; x < width; ++x) {
      const float above = exponents[x] - kernel_.noise;
      exponents[x] = (above > 0 ? above : 0.0F) + exponent_of_shift;
    }
  }

  void compare_pixels(int y, int left, int top) {
    float* __restrict exponents = memory_.exponents;
    for (int c = 0; c < kernel_.together; ++c) {
      const float* centre = centre_row(y, c);
      const float* other = moving_row(y, left, top, c);
      for (int x = 0; x < tile_.width(); ++x) {
        const float d = (other[x] - centre[x]) * kernel_.inverse_pixel;
        exponents[x] += d * d;
      }
    }
  }

  // Row y of the tile, and of the shifted tile.
  const float* centre_row(int y, int c) const {
    return memory_.still + c * memory_.still_plane() +
           static_cast<std::ptrdiff_t>(y + kernel_.reach) * memory_.still_pitch + kernel_.reach;
  }
  const float* moving_row(int y, int left, int top, int c) const {
    return memory_.moving + c * memory_.moving_plane() +
           static_cast<std::ptrdiff_t>(y + kernel_.reach + top) * memory_.moving_pitch + left + kernel_.reach;
  }

  void add_row(int y, int begin, int end, int left, int top) {
    const float* exponents = memory_.exponents;
    float* __restrict weights = memory_.weights + static_cast<std::ptrdiff_t>(y) * width;
    float* __restrict largest = memory_.largest + static_cast<std::ptrdiff_t>(y) * width;
    float* __restrict found = memory_.line;
    for (int x = begin; x < end; ++x) {
      const float weight = exp2_negative(-exponents[x]);
      found[x] = weight;
      weights[x] += weight;
      largest[x] = weight > largest[x] ? weight : largest[x];
    }
    for (int c = 0; c < kernel_.together; ++c) {
      float* __restrict sums = memory_.sums + (static_cast<std::ptrdiff_t>(c) * height + y) * width;
      const float* values = moving_row(y, left, top, c);
      for (int x = begin; x < end; ++x) sums[x] += found[x] * values[x];
    }
  }

  void finish() {
    for (int y = 0; y < tile_.height(); ++y) {
      const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(y) * width;
      for (int c = 0; c < kernel_.together; ++c) {
        const float* centre = centre_row(y, c);
        const float* sums = memory_.sums + static_cast<std::ptrdiff_t>(c) * height * width + row;
        float* out = call_.out.row(first_ + c, tile_.y0 + y) + (tile_.x0 - call_.out.rect.x0);
        for (int x = 0; x < tile_.width(); ++x) {
          const float most = memory_.largest[row + x];
          const float self = kernel_.self == SelfWeight::max && most > 0 ? most : 1.0F;
          out[x] = (sums[x] + self * centre[x]) / (memory_.weights[row + x] + self);
        }
      }
    }
  }

  const Kernel& kernel_;
  const StageCall& call_;
  Rect tile_;
  int first_;
  Memory memory_;
};

}  // namespace

Pipeline patch_search_cpu(std::string name, const PatchSearch& search, const ImageSpec& spec) {
  const Kernel kernel(search, spec.colour_channels());
  Stage filter{.name = std::move(name),
               .reach = search_reach(search.search, static_cast<int>(search.patch.size())),
               .planes = spec.colour_channels(),
               .scratch = Memory(kernel).floats(),
               .run = [kernel](const StageCall& call) {
                 for_tiles(call.workers, call.out.rect, width, height, [&](const Rect& tile, int worker) {
                   for (int first = 0; first < call.out.count; first += kernel.together) {
                     Tile(kernel, call, tile, first, call.scratch_of(worker)).filter();
                   }
                 });
               }};
  return in_colour_mode(search.colour, {std::move(filter)}, spec.white(), search.border == Border::wrap);
}

}  // namespace ungrain
