// Rows of numbers from the samples of a view, of any type and layout, and back.
#pragma once

#include "ungrain/export.h"
#include "ungrain/image.h"

UNGRAIN_API_BEGIN
namespace ungrain {

// Row y of one channel as numbers in pixel units; `out` holds view.spec.width values. Real is float or
// double.
template <class Real>
void load_row(const ConstImageView& view, int y, int channel, Real* out);

// The other way: value * scale, rounded half to even and saturated where the type is an integer. A NaN
// becomes 0 there.
template <class Real>
void store_row(const ImageView& view, int y, int channel, const Real* values, double scale = 1);

extern template UNGRAIN_API void load_row(const ConstImageView&, int, int, float*);
extern template UNGRAIN_API void load_row(const ConstImageView&, int, int, double*);
extern template UNGRAIN_API void store_row(const ImageView&, int, int, const float*, double);
extern template UNGRAIN_API void store_row(const ImageView&, int, int, const double*, double);

// The first `count` channels of a row at once: faster than one after the other where they are interleaved.
// Storing leaves any further channels undefined.
void load_channels(const ConstImageView& view, int y, int count, float* const* out);
void store_channels(const ImageView& view, int y, int count, const float* const* values, double scale = 1);

// Copies one channel of a row without conversion, between views of one type.
void copy_row(const ConstImageView& in, int in_y, const ImageView& out, int out_y, int channel);

// All channels of a row.
void copy_pixels(const ConstImageView& in, int in_y, const ImageView& out, int out_y);

}  // namespace ungrain
UNGRAIN_API_END
