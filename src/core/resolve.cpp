// Replaces parameters that depend on the image by numbers: the measured noise, and what follows from it.
#include <cmath>
#include <memory>

#include "core/descriptor.h"
#include "core/method.h"
#include "core/noise_handling.h"
#include "core/registry.h"
#include "core/slice_rows.h"
#include "core/ycbcr.h"
#include "noise/cut_noise.h"
#include "noise/joined_noise.h"
#include "noise/read_in_bands.h"
#include "noise/stabilize.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/measured_noise.h"
#include "ungrain/noise_model.h"
#include "ungrain/volume.h"

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

// One deviation for each channel in place of the model, for a method that takes no model.
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
  if (is_split(method, spec)) {
    return YcbcrParams::joined(resolve_derived(YcbcrParams::luma(params), luma_spec(spec)),
                               resolve_derived(YcbcrParams::chroma(params), chroma_spec(spec)));
  }
  MethodParams resolved = params;
  if (!needs_noise(method, resolved.values_.get(), resolved.noise_)) {
    apply_noise(method, resolved.writable(), resolved.noise_, spec);
    check_cut(method, resolved.values_.get(), resolved.noise_);
  }
  for (const Descriptor& d : method.descriptors) {
    if (d.derive) d.derive(resolved.writable(), spec);
  }
  // Values derived just now are no reason to look at the image.
  if (!params.needs_image() && resolved.noise_.clipping != Clipping::keep)
    resolved.noise_.clipping = Clipping::measured;
  resolved.validate(spec);  // given values may not fit the derived ones
  return resolved;
}

// Finds the noise and the cuts of the image. The results have yet to go through resolve_derived().
class NoiseResolver {
 public:
  // Whether the noise itself is measured: for the method, or only to undo a cut.
  static bool measures(const MethodParams& params) {
    return for_method(params) || (params.noise_.clipping == Clipping::everywhere &&
                                  !knows_noise(method_of(params), params.values_.get(), params.noise_));
  }

  static Resolved with_given_noise(const MethodParams& params, const ImageSpec& spec, CutDetector& cuts) {
    MethodParams known = params;
    note_cut(known,
             cuts.finish(noise_before_cut(method_of(params), params.values_.get(), params.noise_, spec)));
    return {known, std::nullopt};
  }

  static Resolved with_measured_noise(const MethodParams& params, const ImageSpec& spec,
                                      NoiseModelEstimate found, CutDetector& cuts) {
    MethodParams known = params;
    if (found.finding == NoiseFinding::spectrum && is_slope(found)) {
      found.finding = NoiseFinding::white;
      found.model = white_noise_model(spec, found.white.channels, found.white.correlation);
      found.deviations = found.white.channels;
    }
    const Cut cut = cuts.finish(deviations_of(found, spec));
    if (found.finding == NoiseFinding::white) scale(found, cut.deviation_factor);
    note_cut(known, cut);
    if (!for_method(params)) {
      if (cut.at_black || cut.at_white) known.noise_.cut_model = shared(found.model);
      return {known, std::nullopt};
    }
    if (found.finding == NoiseFinding::white) {
      known = with_noise_level(std::move(known), found.white);
    } else if (allows_model(method_of(params), known.values_.get(), spec)) {
      known.noise_.model = shared(found.model);
    } else {
      known = with_noise_level(std::move(known), mean_level(found));
    }
    return {std::move(known), std::move(found)};
  }

 private:
  static const Method& method_of(const MethodParams& params) { return find_method(params.method()); }
  static bool for_method(const MethodParams& params) {
    return needs_noise(method_of(params), params.values_.get(), params.noise_);
  }
  static std::shared_ptr<const NoiseModel> shared(const NoiseModel& model) {
    return std::make_shared<const NoiseModel>(model);
  }
  // Marks the search for a cut as done.
  static void note_cut(MethodParams& params, const Cut& cut) {
    if (params.noise_.clipping == Clipping::keep) return;
    params.noise_.clipping = Clipping::measured;
    params.noise_.cut_at_black = params.noise_.cut_at_black || cut.at_black;
    params.noise_.cut_at_white = params.noise_.cut_at_white || cut.at_white;
  }
};

// The noise of an image that arrives row by row.
class RowResolver {
 public:
  RowResolver(const MethodParams& params, const ImageSpec& spec, const NoiseModelOptions& options)
      : params_(params), spec_(spec), cuts_(spec, options.threads) {
    if (NoiseResolver::measures(params)) noise_.emplace(spec, options);
  }

