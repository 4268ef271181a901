#include "noise/camera.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/portable_math.h"

namespace ungrain {
namespace {

// Numbers of the draws' uses; add_noise() uses those of its kinds, from 0.
constexpr std::uint8_t shot_noise_use = 16;
constexpr std::uint8_t read_noise_use = 17;

// For value > 0: to about 1e-15, which suffices here, and several times faster than portable::pow().
double power(double value, double exponent) { return portable::exp(exponent * portable::log(value)); }

double encode_srgb(double light) {
  return light <= 0.0031308 ? 12.92 * light : 1.055 * power(light, 1 / 2.4) - 0.055;
}

double decode_srgb(double display) {
  return display <= 0.04045 ? display / 12.92 : power((display + 0.055) / 1.055, 2.4);
}

// A curve of slope `slope` in the middle, flatter at the ends. Its inverse is the curve of 1 / slope.
double s_curve(double value, double slope) {
  if (slope == 1 || value == 0 || value == 1) return value;
  return 1 / (1 + power((1 - value) / value, slope));
}

// 0 for NaN too.
double cut_off(double value) { return value > 0 ? std::min(value, 1.0) : 0.0; }

// ---- demosaicing

struct Pixel {
  double red;
  double green;
  double blue;
};

// Sums around one photosite. Names give the direction: beside() is left and right at the distance.
struct Neighbours {
  const Plane& raw;
  int x;
  int y;

