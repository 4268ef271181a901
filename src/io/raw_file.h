// Camera raw files: what a sensor says before any processing.
//
// The samples are those of a Bayer mosaic in four channels (Colour::multi), each of half its width and
// height: red, the green of red's rows, the green of blue's rows, blue. A sensor without colour filters has
// one channel. Black is subtracted and samples are f32, because noise around black goes below 0.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "io/image_file.h"
#include "io/tiff_entries.h"
#include "ungrain/noise_model.h"

namespace ungrain::io {

struct RawInfo {
  static constexpr int red = 0, green_by_red = 1, green_by_blue = 2, blue = 3;

  int width = 0;  // photosites that show the picture
  int height = 0;
  bool colour = true;  // false: a sensor without colour filters
  // Which channel a photosite of each square of 2 x 2 belongs to: [2 * (y % 2) + x % 2].
  std::array<int, 4> pattern = {red, green_by_red, green_by_blue, blue};
  std::array<double, 4> black = {};  // by channel, in the file's numbers
  double white = 65535;              // in the file's numbers, black included

  // Of each channel, in the units of the samples. Empty: the file does not tell.
  std::vector<PoissonGaussian> noise = {};

  using Matrix = std::array<std::array<double, 3>, 3>;
  Matrix camera_of_xyz = {};                  // from CIE XYZ to the sensor's red, green and blue, in daylight
  std::array<double, 3> neutral = {1, 1, 1};  // what the sensor says of gray
  int orientation = 1;                        // EXIF's
  std::string make = {};
  std::string model = {};
  double iso = 0;  // 0: the file does not tell
  // Of a DNG file: tags about its colours and what its maker wants done with it.
  std::vector<TiffEntry> dng_entries = {};

  double mean_black() const { return colour ? (black[0] + black[1] + black[2] + black[3]) / 4 : black[0]; }
};

// Of the samples; photosites of an odd last row or column have no other colours beside them, and the rows and
// columns of those channels are continued.
ImageSpec raw_spec(const RawInfo& raw);

class RawFile : public InputFile {
 public:
  virtual const RawInfo& raw() const = 0;
  // The photograph that these samples make, developed by LibRaw: the camera's white balance, sRGB, upright.
  // `type` is u8 or u16. From then on read_rows() gives these samples.
  virtual Image develop(const ConstImageView& samples, PixelType type) = 0;
};

// What a camera's file is by its content: "a DNG file (camera raw)"; empty where it is none.
std::string raw_kind(const SourceFile& file);

}  // namespace ungrain::io
