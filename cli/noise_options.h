// The options that say which noise a file has and how much of it goes, for every method.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "noise_model_json.h"
#include "ungrain/image.h"
#include "ungrain/parameters.h"

namespace ungrain::cli {

class NoiseOptions {
 public:
  void add_to(CLI::App& app);
  // After parsing and before the first file. Throws UsageError where options contradict each other.
  void check();
  // In an image's own units.
  NoiseHandling for_image(const ImageSpec& spec) const;
  // --noise poisson-gaussian without numbers: the image must tell them.
  bool measures_line() const { return kind_ == "poisson-gaussian" && !gain_; }
  std::string text() const;  // all that was given, for --resume

 private:
  void add_number(CLI::App& app, const std::string& name, const std::string& help);  // of noise_numbers

  NoiseHandling handling_ = {.clipping = Clipping::known};
  std::string kind_ = "auto";
  std::optional<double> gain_;
  std::optional<double> read_noise_;
  std::string model_path_;
  std::shared_ptr<const NoiseModelFile> model_file_;
  std::map<std::string, std::string> given_;
};

}  // namespace ungrain::cli
