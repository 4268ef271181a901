// The stages of the simulated camera, in the order of the light's path. Light is linear, from 0 to 1 (white);
// display values are what files hold, from 0 to 1.
//
// Every stage computes a pixel from its neighbours' coordinates alone, so that bits do not depend on how the
// image is divided. Beyond the image the scene is mirrored without repeating the edge, which keeps the order
// of the colours on the sensor.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "noise/distributions.h"
#include "ungrain/noise.h"

namespace ungrain {

// Samples of a rectangle of the image.
class Plane {
 public:
  Plane(int x0, int y0, int width, int height)
      : x0_(x0),
        y0_(y0),
        width_(width),
        height_(height),
        samples_(static_cast<std::size_t>(width) * height) {}

  int x0() const { return x0_; }
  int y0() const { return y0_; }
  int x1() const { return x0_ + width_; }
  int y1() const { return y0_ + height_; }

  double& at(int x, int y) { return samples_[index(x, y)]; }
  double at(int x, int y) const { return samples_[index(x, y)]; }
  double* row(int y) { return &samples_[index(x0_, y)]; }

  // The rectangle without its outermost pixels; samples are not copied.
  Plane shrunk(int by) const { return {x0_ + by, y0_ + by, width_ - 2 * by, height_ - 2 * by}; }

 private:
  std::size_t index(int x, int y) const { return static_cast<std::size_t>(y - y0_) * width_ + (x - x0_); }

  int x0_;
  int y0_;
  int width_;
  int height_;
  std::vector<double> samples_;
};

enum SensorColour : int { red, green, blue };

// Of the photosite at (x, y): red and green in even rows, green and blue in odd ones.
constexpr SensorColour photosite_colour(int x, int y) {
  const bool odd_x = (x & 1) != 0;
  const bool odd_y = (y & 1) != 0;
  return odd_x == odd_y ? (odd_x ? blue : red) : green;
}

// Linear light of one pixel, in the order of SensorColour.
using Light = std::array<double, 3>;

// Between linear sRGB and the photosites' colours, which overlap. Gray is the same in both.
class ColourCorrection {
 public:
  explicit ColourCorrection(const CameraSettings& settings);

  Light to_sensor(const Light& srgb) const { return product(to_sensor_, srgb); }
  Light to_srgb(const Light& sensor) const { return product(to_srgb_, sensor); }

 private:
  using Matrix = std::array<Light, 3>;
  static Light product(const Matrix& matrix, const Light& light);

  Matrix to_srgb_;
  Matrix to_sensor_;
};

// From a photosite's light to the numbers of the raw file, white balance included.
class Sensor {
 public:
  explicit Sensor(const CameraSettings& settings);

  // The value of one photosite; (x, y) is a place inside the image.
  double expose(double light, SensorColour colour, int x, int y) const;
  // Of expose(): linear in light.
  double variance(double light, SensorColour colour) const;
  // expose() before white balance, as a share of a photosite's capacity.
  double filled(double light, SensorColour colour, int x, int y) const {
    return expose(light, colour, x, y) / gains_[colour] * white_electrons_ / full_well_;
  }
  // Of filled(): variance = a share + b.
  PoissonGaussian noise() const {
    const double read = read_noise_ / full_well_;
    return noise_ ? PoissonGaussian{.a = 1 / full_well_, .b = read * read} : PoissonGaussian{};
  }

 private:
  PhiloxKey key_;
  bool noise_;
  double white_electrons_;  // in a green photosite
  double full_well_;        // electrons
  double read_noise_;       // standard deviation in electrons
  std::array<double, 3> gains_;
};

// From light to display and back: sRGB's curve, then an S-curve.
class ToneCurve {
 public:
  explicit ToneCurve(const CameraSettings& settings) : contrast_(settings.contrast) {}

  double display(double light) const;  // light below 0 and above 1 is cut off
  double light(double display) const;  // the same of display values; NaN is 0

 private:
  double contrast_;
};

inline constexpr int demosaic_reach = 2;
struct ColourPlanes {
  Plane red;
  Plane green;
  Plane blue;
};
// The planes are smaller than `raw` by demosaic_reach on each side.
ColourPlanes demosaic(const Plane& raw, Demosaic kind);

// The camera's own smoothing and sharpening, of display values.
class DetailControl {
 public:
  static constexpr int reach = 5;

  DetailControl(const CameraSettings& settings, const Sensor& sensor, const ToneCurve& tone);

  // The planes become smaller by `reach` on each side.
  ColourPlanes apply(const ColourPlanes& colours) const;

 private:
  double fine_luminance(double level, double fine) const;
  double noise_at(double level) const;

  static constexpr int levels = 256;
  double luminance_smoothing_;
  double chroma_smoothing_;
  double sharpening_;
  std::array<double, levels + 1> noise_{};  // by display level: bound of small details
};

// Weights 1, 2, 1 of red, green and blue: the luminance for smoothing and for gray photographs.
constexpr double luminance(double red, double green, double blue) {
  return 0.25 * (red + blue) + 0.5 * green;
}

}  // namespace ungrain
