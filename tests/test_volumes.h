// Volumes that tests compute on the spot.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "ungrain/image.h"
#include "ungrain/volume.h"

namespace ungrain::testing {

inline ImageSpec float_volume(int width, int height, int depth, int channels = 1) {
  ImageSpec slice;
  slice.width = width;
  slice.height = height;
  slice.channels = channels;
  slice.colour = channels == 1 ? Colour::gray : Colour::multi;
  slice.type = PixelType::f32;
  return volume_spec(slice, depth);
}

// Floats of a volume, channels interleaved.
struct TestVolume {
  explicit TestVolume(const ImageSpec& of)
      : spec(of), data(static_cast<std::size_t>(of.width) * of.height * of.channels) {}

  ImageView view() { return {data.data(), spec}; }
  ConstImageView view() const { return {static_cast<const void*>(data.data()), spec}; }
  float& at(int x, int y, int z, int channel = 0) {
    return data[((static_cast<std::size_t>(z) * spec.slice.height + y) * spec.slice.width + x) *
                    spec.channels +
                channel];
  }

  ImageSpec spec;
  std::vector<float> data;
};

// A head of sorts at coordinates from -1 to 1, values from 0 to 1: ellipsoids within each other, folds of two
// kinds of tissue with some texture.
inline double head_at(double u, double v, double w) {
  const double r = std::sqrt(u * u / 0.85 + v * v / 0.95 + w * w / 0.9);
  if (r >= 1) return 0;
  if (r >= 0.9) return 0.75;                                                        // scalp
  if (r >= 0.82) return 0.15;                                                       // bone
  if (u * u / 0.04 + (v - 0.1) * (v - 0.1) / 0.09 + w * w / 0.06 < 1) return 0.25;  // ventricle
  const double folds =
      std::sin(5 * u + std::sin(3 * w)) * std::sin(4 * v + std::sin(3 * u)) * std::cos(4 * w + v);
  return (folds > 0.1 ? 0.8 : 0.55) + 0.03 * std::sin(11 * u) * std::sin(9 * v + 5 * w);
}

inline TestVolume phantom(const ImageSpec& spec) {
  TestVolume volume(spec);
  constexpr int samples = 3;  // of a voxel along each axis
  const auto place = [](int voxel, int sample, int size) {
    return (voxel + (sample + 0.5) / samples) / (size / 2.0) - 1;
  };
  for (int z = 0; z < spec.height; ++z) {
    for (int y = 0; y < spec.slice.height; ++y) {
      for (int x = 0; x < spec.slice.width; ++x) {
        double sum = 0;
        for (int i = 0; i < samples * samples * samples; ++i) {
          sum += head_at(place(x, i % samples, spec.slice.width),
                         place(y, i / samples % samples, spec.slice.height),
                         place(z, i / (samples * samples), spec.height));
        }
        const double value = sum / (samples * samples * samples);
        for (int c = 0; c < spec.channels; ++c)
          volume.at(x, y, z, c) = static_cast<float>(value * (1 - 0.2 * c));
      }
    }
  }
  return volume;
}

inline TestVolume with_gaussian_noise(TestVolume volume, double sigma, std::uint32_t seed = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, sigma);
  for (float& value : volume.data) value += static_cast<float>(normal(generator));
  return volume;
}

inline double volume_psnr(const TestVolume& a, const TestVolume& b, double white = 1) {
  double sum = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i)
    sum += std::pow(static_cast<double>(a.data[i]) - b.data[i], 2);
  return 10 * std::log10(white * white / (sum / static_cast<double>(a.data.size())));
}

inline double largest_difference_of(const TestVolume& a, const TestVolume& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(a.data[i]) - b.data[i]);
    if (!(difference <= most)) most = difference;  // NaN too
  }
  return most;
}

// Some slices and columns of a volume, with the place that they have in it.
inline TestVolume part_of(const TestVolume& volume, int x, int y, int width, int height) {
  ImageSpec spec = volume.spec;
  spec.width = width * height;
  spec.slice = {width, height, x, y, volume.spec.slice.width, volume.spec.slice.height};
  TestVolume part(spec);
  for (int z = 0; z < spec.height; ++z) {
    for (int row = 0; row < height; ++row) {
      for (int column = 0; column < width; ++column) {
        for (int c = 0; c < spec.channels; ++c)
          part.at(column, row, z, c) = const_cast<TestVolume&>(volume).at(x + column, y + row, z, c);
      }
    }
  }
  return part;
}

}  // namespace ungrain::testing
