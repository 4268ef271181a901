// The 8-bit CIE-Lab of OpenCV's fastNlMeansDenoisingColored: from linear blue, green and red (without undoing
// gamma), L from 0 to 255, a and b around 128.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ungrain::python {

// `pixels` of three samples each, one after the other.
void bgr_to_lab(const std::uint8_t* bgr, std::uint8_t* lab, std::size_t pixels);
void lab_to_bgr(const std::uint8_t* lab, std::uint8_t* bgr, std::size_t pixels);

}  // namespace ungrain::python
