// Bilateral on the CPU. Tiles are gathered with their borders into a core's cache; each offset of the window
// is then one pass over a row of the tile, sums in float, in the order of the offsets: dy, then dx.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/border.h"
#include "core/colour.h"
#include "cpu/exp.h"
#include "cpu/tiles.h"
#include "methods/bilateral/bilateral.h"

namespace ungrain {
namespace {

constexpr int tile_width = 256;
constexpr int tile_height = 16;

struct Tap {
  int dx;
  int dy;
  float log2_weight;  // of the distance
};

struct Kernel {
  std::vector<Tap> taps;
  int radius = 0;
  int together = 1;         // channels that share a weight
  float inverse_range = 0;  // differences times this, squared, are the negative exponent of 2
  Border border = Border::symmetric;
};

Kernel make_kernel(const BilateralParams& params, int channels) {
  constexpr double log2_e = 1.4426950408889634;
  constexpr double largest = 1e18;  // its square is still finite
  Kernel kernel;
  kernel.radius = params.radius;
  kernel.border = params.border;
  kernel.together = params.colour == ColourMode::per_channel ? 1 : channels;
  const double mean_over = params.colour == ColourMode::joint ? channels : 1;
  kernel.inverse_range =
      static_cast<float>(std::min(largest, std::sqrt(log2_e / (2 * mean_over)) / params.sigma_range.value()));
  const double space = log2_e / (2 * params.sigma_space * params.sigma_space);
  for (int dy = -params.radius; dy <= params.radius; ++dy) {
    for (int dx = -params.radius; dx <= params.radius; ++dx) {
      if (!in_window(params, dx, dy)) continue;
      const double exponent = (dx == 0 && dy == 0) ? 0 : -(dx * dx + dy * dy) * space;
      kernel.taps.push_back({dx, dy, static_cast<float>(std::max(exponent, -1e30))});
    }
  }
  return kernel;
}

// Adds one offset's weights and weighted values of a row. `centre` and `other` are the first channel's rows,
// the next channels' follow at `plane` floats; likewise `sums` at tile_width.
template <int Channels>
void add_tap(const float* centre, const float* other, std::ptrdiff_t plane, float inverse_range,
             float log2_weight, int begin, int end, float* __restrict weights, float* __restrict sums) {
  for (int x = begin; x < end; ++x) {
    float exponent = log2_weight;
    for (int c = 0; c < Channels; ++c) {
      const float difference = (other[c * plane + x] - centre[c * plane + x]) * inverse_range;
      exponent -= difference * difference;
    }
    const float weight = exp2_negative(exponent);
    weights[x] += weight;
    for (int c = 0; c < Channels; ++c) sums[c * tile_width + x] += weight * other[c * plane + x];
  }
}

using AddTap = void (*)(const float*, const float*, std::ptrdiff_t, float, float, int, int, float*, float*);

AddTap add_tap_for(int channels) {
  constexpr AddTap by_channels[] = {add_tap<1>, add_tap<2>, add_tap<3>, add_tap<4>};
  return by_channels[channels - 1];
}

struct TileShape {
  explicit TileShape(const Kernel& kernel)
      : pitch(tile_width + 2 * kernel.radius),
        plane(static_cast<std::ptrdiff_t>(pitch) * (tile_height + 2 * kernel.radius)) {}
  int pitch;
  std::ptrdiff_t plane;  // floats of one channel of the tile with its border
};

std::size_t scratch_floats(const Kernel& kernel) {
  const TileShape shape(kernel);
  return static_cast<std::size_t>(shape.plane * kernel.together) +
         static_cast<std::size_t>(tile_width) * static_cast<std::size_t>(kernel.together + 1);
}

void filter_tile(const Kernel& kernel, const StageCall& call, const Rect& tile, int first_channel,
                 float* scratch) {
  const TileShape shape(kernel);
  const int radius = kernel.radius;
  const int channels = kernel.together;
  const bool shrink = kernel.border == Border::shrink;
  float* const weights = scratch + shape.plane * channels;
  float* const sums = weights + tile_width;
  const AddTap add = add_tap_for(channels);
  const Rect with_border{tile.x0 - radius, tile.y0 - radius, tile.x1 + radius, tile.y1 + radius};
  for (int c = 0; c < channels; ++c) {
    gather(call.in[0], first_channel + c, call.image, kernel.border, with_border, scratch + c * shape.plane,
           shape.pitch);
  }
  for (int y = tile.y0; y < tile.y1; ++y) {
    const float* centre = scratch + (y - tile.y0 + radius) * shape.pitch + radius;
    std::fill_n(weights, tile_width * (channels + 1), 0.0F);
    for (const Tap& tap : kernel.taps) {
      int begin = 0;
      int end = tile.width();
      if (shrink) {
        if (y + tap.dy < 0 || y + tap.dy >= call.image.height) continue;
        begin = std::max(begin, -tap.dx - tile.x0);
        end = std::min(end, call.image.width - tap.dx - tile.x0);
      }
      add(centre, centre + tap.dy * shape.pitch + tap.dx, shape.plane, kernel.inverse_range, tap.log2_weight,
          begin, end, weights, sums);
    }
    for (int c = 0; c < channels; ++c) {
      float* out = call.out.row(first_channel + c, y) + (tile.x0 - call.out.rect.x0);
      for (int x = 0; x < tile.width(); ++x) out[x] = sums[c * tile_width + x] / weights[x];
    }
  }
}

void filter(const Kernel& kernel, const StageCall& call) {
  for_tiles(call.workers, call.out.rect, tile_width, tile_height, [&](const Rect& tile, int worker) {
    for (int first = 0; first < call.out.count; first += kernel.together) {
      filter_tile(kernel, call, tile, first, call.scratch_of(worker));
    }
  });
}

// Every pixel by itself, between rgb in pixel units and Lab.
template <class Convert>
void convert_pixels(const StageCall& call, Convert convert) {
  const Rect& area = call.out.rect;
  call.workers.for_each(area.height(), [&](std::int64_t row, int) {
    const int y = area.y0 + static_cast<int>(row);
    const int skipped = area.x0 - call.in[0].rect.x0;
    for (int x = 0; x < area.width(); ++x) {
      Triple pixel{};
      for (int c = 0; c < 3; ++c) pixel[static_cast<std::size_t>(c)] = call.in[0].row(c, y)[skipped + x];
      pixel = convert(pixel);
      for (int c = 0; c < 3; ++c)
        call.out.row(c, y)[x] = static_cast<float>(pixel[static_cast<std::size_t>(c)]);
    }
  });
}

}  // namespace

Pipeline bilateral_cpu(const BilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  const int channels = spec.colour_channels();
  const Kernel kernel = make_kernel(params, channels);
  Pipeline pipeline;
  pipeline.wraps = params.border == Border::wrap;
  const Stage filter_stage{.name = "bilateral",
                           .reach = {.x = params.radius, .y = params.radius},
                           .planes = channels,
                           .scratch = scratch_floats(kernel),
                           .run = [kernel](const StageCall& call) { filter(kernel, call); }};
  if (params.colour != ColourMode::lab) {
    pipeline.stages = {filter_stage};
    return pipeline;
  }
  const double white = spec.white();
  const Stage to_lab{.name = "to Lab", .planes = 3, .run = [white](const StageCall& call) {
                       convert_pixels(call, [white](const Triple& p) {
                         return rgb_to_lab({p[0] / white, p[1] / white, p[2] / white});
                       });
                     }};
  const Stage from_lab{.name = "from Lab", .planes = 3, .run = [white](const StageCall& call) {
                         convert_pixels(call, [white](const Triple& p) {
                           const Triple rgb = lab_to_rgb(p);
                           return Triple{rgb[0] * white, rgb[1] * white, rgb[2] * white};
                         });
                       }};
  pipeline.stages = {to_lab, filter_stage, from_lab};
  return pipeline;
}

}  // namespace ungrain
