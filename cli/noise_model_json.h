// Noise models as JSON: what `estimate` prints and saves, and what --noise-model reads.
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

// A file that tells its white level and kind of image too, so that it can be used on images of another type.
// One that is there is replaced only once the new one is complete. `access` is that of the images it was
// measured in.
void write_noise_model(const std::filesystem::path& path, const NoiseModel& model, const ImageSpec& spec,
                       const io::FileAccess& access);

// A file's text, read once for all images. Throws Error(io) with one line that names the file.
class NoiseModelFile {
 public:
  explicit NoiseModelFile(const std::filesystem::path& path);
  // In the pixel units of an image; throws Error(io) where the model is of another kind of image.
  NoiseModel for_image(const ImageSpec& spec) const;
  const NoiseModel& model() const { return model_; }  // as it is in the file

 private:
  std::filesystem::path path_;
  NoiseModel model_;
  double white_ = 255;
  std::string colour_;
};

}  // namespace ungrain::cli
