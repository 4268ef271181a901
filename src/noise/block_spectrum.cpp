#include "noise/block_spectrum.h"

#include <algorithm>
#include <cmath>

#include "core/portable_math.h"

namespace ungrain {
namespace {

constexpr int shading = -1;  // the band of the very lowest frequencies
// The bands above have little detail: their noise would only blur the selection.
constexpr int busiest_band = 2;

std::vector<double> cosine_basis(int size) {
  constexpr double pi = 3.141592653589793;
  std::vector<double> basis(static_cast<std::size_t>(size) * size);
  for (int k = 0; k < size; ++k) {
    const double scale = std::sqrt((k == 0 ? 1.0 : 2.0) / size);
    for (int x = 0; x < size; ++x) {
      basis[k * size + x] = scale * portable::cos(pi * (2 * x + 1) * k / (2.0 * size));
    }
  }
  return basis;
}

// In the frequencies of a block of eight samples, so that a smaller block's bands stand for the same detail.
double frequency(int index, int size) {
  return static_cast<double>(index * BlockTransform::largest_side) / static_cast<double>(size);
}

int band_of(double horizontal, double vertical) {
  if (horizontal <= 1 && vertical <= 1) return shading;
  return std::clamp(static_cast<int>(horizontal + vertical) / 2 - 1, 0, band_count - 1);
}

}  // namespace

BlockTransform::BlockTransform(int width, int height)
    : width_(width), height_(height), along_x_(cosine_basis(width)), along_y_(cosine_basis(height)) {
  for (int j = 0; j < height; ++j) {
    for (int i = 0; i < width; ++i) {
      places_.push_back({(i + j) % set_count, band_of(frequency(i, width), frequency(j, height))});
    }
  }
  for (int x = 0; x < width; ++x) {
    for (int i = 0; i < width; ++i) from_x_.push_back(along_x_[i * width + x]);
  }
  count_coefficients();
}

void BlockTransform::count_coefficients() {
  for (std::size_t k = 1; k < places_.size(); ++k) {  // 0 is the mean
    const auto [set, band] = places_[k];
    if (band != shading) ++counts_[set][band];
    for (int measured = 0; measured < set_count; ++measured) {
      if (band == shading || (set != measured && band <= busiest_band)) ++busyness_counts_[measured];
    }
  }
}

// Each coefficient is one sum in order; many coefficients at a time.
template <int width, int height>
void BlockTransform::transform_fixed(const double* block, Samples& coefficients) const {
  Samples half_done;  // transformed along x
  for (int y = 0; y < height; ++y) {
    std::array<double, width> sums{};
    for (int x = 0; x < width; ++x) {
      const double value = block[y * width + x];
      for (int i = 0; i < width; ++i) sums[i] += from_x_[x * width + i] * value;
    }
    std::copy(sums.begin(), sums.end(), half_done.begin() + y * width);
  }
  for (int j = 0; j < height; ++j) {
    std::array<double, width> sums{};
    for (int y = 0; y < height; ++y) {
      const double weight = along_y_[j * height + y];
      for (int i = 0; i < width; ++i) sums[i] += weight * half_done[y * width + i];
    }
    std::copy(sums.begin(), sums.end(), coefficients.begin() + j * width);
  }
}

void BlockTransform::transform(const double* block, Samples& coefficients) const {
  if (width_ == largest_side && height_ == largest_side) {
    return transform_fixed<largest_side, largest_side>(block, coefficients);
  }
  Samples half_done;  // transformed along x
  for (int y = 0; y < height_; ++y) {
    for (int i = 0; i < width_; ++i) {
      double sum = 0;
      for (int x = 0; x < width_; ++x) sum += along_x_[i * width_ + x] * block[y * width_ + x];
      half_done[y * width_ + i] = sum;
    }
  }
  for (int j = 0; j < height_; ++j) {
    for (int i = 0; i < width_; ++i) {
      double sum = 0;
      for (int y = 0; y < height_; ++y) sum += along_y_[j * height_ + y] * half_done[y * width_ + i];
      coefficients[j * width_ + i] = sum;
    }
  }
}

BlockSpectrum BlockTransform::operator()(const double* block) const {
  Samples coefficients;
  transform(block, coefficients);
  BlockSpectrum spectrum;
  spectrum.mean = coefficients[0] / std::sqrt(static_cast<double>(samples()));
  double shading_energy = 0;
  for (std::size_t k = 1; k < places_.size(); ++k) {
    const double energy = coefficients[k] * coefficients[k];
    const auto [set, band] = places_[k];
    (band == shading ? shading_energy : spectrum.energy[set][band]) += energy;
  }
  for (int set = 0; set < set_count; ++set) {
    const BandEnergies& others = spectrum.energy[1 - set];
    spectrum.busyness[set] = shading_energy;
    for (int band = 0; band <= busiest_band; ++band) spectrum.busyness[set] += others[band];
  }
  return spectrum;
}

}  // namespace ungrain
