// Applies NoiseHandling to a method's own parameters.
#pragma once

#include "core/method.h"
#include "noise/stabilize.h"
#include "ungrain/parameters.h"

namespace ungrain {

// Throws Error(invalid_argument) unless the values are in range and fit the method, its parameters and the
// image.
void check_noise(const Method& method, void* values, const NoiseHandling& noise, const ImageSpec& spec);

// Multiplies strengths and model by `strength`, `luminance` and `chroma`, which become 1, and gives the
// method the noise model, or the sigma that it leaves. The noise must be known. Applying it again changes
// nothing.
void apply_noise(const Method& method, void* values, NoiseHandling& noise, const ImageSpec& spec);

// Whether a value that the method needs is left to be measured.
bool needs_noise(const Method& method, const void* values, const NoiseHandling& noise);

// Whether sigma or a model gives the noise.
bool knows_noise(const Method& method, void* values, const NoiseHandling& noise);

// Whether resolve() must look for a cut in the image, even where its noise is known.
bool looks_for_cut(const Method& method, void* values, const NoiseHandling& noise);

// The noise of each of the image's channels, before a cut and without `strength`. It must be known; `noise`
// and `values` must outlive the result.
std::vector<ChannelDeviation> noise_before_cut(const Method& method, void* values, const NoiseHandling& noise,
                                               const ImageSpec& spec);

// Called when the noise is final: throws where a cut cannot be undone because the noise is not known.
void check_cut(const Method& method, void* values, const NoiseHandling& noise);

// Whether resolve() may give this method a model, given its other parameters.
bool allows_model(const Method& method, const void* values, const ImageSpec& spec);

// The parameter that is the noise's level, or null: box, gaussian and median have none.
const Descriptor* noise_level_of(const Method& method);

}  // namespace ungrain
