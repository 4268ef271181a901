#include "noise/drawn_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

namespace ungrain {
namespace {

// Calls visit(a, b) for each pair of neighbours.
template <class Visit>
void for_neighbours(const double* block, int width, int height, const Visit& visit) {
  for (int y = 0; y < height; ++y) {
    const double* row = block + static_cast<std::ptrdiff_t>(y) * width;
    for (int x = 0; x + 1 < width; ++x) visit(row[x], row[x + 1]);
    if (y + 1 == height) continue;
    for (int x = 0; x < width; ++x) visit(row[x], row[x + width]);
  }
}

// Sum of the squared differences of two rows. A fixed number of partial sums, which the compiler can
// vectorise.
double distance(const float* a, const float* b, std::size_t size) {
  constexpr std::size_t lanes = 16;  // blocks have 64 samples a channel
  std::array<float, lanes> sums{};
  for (std::size_t i = 0; i < size; i += lanes) {
    for (std::size_t n = 0; n < lanes; ++n) {
      const float difference = a[i + n] - b[i + n];
      sums[n] += difference * difference;
    }
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

void Neighbours::add(const Neighbours& other, double share) {
  equal += share * other.equal;
  difference += share * other.difference;
  step = std::min(step, other.step);
}

Neighbours neighbours_of(const double* block, int width, int height, double white) {
  Neighbours found;
  double pairs = 0;
  for_neighbours(block, width, height, [&](double a, double b) {
    const double difference = std::fabs(a - b);
    pairs += 1;
    found.equal += difference == 0 ? 1 : 0;
    found.difference += difference * difference;
    if (difference > 0) found.step = std::min(found.step, difference);
  });
  if (pairs == 0) return found;
  const int samples = width * height;
  const auto by_chance = [&](double limit) {  // two of the samples in any order
    const auto at_limit = static_cast<double>(std::count(block, block + samples, limit));
    return at_limit * (at_limit - 1) / (static_cast<double>(samples) * (samples - 1));
  };
  found.equal = found.equal / pairs - by_chance(0) - by_chance(white);
  found.difference /= pairs;
  return found;
}

double most_noise(const Neighbours& neighbours, double white) {
  constexpr double none = std::numeric_limits<double>::infinity();
  if (neighbours.equal <= 0 || !std::isfinite(neighbours.step)) return none;
  // With steps too small to be seen, some equal samples (a frame) carry no information; with large steps the
  // image is a drawing of a few grays.
  const double step = std::clamp(neighbours.step, white / 1024, white / 128);
  constexpr double drawn = 1.5;
  if (neighbours.equal * std::sqrt(neighbours.difference) < drawn * step) return none;
  constexpr double allowed = 0.56;  // twice what white noise has
  return allowed * step / neighbours.equal;
}

double novelty(const std::vector<PlacedBlock>& blocks, int channels, int samples) {
  const auto count = blocks.size();
  constexpr std::size_t enough = 32;
  constexpr int whole_block = 64;  // smaller blocks may be similar by chance
  if (count < enough || samples < whole_block) return 1;
  const auto size = static_cast<std::size_t>(channels) * static_cast<std::size_t>(samples);
  std::vector<float> centred;
  centred.reserve(count * size);
  double variance = 0;  // of a sample, summed over a block and its channels, mean over the blocks
  for (const PlacedBlock& block : blocks) {
    for (int c = 0; c < channels; ++c) {
      const float* from = block.samples + static_cast<std::ptrdiff_t>(c) * samples;
      const double mean = std::accumulate(from, from + samples, 0.0) / samples;
      for (int i = 0; i < samples; ++i) {
        const double value = from[i] - mean;
        centred.push_back(static_cast<float>(value));
        variance += value * value / static_cast<double>(count);
      }
    }
  }
  if (variance == 0) return 1;
  // Times a power of 2 that makes the deviation about 1, so that squares of floats neither overflow nor
  // underflow.
  const int exponent = -std::ilogb(std::sqrt(variance));
  const double factor = std::ldexp(1.0, exponent);
  for (float& value : centred) value = static_cast<float>(value * factor);
  variance = std::ldexp(variance, 2 * exponent);
  std::vector<double> nearest(count, std::numeric_limits<double>::infinity());
  for (std::size_t n = 0; n < count; ++n) {
    for (std::size_t k = n + 1; k < count; ++k) {
      constexpr int overlap = 8;
      if (std::abs(blocks[n].x - blocks[k].x) < overlap && std::abs(blocks[n].y - blocks[k].y) < overlap)
        continue;
      const float* a = centred.data() + n * size;
      const float* b = centred.data() + k * size;
      const double squares = distance(a, b, size);
      nearest[n] = std::min(nearest[n], squares);
      nearest[k] = std::min(nearest[k], squares);
    }
  }
  nearest.erase(std::remove(nearest.begin(), nearest.end(), std::numeric_limits<double>::infinity()),
                nearest.end());
  if (nearest.size() < enough) return 1;
  const auto middle = nearest.begin() + static_cast<std::ptrdiff_t>(nearest.size() / 2);
  std::nth_element(nearest.begin(), middle, nearest.end());
  return *middle / (2 * variance);
}

}  // namespace ungrain
