#include "ungrain/metrics.h"

#include <fmt/format.h>

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

// Of the type nothing is asked: the white level says what the numbers mean.
void check_alike(const ImageSpec& a, const ImageSpec& b) {
  if (a.width != b.width || a.height != b.height) {
    fail(fmt::format("images of {} x {} and {} x {} pixels cannot be compared", a.width, a.height, b.width,
                     b.height));
  }
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

void check_fsim(const char* metric, const ImageSpec& spec) {
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
      for (int i = 0; i < spec.colour_channels(); ++i) ssim.emplace_back(spec.width, spec.white());
    }
    if (wanted.fsim && obstacle_to_fsim(spec).empty()) fsim.emplace(spec);
  }

  // The order of all sums is that of the rows and channels, however the rows were handed over.
  void add_rows(const ConstImageView& truth, const ConstImageView& image) {
    for (int y = 0; y < truth.spec.height; ++y) {
      for (int c = 0; c < spec.colour_channels(); ++c) {
        load_row(truth, y, c, truth_row.data());
        load_row(image, y, c, image_row.data());
        differences.add_row(truth_row.data(), image_row.data(), spec.width);
        if (!ssim.empty()) ssim[c].add_row(truth_row.data(), image_row.data());
        if (fsim) fsim->add_row(c, truth_row.data(), image_row.data());
      }
    }
    rows += truth.spec.height;
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
    return metrics;
  }

  ImageSpec spec;
  int rows = 0;  // added so far
  Differences differences;
  std::vector<ChannelSsim> ssim;  // by channel; empty where it is not wanted or cannot be computed
  std::optional<Fsim> fsim;       // likewise
  std::vector<double> truth_row;
  std::vector<double> image_row;
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
  check_comparable(truth, image);
  ImageSpec next_rows = impl_->spec;
  next_rows.height = truth.spec.height;
  check_alike(next_rows, truth.spec);
  if (truth.spec.height > impl_->spec.height - impl_->rows) {
    fail(fmt::format("{} more rows after {} are too many for a comparison of {}", truth.spec.height,
                     impl_->rows, impl_->spec.height));
  }
  impl_->add_rows(truth, image);
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
    fail(fmt::format("SSIM needs images of at least {0} x {0} pixels, got {1} x {2}", ssim_side,
                     truth.spec.width, truth.spec.height));
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
