#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "core/convert.h"
#include "core/opponent.h"
#include "core/refuse_ycbcr.h"
#include "noise/block_coefficients.h"
#include "noise/noise_model.h"
#include "ungrain/error.h"
#include "ungrain/noise_calibration.h"

namespace ungrain {
namespace {

constexpr int side = NoiseModel::side;
constexpr int coefficients = side * side;
using Spectrum = NoiseModel::Spectrum;
using Planes = std::vector<std::vector<double>>;  // the colour channels of an image

constexpr std::size_t most_levels = 16;
constexpr std::size_t fewest_blocks = 64;  // least number for a level
// Largest share of a block's samples at black or white: more distorts its noise.
constexpr double limited_share = 0.05;
constexpr double outlier = 4;        // times the median energy: dust, a hot pixel
constexpr double same_level = 0.01;  // of white: frames closer than this are one level

void check_frames(std::span<const ConstImageView> frames, std::size_t fewest, const char* kind) {
  const auto fail = [](const std::string& why) { throw Error(ErrorCode::invalid_argument, why); };
  if (frames.size() < fewest) fail(fmt::format("{} take {} or more, got {}", kind, fewest, frames.size()));
  for (const ConstImageView& frame : frames) {
    validate(frame.spec);
    refuse_ycbcr(frame.spec, "calibrations");
    if (frame.space.memory != Space::Memory::host) fail("frames must lie in the host's memory");
    if (frame.spec != frames[0].spec) fail(fmt::format("{} must all have one size and type", kind));
  }
  if (frames[0].spec.width < side || frames[0].spec.height < side) {
    fail(fmt::format("{} take images of {} x {} pixels or more, got {} x {}", kind, side, side,
                     frames[0].spec.width, frames[0].spec.height));
  }
}

Planes planes_of(const ConstImageView& frame) {
  const ImageSpec& spec = frame.spec;
  Planes planes(static_cast<std::size_t>(spec.colour_channels()));
  for (std::size_t c = 0; c < planes.size(); ++c) {
    planes[c].resize(static_cast<std::size_t>(spec.width) * spec.height);
    for (int y = 0; y < spec.height; ++y) {
      load_row(frame, y, static_cast<int>(c), planes[c].data() + static_cast<std::size_t>(y) * spec.width);
    }
  }
  return planes;
}

// A block of the model's channel; of rgb, of the opponent space.
Spectrum block_of(const Planes& planes, const ImageSpec& spec, int channel, int x0, int y0) {
  Spectrum block{};
  const bool opponent = spec.colour == Colour::rgb;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const std::size_t at = static_cast<std::size_t>(y0 + y) * spec.width + x0 + x;
      double& value = block[static_cast<std::size_t>(y) * side + x];
      if (!opponent) value = planes[channel][at];
      for (int c = 0; opponent && c < 3; ++c) value += opponent_matrix[channel][c] * planes[c][at];
    }
  }
  return block;
}

// The mean of a block in the units of a model's levels.
double level_of(const Planes& planes, const ImageSpec& spec, int channel, int x0, int y0) {
  const Spectrum block = block_of(planes, spec, spec.colour == Colour::rgb ? 0 : channel, x0, y0);
  const double mean = std::accumulate(block.begin(), block.end(), 0.0) / coefficients;
  return spec.colour == Colour::rgb ? mean / std::sqrt(3.0) : mean;
}

bool is_usable(const Planes& planes, const ImageSpec& spec, int x0, int y0) {
  int limited = 0;
  for (const std::vector<double>& plane : planes) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const double value = plane[static_cast<std::size_t>(y0 + y) * spec.width + x0 + x];
        if (!std::isfinite(value)) return false;
        if (!is_float(spec.type) && (value <= 0 || value >= spec.white())) ++limited;
      }
    }
  }
  return limited <= limited_share * coefficients * static_cast<double>(planes.size());
}

// Mean squares of the coefficients at one level.
struct LevelPowers {
  double level = 0;
  Spectrum powers{};
};

