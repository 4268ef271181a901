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
};

// Both images have the same size, channels, colour, alpha and white level; types may differ. Alpha does not
// count.
Metrics compare(const ConstImageView& truth, const ConstImageView& image);

double mse(const ConstImageView& truth, const ConstImageView& image);
double psnr(const ConstImageView& truth, const ConstImageView& image);
double max_abs(const ConstImageView& truth, const ConstImageView& image);
double ssim(const ConstImageView& truth, const ConstImageView& image);  // throws below 11 pixels a side

// The same, row by row in bounded memory; the result does not depend on how the rows are cut.
class Comparison {
 public:
  explicit Comparison(const ImageSpec& spec);  // throws where an image of that spec cannot be compared
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
