// The ISO speed that a photograph was taken with.
#pragma once

#include <optional>

#include "io/metadata.h"

namespace ungrain::io {

// From the EXIF block; nothing where the tag is missing or 0.
std::optional<double> iso_speed(const Metadata& metadata);

}  // namespace ungrain::io
