// What a DNG file tells besides its pixels.
#pragma once

#include <vector>

#include "io/source_file.h"
#include "io/tiff_entries.h"

namespace ungrain::io {

struct DngTags {
  // S and O of each colour: variance = S x + O of samples x from 0 (black) to 1 (white). One pair is for all
  // colours. Empty where the file has no such profile, or one that is damaged.
  std::vector<double> noise_profile;
  bool damaged_profile = false;
  // Colours, crops and corrections that hold for the same photosites after filtering, in little endian.
  std::vector<TiffEntry> entries;
};

// Empty where the file is no DNG.
DngTags dng_tags_of(const SourceFile& file);

}  // namespace ungrain::io
