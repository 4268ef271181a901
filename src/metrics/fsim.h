// FSIM and FSIMc (Zhang, Zhang, Mou, Zhang: "FSIM: A Feature Similarity Index for Image Quality Assessment",
// 2011).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "metrics/fft.h"
#include "ungrain/image.h"

namespace ungrain {

// The definition holds from 2 pixels a side on, but means little where not even the smaller waves fit.
inline constexpr int fsim_side = 16;

// After downsampling: some 30 planes of that size are a gigabyte. Only images of 28 or more times their
// height or width reach it, since the shorter side is at most 383 then.
inline constexpr std::int64_t fsim_pixels = std::int64_t{1} << 22;

// Why FSIM cannot be computed of such images; empty where it can.
std::string obstacle_to_fsim(const ImageSpec& spec);

// The mean of every factor x factor square, of rows that come one by one. As in the authors' program the
// first square of each axis reaches (factor - 1) / 2 pixels beyond the border, the last one as far as it
// must, and what lies outside is 0.
class Downsampling {
 public:
  Downsampling(int width, int height, int factor);
  void add_row(const double* row, double white);  // scaled to 0 .. 255
  const Plane& plane() const { return plane_; }   // after the last row

 private:
  int width_;
  int factor_;
  Plane plane_;
  std::int64_t rows_ = 0;  // added so far
};

struct FsimScores {
  double fsim = 0;
  std::optional<double> fsimc;  // of rgb images only
};

// Keeps both images, downsampled to about 256 pixels along their shorter side.
class Fsim {
 public:
  explicit Fsim(const ImageSpec& spec);
  void add_row(int channel, const double* truth, const double* image);
  FsimScores scores() const;        // after the last row
  FsimScores not_a_number() const;  // of images with samples that are none

 private:
  ImageSpec spec_;
  std::vector<Downsampling> truth_;  // by colour channel
  std::vector<Downsampling> image_;
};

}  // namespace ungrain
