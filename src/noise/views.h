// Checks of input and output for adding noise.
#pragma once

#include <string>
#include <vector>

#include "ungrain/image.h"

namespace ungrain {

std::string describe_channels(const ImageSpec& spec);  // "rgb with alpha"

// Throw Error with the reason.
void check_images(const ConstImageView& in, const ImageView& out);  // host memory, equal channels
void check_place(const Region& region, const ImageSpec& spec);      // inside the image

// Copies row out_y of the last channel; `values` holds a row of `in`, whose width both have.
void copy_alpha(const ConstImageView& in, int in_y, const ImageView& out, int out_y,
                std::vector<double>& values);

}  // namespace ungrain
