#include "ungrain/metrics.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/convert.h"
#include "core/portable_math.h"
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

// ---- sums

// Neumaier's sum: what each addition rounds away is kept, so that a billion terms lose nothing.
class ExactingSum {
 public:
  void add(double term) {
    const double next = sum_ + term;
    lost_ += std::fabs(sum_) >= std::fabs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
  }
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

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

// Alone, without the SSIM that takes nearly all of a comparison's time.
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

// ---- SSIM

constexpr int window_radius = 5;
constexpr int window_side = 2 * window_radius + 1;

// The window's weights along one axis from its centre outwards; the other half is the same.
using HalfWindow = std::array<double, window_radius + 1>;

HalfWindow gaussian_half_window() {
  constexpr double sigma = 1.5;
  HalfWindow weights{};
  double sum = 0;
  for (int i = 0; i <= window_radius; ++i) {
    weights[i] = portable::exp(-0.5 * i * i / (sigma * sigma));
    sum += i == 0 ? weights[i] : 2 * weights[i];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// The local SSIM needs four averages over the window: of both images, of the sum of their squares (the
// variances appear only as a sum) and of their product.
constexpr int average_count = 4;
using Averages = std::array<std::vector<double>, average_count>;  // a row of each

// One channel. Rows come in one by one, are averaged along x at once and along y when eleven are there.
class ChannelSsim {
 public:
  ChannelSsim(int width, double white)
      : columns_(width - 2 * window_radius),
        weights_(gaussian_half_window()),
        c1_(0.01 * white * 0.01 * white),
        c2_(0.03 * white * 0.03 * white),
        squares_(width),
        products_(width) {
    for (Averages& row : ring_) make_room(row);
    make_room(local_);
  }

  void add_row(const double* truth, const double* image) {
    for (std::size_t x = 0; x < squares_.size(); ++x) {
      squares_[x] = truth[x] * truth[x] + image[x] * image[x];
      products_[x] = truth[x] * image[x];
    }
    Averages& row = ring_[rows_ % window_side];
    average_along_x(truth, row[0].data());
    average_along_x(image, row[1].data());
    average_along_x(squares_.data(), row[2].data());
    average_along_x(products_.data(), row[3].data());
    ++rows_;
    if (rows_ < window_side) return;
    for (int i = 0; i < average_count; ++i) average_along_y(i, local_[i].data());
    total_.add(sum_of_local_ssim());
  }

  double mean() const {
    const double positions = static_cast<double>(columns_) * static_cast<double>(rows_ - 2 * window_radius);
    return total_.value() / positions;
  }

 private:
  void make_room(Averages& row) const {
    for (std::vector<double>& values : row) values.resize(columns_);
  }

  // Pairs at equal distance are added first: half the products, and a mirrored image gives the mirrored
  // result.
  void average_along_x(const double* __restrict in, double* __restrict out) const {
    const HalfWindow w = weights_;
    for (int x = 0; x < columns_; ++x) {
      const double* centre = in + x + window_radius;
      double sum = w[0] * centre[0];
      for (int i = 1; i <= window_radius; ++i) sum += w[i] * (centre[-i] + centre[i]);
      out[x] = sum;
    }
  }

  void average_along_y(int which, double* __restrict out) const {
    const HalfWindow w = weights_;
    std::array<const double*, window_side> rows{};  // from the oldest to the newest
    for (int i = 0; i < window_side; ++i) rows[i] = ring_[(rows_ + i) % window_side][which].data();
    for (int x = 0; x < columns_; ++x) {
      double sum = w[0] * rows[window_radius][x];
      for (int i = 1; i <= window_radius; ++i) {
        sum += w[i] * (rows[window_radius - i][x] + rows[window_radius + i][x]);
      }
      out[x] = sum;
    }
  }

  // Written so that equal images give exactly 1 and exchanged ones the same bits.
  double sum_of_local_ssim() {
    const double* mean_truth = local_[0].data();
    const double* mean_image = local_[1].data();
    const double* mean_squares = local_[2].data();
    const double* mean_product = local_[3].data();
    double sum = 0;
    for (int x = 0; x < columns_; ++x) {
      const double product_of_means = mean_truth[x] * mean_image[x];
      const double squares_of_means = mean_truth[x] * mean_truth[x] + mean_image[x] * mean_image[x];
      const double covariance = mean_product[x] - product_of_means;
      const double variances = mean_squares[x] - squares_of_means;
      sum += (2 * product_of_means + c1_) * (2 * covariance + c2_) /
             ((squares_of_means + c1_) * (variances + c2_));
    }
    return sum;
  }

  int columns_;  // at which the whole window lies inside
  HalfWindow weights_;
  double c1_;
  double c2_;
  std::vector<double> squares_;
  std::vector<double> products_;
  std::array<Averages, window_side> ring_;  // averaged along x; row y is at y % 11
  Averages local_;                          // averaged along both
  std::int64_t rows_ = 0;
  ExactingSum total_;
};

bool large_enough_for_ssim(const ImageSpec& spec) {
  return spec.width >= window_side && spec.height >= window_side;
}

}  // namespace

struct Comparison::Impl {
  explicit Impl(const ImageSpec& compared)
      : spec(compared), truth_row(compared.width), image_row(compared.width) {
    if (!large_enough_for_ssim(spec)) return;
    for (int i = 0; i < spec.colour_channels(); ++i) channels.emplace_back(spec.width, spec.white());
  }

  // The order of all sums is that of the rows and channels, however the rows were handed over.
  void add_rows(const ConstImageView& truth, const ConstImageView& image) {
    for (int y = 0; y < truth.spec.height; ++y) {
      for (int c = 0; c < spec.colour_channels(); ++c) {
        load_row(truth, y, c, truth_row.data());
        load_row(image, y, c, image_row.data());
        differences.add_row(truth_row.data(), image_row.data(), spec.width);
        if (!channels.empty()) channels[c].add_row(truth_row.data(), image_row.data());
      }
    }
    rows += truth.spec.height;
  }

  Metrics result() const {
    Metrics metrics;
    metrics.mse = differences.mse();
    metrics.psnr = psnr_of(metrics.mse, spec.white());
    metrics.max_abs = differences.largest();
    if (!channels.empty()) {
      double sum = 0;
      for (const ChannelSsim& channel : channels) sum += channel.mean();
      metrics.ssim = sum / static_cast<double>(channels.size());
    }
    return metrics;
  }

  ImageSpec spec;
  int rows = 0;  // added so far
  Differences differences;
  std::vector<ChannelSsim> channels;  // empty where the image is too small for SSIM
  std::vector<double> truth_row;
  std::vector<double> image_row;
};

Comparison::Comparison(const ImageSpec& spec) {
  validate(spec);
  impl_ = std::make_unique<Impl>(spec);
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

Metrics compare(const ConstImageView& truth, const ConstImageView& image) {
  check_comparable(truth, image);
  Comparison comparison(truth.spec);
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
    fail(fmt::format("SSIM needs images of at least {0} x {0} pixels, got {1} x {2}", window_side,
                     truth.spec.width, truth.spec.height));
  }
  return *compare(truth, image).ssim;
}

}  // namespace ungrain
