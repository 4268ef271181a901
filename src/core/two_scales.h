// A pipeline that first filters an image at half its size, where low frequencies become middle ones. The
// difference that this makes is added to the image, which is then filtered at its own size.
//
// Images of half the size lie in the planes of whole ones: row r in row 2 r, columns side by side from the
// rectangle's first column on. Bands thus pass through both sizes in the same way.
#pragma once

#include <functional>

#include "core/host_device.h"
#include "core/method.h"

namespace ungrain {

inline ImageSpec half_of(ImageSpec spec) {
  spec.width = (spec.width + 1) / 2;
  spec.height = (spec.height + 1) / 2;
  return spec;
}

template <class T>
UNGRAIN_HOST_DEVICE BasicPlanes<T> half_view(const BasicPlanes<T>& whole) {
  const Rect& rect = whole.rect;
  const Rect half{(rect.x0 + 1) / 2, (rect.y0 + 1) / 2, (rect.x1 + 1) / 2, (rect.y1 + 1) / 2};
  return {whole.data + (2 * half.y0 - rect.y0) * whole.row_stride, half, 2 * whole.row_stride,
          whole.plane_stride, whole.count};
}

// The two pixels of half the size between which pixel x is interpolated: its centre lies a quarter away from
// its own one's, towards `other`.
struct HalfNeighbours {
  int own = 0;
  int other = 0;
};
UNGRAIN_HOST_DEVICE inline HalfNeighbours half_neighbours(int x, int half_length) {
  const int own = x / 2;
  const int other = x % 2 == 0 ? own - 1 : own + 1;
  return {own, other < 0 ? 0 : other >= half_length ? half_length - 1 : other};
}

// The two passes between the sizes, for a backend.
struct ScalePasses {
  // in[0]: an image; out: its half, means of 2 x 2 pixels.
  std::function<void(const StageCall&)> halve = {};
  std::function<void(const DeviceStageCall&)> launch_halve = {};
  // in: an image, its half, and that half filtered; out: the image with the difference of the halves added.
  std::function<void(const StageCall&)> correct = {};
  std::function<void(const DeviceStageCall&)> launch_correct = {};
};
ScalePasses cpu_scale_passes();

// `coarse` is for half_of(spec), `fine` for the spec. Neither wraps.
Pipeline two_scales(Pipeline coarse, Pipeline fine, const ImageSpec& spec, const ScalePasses& passes);

}  // namespace ungrain
