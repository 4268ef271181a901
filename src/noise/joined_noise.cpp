#include "noise/joined_noise.h"

#include <algorithm>
#include <cmath>

namespace ungrain {
namespace {

template <class Value>
std::vector<Value> joined(const std::vector<Value>& luma, const std::vector<Value>& chroma) {
  std::vector<Value> both = luma;
  both.insert(both.end(), chroma.begin(), chroma.end());
  return both;
}

}  // namespace

NoiseEstimate joined_noise(const NoiseEstimate& luma, const NoiseEstimate& chroma) {
  NoiseEstimate both;
  both.channels = joined(luma.channels, chroma.channels);
  double squares = 0;
  for (const double sigma : both.channels) squares += sigma * sigma;
  both.sigma = std::sqrt(squares / static_cast<double>(both.channels.size()));
  return both;
}

NoiseModelEstimate joined_noise(const NoiseModelEstimate& luma, const NoiseModelEstimate& chroma) {
  NoiseModelEstimate both = luma;
  both.model.channels = joined(luma.model.channels, chroma.model.channels);
  both.finding = std::max(luma.finding, chroma.finding);
  both.white = joined_noise(luma.white, chroma.white);
  both.deviations = joined(luma.deviations, chroma.deviations);
  both.lines = luma.lines.empty() || chroma.lines.empty() ? std::vector<PoissonGaussian>{}
                                                          : joined(luma.lines, chroma.lines);
  return both;
}

}  // namespace ungrain
