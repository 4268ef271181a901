#include "metrics/ssim.h"

#include <algorithm>

#include "core/portable_math.h"

namespace ungrain {

bool large_enough_for_ssim(const ImageSpec& spec) {
  if (!spec.is_volume()) return spec.width >= ssim_side && spec.height >= ssim_side;
  return std::min({spec.slice.width, spec.slice.height, spec.height}) >= ssim_side;
}

ChannelSsim::HalfWindow ChannelSsim::gaussian_half_window() {
  constexpr double sigma = 1.5;
  HalfWindow weights{};
  double sum = 0;
  for (int i = 0; i <= ssim_radius; ++i) {
    weights[i] = portable::exp(-0.5 * i * i / (sigma * sigma));
    sum += i == 0 ? weights[i] : 2 * weights[i];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

ChannelSsim::ChannelSsim(const ImageSpec& spec)
    : width_(spec.is_volume() ? spec.slice.width : spec.width),
      lines_(spec.slice.height),
      columns_(width_ - 2 * ssim_radius),
      weights_(gaussian_half_window()),
      c1_(0.01 * spec.white() * 0.01 * spec.white()),
      c2_(0.03 * spec.white() * 0.03 * spec.white()),
      squares_(width_),
      products_(width_) {
  const auto make_room = [](Averages& row, std::size_t count) {
    for (std::vector<double>& values : row) values.resize(count);
  };
  for (Averages& row : rows_) make_room(row, columns_);
  make_room(local_, columns_);
  if (lines_ == 0) return;
  make_room(line_, columns_);
  const std::size_t plane = static_cast<std::size_t>(columns_) * (lines_ - 2 * ssim_radius);
  for (Averages& slice : slices_) make_room(slice, plane);
}

void ChannelSsim::add_row(const double* truth, const double* image, const std::uint8_t* mask) {
  if (mask != nullptr) {
    const std::size_t layer = static_cast<std::size_t>(width_) * std::max(1, lines_);  // a row or a slice
    masks_.resize(ssim_side * layer);
    std::copy_n(mask, width_,
                masks_.data() +
                    (lines_ == 0 ? row_ % ssim_side * layer : slice_ % ssim_side * layer + row_ * width_));
  }
  for (std::size_t x = 0; x < squares_.size(); ++x) {
    squares_[x] = truth[x] * truth[x] + image[x] * image[x];
    products_[x] = truth[x] * image[x];
  }
  Averages& row = rows_[row_ % ssim_side];
  average_along_x(truth, row[0].data());
  average_along_x(image, row[1].data());
  average_along_x(squares_.data(), row[2].data());
  average_along_x(products_.data(), row[3].data());
  ++row_;
  if (row_ >= ssim_side) finish_line();
  if (row_ == lines_) finish_slice();
}

// Eleven rows are there.
void ChannelSsim::finish_line() {
  Averages& to = lines_ == 0 ? local_ : line_;
  for (int i = 0; i < average_count; ++i) {
    Sources rows{};
    for (int k = 0; k < ssim_side; ++k) rows[k] = rows_[(row_ + k) % ssim_side][i].data();
    average_across(rows, to[i].data());
  }
  if (lines_ == 0) {
    const std::int64_t centre = (row_ - 1 - ssim_radius) % ssim_side;
    add_local_ssim(local_, masks_.empty() ? nullptr : masks_.data() + centre * width_ + ssim_radius);
    return;
  }
  Averages& slice = slices_[slice_ % ssim_side];
  for (int i = 0; i < average_count; ++i)
    std::copy_n(line_[i].data(), columns_, slice[i].data() + (row_ - ssim_side) * columns_);
}

void ChannelSsim::finish_slice() {
  row_ = 0;
  ++slice_;
  if (slice_ < ssim_side) return;
  const std::int64_t centre = (slice_ - 1 - ssim_radius) % ssim_side;
  for (std::int64_t y = 0; y < lines_ - 2 * ssim_radius; ++y) {
    for (int i = 0; i < average_count; ++i) {
      Sources rows{};
      for (int k = 0; k < ssim_side; ++k)
        rows[k] = slices_[(slice_ + k) % ssim_side][i].data() + y * columns_;
      average_across(rows, local_[i].data());
    }
    const std::int64_t line = centre * lines_ + y + ssim_radius;
    add_local_ssim(local_, masks_.empty() ? nullptr : masks_.data() + line * width_ + ssim_radius);
  }
}

double ChannelSsim::mean() const { return total_.value() / static_cast<double>(windows_); }

std::optional<double> ChannelSsim::mean_in_mask() const {
  if (masked_windows_ == 0) return std::nullopt;
  return masked_total_.value() / static_cast<double>(masked_windows_);
}

// Pairs at equal distance are added first: half the products, and a mirrored image gives the mirrored
// result.
void ChannelSsim::average_along_x(const double* __restrict in, double* __restrict out) const {
  const HalfWindow w = weights_;
  for (int x = 0; x < columns_; ++x) {
    const double* centre = in + x + ssim_radius;
    double sum = w[0] * centre[0];
    for (int i = 1; i <= ssim_radius; ++i) sum += w[i] * (centre[-i] + centre[i]);
    out[x] = sum;
  }
}

void ChannelSsim::average_across(const Sources& rows, double* __restrict out) const {
  const HalfWindow w = weights_;
  for (int x = 0; x < columns_; ++x) {
    double sum = w[0] * rows[ssim_radius][x];
    for (int i = 1; i <= ssim_radius; ++i) {
      sum += w[i] * (rows[ssim_radius - i][x] + rows[ssim_radius + i][x]);
    }
    out[x] = sum;
  }
}

// Written so that equal images give exactly 1 and exchanged ones the same bits.
void ChannelSsim::add_local_ssim(const Averages& local, const std::uint8_t* mask) {
  const double* mean_truth = local[0].data();
  const double* mean_image = local[1].data();
  const double* mean_squares = local[2].data();
  const double* mean_product = local[3].data();
  double sum = 0;
  double masked_sum = 0;
  for (int x = 0; x < columns_; ++x) {
    const double product_of_means = mean_truth[x] * mean_image[x];
    const double squares_of_means = mean_truth[x] * mean_truth[x] + mean_image[x] * mean_image[x];
    const double covariance = mean_product[x] - product_of_means;
    const double variances = mean_squares[x] - squares_of_means;
    const double ssim = (2 * product_of_means + c1_) * (2 * covariance + c2_) /
                        ((squares_of_means + c1_) * (variances + c2_));
    sum += ssim;
    if (mask != nullptr && mask[x] != 0) {
      masked_sum += ssim;
      ++masked_windows_;
    }
  }
  total_.add(sum);
  masked_total_.add(masked_sum);
  windows_ += columns_;
}

}  // namespace ungrain
