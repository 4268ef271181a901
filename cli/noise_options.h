// The options for the noise of a file and how much of it is removed, for every method.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "given_noise.h"
#include "noise_model_json.h"
#include "option_table.h"
#include "ungrain/image.h"
#include "ungrain/parameters.h"

namespace ungrain::cli {

class NoiseOptions {
 public:
  void add_to(OptionTable& table);
  // Called after parsing and before the first file. Throws UsageError where options contradict each other.
  void check(const OptionTable& table);
  // --noise-kernel or --noise rician is given: --sigma is then the strength of that noise, not the method's
  // parameter.
  bool takes_sigma() const { return !kernel_path_.empty() || is_rician(); }
  void take_sigma(const std::string& text);
  // The option that excludes the method's --sigma; empty: none.
  std::string instead_of_sigma() const { return psd_path_.empty() ? "" : "--psd"; }
  // In an image's own units.
  NoiseHandling for_image(const ImageSpec& spec) const;
  // --noise poisson-gaussian without numbers: they are measured in the image.
  bool measures_line() const { return kind_ == "poisson-gaussian" && !gain_; }
  // --noise rician: how many receive coils; without --sigma it is measured in the volume.
  bool is_rician() const { return kind_ == "rician"; }
  int coils() const { return coils_.value_or(1); }
  bool measures_rician() const { return is_rician() && !rician_sigma_; }
  std::string text() const;  // all given options, for --resume

 private:
  NoiseHandling handling_ = {.clipping = Clipping::known};
  std::string kind_ = "auto";
  std::optional<double> gain_;
  std::optional<double> read_noise_;
  std::optional<int> coils_;
  std::optional<double> rician_sigma_;  // on the 0-255 scale
  std::string model_path_;
  std::shared_ptr<const NoiseModelFile> model_file_;
  std::string psd_path_;
  std::string kernel_path_;
  std::optional<double> kernel_sigma_;
  std::shared_ptr<const GivenNoise> given_noise_;  // of --psd or --noise-kernel
  std::map<std::string, std::string> given_;
};

}  // namespace ungrain::cli
