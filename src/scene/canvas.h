// What every painter of the demo scene works with: points, light, pixel coverage and noise.
//
// Positions are in scene units (the shorter side of the picture is 1, y points down). Colours are linear
// light and become display values only when a row is finished, so that anti-aliased edges blend as they would
// in a lens. Everything is +, -, *, / and sqrt on doubles in a fixed order: the same bits on every machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/portable_math.h"

namespace ungrain::scene {

inline constexpr double pi = 3.14159265358979323846;

struct Vec2 {
  double x = 0;
  double y = 0;
};
constexpr Vec2 operator+(Vec2 a, Vec2 b) { return {a.x + b.x, a.y + b.y}; }
constexpr Vec2 operator-(Vec2 a, Vec2 b) { return {a.x - b.x, a.y - b.y}; }
constexpr Vec2 operator*(Vec2 a, double k) { return {a.x * k, a.y * k}; }
constexpr double dot(Vec2 a, Vec2 b) { return a.x * b.x + a.y * b.y; }
inline double length(Vec2 a) { return std::sqrt(dot(a, a)); }
inline Vec2 direction(double angle) { return {portable::cos(angle), portable::sin(angle)}; }

struct Vec3 {
  double x = 0;
  double y = 0;
  double z = 0;
};
constexpr Vec3 operator*(Vec3 a, double k) { return {a.x * k, a.y * k, a.z * k}; }
constexpr Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
constexpr double dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline Vec3 normalised(Vec3 a) { return a * (1 / std::sqrt(dot(a, a))); }

struct Rgb {
  double r = 0;
  double g = 0;
  double b = 0;
};
constexpr Rgb operator+(Rgb a, Rgb b) { return {a.r + b.r, a.g + b.g, a.b + b.b}; }
constexpr Rgb operator*(Rgb a, Rgb b) { return {a.r * b.r, a.g * b.g, a.b * b.b}; }
constexpr Rgb operator*(Rgb a, double k) { return {a.r * k, a.g * k, a.b * k}; }

// Display values follow a gamma of 2, close to sRGB's and exact to compute: encoding is a square root.
constexpr double linear_light(int byte) { return (byte / 255.0) * (byte / 255.0); }
constexpr Rgb hex(int rgb) {
  return {linear_light((rgb >> 16) & 255), linear_light((rgb >> 8) & 255), linear_light(rgb & 255)};
}

constexpr double clamp01(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
constexpr double mix(double a, double b, double t) { return a + (b - a) * t; }
constexpr Rgb mix(Rgb a, Rgb b, double t) { return {mix(a.r, b.r, t), mix(a.g, b.g, t), mix(a.b, b.b, t)}; }
constexpr double smoothstep(double from, double to, double x) {
  const double t = clamp01((x - from) / (to - from));
  return t * t * (3 - 2 * t);
}
inline double square(double x) { return x * x; }

// std::floor is a library call on baseline x86-64. Only for values that fit an int.
inline int floor_int(double x) {
  const int truncated = static_cast<int>(x);
  return truncated - (x < truncated ? 1 : 0);
}
inline double fraction(double x) { return x - floor_int(x); }

// How much of a pixel lies inside an edge at signed distance `distance` (negative inside), both in one unit.
inline double inside(double distance, double pixel) { return clamp01(0.5 - distance / pixel); }

// How much of a pixel a strip covers: half_width either side of 0, the pixel `offset` away. Right for strips
// thinner than a pixel too, which fade instead of breaking up.
inline double strip(double offset, double half_width, double pixel) {
  return clamp01(0.5 + (offset + half_width) / pixel) - clamp01(0.5 + (offset - half_width) / pixel);
}

// A square wave of period 1 that is 1 on [0, duty), averaged over `width` around x: lines that turn into
// their mean where they get finer than the pixels, without the beats that averaging alone would leave.
inline double line_wave(double x, double duty, double width) {
  const auto integral = [duty](double at) {
    const int whole = floor_int(at);
    return whole * duty + std::min(at - whole, duty);
  };
  const double averaged = std::max(width, 1e-6);
  const double mean = (integral(x + averaged / 2) - integral(x - averaged / 2)) / averaged;
  return mix(mean, duty, smoothstep(0.60, 0.95, averaged));
}

// 1 where a texture of `frequency` cycles a unit is resolved by pixels `pixel` wide, falling to 0 near the
// Nyquist limit.
inline double resolved(double frequency, double pixel) {
  return 1 - smoothstep(0.22, 0.55, frequency * pixel);
}

// The angle of (x, y), in turns from -0.5 to 0.5; error below 1e-5 turns.
double angle_in_turns(double x, double y);

// --- Noise ---

std::uint32_t hash(int x, int y, std::uint32_t seed);
inline double hash01(int x, int y, std::uint32_t seed) { return hash(x, y, seed) * (1.0 / 4294967296.0); }

// Smooth noise of about unit wavelength, from -1 to 1.
double noise(double x, double y, std::uint32_t seed);

// Sums of noise at doubling frequencies and halving amplitudes, about -1 to 1. Octaves finer than `pixel` (in
// the units of the arguments) fade out, so a larger picture shows more of them.
double fractal(double x, double y, int octaves, double pixel, std::uint32_t seed);
// The same with creases, as of mountain ridges: 0 to 1.
double ridged(double x, double y, int octaves, double pixel, std::uint32_t seed);

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double next();  // [0, 1)
  double between(double low, double high) { return low + (high - low) * next(); }

 private:
  std::uint64_t state_;
};

// --- Rows ---

// What a camera shows of the picture, and what has moved in it.
struct Moment {
  double zoom = 1;    // from 1, the whole picture, up
  double across = 0;  // of what lies outside the view, the share to its left
  double down = 0;    // and above it
  double boat = 0;    // how far the boat has sailed to the right
  double clouds = 0;  // how far the clouds have drifted, in their own plane
};

// Where the parts of the picture stand, for its size.
struct Layout {
  Layout(int pixels_wide, int pixels_high, const Moment& moment = {});

  int columns;
  int rows;
  double pixel;  // size of a pixel in scene units
  double left;   // of the view
  double top;
  double width;  // of the picture in scene units
  double height;
  double horizon;
  double table;  // where the table's far edge lies
  Vec2 sun;
  Vec2 lighthouse;   // foot of the tower
  double waterline;  // where its rock meets the lake
  Vec2 tree;
  Vec2 vase;  // middle of the foot
  Vec2 orange;
  Vec2 card;  // middle of the lower edge
  double card_width;
  double boat;    // as Moment
  double clouds;  // as Moment

  double column_centre(int x) const { return left + (x + 0.5) * pixel; }
  double row_centre(int y) const { return top + (y + 0.5) * pixel; }
  int column_at(double x) const { return bounded(x - left, columns); }
  int row_at(double y) const { return bounded(y - top, rows); }

 private:
  int bounded(double position, int count) const {
    return static_cast<int>(std::clamp(position / pixel, 0.0, static_cast<double>(count)));
  }
};

using Row = std::vector<Rgb>;

inline void blend(Rgb& under, Rgb colour, double coverage) { under = mix(under, colour, coverage); }

}  // namespace ungrain::scene
