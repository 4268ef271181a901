// How far one image is from another.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ungrain/image.h"

namespace ungrain {

struct Metrics {
  double mse = 0;              // mean over all colour samples, in squared pixel units
  double psnr = 0;             // dB, peak = white level; infinite for identical images
  double max_abs = 0;          // pixel units
  std::optional<double> ssim;  // Wang 2004, mean over the colour channels; absent below 11 pixels a side
  // FSIM (Zhang 2011) of luminance (multi: the mean over the channels). Absent below 16 pixels a side, and
  // for images that still have more than 2^22 pixels when their shorter side is reduced to about 256. NaN
  // where a sample is not finite.
  std::optional<double> fsim;
  std::optional<double> fsimc;  // the same with colour; absent likewise, and for images that are not rgb
};

// The metrics that take long; those that are not wanted are absent.
struct MetricSet {
  bool ssim = true;
  bool fsim = true;  // and fsimc
};

// Both images have the same size, channels, colour, alpha and white level; types may differ. Alpha is
// ignored.
Metrics compare(const ConstImageView& truth, const ConstImageView& image, MetricSet wanted = {});

double mse(const ConstImageView& truth, const ConstImageView& image);
double psnr(const ConstImageView& truth, const ConstImageView& image);
double max_abs(const ConstImageView& truth, const ConstImageView& image);
double ssim(const ConstImageView& truth, const ConstImageView& image);   // throws below 11 pixels a side
double fsim(const ConstImageView& truth, const ConstImageView& image);   // throws where Metrics has none
double fsimc(const ConstImageView& truth, const ConstImageView& image);  // likewise

// The same, row by row in bounded memory; the result does not depend on how the rows are split. FSIM keeps
// both images with their shorter side reduced to at most 383 pixels, and is computed in finish().
class Comparison {
 public:
  // Throws where an image of that spec cannot be compared.
  explicit Comparison(const ImageSpec& spec, MetricSet wanted = {});
  ~Comparison();
  Comparison(Comparison&&) noexcept;
  Comparison& operator=(Comparison&&) noexcept;

  void add_rows(const ConstImageView& truth, const ConstImageView& image);  // the next rows, any number
  Metrics finish() const;                                                   // after the last row

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ungrain
