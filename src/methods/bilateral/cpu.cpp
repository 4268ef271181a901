// Bilateral on the CPU. Tiles are gathered with their borders into a core's cache; each offset of the window
// is then one pass over a row of the tile, sums in float, in the order of the offsets: dy, then dx.
#include "core/window.h"
#include "cpu/exp.h"
#include "cpu/window_tile.h"
#include "methods/bilateral/bilateral.h"

namespace ungrain {
namespace {

constexpr int width = WindowTile::width;

struct Kernel {
  Kernel(const BilateralParams& params, const Reach& reach, int channels)
      : taps(window_taps(params.window, params.radius, reach, params.sigma_space.value())),
        together(channels_together(params.colour, channels)),
        inverse(inverse_range(params.sigma_range.value(), difference_divisor(params.colour, together))),
        tile(reach, together, params.border) {}

  // Behind the tile: a row of weights, then a row of sums for each channel.
  std::size_t scratch() const { return tile.floats() + static_cast<std::size_t>(width * (together + 1)); }

  std::vector<WindowTap> taps;
  int together;  // channels that share a weight
  float inverse;
  WindowTile tile;
};

// Adds one offset's weights and weighted values of a row. `centre` and `other` are the first channel's rows,
// the next channels' follow at `plane` floats; likewise `sums` at `width`.
template <int Channels>
void add_tap(const float* centre, const float* other, std::ptrdiff_t plane, float inverse, float log2_weight,
             int begin, int end, float* __restrict weights, float* __restrict sums) {
  for (int x = begin; x < end; ++x) {
    float exponent = log2_weight;
    for (int c = 0; c < Channels; ++c) {
      const float difference = (other[c * plane + x] - centre[c * plane + x]) * inverse;
      exponent -= difference * difference;
    }
    const float weight = exp2_negative(exponent);
    weights[x] += weight;
    for (int c = 0; c < Channels; ++c) sums[c * width + x] += weight * other[c * plane + x];
  }
}

using AddTap = void (*)(const float*, const float*, std::ptrdiff_t, float, float, int, int, float*, float*);

AddTap add_tap_for(int channels) {
  constexpr AddTap by_channels[] = {add_tap<1>, add_tap<2>, add_tap<3>, add_tap<4>};
  return by_channels[channels - 1];
}

void filter_tile(const Kernel& kernel, const StageCall& call, const Rect& tile, int first_channel,
                 float* scratch) {
  const int channels = kernel.together;
  float* const weights = scratch + kernel.tile.floats();
  float* const sums = weights + width;
  const AddTap add = add_tap_for(channels);
  kernel.tile.load(call, tile, first_channel, scratch);
  for (int y = tile.y0; y < tile.y1; ++y) {
    const float* centre = kernel.tile.row(scratch, tile, y);
    std::fill_n(weights, width * (channels + 1), 0.0F);
    kernel.tile.for_taps(kernel.taps, call.image, tile, y,
                         [&](const WindowTap& tap, std::ptrdiff_t offset, int begin, int end) {
                           add(centre, centre + offset, kernel.tile.plane(), kernel.inverse, tap.log2_weight,
                               begin, end, weights, sums);
                         });
    for (int c = 0; c < channels; ++c) {
      float* out = call.out.row(first_channel + c, y) + (tile.x0 - call.out.rect.x0);
      for (int x = 0; x < tile.width(); ++x) out[x] = sums[c * width + x] / weights[x];
    }
  }
}

}  // namespace

Pipeline bilateral_cpu(const BilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  if (uses_grid(params)) return bilateral_grid_cpu(params, spec);
  std::vector<Stage> passes;
  for (const Reach& reach : bilateral_passes(params)) {
    const Kernel kernel(params, reach, spec.colour_channels());
    passes.push_back({.name = "bilateral",
                      .reach = reach,
                      .planes = spec.colour_channels(),
                      .scratch = kernel.scratch(),
                      .run = [kernel](const StageCall& call) {
                        for_tiles(call.workers, call.out.rect, WindowTile::width, WindowTile::height,
                                  [&](const Rect& tile, int worker) {
                                    for (int first = 0; first < call.out.count; first += kernel.together) {
                                      filter_tile(kernel, call, tile, first, call.scratch_of(worker));
                                    }
                                  });
                      }});
  }
  return in_colour_mode(params.colour, std::move(passes), spec.white(), params.border == Border::wrap);
}

}  // namespace ungrain
