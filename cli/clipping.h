// Converts floats for a file of integers, which clips values below black and above white.
#pragma once

#include <cstdint>
#include <vector>

#include "ungrain/denoiser.h"

namespace ungrain::cli {

class ClippingWriter : public RowWriter {
 public:
  // Takes rows of `in`, whose samples are floats, and writes rows of `out`.
  ClippingWriter(RowWriter& writer, const ImageSpec& in, const ImageSpec& out)
      : writer_(writer), in_(in), out_(out), row_(static_cast<std::size_t>(in.width)) {}

  void write_rows(int first, const ConstImageView& rows) override;

  // The shares of the colour samples that were clipped by more than 5 % of white.
  double below_black() const { return share(below_); }
  double above_white() const { return share(above_); }

 private:
  double share(std::int64_t count) const {
    return samples_ == 0 ? 0 : static_cast<double>(count) / static_cast<double>(samples_);
  }

  RowWriter& writer_;
  ImageSpec in_;
  ImageSpec out_;
  std::vector<float> row_;
  std::int64_t samples_ = 0;
  std::int64_t below_ = 0;
  std::int64_t above_ = 0;
};

}  // namespace ungrain::cli
