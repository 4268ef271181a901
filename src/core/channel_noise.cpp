#include "core/channel_noise.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/border.h"
#include "core/convert.h"
#include "core/opponent.h"
#include "core/rows.h"
#include "ungrain/error.h"

namespace ungrain {

std::vector<double> levels_of(const ConstImageView& map) {
  std::vector<double> levels;
  std::vector<float> row(static_cast<std::size_t>(map.spec.width));
  for (int c = 0; c < map.spec.channels; ++c) {
    double squares = 0;
    for (int y = 0; y < map.spec.height; ++y) {
      load_row(map, y, c, row.data());
      for (const float sigma : row) squares += static_cast<double>(sigma) * sigma;
    }
    levels.push_back(std::sqrt(squares / map.spec.width / map.spec.height));
  }
  return levels;
}

double map_variance(const ConstImageView& map, bool opponent, int plane, int x, int y) {
  ConstImageView pixel = map.rows(border_index(Border::symmetric, y, map.spec.height), 1);
  pixel = columns_of(pixel, border_index(Border::symmetric, x, map.spec.width), 1);
  const auto of_channel = [&](int channel) {
    double sigma = 0;
    load_row(pixel, 0, map.spec.channels == 1 ? 0 : channel, &sigma);
    return sigma * sigma;
  };
  if (!opponent) return of_channel(plane);
  double sum = 0;
  for (int c = 0; c < 3; ++c) sum += std::pow(opponent_matrix[plane][c], 2) * of_channel(c);
  return sum;
}

void map_variances(const ConstImageView& map, bool opponent, int plane, const Rect& rect, float* to) {
  const int width = map.spec.width;
  std::vector<double> deviations(static_cast<std::size_t>(width));
  std::vector<double> variances(static_cast<std::size_t>(width));
  for (int y = rect.y0; y < rect.y1; ++y) {
    std::fill(variances.begin(), variances.end(), 0.0);
    for (int channel = opponent ? 0 : plane; channel <= (opponent ? 2 : plane); ++channel) {
      const double share = opponent ? std::pow(opponent_matrix[plane][channel], 2) : 1;
      load_row(map, border_index(Border::symmetric, y, map.spec.height), map.spec.channels == 1 ? 0 : channel,
               deviations.data());
      for (int x = 0; x < width; ++x) variances[x] += share * deviations[x] * deviations[x];
    }
    for (int x = rect.x0; x < rect.x1; ++x)
      *to++ = static_cast<float>(variances[border_index(Border::symmetric, x, width)]);
  }
}

void check_sigma_map(std::string_view method, const ConstImageView& map, const ImageSpec& spec) {
  if (map.data == nullptr) return;
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: sigma_map {}", method, why));
  };
  if (map.space.memory != Space::Memory::host) fail("must lie in the host's memory");
  if (map.spec.width != spec.width || map.spec.height != spec.height)
    fail(fmt::format("is {} x {}, the image {} x {}", map.spec.width, map.spec.height, spec.width,
                     spec.height));
  if (map.spec.channels != 1 && map.spec.channels != spec.colour_channels())
    fail(fmt::format("has {} channels, the image {} colours", map.spec.channels, spec.colour_channels()));
  std::vector<float> row(static_cast<std::size_t>(map.spec.width));
  for (int c = 0; c < map.spec.channels; ++c) {
    for (int y = 0; y < map.spec.height; ++y) {
      load_row(map, y, c, row.data());
      for (int x = 0; x < map.spec.width; ++x) {
        if (row[x] >= 0 && std::isfinite(row[x])) continue;
        fail(fmt::format("takes numbers from 0 up, got {} at ({}, {})", row[x], x, y));
      }
    }
  }
}

void check_noise_model(std::string_view method, const NoiseModel& model, const ConstImageView& map,
                       const ImageSpec& spec) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: noise_model {}", method, why));
  };
  validate(model);
  if (map.data != nullptr) fail("and sigma_map exclude each other");
  if (static_cast<int>(model.channels.size()) != spec.colour_channels()) {
    fail(fmt::format("has {} channels, the image {} colours", model.channels.size(), spec.colour_channels()));
  }
}

std::vector<double> channel_deviations(const std::vector<double>& sigma, int planes) {
  if (sigma.size() > 1) return sigma;
  return std::vector<double>(static_cast<std::size_t>(planes), sigma.at(0));
}

std::vector<double> opponent_deviations(const std::vector<double>& sigma, double correlation) {
  // If all channels had the same noise, their differences would have none: implausible, and impossible to
  // filter.
  constexpr double most = 0.98;
  std::vector<double> deviations;
  for (const auto& row : opponent_matrix) {
    double variance = 0;
    for (int a = 0; a < 3; ++a) {
      for (int b = 0; b < 3; ++b)
        variance += row[a] * sigma[a] * row[b] * sigma[b] * (a == b ? 1 : std::min(correlation, most));
    }
    deviations.push_back(std::sqrt(variance));
  }
  return deviations;
}

}  // namespace ungrain
