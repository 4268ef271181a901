// Describes an image's noise in words.
#pragma once

#include <optional>
#include <string>

#include "ungrain/image.h"
#include "ungrain/noise_model.h"

namespace ungrain::cli {

// "9.1 luminance, 4.2 chroma (coarse, as a camera makes it), ISO 3200", on the 0-255 scale; and the rule that
// limited the measurement, if any.
std::string noise_text(const NoiseModelEstimate& found, const ImageSpec& spec, std::optional<double> iso);

// The name of a model's channel: "luminance", "red - blue", "channel 2".
std::string channel_name(const ImageSpec& spec, int channel);

}  // namespace ungrain::cli
