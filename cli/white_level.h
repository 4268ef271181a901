// The white level of a file whose sample type does not determine it: floats, and integers of 32 bits.
#pragma once

#include <optional>
#include <string_view>

#include "io/image_file.h"

namespace ungrain::cli {

struct WhiteLevel {
  double range = 0;  // as in ImageSpec; 0: the type's own
  std::string_view from = "type";
};

// From the values of the file's samples, or a part of them in a large file: the smallest of 1, 255, 1023,
// 4095, 16383 and 65535 that 99 % of them do not exceed by more than half, or else the largest value. Takes
// what `info` knows. Leaves page 0 selected. Throws Error(cancelled) after Ctrl-C.
WhiteLevel find_white_level(io::InputFile& file, const io::FileInfo& info);

// The same for a command with a --range: a given one is used.
inline double white_level(io::InputFile& file, const io::FileInfo& info, std::optional<double> given) {
  return given ? *given : find_white_level(file, info).range;
}

}  // namespace ungrain::cli
