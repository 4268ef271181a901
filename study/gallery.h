// What the filters make of a picture, and what that is worth: for the page.
#pragma once

#include <string>

#include "study/machine.h"
#include "study/picture_source.h"

namespace ungrain::study {

// Writes pictures (PGM) and pictures.json into `folder`: one picture, clean, noisy and through every filter
// of the ladders and the product's best; and the papers' experiments in quality, [004]'s tables 1 to 4 and
// [002]'s 5.4, on this picture in place of theirs. What takes too long on a processor is left out where there
// is no GPU; the file says what.
void write_gallery(const std::string& folder, const PictureSource& source, const Machine& machine,
                   bool quick);

}  // namespace ungrain::study