double middle_power(const Spectrum& powers) {
  double sum = 0;
  int count = 0;
  for (int j = 0; j < side; ++j) {
    for (int i = 0; i < side; ++i) {
      if (i + j < middle_band.lowest || i + j > middle_band.highest) continue;
      sum += powers[j * side + i];
      ++count;
    }
  }
  return sum / count;
}

// The spectrum is the mean over all levels, each divided by its own strength.
NoiseModel::Channel channel_of(const std::vector<LevelPowers>& levels) {
  NoiseModel::Channel channel;
  double total = 0;
  for (const LevelPowers& level : levels) {
    const double power = middle_power(level.powers);
    channel.levels.push_back(level.level);
    channel.deviations.push_back(std::sqrt(power));
    total += power;
    for (int i = 0; i < coefficients; ++i) channel.spectrum[i] += level.powers[i];
  }
  for (double& value : channel.spectrum) value = total > 0 ? std::sqrt(value / total) : 1;
  return channel;
}

struct Block {
  double level = 0;
  Spectrum powers{};  // sums over the frames
};

std::vector<LevelPowers> by_level(std::vector<Block> blocks, std::size_t frames) {
  std::sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.level < b.level; });
  const std::size_t count = std::clamp<std::size_t>(blocks.size() / fewest_blocks, 1, most_levels);
  std::vector<LevelPowers> levels;
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t begin = blocks.size() * n / count;
    const std::size_t end = blocks.size() * (n + 1) / count;
    LevelPowers level;
    for (std::size_t at = begin; at < end; ++at) {
      level.level += blocks[at].level / static_cast<double>(end - begin);
      for (int i = 0; i < coefficients; ++i) {
        level.powers[i] += blocks[at].powers[i] / static_cast<double>((end - begin) * frames);
      }
    }
    // Several levels of one large even area are merged.
    if (!levels.empty() && level.level <= levels.back().level) continue;
    levels.push_back(level);
  }
  return levels;
}

template <class Visit>
void for_each_block(const ImageSpec& spec, const Visit& visit) {
  for (int y = 0; y + side <= spec.height; y += side) {
    for (int x = 0; x + side <= spec.width; x += side) visit(x, y);
  }
}

[[noreturn]] void nothing_to_measure() {
  throw Error(ErrorCode::invalid_argument,
              "no block of the frames lies between black and white: there is no noise to measure");
}

LevelPowers powers_of_even_frame(const Planes& planes, const ImageSpec& spec, int channel) {
  std::vector<Block> blocks;
  for_each_block(spec, [&](int x, int y) {
    // A dark frame may be cut off at black in many places, but it is the only data at its level.
    blocks.push_back(
        {level_of(planes, spec, channel, x, y), squared_coefficients(block_of(planes, spec, channel, x, y))});
  });
  const auto finite = [](const Block& block) { return std::isfinite(middle_power(block.powers)); };
  std::erase_if(blocks, [&](const Block& block) { return !finite(block); });
  if (blocks.empty()) nothing_to_measure();
  std::vector<double> energies;
  for (const Block& block : blocks) energies.push_back(middle_power(block.powers));
  const auto middle = energies.begin() + static_cast<std::ptrdiff_t>(energies.size() / 2);
  std::nth_element(energies.begin(), middle, energies.end());
  const double most = outlier * *middle;
  std::erase_if(blocks, [most](const Block& block) { return middle_power(block.powers) > most; });
  LevelPowers result;
  for (const Block& block : blocks) {
    result.level += block.level / static_cast<double>(blocks.size());
    for (int i = 0; i < coefficients; ++i) {
      result.powers[i] += block.powers[i] / static_cast<double>(blocks.size());
    }
  }
  // A block's mean is its level and varies with shading, so the noise at frequency 0 is estimated from the
  // next frequencies.
  constexpr double dc_over_next = 1.15;
  result.powers[0] = dc_over_next * dc_over_next * std::max(result.powers[1], result.powers[side]);
  return result;
}