  void add_rows(const ConstImageView& rows) {
    if (rows.spec.height == 0) return;
    if (noise_) noise_->add_rows(rows);
    cuts_.add_rows(rows);
  }
  Resolved finish() {
    if (!params_.needs_image()) return {params_, std::nullopt};
    if (!noise_) return NoiseResolver::with_given_noise(params_, spec_, cuts_);
    return NoiseResolver::with_measured_noise(params_, spec_, noise_->finish(), cuts_);
  }

 private:
  MethodParams params_;
  ImageSpec spec_;
  CutDetector cuts_;
  std::optional<NoiseModelEstimator> noise_;
};

// Parameters of luma may need the image where those of chroma do not, and the other way round.
Resolved found_in(const MethodParams& params, const ConstImageView& image, const NoiseModelOptions& options) {
  if (!params.needs_image()) return {params, std::nullopt};
  CutDetector cuts(image.spec, options.threads);
  if (!NoiseResolver::measures(params)) {
    cuts.add_image(image);
    return NoiseResolver::with_given_noise(params, image.spec, cuts);
  }
  NoiseModelEstimate found = estimate_noise_model(image, options);  // checks the image
  cuts.add_image(image);
  return NoiseResolver::with_measured_noise(params, image.spec, std::move(found), cuts);
}

// From what was found in luma and in chroma. `params` are those that were given.
Resolved joined(const MethodParams& params, Resolved luma, Resolved chroma, const ImageSpec& spec) {
  std::optional<NoiseModelEstimate> noise;
  if (luma.noise && chroma.noise) noise = joined_noise(*luma.noise, *chroma.noise);
  if (is_split(find_method(params.method()), spec)) {
    return {resolve_derived(YcbcrParams::joined(std::move(luma.params), std::move(chroma.params)), spec),
            std::move(noise)};
  }
  return {resolve_derived(YcbcrParams::with_noise_of(params, luma.params, chroma.params, spec), spec),
          std::move(noise)};
}

namespace {

// So many voxels tell the noise as well as more do.
constexpr double voxels_measured = 64e6;

Resolved resolved_of_volume(const MethodParams& params, SliceRows rows, const ImageSpec& volume,
                            const NoiseModelOptions& options) {
  RowResolver resolver(params, rows.spec(), options);
  for_bands(rows, rows.spec(), [&](const ConstImageView& band) { resolver.add_rows(band); });
  Resolved found = resolver.finish();
  return {resolve_derived(found.params, volume), std::move(found.noise)};
}

// A volume that lies on a GPU, its slices packed, is a tall image there.
ConstImageView tall_view(ConstImageView volume) {
  const ImageSpec slice = slice_spec(volume.spec);
  if (volume.strides.y != volume.strides.x * volume.spec.width) {
    throw Error(ErrorCode::unsupported,
                "the noise of a volume on a GPU is measured where its slices follow each other without gaps");
  }
  const int depth = volume.spec.height;
  volume.spec = slice;
  volume.spec.height = slice.height * depth;
  volume.strides.y = volume.strides.x * slice.width;
  volume.region = {};
  return volume;
}

}  // namespace

Resolved resolve_with_noise(const MethodParams& params, const ConstImageView& image,
                            const NoiseModelOptions& options) {
  params.validate(image.spec);
  if (!params.needs_image()) return {resolve_derived(params, image.spec), std::nullopt};
  if (image.spec.is_volume() && image.space.memory == Space::Memory::host)
    return resolved_of_volume(params, slice_rows(image, voxels_measured), image.spec, options);
  if (image.spec.is_volume()) {
    Resolved found = found_in(params, tall_view(image), options);
    return {resolve_derived(found.params, image.spec), std::move(found.noise)};
  }
  if (image.spec.colour == Colour::ycbcr) {
    Resolved luma = found_in(YcbcrParams::luma(params), luma_view(image), options);
    Resolved chroma = found_in(YcbcrParams::chroma(params), chroma_view(image), options);
    return joined(params, std::move(luma), std::move(chroma), image.spec);
  }
  Resolved found = found_in(params, image, options);
  return {resolve_derived(found.params, image.spec), std::move(found.noise)};
}

