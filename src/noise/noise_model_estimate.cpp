#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/workers.h"
#include "device/backends.h"
#include "noise/flat_windows.h"
#include "noise/joined_noise.h"
#include "noise/measured_model.h"
#include "noise/noise_model.h"
#include "noise/noise_pass.h"
#include "noise/read_in_bands.h"
#include "noise/white_noise.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/noise_model.h"

namespace ungrain {
namespace {

// An rgb image is examined as a whole, other channels each by itself.
struct ChannelGroup {
  int first = 0;
  int count = 1;
};

std::vector<ChannelGroup> channel_groups(const ImageSpec& spec) {
  if (spec.colour == Colour::rgb) return {{0, 3}};
  std::vector<ChannelGroup> groups;
  for (int c = 0; c < spec.colour_channels(); ++c) groups.push_back({c, 1});
  return groups;
}

void check_options(const NoiseModelOptions& options) {
  if (options.iso && !(*options.iso > 0)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("an ISO speed is above 0, got {}", *options.iso));
  }
  constexpr std::size_t steps = static_cast<std::size_t>(NoiseModel::side) * NoiseModel::side;
  if (!options.jpeg_steps.empty() && options.jpeg_steps.size() != steps) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("JPEG's steps are {}, got {}", steps, options.jpeg_steps.size()));
  }
}

// Luminance's noise beyond that of the colour differences is texture.
void keep_colour_noise(NoiseEstimate& white, double colour_deviation) {
  if (!(colour_deviation < white.sigma)) return;
  for (double& sigma : white.channels) sigma *= colour_deviation / white.sigma;
  white.sigma = colour_deviation;
  white.correlation = 0;
}

// Of one of the model's channels over the levels that its image has.
double mean_variance(const NoiseModel& model, int channel, const FlatWindows& windows) {
  double sum = 0;
  double count = 0;
  for (int n = 0; n < FlatWindows::level_count; ++n) {
    const LevelBlocks& blocks = windows.levels()[static_cast<std::size_t>(n)];
    const auto share = static_cast<double>(blocks.windows + blocks.constant);
    if (share == 0) continue;
    const double deviation = model.deviation(channel, windows.level_of(n));
    sum += share * deviation * deviation;
    count += share;
  }
  if (count == 0) return mean_deviation(model, channel) * mean_deviation(model, channel);
  const NoiseModel::Channel& of = model.channels[static_cast<std::size_t>(channel)];
  const double spectrum = band_rms(of.spectrum, {0, 2 * (NoiseModel::side - 1)});
  return sum / count * spectrum * spectrum;
}

void add_deviations(NoiseModelEstimate& found, const ImageSpec& spec,
                    const std::vector<FlatWindows>& windows) {
  std::vector<double> variances;
  for (int c = 0; c < static_cast<int>(found.model.channels.size()); ++c) {
    const bool is_rgb = spec.colour == Colour::rgb;
    variances.push_back(mean_variance(found.model, c, windows[is_rgb ? 0 : static_cast<std::size_t>(c)]));
  }
  if (found.finding == NoiseFinding::white) {
    found.deviations = found.white.channels;
  } else if (spec.colour == Colour::rgb) {
    found.deviations = channel_deviations(variances);
  } else {
    for (const double variance : variances) found.deviations.push_back(std::sqrt(variance));
  }
}

void add_level_range(NoiseModelEstimate& found, const std::vector<FlatWindows>& windows) {
  found.darkest = std::numeric_limits<double>::infinity();
  for (const FlatWindows& group : windows) {
    for (int n = 0; n < FlatWindows::level_count; ++n) {
      const LevelBlocks& blocks = group.levels()[static_cast<std::size_t>(n)];
      if (blocks.windows + blocks.constant == 0) continue;
      found.darkest = std::min(found.darkest, group.level_of(n));
      found.brightest = std::max(found.brightest, group.level_of(n));
    }
  }
  found.darkest = std::min(found.darkest, found.brightest);
}

// Each group of channels has its own finding. If one of an image's independent channels is white, the white
// estimate gives its part of the model.
NoiseModelEstimate combined(const ImageSpec& spec, const NoiseEstimate& white,
                            std::vector<FlatWindows>& windows, const NoiseModelOptions& options,
                            const BlockSource* source, Workers& workers) {
  NoiseModelEstimate result;
  result.white = white;
  result.model = white_noise_model(spec, white.channels, white.correlation);
  int channel = 0;
  for (FlatWindows& group : windows) {
    const MeasuredModel measured = measured_model(group, spec,
                                                  {.white_luminance = result.model.deviation(channel, 0),
                                                   .iso = options.iso,
                                                   .jpeg_steps = options.jpeg_steps,
                                                   .workers = &workers,
                                                   .source = source});
    if (measured.colour_deviation) {
      keep_colour_noise(result.white, *measured.colour_deviation);
      result.model = white_noise_model(spec, result.white.channels, result.white.correlation);
    }
    for (const NoiseModel::Channel& found : measured.channels) result.model.channels[channel++] = found;
    if (measured.channels.empty()) channel += group.channels();
    result.finding = std::max(result.finding, measured.finding);
    result.levels += measured.levels;
    result.calm_levels += measured.calm_levels;
    result.limited_by_colour = result.limited_by_colour || measured.limited_by_colour;
    result.limited_by_iso = result.limited_by_iso || measured.limited_by_iso;
    result.blocks.insert(result.blocks.end(), measured.blocks.begin(), measured.blocks.end());
    result.lines.insert(result.lines.end(), measured.lines.begin(), measured.lines.end());
  }
  if (result.lines.size() < result.model.channels.size()) result.lines.clear();
  add_deviations(result, spec, windows);
  add_level_range(result, windows);
  return result;
}

