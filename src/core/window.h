// The windows of the bilateral family: which offsets belong to one, and the space in which values are
// compared.
#pragma once

#include <vector>

#include "core/planes.h"
#include "ungrain/image.h"
#include "ungrain/methods/common.h"

namespace ungrain {

// Whether the pixel at that offset belongs to the window.
inline bool in_window(Window window, int radius, int dx, int dy) {
  return window == Window::square || dx * dx + dy * dy <= radius * radius;
}

// How many channels share a weight.
inline int channels_together(ColourMode mode, int channels) {
  return mode == ColourMode::per_channel ? 1 : channels;
}

// What the squared differences of the channels, summed, are divided by: the mean, so that gray stored as RGB
// gives gray's result; but in Lab the sum, which is delta E squared.
inline int difference_divisor(ColourMode mode, int channels) {
  return mode == ColourMode::joint ? channels : 1;
}

// A copy of the planes in double, in Lab where the mode says so: what the references work on.
class WorkingCopy {
 public:
  WorkingCopy(const ConstPlanes& in, ColourMode mode, double white);
  const BasicPlanes<const double>& planes() const { return planes_; }

 private:
  std::vector<double> values_;
  BasicPlanes<const double> planes_;
};

// One filtered pixel of a working copy back to where it came from.
void store_working_pixel(const std::vector<double>& pixel, ColourMode mode, double white, const Planes& out,
                         int x, int y);

}  // namespace ungrain