// Merges frames of the same level.
std::vector<LevelPowers> merged(std::vector<LevelPowers> frames, double white) {
  std::sort(frames.begin(), frames.end(),
            [](const LevelPowers& a, const LevelPowers& b) { return a.level < b.level; });
  std::vector<LevelPowers> levels;
  std::vector<double> counts;
  for (const LevelPowers& frame : frames) {
    if (levels.empty() || frame.level - levels.back().level > same_level * white) {
      levels.push_back(frame);
      counts.push_back(1);
      continue;
    }
    LevelPowers& last = levels.back();
    const double share = 1 / ++counts.back();
    last.level += share * (frame.level - last.level);
    for (int i = 0; i < coefficients; ++i) last.powers[i] += share * (frame.powers[i] - last.powers[i]);
  }
  return levels;
}

// Continues the deviations from the brightest frame to white.
void continue_to_white(NoiseModel::Channel& channel, double white) {
  const std::size_t last = channel.levels.size() - 1;
  if (last == 0 || channel.levels[last] >= white) return;
  const double first_variance = std::pow(channel.deviations[0], 2);
  const double last_variance = std::pow(channel.deviations[last], 2);
  const double slope = (last_variance - first_variance) / (channel.levels[last] - channel.levels[0]);
  const double variance = last_variance + slope * (white - channel.levels[last]);
  channel.levels.push_back(white);
  channel.deviations.push_back(std::sqrt(std::max(variance, 0.0)));
}

}  // namespace

NoiseModel noise_of_still_frames(std::span<const ConstImageView> frames) {
  check_frames(frames, 2, "still frames");
  const ImageSpec& spec = frames[0].spec;
  Planes mean = planes_of(frames[0]);
  for (std::size_t n = 1; n < frames.size(); ++n) {
    const Planes frame = planes_of(frames[n]);
    for (std::size_t c = 0; c < mean.size(); ++c) {
      for (std::size_t i = 0; i < mean[c].size(); ++i) mean[c][i] += frame[c][i];
    }
  }
  for (std::vector<double>& plane : mean) {
    for (double& value : plane) value /= static_cast<double>(frames.size());
  }
  // The mean over the frames contains a part of each frame's noise.
  const double unbiased = static_cast<double>(frames.size()) / (static_cast<double>(frames.size()) - 1);

  std::vector<std::vector<Block>> blocks(mean.size());
  std::vector<std::pair<int, int>> places;
  for_each_block(spec, [&](int x, int y) {
    if (!is_usable(mean, spec, x, y)) return;
    places.emplace_back(x, y);
    for (std::size_t c = 0; c < mean.size(); ++c) {
      blocks[c].push_back({level_of(mean, spec, static_cast<int>(c), x, y), {}});
    }
  });
  if (places.empty()) nothing_to_measure();
  for (const ConstImageView& view : frames) {
    Planes residual = planes_of(view);
    for (std::size_t c = 0; c < mean.size(); ++c) {
      for (std::size_t i = 0; i < mean[c].size(); ++i) residual[c][i] -= mean[c][i];
    }
    for (std::size_t n = 0; n < places.size(); ++n) {
      for (std::size_t c = 0; c < mean.size(); ++c) {
        const Spectrum powers = squared_coefficients(
            block_of(residual, spec, static_cast<int>(c), places[n].first, places[n].second));
        for (int i = 0; i < coefficients; ++i) blocks[c][n].powers[i] += unbiased * powers[i];
      }
    }
  }
  NoiseModel model;
  for (std::vector<Block>& channel : blocks) {
    model.channels.push_back(channel_of(by_level(std::move(channel), frames.size())));
  }
  validate(model);
  return model;
}

NoiseModel noise_of_even_frames(std::span<const ConstImageView> frames) {
  check_frames(frames, 1, "even frames");
  const ImageSpec& spec = frames[0].spec;
  std::vector<std::vector<LevelPowers>> levels(static_cast<std::size_t>(spec.colour_channels()));
  for (const ConstImageView& view : frames) {
    const Planes planes = planes_of(view);
    for (std::size_t c = 0; c < levels.size(); ++c) {
      levels[c].push_back(powers_of_even_frame(planes, spec, static_cast<int>(c)));
    }
  }
  NoiseModel model;
  for (std::vector<LevelPowers>& channel : levels) {
    model.channels.push_back(channel_of(merged(std::move(channel), spec.white())));
    continue_to_white(model.channels.back(), spec.white());
  }
  validate(model);
  return model;
}

}  // namespace ungrain
