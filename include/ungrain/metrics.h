// How far one image, or one volume, is from another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ungrain/export.h"
#include "ungrain/image.h"

UNGRAIN_API_BEGIN
namespace ungrain {

// The metrics over the pixels of a mask.
struct MaskedMetrics {
  std::int64_t pixels = 0;     // that count
  double mse = 0;              // as in Metrics
  double psnr = 0;             // likewise
  double max_abs = 0;          // likewise
  std::optional<double> ssim;  // mean over the windows whose centre counts; absent where there is none
};

struct Metrics {
  double mse = 0;      // mean over all colour samples, in squared pixel units
  double psnr = 0;     // dB, peak = white level; infinite for identical images
  double max_abs = 0;  // pixel units
  // Wang 2004, mean over the colour channels; of volumes with a window in three dimensions. Absent below 11
  // pixels along an axis.
  std::optional<double> ssim;
  // FSIM (Zhang 2011) of luminance (multi: the mean over the channels). Absent for volumes, below 16 pixels a
  // side, and for images that still have more than 2^22 pixels when their shorter side is reduced to about
  // 256. NaN where a sample is not finite.
  std::optional<double> fsim;
  std::optional<double> fsimc;  // the same with colour; absent likewise, and for images that are not rgb
  std::optional<MaskedMetrics> in_mask;  // absent without a mask, and where no pixel of it counts
};

// The metrics that take long; those that are not wanted are absent.
struct MetricSet {
  bool ssim = true;
  bool fsim = true;  // and fsimc
};

// Both images have the same size, channels, colour, alpha and white level; types may differ. Alpha is
// ignored. A volume (ungrain/volume.h) is compared as a solid.
Metrics compare(const ConstImageView& truth, const ConstImageView& image, MetricSet wanted = {});
// The same, also over the pixels at which a colour sample of `mask` is neither 0 nor NaN. The mask has the
// images' size, any type and any channels.
Metrics compare(const ConstImageView& truth, const ConstImageView& image, const ConstImageView& mask,
                MetricSet wanted = {});

double mse(const ConstImageView& truth, const ConstImageView& image);
double psnr(const ConstImageView& truth, const ConstImageView& image);
double max_abs(const ConstImageView& truth, const ConstImageView& image);
double ssim(const ConstImageView& truth, const ConstImageView& image);   // throws where Metrics has none
double fsim(const ConstImageView& truth, const ConstImageView& image);   // likewise
double fsimc(const ConstImageView& truth, const ConstImageView& image);  // likewise

// The same, row by row in bounded memory; the result does not depend on how the rows are split. FSIM keeps
// both images with their shorter side reduced to at most 383 pixels, and is computed in finish(). Rows of
// a volume are slices: SSIM keeps 11 of them, 352 bytes for each voxel of a slice and channel.
class Comparison {
 public:
  // Throws where an image of that spec cannot be compared.
  explicit Comparison(const ImageSpec& spec, MetricSet wanted = {});
  ~Comparison();
  Comparison(Comparison&&) noexcept;
  Comparison& operator=(Comparison&&) noexcept;

  void add_rows(const ConstImageView& truth, const ConstImageView& image);  // the next rows, any number
  // With the same rows of a mask; then all rows have one.
  void add_rows(const ConstImageView& truth, const ConstImageView& image, const ConstImageView& mask);
  Metrics finish() const;  // after the last row

 private:
  struct UNGRAIN_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ungrain
UNGRAIN_API_END
