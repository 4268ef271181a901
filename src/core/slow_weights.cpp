#include "core/slow_weights.h"

#include <cstdlib>

namespace ungrain {

std::vector<float> slow_weights(const std::vector<double>& half, Border border, const StageData& data) {
  const int radius = static_cast<int>(half.size()) - 1;
  const auto weight = [&](int offset) { return half[static_cast<std::size_t>(std::abs(offset))]; };
  double sum = 0;
  for (int offset = -radius; offset <= radius; ++offset) {
    if (border != Border::shrink || data.at(0, offset).data != nullptr) sum += weight(offset);
  }
  std::vector<float> weights;
  for (int offset = -radius; offset <= radius; ++offset) {
    const bool there = data.at(0, offset).data != nullptr;
    weights.push_back(there ? static_cast<float>(weight(offset) / sum) : 0.0F);
  }
  return weights;
}

}  // namespace ungrain
