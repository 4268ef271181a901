// Measures the noise of an image from the image alone.
#pragma once

#include <memory>
#include <vector>

#include "ungrain/export.h"
#include "ungrain/image.h"

UNGRAIN_API_BEGIN
namespace ungrain {

class RowReader;

struct NoiseEstimate {
  double sigma = 0;  // standard deviation in pixel units: root mean square over the colour channels
  std::vector<double> channels;  // each colour channel's
  // Of rgb: how much the channels' noise has in common, from 0 (independent) to 1 (equal in all channels, as
  // in gray stored as rgb). Demosaiced camera images lie between.
  double correlation = 0;
};

// Made for Gaussian noise of one strength over the whole image: white, cut off at black and white as in 8-bit
// files (the result is the strength before the cut), or without its high frequencies as after JPEG
// compression. Blocks with a NaN or an infinity are left out; alpha is ignored. Where nothing can be measured
// (a constant, a single pixel) the result is 0. Large images are sampled: at most 40,000 blocks of 8 x 8
// pixels a channel. An image in the memory of a GPU is looked at there, with the same result. A ycbcr image
// is measured as two: luma, and chroma with two channels.
NoiseEstimate estimate_noise(const ConstImageView& image);
NoiseEstimate estimate_noise(RowReader& rows, const ImageSpec& spec);  // reads every row once, in order

// The same, row by row in bounded memory; the result does not depend on how the rows are split.
class NoiseEstimator {
 public:
  explicit NoiseEstimator(const ImageSpec& spec);
  ~NoiseEstimator();
  NoiseEstimator(NoiseEstimator&&) noexcept;
  NoiseEstimator& operator=(NoiseEstimator&&) noexcept;

  void add_rows(const ConstImageView& image);  // the next rows, any number
  NoiseEstimate finish() const;                // after the last row

  // The columns and rows that are sampled; other samples may have any value. A caller that holds an image in
  // parts gathers only these.
  std::vector<int> sampled_columns() const;
  std::vector<int> sampled_rows() const;

 private:
  struct UNGRAIN_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ungrain
UNGRAIN_API_END