  double here() const { return raw.at(x, y); }
  double beside(int distance) const { return raw.at(x - distance, y) + raw.at(x + distance, y); }
  double above_and_below(int distance) const { return raw.at(x, y - distance) + raw.at(x, y + distance); }
  double diagonal() const {
    return (raw.at(x - 1, y - 1) + raw.at(x + 1, y - 1)) + (raw.at(x - 1, y + 1) + raw.at(x + 1, y + 1));
  }
};

// Interpolates the missing colours of a photosite. `in_row` is the colour left and right of a green
// photosite, `in_column` the one above and below.
struct BilinearColours {
  static double green_at_other(const Neighbours& n) { return (n.beside(1) + n.above_and_below(1)) / 4; }
  static double opposite(const Neighbours& n) { return n.diagonal() / 4; }  // red at blue, blue at red
  static double in_row(const Neighbours& n) { return n.beside(1) / 2; }
  static double in_column(const Neighbours& n) { return n.above_and_below(1) / 2; }
};

// Bilinear interpolation plus a share of the Laplacian of the photosite's own colour: 1/2 for green, 5/8 and
// 3/4 for red and blue (H. Malvar, L. He, R. Cutler: High-quality linear interpolation for demosaicing of
// Bayer-patterned color images, ICASSP 2004).
struct GradientColours {
  static double green_at_other(const Neighbours& n) {
    return (4 * n.here() + 2 * (n.beside(1) + n.above_and_below(1)) - (n.beside(2) + n.above_and_below(2))) /
           8;
  }
  static double opposite(const Neighbours& n) {
    return (6 * n.here() + 2 * n.diagonal() - 1.5 * (n.beside(2) + n.above_and_below(2))) / 8;
  }
  static double in_row(const Neighbours& n) {
    return (5 * n.here() + 4 * n.beside(1) - n.beside(2) - n.diagonal() + 0.5 * n.above_and_below(2)) / 8;
  }
  static double in_column(const Neighbours& n) {
    return (5 * n.here() + 4 * n.above_and_below(1) - n.above_and_below(2) - n.diagonal() +
            0.5 * n.beside(2)) /
           8;
  }
};

template <class Colours>
Pixel interpolate(const Neighbours& n) {
  switch (photosite_colour(n.x, n.y)) {
    case red:
      return {n.here(), Colours::green_at_other(n), Colours::opposite(n)};
    case blue:
      return {Colours::opposite(n), Colours::green_at_other(n), n.here()};
    case green:
      break;
  }
  const bool red_row = (n.y & 1) == 0;
  return red_row ? Pixel{Colours::in_row(n), n.here(), Colours::in_column(n)}
                 : Pixel{Colours::in_column(n), n.here(), Colours::in_row(n)};
}

template <class Colours>
ColourPlanes demosaic_with(const Plane& raw) {
  const Plane shape = raw.shrunk(demosaic_reach);
  ColourPlanes out{shape, shape, shape};
  for (int y = shape.y0(); y < shape.y1(); ++y) {
    for (int x = shape.x0(); x < shape.x1(); ++x) {
      const Pixel pixel = interpolate<Colours>({raw, x, y});
      out.red.at(x, y) = pixel.red;
      out.green.at(x, y) = pixel.green;
      out.blue.at(x, y) = pixel.blue;
    }
  }
  return out;
}

// ---- smoothing

// One half of a Gaussian kernel, the middle first; the whole kernel sums to 1.
template <int Radius>
std::array<double, Radius + 1> gaussian_kernel(double deviation) {
  std::array<double, Radius + 1> weights{};
  double sum = 0;
  for (int i = 0; i <= Radius; ++i) {
    weights[i] = portable::exp(-i * i / (2 * deviation * deviation));
    sum += i == 0 ? weights[i] : 2 * weights[i];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// `in` extends `shape`, the result's rectangle, by at least Radius pixels on each side.
template <std::size_t Taps>
Plane blurred(const Plane& in, const Plane& shape, const std::array<double, Taps>& weights) {
  constexpr int radius = static_cast<int>(Taps) - 1;
  Plane across(shape.x0(), shape.y0() - radius, shape.x1() - shape.x0(),
               shape.y1() - shape.y0() + 2 * radius);
  for (int y = across.y0(); y < across.y1(); ++y) {
    for (int x = across.x0(); x < across.x1(); ++x) {
      double sum = weights[0] * in.at(x, y);
      for (int i = 1; i <= radius; ++i) sum += weights[i] * (in.at(x - i, y) + in.at(x + i, y));
      across.at(x, y) = sum;
    }
  }
  Plane out = shape;
  for (int y = out.y0(); y < out.y1(); ++y) {
    for (int x = out.x0(); x < out.x1(); ++x) {
      double sum = weights[0] * across.at(x, y);
      for (int i = 1; i <= radius; ++i) sum += weights[i] * (across.at(x, y - i) + across.at(x, y + i));
      out.at(x, y) = sum;
    }
  }
  return out;
}

// Cameras smooth chroma over larger areas than luminance. Deviations are in pixels.
constexpr int luminance_radius = 3;
constexpr double luminance_deviation = 0.8;
constexpr double chroma_deviation = 2;

// From white-balanced photosites to linear sRGB: rounded from the matrices of several cameras in daylight.
constexpr std::array<Light, 3> typical_correction = {Light{1.6, -0.5, -0.1}, Light{-0.2, 1.5, -0.3},
                                                     Light{0, -0.5, 1.5}};

// By cofactors.
std::array<Light, 3> inverse_of(const std::array<Light, 3>& m) {
  const auto cofactor = [&](int row, int column) {
    const int r1 = (row + 1) % 3;
    const int r2 = (row + 2) % 3;
    const int c1 = (column + 1) % 3;
    const int c2 = (column + 2) % 3;
    return m[r1][c1] * m[r2][c2] - m[r1][c2] * m[r2][c1];
  };
  const double determinant = m[0][0] * cofactor(0, 0) + m[0][1] * cofactor(0, 1) + m[0][2] * cofactor(0, 2);
  std::array<Light, 3> inverse{};
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column) inverse[row][column] = cofactor(column, row) / determinant;
  }
  return inverse;
}

}  // namespace

ColourCorrection::ColourCorrection(const CameraSettings& settings) : to_srgb_{}, to_sensor_{} {
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column) {
      const double none = row == column ? 1 : 0;
      to_srgb_[row][column] = none + settings.colour_correction * (typical_correction[row][column] - none);
    }
  }
  to_sensor_ = inverse_of(to_srgb_);
}

Light ColourCorrection::product(const Matrix& matrix, const Light& light) {
  Light result{};
  for (int row = 0; row < 3; ++row) {
    result[row] = matrix[row][0] * light[0] + matrix[row][1] * light[1] + matrix[row][2] * light[2];
  }
  return result;
}

Sensor::Sensor(const CameraSettings& settings)
    : key_(philox_key(settings.seed)),
      noise_(settings.noise),
      white_electrons_(settings.white_electrons * 100 / settings.iso),
      full_well_(settings.full_well * 100 / settings.iso),
      gains_{settings.red_gain, 1, settings.blue_gain} {
  const double converter_noise = settings.converter_noise * 100 / settings.iso;
  read_noise_ = std::sqrt(settings.read_noise * settings.read_noise + converter_noise * converter_noise);
}

