// The vectorised parts of conversion: between packed samples and rows of float.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ungrain/image.h"

namespace ungrain {

// `count` packed samples as floats in pixel units.
void floats_from(PixelType type, const void* samples, std::ptrdiff_t count, float* out);
// The other way: value * scale, rounded half to even and saturated where the type is an integer; a NaN
// becomes 0 there.
void samples_from(PixelType type, const float* values, std::ptrdiff_t count, float scale, void* out);

// Pixels of 2 to 4 interleaved samples of 1, 2 or 4 bytes, channel by channel, and back.
void split_channels(int sample_bytes, int channels, const void* pixels, std::ptrdiff_t count,
                    void* const* out);
void join_channels(int sample_bytes, int channels, const void* const* rows, std::ptrdiff_t count,
                   void* pixels);

bool all_finite(const float* values, std::ptrdiff_t count);

}  // namespace ungrain
