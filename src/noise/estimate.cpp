#include "ungrain/estimate.h"

#include <algorithm>

#include "device/backends.h"
#include "noise/joined_noise.h"
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

struct NoiseEstimator::Impl {
  explicit Impl(const ImageSpec& image) : spec(image) {
    if (spec.colour == Colour::ycbcr) {
      planes.emplace_back(luma_spec(spec));
      planes.emplace_back(chroma_spec(spec));
    } else {
      estimate.emplace(spec);
    }
  }

  ImageSpec spec;
  int rows = 0;
  std::optional<WhiteEstimate> estimate;
  std::vector<NoiseEstimator> planes;  // of ycbcr: luma and chroma
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
  check_rows(impl_->spec, image.spec, impl_->rows);
  if (impl_->estimate) {
    impl_->estimate->add_rows(image);
  } else {
    add_ycbcr_rows(image, impl_->rows, impl_->spec.height, impl_->planes[0], impl_->planes[1]);
  }
  impl_->rows += image.spec.height;
}

NoiseEstimate NoiseEstimator::finish() const {
  check_complete(impl_->spec, impl_->rows);
  if (!impl_->estimate) return joined_noise(impl_->planes[0].finish(), impl_->planes[1].finish());
  return impl_->estimate->white.result(impl_->estimate->workers);
}

namespace {

std::vector<int> either(const std::vector<int>& luma, std::vector<int> chroma, int chroma_step) {
  for (int& index : chroma) index *= chroma_step;
  std::vector<int> both;
  std::set_union(luma.begin(), luma.end(), chroma.begin(), chroma.end(), std::back_inserter(both));
  return both;
}

}  // namespace

std::vector<int> NoiseEstimator::sampled_columns() const {
  if (impl_->estimate) return impl_->estimate->white.sampled_columns();
  // Chroma's samples lie at the start of the rows.
  return either(impl_->planes[0].sampled_columns(), impl_->planes[1].sampled_columns(), 1);
}

std::vector<int> NoiseEstimator::sampled_rows() const {
  if (impl_->estimate) return impl_->estimate->white.sampled_rows();
  return either(impl_->planes[0].sampled_rows(), impl_->planes[1].sampled_rows(), impl_->spec.chroma.y);
}

NoiseEstimate estimate_noise(const ConstImageView& image) {
  check_pixels(image);
  if (image.spec.colour == Colour::ycbcr) {
    return joined_noise(estimate_noise(luma_view(image)), estimate_noise(chroma_view(image)));
  }
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
