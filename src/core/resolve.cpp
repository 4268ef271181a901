// What depends on the image becomes numbers: the noise that is measured, and what follows from it.
#include <cmath>
#include <memory>

#include "core/descriptor.h"
#include "core/method.h"
#include "core/noise_handling.h"
#include "core/registry.h"
#include "noise/cut_noise.h"
#include "noise/stabilize.h"
#include "ungrain/denoiser.h"
#include "ungrain/noise_model.h"

namespace ungrain {
namespace {

MethodParams with_noise_level(MethodParams params, const NoiseEstimate& estimate) {
  for (const Descriptor& d : find_method(params.method()).descriptors) {
    if (d.info.fallback != Fallback::automatic || !is_unset(params.get(d.info.name))) continue;
    if (d.measured) {
      params.set(d.info.name, d.measured(estimate));
    } else if (d.info.kind == ParamKind::per_channel) {
      params.set(d.info.name, estimate.channels);
    } else {
      params.set(d.info.name, estimate.sigma);
    }
  }
  return params;
}

// One deviation for each channel in place of the model, for a method that cannot use more.
NoiseEstimate mean_level(const NoiseModelEstimate& found) {
  NoiseEstimate level = found.white;
  level.channels = found.deviations;
  double squares = 0;
  for (const double sigma : level.channels) squares += sigma * sigma;
  level.sigma = std::sqrt(squares / static_cast<double>(level.channels.size()));
  return level;
}

std::vector<ChannelDeviation> deviations_of(const NoiseModelEstimate& found, const ImageSpec& spec) {
  std::vector<ChannelDeviation> deviations;
  for (int c = 0; c < spec.colour_channels(); ++c) deviations.emplace_back(found.model, spec, c);
  return deviations;
}

// A smooth slope without noise has nearly all of its energy in the lowest frequencies. Noise that cameras
// leave in luminance has 1.4 to 3 times as much there as in the middle ones.
bool is_slope(const NoiseModelEstimate& found) {
  constexpr double steepest = 6;
  const std::vector<double>& levels = found.model.channels.front().levels;
  const NoiseBands bands = noise_bands(found.model, 0, levels[levels.size() / 2]);
  return bands.low > steepest * bands.middle;
}

void scale(NoiseModelEstimate& found, double factor) {
  found.white.sigma *= factor;
  for (double& sigma : found.white.channels) sigma *= factor;
  for (double& sigma : found.deviations) sigma *= factor;
  found.model = scaled(std::move(found.model), factor);
}

}  // namespace

MethodParams resolve_derived(const MethodParams& params, const ImageSpec& spec) {
  params.validate(spec);
  const Method& method = find_method(params.method());
  MethodParams resolved = params;
  if (!resolved.needs_image()) {
    apply_noise(method, resolved.writable(), resolved.noise_, spec);
    check_cut(method, resolved.values_.get(), resolved.noise_);
  }
  for (const Descriptor& d : method.descriptors) {
    if (d.derive) d.derive(resolved.writable(), spec);
  }
  resolved.validate(spec);  // what was given may not fit what follows from it
  return resolved;
}

// With what was measured.
class NoiseResolver {
 public:
  static Resolved resolve(const MethodParams& params, const ImageSpec& spec, NoiseModelEstimate found,
                          const CutDetector& cuts) {
    MethodParams known = params;
    if (found.finding == NoiseFinding::spectrum && is_slope(found)) {
      found.finding = NoiseFinding::white;
      found.model = white_noise_model(spec, found.white.channels, found.white.correlation);
      found.deviations = found.white.channels;
    }
    const Cut cut = cuts.finish(deviations_of(found, spec));
    if (found.finding == NoiseFinding::white) scale(found, cut.deviation_factor);
    known.noise_.cut_at_black = params.noise().cut_at_black || cut.at_black;
    known.noise_.cut_at_white = params.noise().cut_at_white || cut.at_white;
    const Method& method = find_method(params.method());
    if (found.finding == NoiseFinding::white) {
      known = with_noise_level(std::move(known), found.white);
    } else if (allows_model(method, known.values_.get(), spec)) {
      known.noise_.model = std::make_shared<const NoiseModel>(found.model);
    } else {
      known = with_noise_level(std::move(known), mean_level(found));
    }
    return {resolve_derived(known, spec), std::move(found)};
  }
};

// Shows the rows that are read to the detector too.
class WatchedReader : public RowReader {
 public:
  WatchedReader(RowReader& rows, CutDetector& cuts) : rows_(rows), cuts_(cuts) {}
  void read_rows(int first, const ImageView& rows) override {
    rows_.read_rows(first, rows);
    cuts_.add_rows(rows);
  }

 private:
  RowReader& rows_;
  CutDetector& cuts_;
};

Resolved resolve_with_noise(const MethodParams& params, const ConstImageView& image,
                            const NoiseModelOptions& options) {
  params.validate(image.spec);
  if (!params.needs_image()) return {resolve_derived(params, image.spec), std::nullopt};
  NoiseModelEstimate found = estimate_noise_model(image, options);  // checks the image
  CutDetector cuts(image.spec);
  cuts.add_rows(image);
  return NoiseResolver::resolve(params, image.spec, std::move(found), cuts);
}

Resolved resolve_with_noise(const MethodParams& params, RowReader& image, const ImageSpec& spec,
                            const NoiseModelOptions& options) {
  params.validate(spec);
  if (!params.needs_image()) return {resolve_derived(params, spec), std::nullopt};
  CutDetector cuts(spec);
  WatchedReader watched(image, cuts);
  NoiseModelEstimate found = estimate_noise_model(watched, spec, options);
  return NoiseResolver::resolve(params, spec, std::move(found), cuts);
}

MethodParams resolve(const MethodParams& params, const ConstImageView& image) {
  return resolve_with_noise(params, image).params;
}

MethodParams resolve(const MethodParams& params, RowReader& image, const ImageSpec& spec) {
  return resolve_with_noise(params, image, spec).params;
}

}  // namespace ungrain
