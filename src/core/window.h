// The windows of the bilateral family: which offsets belong to one, and the space in which values are
// compared.
#pragma once

#include <vector>

#include "core/border.h"
#include "core/pixels.h"
#include "core/planes.h"
#include "ungrain/image.h"
#include "ungrain/methods/common.h"

namespace ungrain {

// Whether the pixel at that offset belongs to the window.
inline bool in_window(Window window, int radius, int dx, int dy) {
  return window == Window::square || dx * dx + dy * dy <= radius * radius;
}

// How many channels share a weight.
inline int channels_per_weight(ColourMode mode, int channels) {
  return mode == ColourMode::per_channel ? 1 : channels;
}

// The divisor of the summed squared differences of the channels: their number, for the mean, so that gray
// stored as RGB gives gray's result; 1 in Lab, where the sum is delta E squared.
inline int difference_divisor(ColourMode mode, int channels) {
  return mode == ColourMode::joint ? channels : 1;
}

// A copy of the planes in double, in Lab where the mode asks for it: the input of the references.
class WorkingCopy {
 public:
  WorkingCopy(const ConstPlanes& in, ColourMode mode, double white);
  const BasicPlanes<const double>& planes() const { return planes_; }

 private:
  std::vector<double> values_;
  BasicPlanes<const double> planes_;
};

// Stores one filtered pixel of a working copy into the output.
void store_working_pixel(const std::vector<double>& pixel, ColourMode mode, double white, const Planes& out,
                         int x, int y);

// The images around one of a sequence that exist, the earliest first, each with its border.
struct WorkingImages {
  std::vector<BorderedPlanes<const double>> all;
  std::size_t own = 0;  // the index of the image that is filtered

  const BorderedPlanes<const double>& image() const { return all[own]; }
};

// The loop of the references that compare values: filter(images, x, y, first, count, result) computes the
// channels [first, first + count) of one pixel, which share a weight.
template <class Filter>
void filter_working_images(const StageCall& call, ColourMode mode, double white, Border border,
                           Filter filter) {
  std::vector<WorkingCopy> copies;
  copies.reserve(static_cast<std::size_t>(call.reach.slices()));
  WorkingImages images;
  for (int offset = -call.reach.before; offset <= call.reach.after; ++offset) {
    if (call.at(0, offset).data == nullptr) continue;  // beyond an end
    if (offset == 0) images.own = copies.size();
    copies.emplace_back(call.at(0, offset), mode, white);
    images.all.emplace_back(copies.back().planes(), call.image, border);
  }
  const int channels = call.out.count;
  const int channels_per_weight = ungrain::channels_per_weight(mode, channels);
  for_each_pixel(call, [&](int x, int y) {
    std::vector<double> pixel(static_cast<std::size_t>(channels));
    for (int first = 0; first < channels; first += channels_per_weight) {
      filter(images, x, y, first, channels_per_weight, &pixel[static_cast<std::size_t>(first)]);
    }
    store_working_pixel(pixel, mode, white, call.out, x, y);
  });
}

// The same for one image: filter(image, x, y, first, count, result).
template <class Filter>
void filter_working_copy(const StageCall& call, ColourMode mode, double white, Border border, Filter filter) {
  filter_working_images(call, mode, white, border,
                        [&](const WorkingImages& images, int x, int y, int first, int count, double* result) {
                          filter(images.image(), x, y, first, count, result);
                        });
}

}  // namespace ungrain
