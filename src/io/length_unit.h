// Units of length in which microscopes' files give the sizes of voxels.
#pragma once

#include <optional>
#include <string_view>

namespace ungrain::io {

// Whether a name, in OME-XML or ImageJ's lines, in UTF-8, is a unit of length: "pixel" is none.
bool is_length_unit(std::string_view name);

// A length of one unit in another. Nothing where the names differ and one of them is no unit of length.
// Powers of ten are exact: 800 nm are the double nearest to 0.8 um.
std::optional<double> converted(double length, std::string_view from, std::string_view to);

}  // namespace ungrain::io
