// A noise model from the flattest blocks of an image.
#pragma once

#include <optional>

#include "core/workers.h"
#include "noise/flat_windows.h"
#include "ungrain/noise_model.h"

namespace ungrain {

struct MeasuredModel {
  NoiseFinding finding = NoiseFinding::white;
  std::vector<NoiseModel::Channel> channels;  // empty if the finding is white
  int levels = 0;
  int calm_levels = 0;
  bool limited_by_colour = false;
  bool limited_by_iso = false;
  std::vector<PoissonGaussian> lines;  // as many as channels, or none
  // Of rgb, if the finding is white but luminance shows texture everywhere: the deviation of the colour
  // differences, which is that of independent channels.
  std::optional<double> colour_deviation;
  std::vector<NoiseBlock> blocks;  // that were measured
};

struct MeasuredModelOptions {
  double white_luminance = 0;  // the white estimate of the first channel: luminance, or the only one
  std::optional<double> iso;
  std::vector<int> jpeg_steps;  // NoiseModelOptions's
  Workers* workers = nullptr;   // to measure the levels on
  // The image, where the windows' blocks have no samples yet.
  const BlockSource* source = nullptr;
};

// `windows` are those of an rgb image's three channels, or of one channel.
MeasuredModel measured_model(FlatWindows& windows, const ImageSpec& spec,
                             const MeasuredModelOptions& options);

}  // namespace ungrain
