// OpenCV's bilateral filter of several channels: pixels are compared by the sum of their absolute
// differences.
#pragma once

namespace ungrain::python {

struct PaddedPlanes {
  const float* samples;  // channels x (height + 2 radius) x (width + 2 radius), packed; finite
  const float*
      counts;    // one such plane, 0 for a pixel that does not count and 1 for the others; or null: all count
  int channels;  // 1 to 4
  int height;    // of the image, without what stands around it
  int width;
  int radius;
};

// `out` is height x width x channels, packed.
void bilateral_of_sums(const PaddedPlanes& image, double sigma_range, double sigma_space, float* out);

}  // namespace ungrain::python
