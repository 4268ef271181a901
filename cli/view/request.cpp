#include "view/request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "io/failure.h"
#include "noise_model_json.h"
#include "option_values.h"
#include "preset_file.h"
#include "ungrain/parameters.h"
#include "video_request.h"

namespace ungrain::cli::view {
namespace {

// The options of every method that a request may have. What reads or writes other files, or talks to a
// terminal, is not among them.
constexpr std::array common_options = {
    "--method",      "--quality", "--preset",  "--strength",     "--keep-grain", "--luminance",
    "--chroma",      "--noise",   "--coils",   "--gain",         "--read-noise", "--clipping",
    "--noise-model", "--range",   "--depth",   "--alpha",        "--nonfinite",  "--channels",
    "--device",      "--threads", "--spacing", "--jpeg-quality", "--compression"};

bool is_common(std::string_view name) {
  return std::find(common_options.begin(), common_options.end(), name) != common_options.end();
}

bool is_parameter(std::string_view name, MethodOptions::For what) {
  for (const MethodInfo& method : methods_for(what)) {
    for (const ParamInfo& param : method.params) {
      if (param.kind != ParamKind::image && option_name(param.name) == name) return true;
    }
  }
  return false;
}

// Options with their values, in the order of the words.
struct Pair {
  std::string name;
  std::string value;
};

std::vector<Pair> pairs_of(const Arguments& words) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("--"))
      throw UsageError(fmt::format("settings have options alone, got '{}'", io::one_line(word)));
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      pairs.push_back({word.substr(0, equals), word.substr(equals + 1)});
    } else if (i + 1 < words.size()) {
      pairs.push_back({word, words[++i]});
    } else {
      throw UsageError(fmt::format("{} takes a value", io::one_line(word)));
    }
  }
  return pairs;
}

nlohmann::json bound(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(); }

constexpr std::string_view kind_name(ParamKind kind) {
  switch (kind) {
    case ParamKind::integer:
      return "integer";
    case ParamKind::choice:
      return "choice";
    case ParamKind::per_channel:
      return "per_channel";
    default:
      return "real";
  }
}

std::string unit_text(Unit unit) {
  switch (unit) {
    case Unit::pixels:
      return "pixels";
    case Unit::intensity:
      return "of 255";
    case Unit::intensity_squared:
      return "of 255, squared";
    case Unit::delta_e:
      return "delta E";
    case Unit::delta_e_squared:
      return "delta E, squared";
    default:
      return "";
  }
}

nlohmann::json to_json(const ParamInfo& param) {
  return {{"option", option_name(param.name)},
          {"name", param.name},
          {"kind", kind_name(param.kind)},
          {"help", param.help},
          {"min", bound(param.min)},
          {"max", bound(param.max)},
          {"odd", param.odd},
          {"unit", unit_text(param.unit)},
          {"choices", param.choices},
          {"named", param.named},
          {"default_text", param.default_text},
          {"auto", param.fallback != Fallback::none}};
}

// The options of the command that filters such files. What they set lives as long as the result.
std::shared_ptr<const void> add_options(OptionTable& table, MethodOptions::For what) {
  if (what == MethodOptions::For::clips) {
    auto request = std::make_shared<VideoRequest>();
    request->add_to(table);
    return request;
  }
  auto request = std::make_shared<DenoiseRequest>(what);
  request->add_to(table);
  return request;
}

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_./,=:@%+").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string python_text(const std::string& value) {
  if (read_number<double>(value)) return value;
  if (value.find(',') != std::string::npos) return fmt::format("[{}]", value);
  std::string text = "\"";
  for (const char c : value) text += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return text + "\"";
}

}  // namespace

int HeldNoiseModels::add(const NoiseModel& model, const ImageSpec& spec) {
  const std::lock_guard lock(mutex_);
  const int number = static_cast<int>(files_.size()) + 1;
  files_.push_back(folder_.file(fmt::format("noise-{}.json", number)));
  write_noise_model(files_.back(), model, spec, {.mode = 0600});
  return number;
}

Arguments HeldNoiseModels::with_files(const Arguments& words) const {
  const std::lock_guard lock(mutex_);
  Arguments replaced;
  for (const auto& [name, value] : pairs_of(words)) {
    replaced.push_back(name);
    if (name != "--noise-model") {
      replaced.push_back(value);
      continue;
    }
    const std::optional<int> number =
        value.starts_with('@') ? read_number<int>(value.substr(1)) : std::nullopt;
    if (!number || *number < 1 || *number > static_cast<int>(files_.size()))
      throw UsageError("--noise-model: there is no such noise; measure it again");
    replaced.push_back(files_[static_cast<std::size_t>(*number) - 1].string());
  }
  return replaced;
}

Arguments words_of(const nlohmann::json& words) {
  constexpr std::size_t most = 200;
  if (!words.is_array() || words.size() > most) throw UsageError("settings are a list of words");
  Arguments list;
  for (const nlohmann::json& word : words) {
    if (!word.is_string()) throw UsageError("settings are a list of words");
    list.push_back(word.get<std::string>());
  }
  return list;
}

