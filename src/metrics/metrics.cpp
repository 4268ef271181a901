#include "ungrain/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/convert.h"
#include "core/portable_math.h"
#include "core/refuse_ycbcr.h"
#include "metrics/exacting_sum.h"
#include "metrics/fsim.h"
#include "metrics/ssim.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

// ---- what can be compared

std::string describe_channels(const ImageSpec& spec) {
  const std::string count = spec.colour == Colour::multi ? fmt::format(" ({} channels)", spec.channels) : "";
  return fmt::format("{}{}{}", name(spec.colour), count, spec.alpha ? " with alpha" : "");
}

std::string size_text(const ImageSpec& spec) {
  if (!spec.is_volume()) return fmt::format("{} x {} pixels", spec.width, spec.height);
  return fmt::format("{} x {} x {} voxels", spec.slice.width, spec.slice.height, spec.height);
}

void check_sizes(const ImageSpec& a, const ImageSpec& b) {
  if (a.width == b.width && a.height == b.height && a.slice == b.slice) return;
  if (!a.is_volume() && !b.is_volume()) {
    fail(fmt::format("images of {} x {} and {} cannot be compared", a.width, a.height, size_text(b)));
  }
  fail(fmt::format("volumes of {} and {} cannot be compared", size_text(a), size_text(b)));
}

// Of the type nothing is asked: the white level says what the numbers mean.
void check_alike(const ImageSpec& a, const ImageSpec& b) {
  check_sizes(a, b);
  if (a.channels != b.channels || a.colour != b.colour || a.alpha != b.alpha) {
    fail(fmt::format("images that are {} and {} cannot be compared", describe_channels(a),
                     describe_channels(b)));
  }
  if (a.white() != b.white()) {
    fail(fmt::format("images whose white levels are {} and {} cannot be compared", a.white(), b.white()));
  }
}

void check_readable(const ConstImageView& view) {
  validate(view.spec);
  refuse_ycbcr(view.spec, "metrics");
  if (view.space.memory != Space::Memory::host) {
    throw Error(ErrorCode::unsupported, "images are compared in host memory only");
  }
  if (view.data == nullptr) fail("an image without pixels cannot be compared");
}

void check_comparable(const ConstImageView& truth, const ConstImageView& image) {
  check_readable(truth);
  check_readable(image);
  check_alike(truth.spec, image.spec);
}

void check_mask(const ImageSpec& image, const ConstImageView& mask) {
  check_readable(mask);
  const ImageSpec& spec = mask.spec;
  if (spec.width != image.width || spec.height != image.height || spec.slice != image.slice) {
    fail(fmt::format("a mask of {} does not fit {} of {}", size_text(spec),
                     image.is_volume() ? "a volume" : "an image", size_text(image)));
  }
}

void check_fsim(const char* metric, const ImageSpec& spec) {
  if (spec.is_volume()) fail(fmt::format("{} is not defined for volumes", metric));
  if (const std::string obstacle = obstacle_to_fsim(spec); !obstacle.empty()) {
    fail(fmt::format("{} {}", metric, obstacle));
  }
}

// ---- sums

// Over the colour samples of the rows so far. A NaN sample makes both results NaN; an infinite difference
// makes them infinite.
class Differences {
 public:
  void add_row(const double* truth, const double* image, int width) {
    double squares = 0;  // of whole numbers up to 65535 this is exact to two million pixels' width
    for (int x = 0; x < width; ++x) {
      const double difference = std::fabs(truth[x] - image[x]);
      squares += difference * difference;
      if (difference > largest_ || difference != difference) largest_ = difference;  // a NaN stays
    }
    squares_.add(squares);
    samples_ += width;
  }
  // Of the pixels at which `mask` is 1.
  void add_row(const double* truth, const double* image, int width, const std::uint8_t* mask) {
    double squares = 0;
    for (int x = 0; x < width; ++x) {
      if (mask[x] == 0) continue;
      const double difference = std::fabs(truth[x] - image[x]);
      squares += difference * difference;
      if (difference > largest_ || difference != difference) largest_ = difference;
      ++samples_;
    }
    squares_.add(squares);
  }
  std::int64_t samples() const { return samples_; }
  double mse() const { return squares_.value() / static_cast<double>(samples_); }
  double largest() const { return largest_; }

 private:
  ExactingSum squares_;
  double largest_ = 0;
  std::int64_t samples_ = 0;
};

