// A DNG file's tags beside its pixels.
#pragma once

#include <vector>

#include "io/source_file.h"
#include "io/tiff_entries.h"

namespace ungrain::io {

struct DngTags {
  // S and O of each colour: variance = S x + O of samples x from 0 (black) to 1 (white). One pair holds for
  // all colours. Empty where the file has no valid profile.
  std::vector<double> noise_profile;
  bool damaged_profile = false;
  // Colours, crops and corrections that still hold after filtering, in little endian.
  std::vector<TiffEntry> entries;
};

// Empty where the file is not a DNG.
DngTags dng_tags_of(const SourceFile& file);

}  // namespace ungrain::io
