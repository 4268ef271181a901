#include "noise_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ungrain::cli {
namespace {

double root_mean_square(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

// Luminance, and the two colour differences as one number.
std::string luminance_and_chroma(const NoiseModel& model, double scale) {
  const auto strength = [&](int channel) {
    const NoiseModel::Channel& of = model.channels[static_cast<std::size_t>(channel)];
    const std::vector<double> spectrum(of.spectrum.begin(), of.spectrum.end());
    return root_mean_square(of.deviations) * root_mean_square(spectrum) * scale;
  };
  const double chroma = root_mean_square({strength(1), strength(2)});
  return fmt::format("{:.1f} luminance, {:.1f} chroma", strength(0), chroma);
}

// The range of deviations over the levels of the image.
std::string range_over_levels(const NoiseModelEstimate& found, double scale) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (std::size_t c = 0; c < found.model.channels.size(); ++c) {
    std::vector<double> levels = found.model.channels[c].levels;
    levels.insert(levels.end(), {found.darkest, found.brightest});
    for (const double level : levels) {
      if (level < found.darkest || level > found.brightest) continue;
      const double deviation = found.model.deviation(static_cast<int>(c), level);
      least = std::min(least, deviation);
      most = std::max(most, deviation);
    }
  }
  return fmt::format("{:.1f} to {:.1f}", least * scale, most * scale);
}

// Whether fine frequencies have less noise than coarse ones.
bool is_coarse(const NoiseModel& model) {
  const NoiseModel::Channel& first = model.channels[0];
  const NoiseBands bands = noise_bands(model, 0, first.levels[first.levels.size() / 2]);
  constexpr double clearly = 1.5;
  return bands.low > clearly * bands.high;
}

}  // namespace

std::string noise_text(const NoiseModelEstimate& found, const ImageSpec& spec, std::optional<double> iso) {
  const double scale = 255 / spec.white();
  std::string text;
  if (found.finding == NoiseFinding::white) {
    std::vector<std::string> channels;
    for (const double sigma : found.white.channels) channels.push_back(fmt::format("{:.1f}", sigma * scale));
    text = fmt::format("{} (the same at all levels)", fmt::join(channels, " "));
  } else if (found.finding == NoiseFinding::by_level) {
    text = range_over_levels(found, scale) + " by level (photon noise)";
  } else {
    text = spec.colour == Colour::rgb ? luminance_and_chroma(found.model, scale)
                                      : range_over_levels(found, scale);
    text += is_coarse(found.model) ? " (coarse, as a camera makes it)" : " (not the same at all frequencies)";
  }
  if (iso) text += fmt::format(", ISO {:.0f}", *iso);
  if (found.limited_by_iso) return text + "; luminance limited by the ISO speed";
  if (found.limited_by_colour) return text + "; luminance limited by the colour differences' noise";
  return text;
}

std::string channel_name(const ImageSpec& spec, int channel) {
  static constexpr std::array opponent = {"luminance", "red - blue", "green - magenta"};
  if (spec.colour == Colour::rgb) return opponent[static_cast<std::size_t>(channel)];
  if (spec.colour == Colour::gray) return "gray";
  return fmt::format("channel {}", channel + 1);
}

}  // namespace ungrain::cli
