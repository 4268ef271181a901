// The options that say which noise a file has and how much of it goes, for every method.
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
  // After parsing and before the first file. Throws UsageError where options contradict each other.
  void check(const OptionTable& table);
  // --noise-kernel is given: its noise's strength is the method's --sigma, which is no longer the method's
  // then.
  bool takes_sigma() const { return !kernel_path_.empty(); }
  void take_sigma(const std::string& text);
  // The option that excludes the method's --sigma; empty: none.
  std::string instead_of_sigma() const { return psd_path_.empty() ? "" : "--psd"; }
  // In an image's own units.
  NoiseHandling for_image(const ImageSpec& spec) const;
  // --noise poisson-gaussian without numbers: the image must tell them.
  bool measures_line() const { return kind_ == "poisson-gaussian" && !gain_; }
  std::string text() const;  // all that was given, for --resume

 private:
  NoiseHandling handling_ = {.clipping = Clipping::known};
  std::string kind_ = "auto";
  std::optional<double> gain_;
  std::optional<double> read_noise_;
  std::string model_path_;
  std::shared_ptr<const NoiseModelFile> model_file_;
  std::string psd_path_;
  std::string kernel_path_;
  std::optional<double> kernel_sigma_;
  std::shared_ptr<const GivenNoise> given_noise_;  // of one of the two
  std::map<std::string, std::string> given_;
};

}  // namespace ungrain::cli
