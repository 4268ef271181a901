// The page of `ungrain estimate --plot`: an image's noise over levels and frequencies, and where it was
// measured.
#pragma once

#include <optional>
#include <string>

#include "ungrain/image.h"
#include "ungrain/noise_model.h"

namespace ungrain::cli {

struct NoisePage {
  std::string name;                     // of the file
  ImageSpec spec;                       //
  std::string found;                    // in one line
  NoiseModel model;                     //
  Image picture;                        // the image, reduced; empty: none is shown
  std::vector<NoiseBlock> blocks = {};  // measured, in the image's own pixels
};

// The image reduced to at most `longest` pixels along its longer side.
Image made_small(const ConstImageView& image, int longest);

std::string html_of(const NoisePage& page);

}  // namespace ungrain::cli
