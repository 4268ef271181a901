// What must hold between the images of a run and the denoiser, on every device.
#pragma once

#include "core/bands.h"
#include "core/planes.h"
#include "ungrain/denoiser.h"
#include "ungrain/image.h"

namespace ungrain {

// Where a view lies in its image.
Rect rect_of(const ConstImageView& view);

// Throws unless both fit the spec that the denoiser was made for, and `in` covers what `out` needs. `reach` is
// all stages' together.
void check_images(const ConstImageView& in, const ImageView& out, const ImageSpec& spec,
                  const Reach& reach, bool wraps, const Options& options);
void check_writer(const ImageSpec& out_spec, const ImageSpec& spec);

// Whether the two share memory; throws where they do without being the very same view.
bool runs_in_place(const ConstImageView& in, const ImageView& out);

// Rows and columns around a pixel that conversion itself looks at, to replace what is not finite.
int fill_reach(const ImageSpec& spec, const Options& options);

[[noreturn]] void refuse_pixel(int x, int y);  // Error(bad_pixels)

}  // namespace ungrain