// Alone, without SSIM and FSIM, which take nearly all of a comparison's time.
Differences differences_between(const ConstImageView& truth, const ConstImageView& image) {
  check_comparable(truth, image);
  Differences differences;
  std::vector<double> truth_row(truth.spec.width);
  std::vector<double> image_row(truth.spec.width);
  for (int y = 0; y < truth.spec.height; ++y) {
    for (int c = 0; c < truth.spec.colour_channels(); ++c) {
      load_row(truth, y, c, truth_row.data());
      load_row(image, y, c, image_row.data());
      differences.add_row(truth_row.data(), image_row.data(), truth.spec.width);
    }
  }
  return differences;
}

// 1 where a pixel of the row counts, else 0.
void load_mask_row(const ConstImageView& mask, int y, std::vector<double>& values,
                   std::vector<std::uint8_t>& counts) {
  std::fill(counts.begin(), counts.end(), std::uint8_t{0});
  for (int c = 0; c < mask.spec.colour_channels(); ++c) {
    load_row(mask, y, c, values.data());
    for (std::size_t x = 0; x < counts.size(); ++x) {
      if (values[x] != 0 && !std::isnan(values[x])) counts[x] = 1;
    }
  }
}

double psnr_of(double mse, double white) {
  if (mse == 0) return std::numeric_limits<double>::infinity();
  constexpr double ln10 = 2.302585092994046;
  return 10 * portable::log(white * white / mse) / ln10;
}

}  // namespace

struct Comparison::Impl {
  Impl(const ImageSpec& compared, MetricSet wanted)
      : spec(compared), truth_row(compared.width), image_row(compared.width) {
    if (wanted.ssim && large_enough_for_ssim(spec)) {
      for (int i = 0; i < spec.colour_channels(); ++i) ssim.emplace_back(spec);
    }
    if (wanted.fsim && !spec.is_volume() && obstacle_to_fsim(spec).empty()) fsim.emplace(spec);
  }

  void check(const ConstImageView& truth, const ConstImageView& image) const {
    check_comparable(truth, image);
    ImageSpec next_rows = spec;
    next_rows.height = truth.spec.height;
    check_alike(next_rows, truth.spec);
    if (truth.spec.height > spec.height - rows) {
      fail(fmt::format("{} more rows after {} are too many for a comparison of {}", truth.spec.height, rows,
                       spec.height));
    }
  }

  // The order of all sums is that of the rows and channels, however the rows were handed over.
  void add_rows(const ConstImageView& truth, const ConstImageView& image, const ConstImageView* mask) {
    if (rows > 0 && masked != (mask != nullptr)) fail("a mask is given for all rows of a comparison or none");
    masked = mask != nullptr;
    mask_row.resize(masked ? spec.width : 0);
    for (int y = 0; y < truth.spec.height; ++y) {
      if (masked) {
        load_mask_row(*mask, y, truth_row, mask_row);
        pixels_in_mask += std::count(mask_row.begin(), mask_row.end(), std::uint8_t{1});
      }
      for (int c = 0; c < spec.colour_channels(); ++c) {
        load_row(truth, y, c, truth_row.data());
        load_row(image, y, c, image_row.data());
        add_channel_row(c);
      }
    }
    rows += truth.spec.height;
  }

  void add_channel_row(int c) {
    differences.add_row(truth_row.data(), image_row.data(), spec.width);
    if (masked) masked_differences.add_row(truth_row.data(), image_row.data(), spec.width, mask_row.data());
    if (!ssim.empty()) {
      const int line = spec.is_volume() ? spec.slice.width : spec.width;
      for (int x = 0; x < spec.width; x += line) {
        ssim[c].add_row(truth_row.data() + x, image_row.data() + x, masked ? mask_row.data() + x : nullptr);
      }
    }
    if (fsim) fsim->add_row(c, truth_row.data(), image_row.data());
  }

  Metrics result() const {
    Metrics metrics;
    metrics.mse = differences.mse();
    metrics.psnr = psnr_of(metrics.mse, spec.white());
    metrics.max_abs = differences.largest();
    if (!ssim.empty()) {
      double sum = 0;
      for (const ChannelSsim& channel : ssim) sum += channel.mean();
      metrics.ssim = sum / static_cast<double>(ssim.size());
    }
    if (fsim) {
      // A sample that is not finite shows in the MSE, even one that the downsampling leaves out.
      const FsimScores scores = std::isfinite(metrics.mse) ? fsim->scores() : fsim->not_a_number();
      metrics.fsim = scores.fsim;
      metrics.fsimc = scores.fsimc;
    }
    if (pixels_in_mask > 0) metrics.in_mask = masked_result();
    return metrics;
  }

