// Medians by minima and maxima: the list of exchanges. A network works on whole rows of samples, one exchange
// after the other, so it needs no branches and serves any type of sample.
#pragma once

#include <cstdint>
#include <vector>

namespace ungrain {

// The smaller and the larger of two values, at every pixel of a row. A value is a row of numbers: an image
// row or the result of an exchange. Shifts are in pixels to the right and never negative.
struct Exchange {
  static constexpr std::uint16_t unwanted = 0xffff;

  std::uint16_t first;
  std::uint16_t second;
  std::uint16_t low;  // place of the smaller ones, or unwanted
  std::uint16_t high;
  std::uint16_t first_shift;
  std::uint16_t second_shift;
  std::uint16_t extent;  // pixels of the results needed beyond the output's width
};

// The medians of `rows` output rows at a time. Values 0 to inputs - 1 are the rows of the first image, then
// those of the next: for each image from `radius` above the first output row on, each row beginning `radius`
// pixels left of the output.
struct MedianNetwork {
  int radius;
  int rows;
  int inputs;
  int values;
  std::vector<Exchange> exchanges;
  std::vector<std::uint16_t> outputs;  // the value that holds each output row
};

// Of windows over so many images, an odd number. Created once for each and kept.
const MedianNetwork& median_network(int radius, int images = 1);

}  // namespace ungrain
