#include "methods/bilateral/rgb8.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/border.h"
#include "core/convert_simd.h"
#include "cpu/window_tile.h"

namespace ungrain {
namespace {

constexpr double unit = 1024;        // exponents' units in 1
constexpr double no_weight = 65535;  // negated exponent whose weight is 0
constexpr double least_tap = 0x1p-16;
// A weight is rounded to 2^-15. Wherever these errors may move a mean by more than this many steps, floats
// take over.
constexpr double largest_error = 0.9;
constexpr int largest_radius = 32;
constexpr int largest_scale = 32767;             // 256 * 128, less what rounding needs
constexpr std::size_t most_weights = 256 << 10;  // words: beyond a megabyte keeping them gains little
constexpr int most_doublings = 2;                // each doubles the error of rounding

// The negated exponent of a distance. Products are rounded down: half a unit for each channel.
std::uint32_t exponent_of(const WindowTap& tap, int channels_rounded) {
  if (tap.dx == 0 && tap.dy == 0) return 0;
  return static_cast<std::uint32_t>(std::lround(-tap.log2_weight * unit + 0.5 * channels_rounded));
}

constexpr std::uint32_t alone = static_cast<std::uint32_t>(no_weight) << 16;

// As the second of the last pair, if it lies beside its first; else as the first of a new one.
template <class Pair>
void add_tap(std::vector<Pair>& pairs, const Pair& tap) {
  if (!pairs.empty() && pairs.back().offset + 1 == tap.offset && pairs.back().exponents >= alone) {
    pairs.back().exponents = (pairs.back().exponents & 0xffff) | (tap.exponents & 0xffff) << 16;
  } else {
    pairs.push_back(tap);
  }
}

}  // namespace

std::optional<Rgb8Window> Rgb8Window::of(const BilateralParams& params, const ImageSpec& spec) {
  const bool suits = spec.type == PixelType::u8 && spec.colour == Colour::rgb &&
                     spec.colour_channels() == 3 && params.colour == ColourMode::joint &&
                     params.quality != BilateralQuality::separable && params.radius_t == 0 &&
                     params.radius <= largest_radius && params.border != Border::shrink && rgb8_is_there();
  if (!suits) return {};
  Rgb8Window window{};
  window.radius = params.radius;
  window.border = params.border;
  window.distance = params.colour_distance;
  // Whole vectors, and one more than the border: pairs whose second tap is none read it.
  const auto whole_vectors = [](int words) {
    return (words + longest_vector - 1) / longest_vector * longest_vector;
  };
  window.left = whole_vectors(params.radius + 1);
  window.pitch = window.left + tile_width + whole_vectors(2 * params.radius + longest_vector);
  window.plane = static_cast<std::ptrdiff_t>(window.pitch) * (tile_height + 2 * params.radius);

  const bool city_block = window.distance == ColourDistance::city_block;
  const double inverse = inverse_range(params.sigma_range.value(), city_block ? 1 : 3);
  double scale = inverse * 0x1p13 * 128;
  while (scale > largest_scale && window.doublings < most_doublings) {
    scale *= std::sqrt(0.5);
    ++window.doublings;
  }
  if (scale > largest_scale) return {};
  window.scale = static_cast<int>(std::lround(scale));
  window.range_factor = static_cast<float>(-inverse * inverse);

  const Reach reach{.x = params.radius, .y = params.radius};
  const std::vector<WindowTap> all =
      window_taps(params.window, params.radius, reach, params.sigma_space.value());
  double errors = 0;
  for (const WindowTap& tap : all) errors += std::min<double>(std::exp2(tap.log2_weight), least_tap);
  const double threshold = 255 * errors / largest_error;
  window.least_weights = threshold > 1 ? static_cast<float>(threshold * 0x1p15) : 0;
  const int rounded = (city_block ? 1 : 3) << window.doublings;
  for (const WindowTap& tap : all) {
    const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(tap.dy) * window.pitch + tap.dx;
    if (window.least_weights > 0 && tap.log2_weight > -100) {
      window.taps.push_back({offset, tap.log2_weight + WindowTile::raised_by});
    }
    if (std::exp2(tap.log2_weight) < least_tap) continue;
    const std::uint32_t exponent = exponent_of(tap, rounded);
    add_tap(window.pairs, {offset, exponent | alone});
    if (tap.dy > 0 || (tap.dy == 0 && tap.dx > 0)) {
      add_tap(window.half, {offset, exponent | alone, tap.dx, tap.dy});
    }
  }
  const std::size_t kept = window.weights_row() * static_cast<std::size_t>(window.rows_of_weights());
  if (kept > most_weights || window.half.size() > most_half_pairs) window.half.clear();
  return window;
}

namespace {

// A worker's memory for one tile.
struct TileMemory {
  TileMemory(const Rgb8Window& of, float* memory)
      : window(of), words(reinterpret_cast<std::int32_t*>(memory)) {
    means = memory + 6 * of.plane;
    samples = means + 3 * Rgb8Window::tile_width;
    auto* const rows = reinterpret_cast<std::uint8_t*>(samples + of.pitch);
    for (int c = 0; c < 3; ++c) bytes[c] = rows + c * of.bytes_pitch() + of.left;
    weights = words + 6 * of.plane + 3 * Rgb8Window::tile_width + of.pitch + of.bytes_pitch();
  }

