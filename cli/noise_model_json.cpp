#include "noise_model_json.h"

#include <fstream>

#include <fmt/format.h>

#include "io/failure.h"
#include "io/temporary_file.h"
#include "ungrain/error.h"

namespace ungrain::cli {
namespace {

constexpr const char* kind = "noise model";
constexpr std::streamsize most_bytes = 8 << 20;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::io, fmt::format("{}: {}", io::one_line(path.string()), why));
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, "cannot be opened");
  std::string text(most_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) refuse(path, "cannot be read");
  if (file.gcount() > most_bytes) refuse(path, "is too large for a noise model");
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::vector<double> numbers_of(const std::filesystem::path& path, const nlohmann::json& channel,
                               const char* key) {
  const auto found = channel.find(key);
  const auto is_number = [](const nlohmann::json& value) { return value.is_number(); };
  if (found == channel.end() || !found->is_array() || !std::all_of(found->begin(), found->end(), is_number)) {
    refuse(path, fmt::format("is not a noise model: a channel needs a list of numbers \"{}\"", key));
  }
  return found->get<std::vector<double>>();
}

NoiseModel::Channel channel_of(const std::filesystem::path& path, const nlohmann::json& json) {
  if (!json.is_object()) refuse(path, "is not a noise model: a channel is not an object");
  NoiseModel::Channel channel;
  channel.levels = numbers_of(path, json, "levels");
  channel.deviations = numbers_of(path, json, "deviations");
  const std::vector<double> spectrum = numbers_of(path, json, "spectrum");
  if (spectrum.size() != channel.spectrum.size()) {
    refuse(path, fmt::format("is not a noise model: a spectrum has {} numbers, got {}",
                             channel.spectrum.size(), spectrum.size()));
  }
  std::copy(spectrum.begin(), spectrum.end(), channel.spectrum.begin());
  if (json.contains("correlation")) channel.correlation = numbers_of(path, json, "correlation");
  return channel;
}

}  // namespace

nlohmann::json to_json(const NoiseModel& model) {
  nlohmann::json channels = nlohmann::json::array();
  for (const NoiseModel::Channel& channel : model.channels) {
    nlohmann::json values = {
        {"levels", channel.levels}, {"deviations", channel.deviations}, {"spectrum", channel.spectrum}};
    if (!channel.correlation.empty()) values["correlation"] = channel.correlation;
    channels.push_back(std::move(values));
  }
  return {{"channels", std::move(channels)}};
}

nlohmann::json to_json(const NoiseModelEstimate& estimate) {
  nlohmann::json model = to_json(estimate.model);
  model["finding"] = name(estimate.finding);
  model["levels"] = estimate.levels;
  model["calm_levels"] = estimate.calm_levels;
  model["limited_by_colour"] = estimate.limited_by_colour;
  model["limited_by_iso"] = estimate.limited_by_iso;
  return model;
}

void write_noise_model(const std::filesystem::path& path, const NoiseModel& model, const ImageSpec& spec,
                       const io::FileAccess& access) {
  nlohmann::json json = to_json(model);
  json["ungrain"] = kind;
  json["white"] = spec.white();
  json["colour"] = name(spec.colour);
  const std::string text = json.dump(1) + '\n';
  io::TemporaryFile file(path, access);
  file.write(text.data(), text.size(), 0);
  file.commit();
}

NoiseModelFile::NoiseModelFile(const std::filesystem::path& path) : path_(path) {
  const nlohmann::json json = nlohmann::json::parse(text_of(path), nullptr, false);
  if (!json.is_object() || json.value("ungrain", nlohmann::json()) != kind) {
    refuse(path, "is not a noise model that ungrain estimate --save wrote");
  }
  const nlohmann::json white = json.value("white", nlohmann::json());
  const nlohmann::json colour = json.value("colour", nlohmann::json());
  const nlohmann::json channels = json.value("channels", nlohmann::json());
  if (!white.is_number() || !(white.get<double>() > 0) || !colour.is_string() || !channels.is_array()) {
    refuse(path, "is not a noise model: \"white\", \"colour\" or \"channels\" is missing");
  }
  white_ = white.get<double>();
  colour_ = colour.get<std::string>();
  for (const nlohmann::json& channel : channels) model_.channels.push_back(channel_of(path, channel));
  try {
    validate(model_);
  } catch (const Error& error) {
    refuse(path, error.what());
  }
}

NoiseModel NoiseModelFile::for_image(const ImageSpec& spec) const {
  if (colour_ != name(spec.colour) ||
      model_.channels.size() != static_cast<std::size_t>(spec.colour_channels())) {
    refuse(path_, fmt::format("is the noise of {} images of {} channels, the image is {} with {}", colour_,
                              model_.channels.size(), name(spec.colour), spec.colour_channels()));
  }
  NoiseModel model = model_;
  const double scale = spec.white() / white_;
  for (NoiseModel::Channel& channel : model.channels) {
    for (double& level : channel.levels) level *= scale;
    for (double& deviation : channel.deviations) deviation *= scale;
  }
  return model;
}

}  // namespace ungrain::cli