  MaskedMetrics masked_result() const {
    MaskedMetrics metrics;
    metrics.pixels = pixels_in_mask;
    metrics.mse = masked_differences.mse();
    metrics.psnr = psnr_of(metrics.mse, spec.white());
    metrics.max_abs = masked_differences.largest();
    if (ssim.empty() || !ssim.front().mean_in_mask()) return metrics;
    double sum = 0;
    for (const ChannelSsim& channel : ssim) sum += *channel.mean_in_mask();
    metrics.ssim = sum / static_cast<double>(ssim.size());
    return metrics;
  }

  ImageSpec spec;
  int rows = 0;  // added so far
  bool masked = false;
  std::int64_t pixels_in_mask = 0;
  Differences differences;
  Differences masked_differences;
  std::vector<ChannelSsim> ssim;  // by channel; empty where it is not wanted or cannot be computed
  std::optional<Fsim> fsim;       // likewise
  std::vector<double> truth_row;
  std::vector<double> image_row;
  std::vector<std::uint8_t> mask_row;  // 1 where a pixel counts; empty without a mask
};

Comparison::Comparison(const ImageSpec& spec, MetricSet wanted) {
  validate(spec);
  refuse_ycbcr(spec, "metrics");
  impl_ = std::make_unique<Impl>(spec, wanted);
}
Comparison::~Comparison() = default;
Comparison::Comparison(Comparison&&) noexcept = default;
Comparison& Comparison::operator=(Comparison&&) noexcept = default;

void Comparison::add_rows(const ConstImageView& truth, const ConstImageView& image) {
  impl_->check(truth, image);
  impl_->add_rows(truth, image, nullptr);
}

void Comparison::add_rows(const ConstImageView& truth, const ConstImageView& image,
                          const ConstImageView& mask) {
  impl_->check(truth, image);
  check_mask(truth.spec, mask);
  impl_->add_rows(truth, image, &mask);
}

Metrics Comparison::finish() const {
  if (impl_->rows < impl_->spec.height) {
    fail(fmt::format("the comparison has seen {} of its {} rows", impl_->rows, impl_->spec.height));
  }
  return impl_->result();
}

Metrics compare(const ConstImageView& truth, const ConstImageView& image, MetricSet wanted) {
  check_comparable(truth, image);
  Comparison comparison(truth.spec, wanted);
  comparison.add_rows(truth, image);
  return comparison.finish();
}

Metrics compare(const ConstImageView& truth, const ConstImageView& image, const ConstImageView& mask,
                MetricSet wanted) {
  check_comparable(truth, image);
  Comparison comparison(truth.spec, wanted);
  comparison.add_rows(truth, image, mask);
  return comparison.finish();
}

double mse(const ConstImageView& truth, const ConstImageView& image) {
  return differences_between(truth, image).mse();
}

double psnr(const ConstImageView& truth, const ConstImageView& image) {
  return psnr_of(differences_between(truth, image).mse(), truth.spec.white());
}

double max_abs(const ConstImageView& truth, const ConstImageView& image) {
  return differences_between(truth, image).largest();
}

double ssim(const ConstImageView& truth, const ConstImageView& image) {
  check_comparable(truth, image);
  if (!large_enough_for_ssim(truth.spec)) {
    if (!truth.spec.is_volume()) {
      fail(fmt::format("SSIM needs images of at least {0} x {0} pixels, got {1} x {2}", ssim_side,
                       truth.spec.width, truth.spec.height));
    }
    fail(fmt::format("SSIM needs volumes of at least {0} x {0} x {0} voxels, got {1}", ssim_side,
                     size_text(truth.spec)));
  }
  return *compare(truth, image, {.ssim = true, .fsim = false}).ssim;
}

double fsim(const ConstImageView& truth, const ConstImageView& image) {
  check_comparable(truth, image);
  check_fsim("FSIM", truth.spec);
  return *compare(truth, image, {.ssim = false, .fsim = true}).fsim;
}

double fsimc(const ConstImageView& truth, const ConstImageView& image) {
  check_comparable(truth, image);
  if (truth.spec.colour != Colour::rgb) {
    fail(fmt::format("FSIMc needs rgb images, got {}", describe_channels(truth.spec)));
  }
  check_fsim("FSIMc", truth.spec);
  return *compare(truth, image, {.ssim = false, .fsim = true}).fsimc;
}

}  // namespace ungrain
