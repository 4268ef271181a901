#include "noise_options.h"

#include <algorithm>

#include <fmt/format.h>

#include "arguments.h"
#include "commands.h"
#include "option_values.h"
#include "ungrain/parameters.h"

namespace ungrain::cli {
namespace {

constexpr std::string_view group = "Noise (of every method)";

// Reads the number like a method's parameter, with the same messages.
double number_of(const std::string& name, const std::string& text, double most) {
  ParamInfo info;
  info.name = name;
  info.kind = ParamKind::real;
  info.min = 0;
  info.max = most;
  return parse_amount(info, text);
}

}  // namespace

void NoiseOptions::add_to(OptionTable& table) {
  table.begin_group(std::string(group));
  const auto add_number = [&](const std::string& name, const std::string& help) {
    const auto* number = std::find_if(noise_numbers.begin(), noise_numbers.end(),
                                      [&](const NoiseNumber& each) { return each.name == name; });
    table.add(option_name(name) + " X",
              fmt::format("{} (0 to {}; default {})", help, number->most, handling_.*number->member),
              [this, number](const std::string& text) {
                handling_.*number->member = number_of(number->name, text, number->most);
              });
  };
  add_number("strength", "times the noise that is taken away: 0.7 leaves some, 1.3 takes more");
  add_number("keep_grain", "the share of what was taken away that is put back");
  add_number("luminance", "bm3d and ridge, rgb: times --strength for luminance");
  add_number("chroma", "bm3d and ridge, rgb: times --strength for the colour differences");
  table
      .add("--noise KIND",
           "what the noise is: auto (measured), poisson-gaussian (variance = gain * level + read-noise "
           "squared, as sensors deliver it; both measured unless given) or rician (magnitude MRI; measured "
           "unless --sigma is given) (default auto)",
           kind_)
      .only({"auto", "poisson-gaussian", "rician"});
  table.add("--coils N",
            fmt::format("of --noise rician: receive coils whose squares were summed, 1 to {} (default 1)",
                        Rician::most_coils),
            [this](const std::string& text) {
              coils_ = static_cast<int>(parse_whole("--coils", text, Rician::most_coils, 1));
            });
  table.add("--gain X",
            "of --noise poisson-gaussian, on the 0-255 scale (a number from 0 up; default: measured)",
            [this](const std::string& text) { gain_ = number_of("gain", text, 1e6); });
  table.add(
      "--read-noise X",
      "of --noise poisson-gaussian: a deviation, on the 0-255 scale (a number from 0 up; default 0 where "
      "the gain is given)",
      [this](const std::string& text) { read_noise_ = number_of("read_noise", text, 1e6); });
  table.add(
      "--clipping RULE",
      "noise that was cut off at black and white, which shifts means: auto (undone where the noise is "
      "known, be it measured or given), undo (with every method; the noise is measured for it where it is "
      "not given) or keep (default auto)",
      handling_.clipping,
      {{"auto", Clipping::known}, {"undo", Clipping::everywhere}, {"keep", Clipping::keep}});
  table.add("--noise-model FILE", "a model of the noise that ungrain estimate --save wrote (default: none)",
            model_path_);
  table.add("--psd FILE",
            "the noise's power spectral density: an image of float samples, frequency 0 first, whose mean is "
            "the variance of a pixel on the 0-255 scale; one channel or as many as the image (default: none)",
            psd_path_);
  table.add(
      "--noise-kernel FILE",
      "the kernel that made the noise of white noise, as an image; --sigma is then the deviation of the "
      "noise as it is in the image (default: none)",
      kernel_path_);
}

void NoiseOptions::check(const OptionTable& table) {
  for (const auto& [option, text] : table.given(group)) given_[option] = text;
  const bool poisson = kind_ == "poisson-gaussian";
  if (coils_ && !is_rician()) throw UsageError("--coils belongs to --noise rician");
  if (gain_ && !poisson) throw UsageError("--gain belongs to --noise poisson-gaussian");
  if (read_noise_ && !poisson) throw UsageError("--read-noise belongs to --noise poisson-gaussian");
  if (read_noise_ && !gain_)
    throw UsageError("--read-noise without --gain: give both, or none to measure them");
  const char* const sources[] = {"--noise-model", "--noise", "--psd", "--noise-kernel"};
  const char* first = nullptr;
  for (const char* source : sources) {
    if (!given_.contains(source)) continue;
    if (first != nullptr) throw UsageError(fmt::format("{} and {} exclude each other", first, source));
    first = source;
  }
  if (!kernel_path_.empty() && !kernel_sigma_)
    throw UsageError("--noise-kernel needs --sigma, the deviation of the noise in the image");
  if (!psd_path_.empty()) given_noise_ = std::make_shared<const GivenNoise>(psd_path_);
  if (!kernel_path_.empty()) given_noise_ = std::make_shared<const GivenNoise>(kernel_path_, *kernel_sigma_);
  if (!model_path_.empty()) model_file_ = std::make_shared<const NoiseModelFile>(model_path_);
}

void NoiseOptions::take_sigma(const std::string& text) {
  (is_rician() ? rician_sigma_ : kernel_sigma_) = number_of("--sigma", text, 1e6);
  given_["--sigma"] = text;
}

NoiseHandling NoiseOptions::for_image(const ImageSpec& spec) const {
  NoiseHandling handling = handling_;
  if (model_file_) handling.model = std::make_shared<const NoiseModel>(model_file_->for_image(spec));
  if (given_noise_) handling.model = given_noise_->for_image(spec);
  if (rician_sigma_) handling.rician = Rician{*rician_sigma_ * spec.white() / 255, coils()};
  if (gain_) {
    const double scale = spec.white() / 255;
    const double read_noise = read_noise_.value_or(0) * scale;
    handling.model = std::make_shared<const NoiseModel>(
        poisson_gaussian_model(spec, *gain_ * scale, read_noise * read_noise));
  }
  return handling;
}

std::string NoiseOptions::text() const {
  std::string text;
  for (const auto& [option, value] : given_) text += fmt::format(" {}={}", option.substr(2), value);
  if (given_noise_) text += given_noise_->text();
  if (model_file_) text += " model=" + to_json(model_file_->model()).dump();
  return text;
}

}  // namespace ungrain::cli
