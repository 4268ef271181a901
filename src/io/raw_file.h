// Camera raw files: the sensor's samples before any processing.
//
// The samples are those of a Bayer mosaic in four channels (Colour::multi), each of half its width and
// height: red, the green of red's rows, the green of blue's rows, blue. A sensor without colour filters has
// one channel. Black is subtracted, and samples are f32 because noise around black goes below 0.
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
  // The channel of each photosite in a square of 2 x 2: [2 * (y % 2) + x % 2].
  std::array<int, 4> pattern = {red, green_by_red, green_by_blue, blue};
  std::array<double, 4> black = {};  // by channel, in the file's numbers
  double white = 65535;              // in the file's numbers, black included

  // Of each channel, in the units of the samples. Empty: unknown.
  std::vector<PoissonGaussian> noise = {};

  using Matrix = std::array<std::array<double, 3>, 3>;
  Matrix camera_of_xyz = {};                  // from CIE XYZ to the sensor's red, green and blue, in daylight
  std::array<double, 3> neutral = {1, 1, 1};  // the sensor's response to gray
  int orientation = 1;                        // EXIF's
  std::string make = {};
  std::string model = {};
  double iso = 0;  // 0: unknown
  // Of a DNG file: tags of its colours and of its maker's corrections.
  std::vector<TiffEntry> dng_entries = {};

  double mean_black() const { return colour ? (black[0] + black[1] + black[2] + black[3]) / 4 : black[0]; }
};

// Spec of the samples. An odd last row or column of photosites lacks some colours: those channels repeat
// their last row or column.
ImageSpec raw_spec(const RawInfo& raw);

class RawFile : public InputFile {
 public:
  virtual const RawInfo& raw() const = 0;
  // The photograph of these samples, developed by LibRaw: the camera's white balance, sRGB, upright. `type`
  // is u8 or u16. Afterwards read_rows() gives these samples.
  virtual Image develop(const ConstImageView& samples, PixelType type) = 0;
};

// Kind of a camera's file by its content: "a DNG file (camera raw)"; empty where it is none.
std::string raw_kind(const SourceFile& file);

}  // namespace ungrain::io