double Sensor::expose(double light, SensorColour colour, int x, int y) const {
  const double gain = gains_[colour];
  double electrons = light / gain * white_electrons_;
  if (noise_) {
    electrons = draw_poisson(electrons, {key_, x, y, colour, shot_noise_use}) +
                read_noise_ * draw_normal({key_, x, y, colour, read_noise_use});
  }
  return std::min(electrons, full_well_) / white_electrons_ * gain;
}

double Sensor::variance(double light, SensorColour colour) const {
  const double gain = gains_[colour];
  const double read = gain * read_noise_ / white_electrons_;
  return gain / white_electrons_ * light + read * read;
}

double ToneCurve::display(double light) const { return s_curve(encode_srgb(cut_off(light)), contrast_); }

double ToneCurve::light(double display) const {
  return decode_srgb(s_curve(cut_off(display), 1 / contrast_));
}

ColourPlanes demosaic(const Plane& raw, Demosaic kind) {
  return kind == Demosaic::bilinear ? demosaic_with<BilinearColours>(raw)
                                    : demosaic_with<GradientColours>(raw);
}

DetailControl::DetailControl(const CameraSettings& settings, const Sensor& sensor, const ToneCurve& tone)
    : luminance_smoothing_(settings.luminance_smoothing),
      chroma_smoothing_(settings.chroma_smoothing),
      sharpening_(settings.sharpening) {
  constexpr double step = 1e-3;      // of light, for the slope of the tone curve
  constexpr double deviations = 8;   // fine luminance up to here counts as noise
  constexpr double smallest = 1e-4;  // noise at black and white, where the slope is 0
  for (int i = 0; i <= levels; ++i) {
    const double light = tone.light(static_cast<double>(i) / levels);
    const double slope = (tone.display(light + step) - tone.display(light - step)) / (2 * step);
    noise_[i] = deviations * std::max(smallest, slope * std::sqrt(sensor.variance(light, green)));
  }
}

double DetailControl::noise_at(double level) const {
  const double position = cut_off(level) * levels;
  const int below = std::min(static_cast<int>(position), levels - 1);
  const double share = position - below;
  return noise_[below] + share * (noise_[below + 1] - noise_[below]);
}

double DetailControl::fine_luminance(double level, double fine) const {
  const double relative = fine / noise_at(level);
  const double like_noise = 1 / (1 + relative * relative);
  return fine * (1 - luminance_smoothing_ * like_noise + sharpening_ * (1 - like_noise));
}

ColourPlanes DetailControl::apply(const ColourPlanes& colours) const {
  static const auto luminance_kernel = gaussian_kernel<luminance_radius>(luminance_deviation);
  static const auto chroma_kernel = gaussian_kernel<reach>(chroma_deviation);
  Plane y_plane = colours.red;
  Plane red_difference = colours.red;
  Plane blue_difference = colours.blue;
  for (int y = y_plane.y0(); y < y_plane.y1(); ++y) {
    for (int x = y_plane.x0(); x < y_plane.x1(); ++x) {
      const double grey = luminance(colours.red.at(x, y), colours.green.at(x, y), colours.blue.at(x, y));
      y_plane.at(x, y) = grey;
      red_difference.at(x, y) -= grey;
      blue_difference.at(x, y) -= grey;
    }
  }
  const Plane shape = y_plane.shrunk(reach);
  const Plane coarse = blurred(y_plane, shape, luminance_kernel);
  const Plane coarse_red = blurred(red_difference, shape, chroma_kernel);
  const Plane coarse_blue = blurred(blue_difference, shape, chroma_kernel);

  ColourPlanes out{shape, shape, shape};
  const auto smoothed = [&](double fine_and_coarse, double coarse_part) {
    return fine_and_coarse + chroma_smoothing_ * (coarse_part - fine_and_coarse);
  };
  for (int y = shape.y0(); y < shape.y1(); ++y) {
    for (int x = shape.x0(); x < shape.x1(); ++x) {
      const double level = coarse.at(x, y);
      const double grey = level + fine_luminance(level, y_plane.at(x, y) - level);
      const double more_red = smoothed(red_difference.at(x, y), coarse_red.at(x, y));
      const double more_blue = smoothed(blue_difference.at(x, y), coarse_blue.at(x, y));
      out.red.at(x, y) = grey + more_red;
      out.green.at(x, y) = grey - 0.5 * (more_red + more_blue);
      out.blue.at(x, y) = grey + more_blue;
    }
  }
  return out;
}

}  // namespace ungrain