  // The row's words from its bytes; bytes beside the row are made 0, so that all words are defined.
  void set_row(int row, int columns) const {
    const int before = window.left - window.radius;
    const int wide = std::min(before + columns + Rgb8Window::longest_vector, window.pitch);
    for (int c = 0; c < 3; ++c) {
      std::uint8_t* const first = bytes[c] - before;
      std::memset(first, 0, static_cast<std::size_t>(before));
      std::memset(bytes[c] + columns, 0, static_cast<std::size_t>(2 * Rgb8Window::longest_vector + 1));
      std::int32_t* const scaled = row_of(row) + c * window.plane - window.left;
      rgb8_words(window, first, wide, scaled, scaled + 3 * window.plane);
    }
  }
  // Means of all rows of the tile, one after the other; store(row) takes them.
  template <class Store>
  void filter(int width, int height, Store store) const {
    const bool one_sided = window.half.empty();
    const int kept = window.rows_of_weights();
    for (int row = one_sided ? 0 : -window.radius; row < height; ++row) {
      const std::int32_t* const scaled = row_of(row + window.radius);
      const std::int32_t* const values = scaled + 3 * window.plane;
      const int slot = (row + window.radius) % kept;
      if (one_sided) {
        rgb8_row(window, scaled, values, width, means);
      } else {
        rgb8_row_once(window, scaled, values, width, slot, std::max(0, -row), weights,
                      row < 0 ? nullptr : means);
      }
      if (row < 0) continue;
      store(row);
    }
  }
  // The tile's first column in a row; rows count from the border's first one.
  std::int32_t* row_of(int row) const {
    return words + static_cast<std::ptrdiff_t>(row) * window.pitch + window.left;
  }

  const Rgb8Window& window;
  std::int32_t* words;
  float* means;
  float* samples;  // of one row, as floats or as bytes with all their channels
  std::uint8_t* bytes[3];
  std::int32_t* weights;
};

Rect line_of(const Rect& area, int y) { return {area.x0, y, area.x1, y + 1}; }

}  // namespace

void Rgb8Window::run(const StageCall& call) const {
  for_tiles(call.workers, call.out.rect, tile_width, tile_height, [&](const Rect& tile, int worker) {
    const TileMemory memory(*this, call.scratch_of(worker));
    const Rect area{tile.x0 - radius, tile.y0 - radius, tile.x1 + radius, tile.y1 + radius};
    for (int y = area.y0; y < area.y1; ++y) {
      for (int c = 0; c < 3; ++c) {
        gather(call.in[0], c, call.image, border, line_of(area, y), memory.samples, pitch);
        samples_from(PixelType::u8, memory.samples, area.width(), 1, memory.bytes[c]);
      }
      memory.set_row(y - area.y0, area.width());
    }
    memory.filter(tile.width(), tile.height(), [&](int row) {
      for (int c = 0; c < 3; ++c) {
        std::memcpy(&call.out.at(c, tile.x0, tile.y0 + row), memory.means + c * tile_width,
                    static_cast<std::size_t>(tile.width()) * sizeof(float));
      }
    });
  });
}

void Rgb8Window::run_direct(const DirectCall& call) const {
  const int channels = call.in.spec.channels;
  const SampleRows<const std::uint8_t> in{static_cast<const std::uint8_t*>(call.in.data), call.in_rect,
                                          call.in.strides.y, channels};
  const SampleRows<std::uint8_t> out{static_cast<std::uint8_t*>(call.out.data), call.out_rect,
                                     call.out.strides.y, channels};
  for_tiles(call.workers, call.out_rect, tile_width, tile_height, [&](const Rect& tile, int worker) {
    const TileMemory memory(*this, call.scratch_of(worker));
    const Rect area{tile.x0 - radius, tile.y0 - radius, tile.x1 + radius, tile.y1 + radius};
    auto* const pixels = reinterpret_cast<std::uint8_t*>(memory.samples);
    // Alpha goes where the means will be.
    auto* const alpha = reinterpret_cast<std::uint8_t*>(memory.means);
    void* const split[] = {memory.bytes[0], memory.bytes[1], memory.bytes[2], alpha};
    for (int y = area.y0; y < area.y1; ++y) {
      gather(in, call.image, border, line_of(area, y), pixels, 0);
      split_channels(1, channels, pixels, area.width(), split);
      memory.set_row(y - area.y0, area.width());
    }
    memory.filter(tile.width(), tile.height(), [&](int row) {
      for (int c = 0; c < 3; ++c) {
        samples_from(PixelType::u8, memory.means + c * tile_width, tile.width(), 1, memory.bytes[c]);
      }
      if (channels == 4) std::memset(alpha, 0, static_cast<std::size_t>(tile.width()));
      join_channels(1, channels, split, tile.width(), out.pixel(tile.x0, tile.y0 + row));
    });
  });
}

}  // namespace ungrain
