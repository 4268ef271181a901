// The ISO speed that a photograph was taken with.
#pragma once

#include <optional>

#include "io/metadata.h"

namespace ungrain::io {

// As the EXIF block says; nothing where it does not, or what it says is no speed (0).
std::optional<double> iso_speed(const Metadata& metadata);

}  // namespace ungrain::io
