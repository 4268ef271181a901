#include "cpu/short_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/border.h"
#include "cpu/exp.h"
#include "cpu/tiles.h"

namespace ungrain {
namespace {

constexpr int most_finer = 8;
constexpr double units_of_bit = 256;  // of an exponent of 2, the coarsest
constexpr double most_units = 65535;
constexpr double bits_of_weights = 126;  // weights below 2^-126 do not matter
// Pixels less 128, times this, leave room for what stands in the place of cut noise: -42 to 298.
constexpr double most_pixel_scale = 192;
// Differences of values with that room.
constexpr double most_difference = 340;

// A part of a worker's memory: `count` values from an address on that is aligned for the longest vector.
template <class T>
T* take(float*& memory, std::ptrdiff_t count) {
  constexpr std::uintptr_t line = 64;
  auto address = reinterpret_cast<std::uintptr_t>(memory);
  address = (address + line - 1) / line * line;
  T* part = reinterpret_cast<T*>(address);
  memory = reinterpret_cast<float*>(part + count);
  return part;
}

// Numbers of values.
struct ShortMemory {
  ShortMemory(const ShortKernel& kernel, int search)
      : window(search / 2),
        reach(window + kernel.reach),
        pixels_plane(static_cast<std::ptrdiff_t>(ShortColumns::pixels) *
                     (short_tile_height + 2 * reach + short_rows_below)),
        values_plane(static_cast<std::ptrdiff_t>(ShortColumns::values) * (short_tile_height + 2 * window)),
        pixels(kernel.channels * pixels_plane),
        values(kernel.channels * values_plane),
        weights(static_cast<std::ptrdiff_t>(short_shifts_at_once) * short_weight_rows *
                ShortColumns::weights),
        sums((1 + kernel.channels) * area) {}

  static constexpr std::ptrdiff_t area = static_cast<std::ptrdiff_t>(short_tile_width) * short_tile_height;
  static constexpr std::ptrdiff_t row = ShortColumns::values + most_shorts;

  int window;  // the longest shift
  int reach;   // of the shifts and the patches
  std::ptrdiff_t pixels_plane;
  std::ptrdiff_t values_plane;
  std::ptrdiff_t pixels;
  std::ptrdiff_t values;
  std::ptrdiff_t weights;
  std::ptrdiff_t sums;
};

class TileSearch {
 public:
  TileSearch(const ShortKernel& shorts, const SearchKernel& kernel, const StageCall& call, const Rect& tile,
             int first_channel, float* memory)
      : shorts_(shorts),
        kernel_(kernel),
        call_(call),
        rect_(tile),
        first_(first_channel),
        size_(shorts, kernel.search) {
    auto* pixels = take<std::int16_t>(memory, size_.pixels);
    auto* values = take<float>(memory, size_.values);
    auto* weights = take<std::uint16_t>(memory, size_.weights);
    auto* sums = take<float>(memory, size_.sums);
    auto* largest = take<std::uint16_t>(memory, ShortMemory::area);
    auto* row = take<float>(memory, ShortMemory::row);
    gather_tile(pixels, values, row);
    std::fill_n(sums, size_.sums, 0.0F);
    std::fill_n(largest, ShortMemory::area, std::uint16_t{0});
    tile_ = {.width = tile.width(),
             .height = tile.height(),
             .pixels = pixels + static_cast<std::ptrdiff_t>(size_.reach) * ShortColumns::pixels +
                       ShortColumns::pixels_before,
             .pixels_plane = size_.pixels_plane,
             .values = values + static_cast<std::ptrdiff_t>(size_.window) * ShortColumns::values +
                       ShortColumns::values_before / 2,
             .values_plane = size_.values_plane,
             .weights = weights,
             .sums = sums,
             .sums_plane = ShortMemory::area,
             .largest = largest};
  }

  void add_shifts() {
    add_row_of_shifts(1, 0);
    for (int dy = 1; dy <= size_.window; ++dy) add_row_of_shifts(-size_.window, dy);
  }

  void finish() const {
    for (int y = 0; y < tile_.height; ++y) {
      const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(y) * short_tile_width;
      const float* weights = tile_.sums + row;
      for (int c = 0; c < shorts_.channels; ++c) {
        const float* sums = weights + (1 + c) * tile_.sums_plane;
        const float* centre =
            tile_.values + c * tile_.values_plane + static_cast<std::ptrdiff_t>(y) * ShortColumns::values;
        float* out = &call_.out.at(first_ + c, rect_.x0, rect_.y0 + y);
        for (int x = 0; x < tile_.width; ++x) {
          const int at = x / 2 + (x % 2) * (short_tile_width / 2);
          const float value = centre[x / 2 + (x % 2) * (ShortColumns::values / 2)];
          const auto bits = static_cast<std::uint32_t>(tile_.largest[row + x]) << 16;
          const float self = kernel_.self_weight(std::bit_cast<float>(bits));
          out[x] = (sums[at] + self * value) / (weights[at] + self);
        }
      }
    }
  }

