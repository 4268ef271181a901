#include "metrics/fsim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "metrics/exacting_sum.h"
#include "metrics/phase_congruency.h"

namespace ungrain {
namespace {

// The constants of the paper, for images from 0 to 255.
constexpr double congruency_constant = 0.85;  // T1
constexpr double gradient_constant = 160;     // T2
constexpr double chroma_constant = 200;       // T3 and T4
constexpr double chroma_exponent = 0.03;      // lambda

int downsampling_factor(const ImageSpec& spec) {
  const int side = std::min(spec.width, spec.height);
  return std::max(1, (side + 128) / 256);  // side / 256, rounded
}

int downsampled_side(int side, int factor) { return (side + factor - 1) / factor; }

// Written so that equal values give exactly 1 and exchanged ones the same bits.
double similarity(double a, double b, double constant) {
  return (2 * a * b + constant) / (a * a + b * b + constant);
}

// ---- gradients

// Three rows of an image that is 0 outside, with a column more on either side.
class RowsAround {
 public:
  RowsAround(const Plane& plane, int y) {
    for (int i = 0; i < 3; ++i) {
      const int row = y + i - 1;
      rows_[i].assign(static_cast<std::size_t>(plane.width) + 2, 0.0);
      if (row < 0 || row >= plane.height) continue;
      const auto first = plane.values.begin() + static_cast<std::ptrdiff_t>(row) * plane.width;
      std::copy(first, first + plane.width, rows_[i].begin() + 1);
    }
  }
  double at(int dx, int dy, int x) const { return rows_[1 + dy][1 + x + dx]; }

