// Noise that the user knows: a file with its power spectral density, or with the kernel that made it.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "ungrain/image.h"
#include "ungrain/noise_model.h"

namespace ungrain::cli {

// A file's samples, read once for all images. Throws Error(io) with one line that names the file.
class GivenNoise {
 public:
  // --psd: on the 0-255 scale.
  explicit GivenNoise(const std::filesystem::path& path);
  // --noise-kernel: `sigma` is the deviation of the noise in the image, on the 0-255 scale.
  GivenNoise(const std::filesystem::path& path, double sigma);

  // In the pixel units of an image; throws Error(io) where the file has another number of channels.
  std::shared_ptr<const NoiseModel> for_image(const ImageSpec& spec) const;
  std::string text() const;  // differs between files with different numbers

 private:
  NoiseModel model_for(const ImageSpec& spec) const;

  std::filesystem::path path_;
  Image samples_;
  bool is_kernel_;
  double sigma_ = 0;
  // The model for the last spec: images of a batch mostly have the same.
  mutable std::mutex mutex_;
  mutable std::tuple<double, Colour, int> kind_;
  mutable std::shared_ptr<const NoiseModel> model_;
};

}  // namespace ungrain::cli