Resolved resolve_with_noise(const MethodParams& params, RowReader& image, const ImageSpec& spec,
                            const NoiseModelOptions& options) {
  params.validate(spec);
  if (!params.needs_image()) return {resolve_derived(params, spec), std::nullopt};
  if (spec.is_volume())
    return resolved_of_volume(params, slice_rows(image, spec, voxels_measured), spec, options);
  if (spec.colour == Colour::ycbcr) {
    RowResolver luma(YcbcrParams::luma(params), luma_spec(spec), options);
    RowResolver chroma(YcbcrParams::chroma(params), chroma_spec(spec), options);
    for_bands(image, spec, [&](const ConstImageView& rows) {
      luma.add_rows(luma_view(rows));
      chroma.add_rows(chroma_view(rows));
    });
    return joined(params, luma.finish(), chroma.finish(), spec);
  }
  RowResolver resolver(params, spec, options);
  for_bands(image, spec, [&](const ConstImageView& rows) { resolver.add_rows(rows); });
  Resolved found = resolver.finish();
  return {resolve_derived(found.params, spec), std::move(found.noise)};
}

MethodParams resolve(const MethodParams& params, const ConstImageView& image) {
  return resolve_with_noise(params, image).params;
}

MethodParams resolve(const MethodParams& params, RowReader& image, const ImageSpec& spec) {
  return resolve_with_noise(params, image, spec).params;
}

struct MeasuredNoise::Impl {
  // What was looked at: an image, a volume's slices one below the other, or the luma or chroma of a frame.
  struct Part {
    ImageSpec spec;
    NoiseModelEstimate noise;
    std::unique_ptr<CutDetector> cuts;

    Part(const ConstImageView& image, const NoiseModelOptions& options)
        : spec(image.spec),
          noise(estimate_noise_model(image, options)),
          cuts(std::make_unique<CutDetector>(image.spec, options.threads)) {
      cuts->add_image(image);
    }
    Part(SliceRows rows, const NoiseModelOptions& options)
        : spec(rows.spec()), cuts(std::make_unique<CutDetector>(rows.spec(), options.threads)) {
      NoiseModelEstimator estimator(spec, options);
      for_bands(rows, spec, [&](const ConstImageView& band) {
        if (band.spec.height == 0) return;
        estimator.add_rows(band);
        cuts->add_rows(band);
      });
      noise = estimator.finish();
    }

    Resolved found(const MethodParams& params) const {
      if (!params.needs_image()) return {params, std::nullopt};
      return NoiseResolver::measures(params) ? NoiseResolver::with_measured_noise(params, spec, noise, *cuts)
                                             : NoiseResolver::with_given_noise(params, spec, *cuts);
    }
  };

  ImageSpec spec;           // of the image or volume
  std::vector<Part> parts;  // of ycbcr luma and chroma; one of the others
};

MeasuredNoise::MeasuredNoise(const ConstImageView& image, const NoiseModelOptions& options)
    : impl_(std::make_unique<Impl>()) {
  if (image.space.memory != Space::Memory::host)
    throw Error(ErrorCode::unsupported, "MeasuredNoise takes images in host memory");
  impl_->spec = image.spec;
  if (image.spec.is_volume()) {
    impl_->parts.emplace_back(slice_rows(image, voxels_measured), options);
  } else if (image.spec.colour == Colour::ycbcr) {
    impl_->parts.emplace_back(luma_view(image), options);
    impl_->parts.emplace_back(chroma_view(image), options);
  } else {
    impl_->parts.emplace_back(image, options);
  }
}

MeasuredNoise::~MeasuredNoise() = default;
MeasuredNoise::MeasuredNoise(MeasuredNoise&&) noexcept = default;
MeasuredNoise& MeasuredNoise::operator=(MeasuredNoise&&) noexcept = default;

Resolved MeasuredNoise::resolve(const MethodParams& params) {
  params.validate(impl_->spec);
  if (!params.needs_image()) return {resolve_derived(params, impl_->spec), std::nullopt};
  if (impl_->parts.size() == 2) {
    return joined(params, impl_->parts[0].found(YcbcrParams::luma(params)),
                  impl_->parts[1].found(YcbcrParams::chroma(params)), impl_->spec);
  }
  Resolved found = impl_->parts.front().found(params);
  return {resolve_derived(found.params, impl_->spec), std::move(found.noise)};
}

}  // namespace ungrain
