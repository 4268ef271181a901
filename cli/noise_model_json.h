// Noise models as JSON: printed and saved by `estimate`, read by --noise-model.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "io/file_access.h"
#include "ungrain/image.h"
#include "ungrain/noise_model.h"

namespace ungrain::cli {

// {"channels": [{"levels": [...], "deviations": [...], "spectrum": [64 numbers]}, ...]}, pixel units; and
// "correlation": [...] where it is known.
nlohmann::json to_json(const NoiseModel& model);

// The model and how it was found.
nlohmann::json to_json(const NoiseModelEstimate& estimate);

// Writes a file with the white level and the kind of image, so that it can be used on images of another type.
// An existing file is replaced only when the new one is complete. `access` is that of the images in which the
// noise was measured.
void write_noise_model(const std::filesystem::path& path, const NoiseModel& model, const ImageSpec& spec,
                       const io::FileAccess& access);

// A file's text, read once for all images. Throws Error(io) with one line that names the file.
class NoiseModelFile {
 public:
  explicit NoiseModelFile(const std::filesystem::path& path);
  // In the pixel units of an image; throws Error(io) where the model is for another kind of image.
  NoiseModel for_image(const ImageSpec& spec) const;
  const NoiseModel& model() const { return model_; }  // as it is in the file

 private:
  std::filesystem::path path_;
  NoiseModel model_;
  double white_ = 255;
  std::string colour_;
};

}  // namespace ungrain::cli