void check_words(const Arguments& words, MethodOptions::For what) {
  for (const auto& [name, value] : pairs_of(words)) {
    if (!is_common(name) && !is_parameter(name, what))
      throw UsageError(fmt::format("{} is not among the settings of a picture", io::one_line(name)));
  }
}

std::unique_ptr<DenoiseRequest> read_request(const Arguments& words, MethodOptions::For what) {
  auto request = std::make_unique<DenoiseRequest>(what);
  if (!request->read(words)) throw UsageError("settings are a list of words");
  return request;
}

nlohmann::json describe_methods(MethodOptions::For what) {
  nlohmann::json list = nlohmann::json::array();
  for (const MethodInfo& method : methods_for(what)) {
    nlohmann::json presets = nlohmann::json::array();
    for (const PresetInfo& preset : method.presets)
      presets.push_back({{"name", preset.name}, {"help", preset.help}});
    nlohmann::json options = nlohmann::json::array();
    for (const ParamInfo& param : method.params) {
      if (param.kind != ParamKind::image) options.push_back(to_json(param));
    }
    list.push_back(
        {{"name", method.name}, {"summary", method.summary}, {"presets", presets}, {"options", options}});
  }
  return list;
}

// Texts, ranges and choices are those of the command line.
nlohmann::json describe_common_options(MethodOptions::For what) {
  OptionTable table("", "");
  const std::shared_ptr<const void> settings = add_options(table, what);
  const auto found = [&](const std::string& name) -> const Option& {
    const std::vector<Option>& all = table.options();
    return *std::find_if(all.begin(), all.end(), [&](const Option& option) {
      return std::count(option.names.begin(), option.names.end(), name) > 0;
    });
  };
  // Without the range and the default, which the control itself shows.
  const auto help_of = [&](const std::string& name) {
    const std::string& help = found(name).help;
    return help.substr(0, help.rfind(" ("));
  };
  nlohmann::json list = nlohmann::json::array();
  for (const char* name : {"strength", "keep_grain", "luminance", "chroma"}) {
    const auto* number =
        std::find_if(noise_numbers.begin(), noise_numbers.end(),
                     [&](const NoiseNumber& each) { return each.name == std::string_view(name); });
    ParamInfo info;
    info.name = name;
    info.max = number->most;
    info.default_text = fmt::format("{}", NoiseHandling{}.*number->member);
    info.help = help_of(option_name(name));
    list.push_back(to_json(info));
  }
  const auto add_choice = [&](const std::string& name, const std::vector<std::string>& choices) {
    ParamInfo info;
    info.name = name;
    info.kind = ParamKind::choice;
    info.choices = choices;
    info.default_text = choices.front();
    info.help = help_of("--" + name);
    list.push_back(to_json(info));
  };
  for (const char* name : {"noise", "clipping"}) add_choice(name, found(std::string("--") + name).choices);
  if (what != MethodOptions::For::clips) add_choice("nonfinite", found("--nonfinite").choices);
  add_choice("device", {"auto", "cpu", "cuda", "reference"});
  return list;
}

std::string command_line(const Arguments& words, const std::string& file, MethodOptions::For what) {
  std::string text = what == MethodOptions::For::volumes ? "ungrain volume "
                     : what == MethodOptions::For::clips ? "ungrain video "
                                                         : "ungrain ";
  text += quoted(file.starts_with('-') ? "./" + file : file);
  for (const std::string& word : words) text += " " + quoted(word);
  return text;
}

std::string python_call(const Arguments& words, const std::string& file, MethodOptions::For what) {
  const bool volume = what == MethodOptions::For::volumes;
  std::string method = std::string(volume ? default_volume_method : default_method);
  std::vector<std::string> given;
  for (const auto& [name, value] : pairs_of(words)) {
    if (name == "--method") {
      method = value;
      continue;
    }
    std::string key = name.substr(2);
    std::replace(key.begin(), key.end(), '-', '_');
    if (key == "lambda") key = "lambda_";
    given.push_back(fmt::format("{}={}", key, python_text(value)));
  }
  const std::string_view function = volume                              ? "denoise_volume(volume"
                                    : what == MethodOptions::For::clips ? "denoise_video(frames"
                                                                        : "denoise(image";
  return fmt::format("clean = ungrain.{}, \"{}\"{}{})  # {}", function, method, given.empty() ? "" : ", ",
                     fmt::join(given, ", "), io::one_line(file));
}

Arguments words_of_preset(const std::string& text, MethodOptions::For what) {
  OptionTable table("", "");
  const std::shared_ptr<const void> settings = add_options(table, what);
  Arguments words;
  for (const std::string& word : preset_words(text, table)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos)
      throw UsageError(fmt::format("{} is not among the settings of a picture", io::one_line(word)));
    words.push_back(word.substr(0, equals));
    words.push_back(word.substr(equals + 1));
  }
  check_words(words, what);
  return words;
}

}  // namespace ungrain::cli::view
