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
  // Zhang 2011, of the luminance (multi: the mean over the channels). Absent below 16 pixels a side, and of
  // images so long that the shorter side reduced to about 256 leaves more than 2^22 pixels. Not a number
  // where a sample is not a finite one.
  std::optional<double> fsim;
  std::optional<double> fsimc;  // the same with the colour; absent likewise, and of images that are not rgb
};

// Those that take time; what is not wanted is absent.
struct MetricSet {
  bool ssim = true;
  bool fsim = true;  // and fsimc
};

// Both images have the same size, channels, colour, alpha and white level; types may differ. Alpha does not
// count.
Metrics compare(const ConstImageView& truth, const ConstImageView& image, MetricSet wanted = {});

double mse(const ConstImageView& truth, const ConstImageView& image);
double psnr(const ConstImageView& truth, const ConstImageView& image);
double max_abs(const ConstImageView& truth, const ConstImageView& image);
double ssim(const ConstImageView& truth, const ConstImageView& image);   // throws below 11 pixels a side
double fsim(const ConstImageView& truth, const ConstImageView& image);   // throws where it is absent
double fsimc(const ConstImageView& truth, const ConstImageView& image);  // likewise

// The same, row by row in bounded memory; the result does not depend on how the rows are cut. FSIM keeps both
// images with their shorter side reduced to at most 383 pixels, and works on them in finish().
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
