// How strong the noise of an image is, from the image alone.
#pragma once

#include <memory>
#include <vector>

#include "ungrain/image.h"

namespace ungrain {

class RowReader;

struct NoiseEstimate {
  double sigma = 0;  // standard deviation in pixel units: root mean square over the colour channels
  std::vector<double> channels;  // each colour channel's
  // Of rgb: how much the channels' noise has in common, from 0 (independent) to 1 (the same in all, as where
  // gray is stored as rgb; what cameras make of their sensor's mosaic lies between).
  double correlation = 0;
};

// Made for Gaussian noise of one strength all over the image: white, cut off at black and white as 8-bit
// files do (the answer is the strength before that), or without its high frequencies as JPEG leaves it.
// Blocks with a NaN or an infinity are left out, alpha never counts. Where nothing can be said (a constant, a
// single pixel) the answer is 0. Large images are sampled: 40,000 blocks of 8 x 8 pixels a channel at most.
NoiseEstimate estimate_noise(const ConstImageView& image);
NoiseEstimate estimate_noise(RowReader& rows, const ImageSpec& spec);  // reads every row once, in order

// The same, row by row in bounded memory; the result does not depend on how the rows are cut.
class NoiseEstimator {
 public:
  explicit NoiseEstimator(const ImageSpec& spec);
  ~NoiseEstimator();
  NoiseEstimator(NoiseEstimator&&) noexcept;
  NoiseEstimator& operator=(NoiseEstimator&&) noexcept;

  void add_rows(const ConstImageView& image);  // the next rows, any number
  NoiseEstimate finish() const;                // after the last row

  // The columns and rows that are looked at; the other samples may be anything. Who holds an image in parts
  // gathers only these.
  std::vector<int> sampled_columns() const;
  std::vector<int> sampled_rows() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ungrain
