// What the bilateral family shares on the CPU: a tile with its border in a core's cache, the offsets of the
// window with their spatial weights, and the stages to Lab and back.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "core/border.h"
#include "core/method.h"
#include "core/window.h"
#include "cpu/tiles.h"
#include "ungrain/methods/bilateral.h"
#include "ungrain/methods/common.h"

namespace ungrain {

struct WindowTap {
  int dx;
  int dy;
  float log2_weight;  // of the distance
};

// The offsets within `reach` in the order in which every pixel's sums are taken: dy, then dx.
std::vector<WindowTap> window_taps(Window window, int radius, const Reach& reach, double sigma_space);

// Differences times this, squared and summed, are the negative exponent of 2 of the range weight.
float inverse_range(double sigma_range, int divisor);

// An offset of the window in a tile's memory.
struct TileTap {
  std::ptrdiff_t offset;
  float log2_weight;  // of the distance, times 2^raised_by
};

// A tile of one worker, and the pass of a window over it. The tile's memory holds the planes of the channels
// that share a weight, with their border, of one image of the sequence after the other, then a row of changes
// for each channel. window_tile-inl.h computes on it.
class WindowTile {
 public:
  static constexpr int width = 256;  // a multiple of every vector's length
  static constexpr int height = 32;
  // All weights are multiplied by this power of 2, which the division by their sum cancels: they may be as
  // small as 2^-190. Sums of 33 (2 * 128 + 1)² of them times the largest value do not overflow.
  static constexpr int raised_by = 64;

  template <class Params>
  WindowTile(const Params& params, const Reach& reach_of_pass, const ImageSpec& spec,
             ColourDistance colour_distance = ColourDistance::euclidean)
      : WindowTile(reach_of_pass, channels_per_weight(params.colour, spec.colour_channels()), params.border) {
    distance = colour_distance;
    divisor = distance == ColourDistance::city_block ? 1 : difference_divisor(params.colour, channels);
    set_scale(inverse_range(params.sigma_range.value(), divisor),
              params.colour == ColourMode::lab ? white_of_lab : spec.white());
    set_taps(window_taps(params.window, params.radius, reach, params.sigma_space.value()));
  }

  // Floats of a tile's memory; and of a value that a method may keep for every tap.
  std::size_t scratch() const {
    return static_cast<std::size_t>(channels * (plane * reach.slices() + width));
  }
  std::size_t vector_for_each_tap() const { return taps.size() * longest_vector; }

  // For the images that exist around the one that the call computes: the window has its taps in each.
  // exponent(offset) is the exponent of 2 of the weight of an image `offset` images away.
  WindowTile over_images_of(const StageCall& call, const std::function<double(int)>& exponent) const;

  // Gathers the planes of these images, unscaled.
  void load(const StageCall& call, const Rect& tile, int first_channel, float* memory) const;
  // Gives pixels outside the image that do not count (shrink) values so different from all others that their
  // weight is negligible. Returns whether there are any.
  bool exclude_outside(const Extent& image, const Rect& tile, float* memory) const;

  // The pixel (tile.x0, y) of the first channel of the image that is computed.
  const float* row(const float* memory, const Rect& tile, int y) const {
    return memory + own * channels * plane + (y - tile.y0 + reach.y) * pitch + reach.x;
  }
  // The changes of a row's pixels: `width` floats for each channel.
  float* changes(float* memory) const { return memory + channels * plane * reach.slices(); }

  Rect with_border(const Rect& tile) const {
    return {tile.x0 - reach.x, tile.y0 - reach.y, tile.x1 + reach.x, tile.y1 + reach.y};
  }

  Reach reach;
  int channels;    // that share a weight
  int images = 1;  // that exist
  int own = 0;     // index among them of the image that is computed
  ColourDistance distance = ColourDistance::euclidean;
  int divisor = 1;
  Border border;
  int pitch;             // floats from one row to the next
  std::ptrdiff_t plane;  // and from one channel to the next
  // Values times this, their differences squared and summed (city block: summed and squared), are negated
  // exponents of 2.
  float scale = 1;
  float unscale = 1;               // 1 / scale
  std::vector<TileTap> taps = {};  // dy, then dx: the order of every pixel's sums
  float lowest_tap = 0;            // exponent

  // Scaled values are limited to this, so that squares are finite; the value of excluded pixels lies beyond.
  static constexpr float largest_value = 1e12F;

 private:
  static constexpr float excluded = 1e13F;
  static constexpr double white_of_lab = 100;
  static constexpr int longest_vector = 64;  // floats: rows are written in whole vectors

  WindowTile(const Reach& reach_of_pass, int channels_per_weight, Border border_rule)
      : reach(reach_of_pass),
        channels(channels_per_weight),
        border(border_rule),
        pitch((width + 2 * reach.x + longest_vector - 1) / longest_vector * longest_vector),
        plane(static_cast<std::ptrdiff_t>(pitch) * (height + 2 * reach.y)) {}

  void set_scale(double wanted, double white);
  void set_taps(const std::vector<WindowTap>& window);
};

// Calls filter(tile, first channel, memory) for all tiles of a stage.
template <class Filter>
void for_window_tiles(const WindowTile& kernel, const StageCall& call, Filter filter) {
  for_tiles(call.workers, call.out.rect, WindowTile::width, WindowTile::height,
            [&](const Rect& tile, int worker) {
              for (int first = 0; first < call.out.count; first += kernel.channels) {
                filter(tile, first, call.scratch_of(worker));
              }
            });
}

// The passes of a filter; in Lab each follows a stage that converts its input, and converts its own result
// back. `reference` has as many stages and filters what floats are not precise enough for (far_lab.h).
Pipeline in_colour_mode(ColourMode mode, std::vector<Stage> passes, const Pipeline& reference, double white);

}  // namespace ungrain
