// Pictures of one size to be looked at against each other: a slider between any two, zoom, their difference
// enlarged around gray, and what each is worth in numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ungrain/image.h"
#include "ungrain/metrics.h"

namespace ungrain::page {

// Where a page shows a part only.
struct Crop {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  friend bool operator==(const Crop&, const Crop&) = default;
};

// All of the picture where it has at most so many pixels, else its middle.
Crop shown_part(int width, int height, double most_pixels);

struct Shown {
  std::string name;
  std::string png;                 // a file's bytes
  std::optional<Metrics> metrics;  // against the clean picture; none: it is that
  std::string note = {};
};

// 8 bits for the eye, black to white of the image's range; alpha is left out, two or four independent
// channels are shown by their first.
std::string png_of(const ConstImageView& image, const Crop& part);

// The pictures `left` and `right` (their numbers) face each other at first.
std::string viewer(const std::vector<Shown>& pictures, int left, int right);

// PSNR, SSIM, FSIM and more, a row a picture that has them.
std::string metrics_table(const std::vector<Shown>& pictures);

}  // namespace ungrain::page
