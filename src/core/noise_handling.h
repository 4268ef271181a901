// NoiseHandling put into a method's own parameters.
#pragma once

#include "core/method.h"
#include "ungrain/parameters.h"

namespace ungrain {

// Throws Error(invalid_argument) unless the values are in range and fit the method, its parameters and the
// image.
void check_noise(const Method& method, void* values, const NoiseHandling& noise, const ImageSpec& spec);

// Multiplies strengths and model by `strength`, `luminance` and `chroma`, which become 1, and gives the
// method the noise model, or the sigma that it leaves. The noise must be known. Applying it again changes
// nothing.
void apply_noise(const Method& method, void* values, NoiseHandling& noise, const ImageSpec& spec);

// What is left of the noise's level is known now: throws where a cut cannot be undone for want of it.
void check_cut(const Method& method, const void* values, const NoiseHandling& noise);

// Whether resolve() may give this method a model, its other parameters being what they are.
bool allows_model(const Method& method, const void* values, const ImageSpec& spec);

// The parameter that is the noise's level, or null: box, gaussian and median have none.
const Descriptor* noise_level_of(const Method& method);

}  // namespace ungrain
