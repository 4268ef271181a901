// Adaptive bilateral on the CPU: both passes over one tile in a core's cache, row by row. The first pass sums
// weights, differences from the centre pixel and their squares; the second is a bilateral pass with a
// strength for each pixel.
#include "core/window.h"
#include "cpu/exp.h"
#include "cpu/scratch.h"
#include "cpu/window_tile.h"
#include "methods/adaptive_bilateral/adaptive_bilateral.h"

namespace ungrain {
namespace {

constexpr int width = WindowTile::width;

struct Kernel {
  Kernel(const AdaptiveBilateralParams& p, int channels)
      : params(p),
        taps(window_taps(p.window, p.radius, {.x = p.radius, .y = p.radius}, p.sigma_space.value())),
        together(channels_together(p.colour, channels)),
        divisor(difference_divisor(p.colour, together)),
        inverse(inverse_range(p.sigma_range.value(), divisor)),
        tile({.x = p.radius, .y = p.radius}, together, p.border) {}

  // Behind the tile: rows of weights and of strengths, a row of sums for each channel, and the first pass'
  // sums of differences and of their squares, which are double because a variance is their small difference.
  std::size_t scratch() const {
    return tile.floats() + static_cast<std::size_t>(width * (2 + together) + 2 * width * (1 + together)) + 2;
  }

  AdaptiveBilateralParams params;
  std::vector<WindowTap> taps;
  int together;
  int divisor;
  float inverse;
  WindowTile tile;
};

// The rows of one worker.
struct Rows {
  Rows(const Kernel& kernel, float* memory)
      : weights(memory), inverse(weights + width), sums(inverse + width) {
    squares = doubles_in(sums + kernel.together * width);
    differences = squares + width;
  }
  float* weights;
  float* inverse;  // of the pixel's own strength
  float* sums;     // width for each channel
  double* squares;
  double* differences;  // width for each channel
};

template <int Channels>
void add_to_variance(const float* centre, const float* other, std::ptrdiff_t plane, float inverse,
                     float log2_weight, int begin, int end, const Rows& rows) {
  float* __restrict weights = rows.weights;
  double* __restrict squares = rows.squares;
  double* __restrict differences = rows.differences;
  for (int x = begin; x < end; ++x) {
    float exponent = log2_weight;
    double square = 0;
    for (int c = 0; c < Channels; ++c) {
      const float d = other[c * plane + x] - centre[c * plane + x];
      exponent -= (d * inverse) * (d * inverse);
      square += static_cast<double>(d) * d;
    }
    const float weight = exp2_negative(exponent);
    weights[x] += weight;
    squares[x] += weight > 0 ? weight * square : 0;
    for (int c = 0; c < Channels; ++c) {
      const float d = other[c * plane + x] - centre[c * plane + x];
      differences[c * width + x] += weight > 0 ? static_cast<double>(weight) * d : 0;
    }
  }
}

template <int Channels>
void add_to_mean(const float* centre, const float* other, std::ptrdiff_t plane, float log2_weight, int begin,
                 int end, const Rows& rows) {
  const float* __restrict inverse = rows.inverse;
  float* __restrict weights = rows.weights;
  float* __restrict sums = rows.sums;
  for (int x = begin; x < end; ++x) {
    float exponent = log2_weight;
    for (int c = 0; c < Channels; ++c) {
      const float difference = (other[c * plane + x] - centre[c * plane + x]) * inverse[x];
      exponent -= difference * difference;
    }
    const float weight = exp2_negative(exponent);
    weights[x] += weight;
    for (int c = 0; c < Channels; ++c) sums[c * width + x] += weight * other[c * plane + x];
  }
}

// Each pixel's own strength, from what the first pass summed.
void choose_strengths(const Kernel& kernel, int count, const Rows& rows) {
  const bool around_mean = kernel.params.centre == VarianceCentre::mean;
  const double epsilon = kernel.params.epsilon.value();
  for (int x = 0; x < count; ++x) {
    const double weight = rows.weights[x];
    double variance = rows.squares[x] / weight;
    for (int c = 0; around_mean && c < kernel.together; ++c) {
      const double mean = rows.differences[c * width + x] / weight;
      variance -= mean * mean;
    }
    variance = std::max(variance / kernel.divisor, 0.0);
    const double strength = kernel.params.factor.value() * std::sqrt(std::max(variance + epsilon, epsilon));
    rows.inverse[x] = inverse_range(strength, kernel.divisor);
  }
}

template <int Channels>
void filter_tile(const Kernel& kernel, const StageCall& call, const Rect& tile, int first_channel,
                 float* scratch) {
  const Rows rows(kernel, scratch + kernel.tile.floats());
  const std::ptrdiff_t plane = kernel.tile.plane();
  kernel.tile.load(call, tile, first_channel, scratch);
  for (int y = tile.y0; y < tile.y1; ++y) {
    const float* centre = kernel.tile.row(scratch, tile, y);
    std::fill_n(rows.weights, width, 0.0F);
    std::fill_n(rows.squares, width * (1 + Channels), 0.0);
    kernel.tile.for_taps(kernel.taps, call.image, tile, y,
                         [&](const WindowTap& tap, std::ptrdiff_t offset, int begin, int end) {
                           add_to_variance<Channels>(centre, centre + offset, plane, kernel.inverse,
                                                     tap.log2_weight, begin, end, rows);
                         });
    choose_strengths(kernel, tile.width(), rows);
    std::fill_n(rows.weights, width, 0.0F);
    std::fill_n(rows.sums, width * Channels, 0.0F);
    kernel.tile.for_taps(kernel.taps, call.image, tile, y,
                         [&](const WindowTap& tap, std::ptrdiff_t offset, int begin, int end) {
                           add_to_mean<Channels>(centre, centre + offset, plane, tap.log2_weight, begin, end,
                                                 rows);
                         });
    for (int c = 0; c < Channels; ++c) {
      float* out = call.out.row(first_channel + c, y) + (tile.x0 - call.out.rect.x0);
      for (int x = 0; x < tile.width(); ++x) out[x] = rows.sums[c * width + x] / rows.weights[x];
    }
  }
}

using FilterTile = void (*)(const Kernel&, const StageCall&, const Rect&, int, float*);

FilterTile filter_tile_for(int channels) {
  constexpr FilterTile by_channels[] = {filter_tile<1>, filter_tile<2>, filter_tile<3>, filter_tile<4>};
  return by_channels[channels - 1];
}

}  // namespace

Pipeline adaptive_bilateral_cpu(const AdaptiveBilateralParams& params, const ImageSpec& spec) {
  if (is_identity(params)) return {};
  const Kernel kernel(params, spec.colour_channels());
  Stage filter{.name = "adaptive-bilateral",
               .reach = {.x = params.radius, .y = params.radius},
               .planes = spec.colour_channels(),
               .scratch = kernel.scratch(),
               .run = [kernel, run = filter_tile_for(kernel.together)](const StageCall& call) {
                 for_tiles(call.workers, call.out.rect, WindowTile::width, WindowTile::height,
                           [&](const Rect& tile, int worker) {
                             for (int first = 0; first < call.out.count; first += kernel.together) {
                               run(kernel, call, tile, first, call.scratch_of(worker));
                             }
                           });
               }};
  return in_colour_mode(params.colour, {std::move(filter)}, spec.white(), params.border == Border::wrap);
}

}  // namespace ungrain