 private:
  std::vector<double> rows_[3];
};

// Scharr's gradient.
Plane gradient_magnitude(const Plane& plane) {
  Plane magnitude(plane.width, plane.height);
  std::size_t at = 0;
  for (int y = 0; y < plane.height; ++y) {
    const RowsAround around(plane, y);
    const auto column = [&](int dx, int x) {
      return 3 * around.at(dx, -1, x) + 10 * around.at(dx, 0, x) + 3 * around.at(dx, 1, x);
    };
    const auto row = [&](int dy, int x) {
      return 3 * around.at(-1, dy, x) + 10 * around.at(0, dy, x) + 3 * around.at(1, dy, x);
    };
    for (int x = 0; x < plane.width; ++x, ++at) {
      const double along_x = (column(1, x) - column(-1, x)) / 16;
      const double along_y = (row(1, x) - row(-1, x)) / 16;
      magnitude.values[at] = std::sqrt(along_x * along_x + along_y * along_y);
    }
  }
  return magnitude;
}

// ---- what two luminances have in common

struct Comparability {
  Plane similarity;  // of congruency and gradient
  Plane weight;      // the larger congruency: a pixel counts where either image has a feature
};

Comparability compare_luminance(const Plane& truth, const Plane& image, PhaseCongruency& congruency) {
  const Plane truth_congruency = congruency.of(truth);
  const Plane image_congruency = congruency.of(image);
  const Plane truth_gradient = gradient_magnitude(truth);
  const Plane image_gradient = gradient_magnitude(image);
  Comparability result{Plane(truth.width, truth.height), Plane(truth.width, truth.height)};
  for (std::size_t at = 0; at < truth.values.size(); ++at) {
    const double a = truth_congruency.values[at];
    const double b = image_congruency.values[at];
    result.similarity.values[at] =
        similarity(a, b, congruency_constant) *
        similarity(truth_gradient.values[at], image_gradient.values[at], gradient_constant);
    result.weight.values[at] = a > b ? a : b;
  }
  return result;
}

// Where neither image has a feature anywhere, as constant ones, every pixel counts the same.
double weighted_mean(const Plane& values, const Plane& weights) {
  ExactingSum sum;
  ExactingSum weight_sum;
  ExactingSum plain_sum;
  for (std::size_t at = 0; at < values.values.size(); ++at) {
    sum.add(values.values[at] * weights.values[at]);
    weight_sum.add(weights.values[at]);
    plain_sum.add(values.values[at]);
  }
  if (weight_sum.value() == 0) return plain_sum.value() / static_cast<double>(values.values.size());
  return sum.value() / weight_sum.value();
}

// ---- colour

struct Yiq {
  Plane y;
  Plane i;
  Plane q;
};

Plane mix(const std::vector<Downsampling>& rgb, double red, double green, double blue) {
  Plane mixed = rgb[0].plane();
  for (std::size_t at = 0; at < mixed.values.size(); ++at) {
    mixed.values[at] = red * rgb[0].plane().values[at] + green * rgb[1].plane().values[at] +
                       blue * rgb[2].plane().values[at];
  }
  return mixed;
}

// Averaging and mixing are both linear: it does not matter that the channels were averaged first.
Yiq to_yiq(const std::vector<Downsampling>& rgb) {
  return {mix(rgb, 0.299, 0.587, 0.114), mix(rgb, 0.596, -0.274, -0.322), mix(rgb, 0.211, -0.523, 0.312)};
}

// The real part of a power whose base may be negative.
double real_power(double base, double exponent) {
  const double magnitude = std::pow(std::fabs(base), exponent);
  return base < 0 ? magnitude * std::cos(std::numbers::pi * exponent) : magnitude;
}

void multiply_by_chroma(Plane& similarities, const Yiq& truth, const Yiq& image) {
  for (std::size_t at = 0; at < similarities.values.size(); ++at) {
    const double chroma = similarity(truth.i.values[at], image.i.values[at], chroma_constant) *
                          similarity(truth.q.values[at], image.q.values[at], chroma_constant);
    similarities.values[at] *= real_power(chroma, chroma_exponent);
  }
}

FsimScores colour_scores(const Yiq& truth, const Yiq& image, PhaseCongruency& congruency) {
  Comparability luminance = compare_luminance(truth.y, image.y, congruency);
  FsimScores scores;
  scores.fsim = weighted_mean(luminance.similarity, luminance.weight);
  multiply_by_chroma(luminance.similarity, truth, image);
  scores.fsimc = weighted_mean(luminance.similarity, luminance.weight);
  return scores;
}

}  // namespace

std::string obstacle_to_fsim(const ImageSpec& spec) {
  if (spec.width < fsim_side || spec.height < fsim_side) {
    return fmt::format("needs images of at least {0} x {0} pixels, got {1} x {2}", fsim_side, spec.width,
                       spec.height);
  }
  const int factor = downsampling_factor(spec);
  const std::int64_t pixels =
      std::int64_t{downsampled_side(spec.width, factor)} * downsampled_side(spec.height, factor);
  if (pixels > fsim_pixels) {
    return fmt::format("takes too much memory of an image as long as {} x {} pixels", spec.width,
                       spec.height);
  }
  return "";
}

// ---- rows

Downsampling::Downsampling(int width, int height, int factor)
    : width_(width),
      factor_(factor),
      plane_(downsampled_side(width, factor), downsampled_side(height, factor)) {}

void Downsampling::add_row(const double* row, double white) {
  const int outside = (factor_ - 1) / 2;  // of the first square
  const auto to_row = static_cast<int>((rows_ + outside) / factor_);
  ++rows_;
  if (to_row >= plane_.height) return;  // the last rows may belong to no square
  double* to = plane_.values.data() + static_cast<std::size_t>(to_row) * plane_.width;
  const double squares = static_cast<double>(factor_) * factor_;
  for (int square = 0; square < plane_.width; ++square) {
    const int first = std::max(0, square * factor_ - outside);
    const int last = std::min(width_, (square + 1) * factor_ - outside);
    double sum = 0;
    // Multiplied before divided: whole numbers of 8 bits are the same stored in 16.
    for (int x = first; x < last; ++x) sum += row[x] * 255 / white;
    to[square] += sum / squares;
  }
}

Fsim::Fsim(const ImageSpec& spec) : spec_(spec) {
  const Downsampling empty(spec.width, spec.height, downsampling_factor(spec));
  truth_.assign(spec.colour_channels(), empty);
  image_.assign(spec.colour_channels(), empty);
}

void Fsim::add_row(int channel, const double* truth, const double* image) {
  truth_[channel].add_row(truth, spec_.white());
  image_[channel].add_row(image, spec_.white());
}

FsimScores Fsim::not_a_number() const {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {.fsim = nan, .fsimc = spec_.colour == Colour::rgb ? std::optional(nan) : std::nullopt};
}

FsimScores Fsim::scores() const {
  PhaseCongruency congruency(truth_[0].plane().width, truth_[0].plane().height);
  if (spec_.colour == Colour::rgb) return colour_scores(to_yiq(truth_), to_yiq(image_), congruency);
  double sum = 0;
  for (std::size_t channel = 0; channel < truth_.size(); ++channel) {
    const Comparability shared =
        compare_luminance(truth_[channel].plane(), image_[channel].plane(), congruency);
    sum += weighted_mean(shared.similarity, shared.weight);
  }
  return {.fsim = sum / static_cast<double>(truth_.size()), .fsimc = std::nullopt};
}

}  // namespace ungrain