struct ModelEstimate {
  ModelEstimate(const ImageSpec& estimated, const NoiseModelOptions& chosen)
      : spec(estimated),
        options(chosen),
        rows(estimated),
        white(estimated),
        workers(estimate_workers(estimated, chosen.threads)) {
    for (const ChannelGroup& group : channel_groups(spec)) {
      windows.emplace_back(spec, group.first, group.count).prepare(workers.count());
    }
  }

  // One pass over the rows for both estimates.
  void look_at(const LatestRows& latest, int first) {
    look_in_pieces(latest, first, workers, [&](int from, int end, int worker) {
      for (FlatWindows& group : windows) group.look_at(latest, from, end, worker);
      white.look_at(latest, from, end);
    });
  }

  void add_rows(const ConstImageView& image) {
    rows.add(image, [&](const LatestRows& latest, int first) {
      look_at(latest, first);
      for (FlatWindows& group : windows) group.collect(latest, workers);
      white.collect(latest, workers);
    });
  }

  NoiseModelEstimate of_whole(const ConstImageView& image) {
    const LatestRows all = all_rows(image);
    look_at(all, 0);
    return result(RowsSource(all));
  }
  NoiseModelEstimate of_pass(NoisePass& pass) {
    if (!take(pass)) return of_whole(pass.on_host().view());
    return result(pass);
  }
  NoiseModelEstimate result(const BlockSource& source) {
    for (FlatWindows& group : windows) group.choose(workers);
    white.choose(source, workers);
    return combined(spec, white.result(workers), windows, options, &source, workers);
  }

  // Returns false if the pass cannot look at such an image.
  bool take(NoisePass& pass) {
    if (!white.has_whole_blocks()) return false;
    for (FlatWindows& group : windows) {
      FoundWindows found;
      if (!pass.windows(group.lattice(), found)) return false;
      group.take(found, workers);
    }
    white.take(pass.white_blocks(white.lattice()), workers);
    return true;
  }

  ImageSpec spec;
  NoiseModelOptions options;
  RowCollector rows;
  WhiteNoise white;
  std::vector<FlatWindows> windows;
  Workers workers;
};

}  // namespace

struct NoiseModelEstimator::Impl {
  Impl(const ImageSpec& image, const NoiseModelOptions& options) : spec(image) {
    if (spec.colour == Colour::ycbcr) {
      planes.emplace_back(luma_spec(spec), options);
      planes.emplace_back(chroma_spec(spec), options);
    } else {
      estimate.emplace(spec, options);
    }
  }

  ImageSpec spec;
  int rows = 0;
  std::optional<ModelEstimate> estimate;
  std::vector<NoiseModelEstimator> planes;  // of ycbcr: luma and chroma
};

NoiseModelEstimator::NoiseModelEstimator(const ImageSpec& spec, const NoiseModelOptions& options) {
  validate(spec);
  check_options(options);
  impl_ = std::make_unique<Impl>(spec, options);
}
NoiseModelEstimator::~NoiseModelEstimator() = default;
NoiseModelEstimator::NoiseModelEstimator(NoiseModelEstimator&&) noexcept = default;
NoiseModelEstimator& NoiseModelEstimator::operator=(NoiseModelEstimator&&) noexcept = default;

void NoiseModelEstimator::add_rows(const ConstImageView& image) {
  check_readable(image);
  check_rows(impl_->spec, image.spec, impl_->rows);
  if (impl_->estimate) {
    impl_->estimate->add_rows(image);
  } else {
    add_ycbcr_rows(image, impl_->rows, impl_->spec.height, impl_->planes[0], impl_->planes[1]);
  }
  impl_->rows += image.spec.height;
}

NoiseModelEstimate NoiseModelEstimator::finish() const {
  check_complete(impl_->spec, impl_->rows);
  if (!impl_->estimate) return joined_noise(impl_->planes[0].finish(), impl_->planes[1].finish());
  ModelEstimate& estimate = *impl_->estimate;
  return combined(estimate.spec, estimate.white.result(estimate.workers), estimate.windows, estimate.options,
                  nullptr, estimate.workers);
}

NoiseModelEstimate estimate_noise_model(const ConstImageView& image, const NoiseModelOptions& options) {
  check_options(options);
  check_pixels(image);
  if (image.spec.colour == Colour::ycbcr) {
    const NoiseModelEstimate luma = estimate_noise_model(luma_view(image), options);
    return joined_noise(luma, estimate_noise_model(chroma_view(image), options));
  }
  if (image.space.memory != Space::Memory::host) {
    return estimate_noise_model(*make_noise_pass(image), image.spec, options);
  }
  ModelEstimate estimate(image.spec, options);
  NoiseModelEstimate found;
  estimate.workers.stay_awake([&] { found = estimate.of_whole(image); });
  return found;
}

NoiseModelEstimate estimate_noise_model(NoisePass& pass, const ImageSpec& spec,
                                        const NoiseModelOptions& options) {
  ModelEstimate estimate(spec, options);
  NoiseModelEstimate found;
  estimate.workers.stay_awake([&] { found = estimate.of_pass(pass); });
  return found;
}

NoiseModelEstimate estimate_noise_model(RowReader& rows, const ImageSpec& spec,
                                        const NoiseModelOptions& options) {
  return estimate_in_bands(NoiseModelEstimator(spec, options), rows, spec);
}

}  // namespace ungrain
