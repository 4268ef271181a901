#include "noise_page.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "noise_text.h"
#include "page/page.h"
#include "ungrain/convert.h"

namespace ungrain::cli {
namespace {

using nlohmann::json;

constexpr int side = NoiseModel::side;

double root_mean_square(const NoiseModel::Spectrum& spectrum) {
  double squares = 0;
  for (const double value : spectrum) squares += value * value;
  return std::sqrt(squares / static_cast<double>(spectrum.size()));
}

// Deviations on the 0-255 scale: over the levels; at the middle level, over frequency bands and at each
// frequency.
json channel_json(const NoisePage& page, int c) {
  const NoiseModel::Channel& channel = page.model.channels[static_cast<std::size_t>(c)];
  const double white = page.spec.white();
  const double scale = 255 / white;
  const double all_frequencies = root_mean_square(channel.spectrum);
  const double middle = channel.levels[channel.levels.size() / 2];
  json found = {{"name", channel_name(page.spec, c)}};
  constexpr int steps = 64;
  for (int n = 0; n <= steps; ++n) {
    const double level = white * n / steps;
    found["by_level"].push_back(
        json::array({level * scale, page.model.deviation(c, level) * all_frequencies * scale}));
  }
  for (int sum = 0; sum <= 2 * (side - 1); ++sum) {
    double squares = 0;
    int count = 0;
    for (int j = std::max(0, sum - side + 1); j <= std::min(sum, side - 1); ++j) {
      squares += std::pow(page.model.deviation(c, middle, sum - j, j), 2);
      ++count;
    }
    found["by_frequency"].push_back(json::array({sum, std::sqrt(squares / count) * scale}));
  }
  for (int j = 0; j < side; ++j) {
    json row = json::array();
    for (int i = 0; i < side; ++i) row.push_back(page.model.deviation(c, middle, i, j) * scale);
    found["spectrum"].push_back(std::move(row));
  }
  return found;
}

}  // namespace

Image made_small(const ConstImageView& image, int longest) {
  const ImageSpec& from = image.spec;
  const int factor = (std::max(from.width, from.height) + longest - 1) / longest;
  ImageSpec spec = from;
  spec.width = (from.width + factor - 1) / factor;
  spec.height = (from.height + factor - 1) / factor;
  Image small(spec);
  std::vector<double> row(static_cast<std::size_t>(from.width));
  std::vector<double> sums(static_cast<std::size_t>(spec.width));
  for (int c = 0; c < from.channels; ++c) {
    for (int y = 0; y < spec.height; ++y) {
      std::fill(sums.begin(), sums.end(), 0.0);
      const int end = std::min(from.height, (y + 1) * factor);
      for (int line = y * factor; line < end; ++line) {
        load_row(image, line, c, row.data());
        for (int x = 0; x < from.width; ++x) sums[static_cast<std::size_t>(x / factor)] += row[x];
      }
      for (int x = 0; x < spec.width; ++x) {
        const int columns = std::min(from.width, (x + 1) * factor) - x * factor;
        sums[static_cast<std::size_t>(x)] /= columns * (end - y * factor);
      }
      store_row(small.view(), y, c, sums.data());
    }
  }
  return small;
}

std::string html_of(const NoisePage& page) {
  json data = {{"title", "Noise of " + page.name},
               {"about", fmt::format("{} x {}, {}: {}", page.spec.width, page.spec.height,
                                     name(page.spec.type), page.found)},
               {"width", page.spec.width},
               {"height", page.spec.height},
               {"block_side", side},
               {"blocks", json::array()}};
  for (int c = 0; c < static_cast<int>(page.model.channels.size()); ++c)
    data["channels"].push_back(channel_json(page, c));
  for (const NoiseBlock& block : page.blocks) data["blocks"].push_back(json::array({block.x, block.y}));
  std::vector<page::Picture> pictures;
  if (page.picture.bytes() > 0) {
    const ImageSpec& shown = page.picture.spec();
    pictures.push_back(
        {page.name, "", page::source_of(page.picture.view(), {0, 0, shown.width, shown.height})});
  }
  return page::render_page("noise", data, pictures);
}

}  // namespace ungrain::cli
