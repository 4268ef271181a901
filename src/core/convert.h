// Conversion between the samples of a view, of any type and layout, and rows of float or double.
#pragma once

#include <cstdint>
#include <optional>

#include "ungrain/image.h"

namespace ungrain {

// Row y of one channel as numbers in pixel units; `out` holds view.spec.width values.
template <class Real>
void load_row(const ConstImageView& view, int y, int channel, Real* out);

// The other way: value * scale, rounded half to even and saturated where the type is an integer. A NaN
// becomes 0 there.
template <class Real>
void store_row(const ImageView& view, int y, int channel, const Real* values, double scale = 1);

extern template void load_row(const ConstImageView&, int, int, float*);
extern template void load_row(const ConstImageView&, int, int, double*);
extern template void store_row(const ImageView&, int, int, const float*, double);
extern template void store_row(const ImageView&, int, int, const double*, double);

// The first `count` channels of a row at once: faster than one after the other where they are interleaved.
// Storing leaves any further channels undefined.
void load_channels(const ConstImageView& view, int y, int count, float* const* out);
void store_channels(const ImageView& view, int y, int count, const float* const* values, double scale = 1);

// Copies one channel of a row without conversion, between views of one type.
void copy_row(const ConstImageView& in, int in_y, const ImageView& out, int out_y, int channel);

// All channels of a row.
void copy_pixels(const ConstImageView& in, int in_y, const ImageView& out, int out_y);

// Replaces every NaN and infinity of `values` (row y, channel) by the mean of the finite samples in the
// smallest square window around it that has any, radius up to fill_radius, else by 0. Reads `view`, which
// must hold fill_radius rows above and below as far as the image goes. `values` are `count` pixels from
// `first` on, or all of the row. Returns how many it replaced.
inline constexpr int fill_radius = 8;
std::int64_t fill_nonfinite(const ConstImageView& view, int y, int channel, float* values, int first = 0,
                            std::optional<int> count = {});

}  // namespace ungrain
