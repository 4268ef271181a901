// Checks of the images of a run against the denoiser, for every device.
#pragma once

#include "core/bands.h"
#include "core/planes.h"
#include "ungrain/denoiser.h"
#include "ungrain/image.h"

namespace ungrain {

// Where a view lies in its image.
Rect rect_of(const ConstImageView& view);

// Throws unless both fit the denoiser's spec and `in` covers what `out` needs. `reach` is that of all stages
// together.
void check_images(const ConstImageView& in, const ImageView& out, const ImageSpec& spec, const Reach& reach,
                  bool wraps, const Options& options);
void check_writer(const ImageSpec& out_spec, const ImageSpec& spec);

// Whether the two share memory; throws where they do without being the same view.
bool runs_in_place(const ConstImageView& in, const ImageView& out);

// Rows and columns around a pixel that conversion reads to replace a non-finite sample.
int fill_reach(const ImageSpec& spec, const Options& options);

[[noreturn]] void refuse_pixel(int x, int y);  // Error(bad_pixels)

}  // namespace ungrain
