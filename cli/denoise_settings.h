// What the options of ungrain say, besides the method's own.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "io/image_file.h"
#include "noise_options.h"
#include "ungrain/denoiser.h"

namespace ungrain::cli {

struct Settings {
  std::vector<std::string> inputs;
  std::string output;
  std::string format;  // of the standard output
  Options options;
  std::optional<int> jobs;
  NoiseOptions noise;
  io::OpenOptions open;
  std::optional<double> range;
  std::optional<PixelType> depth;
  io::SaveOptions save;
  bool quality_given = false;
  std::string channels = "auto";
  bool no_clobber = false;
  bool json = false;
  bool quiet = false;
  bool resume = false;
  bool volume = false;                           // pages are slices of a volume
  std::optional<int> slices;                     // of one volume
  std::optional<std::array<double, 3>> spacing;  // of its voxels; nothing: as the file says
};

}  // namespace ungrain::cli