 private:
  void gather_tile(std::int16_t* pixels, float* values, float* row) const {
    const int width = rect_.width() + 2 * size_.reach;
    float* const start = row + ShortColumns::values_before - size_.reach;
    std::fill_n(row, ShortMemory::row, 0.0F);
    std::fill_n(pixels, size_.pixels, std::int16_t{0});
    for (int c = 0; c < shorts_.channels; ++c) {
      std::int16_t* to = pixels + c * size_.pixels_plane + ShortColumns::pixels_before - size_.window;
      float* even = values + c * size_.values_plane;
      for (int y = rect_.y0 - size_.reach; y < rect_.y1 + size_.reach; ++y, to += ShortColumns::pixels) {
        gather(call_.at(0, 0), first_ + c, call_.image, kernel_.border,
               {rect_.x0 - size_.reach, y, rect_.x1 + size_.reach, y + 1}, start, width);
        make_short_pixels(start, width, shorts_.pixel_scale, to);
        if (y < rect_.y0 - size_.window || y >= rect_.y1 + size_.window) continue;
        split_short_values(row, ShortColumns::values, even, even + ShortColumns::values / 2);
        even += ShortColumns::values;
      }
    }
  }

  void add_row_of_shifts(int dx, int dy) const {
    for (; dx <= size_.window; dx += short_shifts_at_once) {
      add_short_shifts(shorts_, tile_, dx, dy, std::min(short_shifts_at_once, size_.window + 1 - dx));
    }
  }

  const ShortKernel& shorts_;
  const SearchKernel& kernel_;
  const StageCall& call_;
  Rect rect_;
  int first_;
  ShortMemory size_;
  ShortTile tile_;
};

}  // namespace

std::optional<ShortKernel> short_search_kernel(const PatchSearch& search, const SearchKernel& kernel,
                                               const ImageSpec& spec) {
  const bool has_code = kernel.flat && !kernel.compares_pixels && kernel.reach <= most_short_reach &&
                        (kernel.channels == 1 || kernel.channels == 3) && search.search != whole_image &&
                        search.search / 2 <= most_short_shift && search.radius_t == 0 &&
                        search.border != Border::shrink && search.colour != ColourMode::lab;
  if (spec.type != PixelType::u8 || search.precision != Precision::half || !has_code) return std::nullopt;
  // A square's bits of the exponent of 2.
  const double bits = static_cast<double>(kernel.scale) * kernel.to_unit * kernel.to_unit;
  const double noise = kernel.noise;
  const int side = 2 * kernel.reach + 1;
  const double all_bits = bits * side * side * kernel.channels * most_difference * most_difference;
  const double range = std::min(bits_of_weights + noise, all_bits);
  if (range * units_of_bit > most_units) return std::nullopt;
  int finer = 0;
  while (finer < most_finer && range * units_of_bit * (2 << finer) <= most_units) ++finer;
  const double units = units_of_bit * (1 << finer);
  const double pixel_scale = std::sqrt(32768 * bits * units);
  if (pixel_scale > most_pixel_scale) return std::nullopt;
  return ShortKernel{.reach = kernel.reach,
                     .channels = kernel.channels,
                     .pixel_scale = static_cast<float>(pixel_scale),
                     .noise = static_cast<std::uint16_t>(std::lround(std::min(noise * units, most_units))),
                     .finer = finer,
                     .largest = kernel.largest};
}

std::size_t short_search_floats(const ShortKernel& kernel, int search) {
  const ShortMemory size(kernel, search);
  constexpr int parts = 6;
  constexpr int floats_to_align = 16;
  return static_cast<std::size_t>((size.pixels + size.weights + ShortMemory::area) / 2 + size.values +
                                  size.sums + ShortMemory::row + parts * floats_to_align);
}

void run_short_search(const ShortKernel& shorts, const SearchKernel& kernel, const StageCall& call) {
  for_tiles(call.workers, call.out.rect, short_tile_width, short_tile_height,
            [&](const Rect& tile, int worker) {
              for (int first = 0; first < call.out.count; first += kernel.channels) {
                TileSearch search(shorts, kernel, call, tile, first, call.scratch_of(worker));
                search.add_shifts();
                search.finish();
              }
            });
}

}  // namespace ungrain
