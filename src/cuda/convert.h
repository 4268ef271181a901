// Between samples on the GPU, of any type and layout, and float planes there.
#pragma once

#include <cstdint>

#include "core/planes.h"
#include "ungrain/denoiser.h"
#include "ungrain/image.h"

namespace ungrain::cuda {

// What conversion found, on the GPU.
struct Found {
  unsigned long long bad_pixels;  // with a sample that is not finite
  unsigned long long first_bad;   // y << 32 | x of the first, or all ones
};

// `raw` is a view of GPU memory; its region says where it lies in the image. Fills `planes`, whose rectangle
// it covers (with fill_radius around where it goes that far), and replaces what is not finite as
// core/convert.h's fill_nonfinite does. Bad pixels are counted in the rows [count_from, count_to).
void load_planes(const ConstImageView& raw, const Planes& planes, int count_from, int count_to, Found* found,
                 Stream stream);

// The planes times `scale` into `out`, whose region is the rectangle that is stored; alpha, and where `keep`
// is set what was not finite, from `raw`.
void store_planes(const ConstPlanes& planes, const ConstImageView& raw, bool keep, const ImageView& out,
                  double scale, double alpha_scale, Stream stream);

}  // namespace ungrain::cuda
