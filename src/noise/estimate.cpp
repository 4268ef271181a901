#include "ungrain/estimate.h"

#include "device/backends.h"
#include "noise/noise_pass.h"
#include "noise/read_in_bands.h"
#include "noise/white_noise.h"
#include "ungrain/denoiser.h"

namespace ungrain {

namespace {

struct WhiteEstimate {
  explicit WhiteEstimate(const ImageSpec& estimated)
      : spec(estimated), rows(estimated), white(estimated), workers(estimate_workers(estimated, 0)) {}

  void look_at(const LatestRows& latest, int first) {
    look_in_pieces(latest, first, workers,
                   [&](int from, int end, int /*worker*/) { white.look_at(latest, from, end); });
  }
  void add_rows(const ConstImageView& image) {
    rows.add(image, [&](const LatestRows& latest, int first) {
      look_at(latest, first);
      white.collect(latest, workers);
    });
  }

  NoiseEstimate of_whole(const ConstImageView& image) {
    const LatestRows all = all_rows(image);
    look_at(all, 0);
    return result(RowsSource(all));
  }
  NoiseEstimate of_pass(NoisePass& pass) {
    if (!white.has_whole_blocks()) return of_whole(pass.on_host().view());
    white.take(pass.white_blocks(white.lattice()), workers);
    return result(pass);
  }
  NoiseEstimate result(const BlockSource& source) {
    white.choose(source, workers);
    return white.result(workers);
  }

  ImageSpec spec;
  RowCollector rows;
  WhiteNoise white;
  Workers workers;
};

}  // namespace

struct NoiseEstimator::Impl : WhiteEstimate {
  using WhiteEstimate::WhiteEstimate;
};

NoiseEstimator::NoiseEstimator(const ImageSpec& spec) {
  validate(spec);
  impl_ = std::make_unique<Impl>(spec);
}
NoiseEstimator::~NoiseEstimator() = default;
NoiseEstimator::NoiseEstimator(NoiseEstimator&&) noexcept = default;
NoiseEstimator& NoiseEstimator::operator=(NoiseEstimator&&) noexcept = default;

void NoiseEstimator::add_rows(const ConstImageView& image) {
  check_readable(image);
  check_rows(impl_->spec, image.spec, impl_->rows.rows());
  impl_->add_rows(image);
}

NoiseEstimate NoiseEstimator::finish() const {
  check_complete(impl_->spec, impl_->rows.rows());
  return impl_->white.result(impl_->workers);
}

std::vector<int> NoiseEstimator::sampled_columns() const { return impl_->white.sampled_columns(); }
std::vector<int> NoiseEstimator::sampled_rows() const { return impl_->white.sampled_rows(); }

NoiseEstimate estimate_noise(const ConstImageView& image) {
  check_pixels(image);
  if (image.space.memory != Space::Memory::host) return estimate_noise(*make_noise_pass(image), image.spec);
  WhiteEstimate estimate(image.spec);
  NoiseEstimate found;
  estimate.workers.stay_awake([&] { found = estimate.of_whole(image); });
  return found;
}

NoiseEstimate estimate_noise(NoisePass& pass, const ImageSpec& spec) {
  WhiteEstimate estimate(spec);
  NoiseEstimate found;
  estimate.workers.stay_awake([&] { found = estimate.of_pass(pass); });
  return found;
}

NoiseEstimate estimate_noise(RowReader& rows, const ImageSpec& spec) {
  return estimate_in_bands(NoiseEstimator(spec), rows, spec);
}

}  // namespace ungrain
