#include "scene/canvas.h"

#include <array>

namespace ungrain::scene {

double angle_in_turns(double x, double y) {
  const double across = std::abs(x);
  const double along = std::abs(y);
  const double larger = std::max(across, along);
  if (larger == 0) return 0;
  const double t = std::min(across, along) / larger;
  const double t2 = t * t;
  // A minimax polynomial for atan on [0, 1].
  const double radians =
      t * (0.99997726 +
           t2 * (-0.33262347 + t2 * (0.19354346 + t2 * (-0.11643287 + t2 * (0.05265332 - t2 * 0.01172120)))));
  double turns = radians / (2 * pi);
  if (along > across) turns = 0.25 - turns;
  if (x < 0) turns = 0.5 - turns;
  return y < 0 ? -turns : turns;
}

std::uint32_t hash(int x, int y, std::uint32_t seed) {
  std::uint32_t h = seed * 0x9E3779B9U + static_cast<std::uint32_t>(x) * 0x85EBCA6BU;
  h = (h ^ (h >> 15)) * 0x2C1B3C6DU;
  h += static_cast<std::uint32_t>(y) * 0xC2B2AE35U;
  h = (h ^ (h >> 13)) * 0x297A2D39U;
  return h ^ (h >> 16);
}

namespace {

// Sixteen directions, so that the lattice does not show.
constexpr std::array<Vec2, 16> gradients = {{{1.0, 0.0},
                                             {0.92387953, 0.38268343},
                                             {0.70710678, 0.70710678},
                                             {0.38268343, 0.92387953},
                                             {0.0, 1.0},
                                             {-0.38268343, 0.92387953},
                                             {-0.70710678, 0.70710678},
                                             {-0.92387953, 0.38268343},
                                             {-1.0, 0.0},
                                             {-0.92387953, -0.38268343},
                                             {-0.70710678, -0.70710678},
                                             {-0.38268343, -0.92387953},
                                             {0.0, -1.0},
                                             {0.38268343, -0.92387953},
                                             {0.70710678, -0.70710678},
                                             {0.92387953, -0.38268343}}};

double fade(double t) { return t * t * t * (t * (t * 6 - 15) + 10); }

// Calls with the amplitude and the noise of each octave that the pixels resolve.
template <class Add>
void for_octaves(double x, double y, int octaves, double pixel, std::uint32_t seed, Add add) {
  double amplitude = 0.5;
  for (int octave = 0; octave < octaves; ++octave) {
    const double visible = resolved(1, pixel);
    if (visible == 0) return;
    add(amplitude * visible, noise(x, y, seed + static_cast<std::uint32_t>(octave)));
    // Doubled and turned by about 37 degrees, so that the lattices of the octaves do not line up.
    const double turned = 1.6 * x - 1.2 * y;
    y = 1.2 * x + 1.6 * y;
    x = turned;
    pixel *= 2;
    amplitude *= 0.5;
  }
}

}  // namespace

double noise(double x, double y, std::uint32_t seed) {
  const int ix = floor_int(x);
  const int iy = floor_int(y);
  const double fx = x - ix;
  const double fy = y - iy;
  const auto corner = [&](int cx, int cy) {
    const Vec2 g = gradients[hash(ix + cx, iy + cy, seed) >> 28];
    return g.x * (fx - cx) + g.y * (fy - cy);
  };
  const double u = fade(fx);
  const double top = mix(corner(0, 0), corner(1, 0), u);
  const double bottom = mix(corner(0, 1), corner(1, 1), u);
  return 1.4 * mix(top, bottom, fade(fy));
}

double fractal(double x, double y, int octaves, double pixel, std::uint32_t seed) {
  double sum = 0;
  for_octaves(x, y, octaves, pixel, seed, [&](double amplitude, double value) { sum += amplitude * value; });
  return sum;
}

double ridged(double x, double y, int octaves, double pixel, std::uint32_t seed) {
  double sum = 0;
  for_octaves(x, y, octaves, pixel, seed,
              [&](double amplitude, double value) { sum += amplitude * square(1 - std::abs(value)); });
  return sum;
}

double Random::next() {
  state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * (1.0 / 9007199254740992.0);
}

Layout::Layout(int pixels_wide, int pixels_high, const Moment& moment)
    : columns(pixels_wide), rows(pixels_high), boat(moment.boat), clouds(moment.clouds) {
  const double shorter = std::min(columns, rows);
  pixel = 1 / shorter;
  width = columns / shorter;
  height = rows / shorter;
  const double extra_width = width - 1;
  const double extra_height = height - 1;

  horizon = 0.47 * height;
  table = 0.705 * height;
  sun = {0.45 * width, horizon - 0.050};
  waterline = horizon + 0.022;
  lighthouse = {0.755 * width, waterline - 0.035};
  tree = {0.10 * width, table - 0.03};
  vase = {0.265 + 0.33 * extra_width, 0.915 * height - 0.05 * extra_height};
  orange = {vase.x + 0.13, vase.y + 0.035};
  card_width = 0.50;
  card = {0.705 + 0.55 * extra_width, 0.945 * height - 0.12 * extra_height};

  const double hidden = 1 - 1 / moment.zoom;
  pixel /= moment.zoom;
  left = moment.across * hidden * width;
  top = moment.down * hidden * height;
}

}  // namespace ungrain::scene
