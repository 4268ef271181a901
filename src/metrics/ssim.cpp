#include "metrics/ssim.h"

#include "core/portable_math.h"

namespace ungrain {

bool large_enough_for_ssim(const ImageSpec& spec) {
  return spec.width >= ssim_side && spec.height >= ssim_side;
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

ChannelSsim::ChannelSsim(int width, double white)
    : columns_(width - 2 * ssim_radius),
      weights_(gaussian_half_window()),
      c1_(0.01 * white * 0.01 * white),
      c2_(0.03 * white * 0.03 * white),
      squares_(width),
      products_(width) {
  for (Averages& row : ring_) make_room(row);
  make_room(local_);
}

void ChannelSsim::make_room(Averages& row) const {
  for (std::vector<double>& values : row) values.resize(columns_);
}

void ChannelSsim::add_row(const double* truth, const double* image) {
  for (std::size_t x = 0; x < squares_.size(); ++x) {
    squares_[x] = truth[x] * truth[x] + image[x] * image[x];
    products_[x] = truth[x] * image[x];
  }
  Averages& row = ring_[rows_ % ssim_side];
  average_along_x(truth, row[0].data());
  average_along_x(image, row[1].data());
  average_along_x(squares_.data(), row[2].data());
  average_along_x(products_.data(), row[3].data());
  ++rows_;
  if (rows_ < ssim_side) return;
  for (int i = 0; i < average_count; ++i) average_along_y(i, local_[i].data());
  total_.add(sum_of_local_ssim());
}

double ChannelSsim::mean() const {
  const double positions = static_cast<double>(columns_) * static_cast<double>(rows_ - 2 * ssim_radius);
  return total_.value() / positions;
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

void ChannelSsim::average_along_y(int which, double* __restrict out) const {
  const HalfWindow w = weights_;
  std::array<const double*, ssim_side> rows{};  // from the oldest to the newest
  for (int i = 0; i < ssim_side; ++i) rows[i] = ring_[(rows_ + i) % ssim_side][which].data();
  for (int x = 0; x < columns_; ++x) {
    double sum = w[0] * rows[ssim_radius][x];
    for (int i = 1; i <= ssim_radius; ++i) {
      sum += w[i] * (rows[ssim_radius - i][x] + rows[ssim_radius + i][x]);
    }
    out[x] = sum;
  }
}

// Written so that equal images give exactly 1 and exchanged ones the same bits.
double ChannelSsim::sum_of_local_ssim() const {
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

}  // namespace ungrain
