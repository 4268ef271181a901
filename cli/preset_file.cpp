#include "preset_file.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "io/failure.h"

namespace ungrain::cli {
namespace {

constexpr const char* option_name = "--preset-file";
constexpr const char* version_key = "ungrain_preset";
constexpr std::uintmax_t largest_file = 1 << 20;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw UsageError(fmt::format("{}: {}: {}", option_name, io::one_line(path), why));
}

// Files, and what is said to the user, do not belong to a preset.
bool may_be_in_preset(const Option& option) {
  for (const char* other : {"--output", "--format", "--json", "--quiet", "--resume", "--no-clobber", "--jobs",
                            "--help", "--preset-file"}) {
    if (std::count(option.names.begin(), option.names.end(), other) > 0) return false;
  }
  return !option.positional();
}

const Option* find(const OptionTable& table, const std::string& name) {
  for (const Option& option : table.options()) {
    if (std::count(option.names.begin(), option.names.end(), name) > 0) return &option;
  }
  return nullptr;
}

// Whether the words have this option, under any of its names, as "--name", "--name=value" or "-nvalue".
bool has_option(const Arguments& words, const Option& option) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::any_of(option.names.begin(), option.names.end(), [&](const std::string& name) {
      const bool is_long = name.starts_with("--");
      return word == name || word.starts_with(is_long ? name + "=" : name);
    });
  });
}

std::string text_of(const std::string& path, const std::string& name, const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  refuse(path, fmt::format("\"{}\" takes text, a number or true", io::one_line(name)));
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, "cannot be read");
  std::string text(largest_file + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) refuse(path, "cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

// `path` is for messages.
nlohmann::json options_of(const std::string& text, const std::string& path) {
  if (text.size() > largest_file) refuse(path, "is too large for a preset");
  nlohmann::json preset = nlohmann::json::parse(text, nullptr, false);
  if (!preset.is_object() || !preset.contains(version_key) || !preset.contains("options") ||
      !preset["options"].is_object()) {
    refuse(path, "is no preset of ungrain");
  }
  if (preset[version_key] != 1) refuse(path, "is a preset of a later version of ungrain");
  return preset["options"];
}

Arguments words_of(const std::string& text, const std::string& path, const Arguments& given,
                   const OptionTable& table) {
  Arguments words;
  const nlohmann::json options = options_of(text, path);
  for (const auto& [name, value] : options.items()) {
    const Option* option = find(table, "--" + name);
    if (option == nullptr) refuse(path, fmt::format("there is no option --{}", io::one_line(name)));
    if (!may_be_in_preset(*option)) refuse(path, fmt::format("--{} is not for presets", io::one_line(name)));
    if (has_option(given, *option)) continue;
    if (value.is_boolean()) {
      if (!option->flag()) refuse(path, fmt::format("\"{}\" takes a value", name));
      if (value.get<bool>()) words.push_back("--" + name);
    } else {
      words.push_back(fmt::format("--{}={}", name, text_of(path, name, value)));
    }
  }
  return words;
}

}  // namespace

void add_preset_file_option(OptionTable& table) {
  table
      .add(std::string(option_name) + " FILE",
           "options saved in a file; others on the command line win (default: none)",
           SetText([](const std::string&) {}))
      .file = true;
}

Arguments with_preset_files(const Arguments& words, const OptionTable& table) {
  Arguments paths;
  Arguments others;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string joined = std::string(option_name) + "=";
    if (words[i] == option_name && i + 1 < words.size()) {
      paths.push_back(words[++i]);
    } else if (words[i].starts_with(joined)) {
      paths.push_back(words[i].substr(joined.size()));
    } else {
      others.push_back(words[i]);
    }
  }
  Arguments all;
  for (const std::string& path : paths) {
    for (std::string& word : words_of(read_file(path), path, others, table)) all.push_back(std::move(word));
  }
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

Arguments preset_words(const std::string& text, const OptionTable& table) {
  return words_of(text, "the preset", {}, table);
}

std::string preset_text(const Arguments& words) {
  nlohmann::ordered_json options = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) continue;
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(2, equals == std::string::npos ? equals : equals - 2);
    const bool has_next = i + 1 < words.size() && !words[i + 1].starts_with("--");
    if (equals != std::string::npos) {
      options[name] = words[i].substr(equals + 1);
    } else if (has_next) {
      options[name] = words[++i];
    } else {
      options[name] = true;
    }
  }
  return nlohmann::ordered_json{{version_key, 1}, {"options", options}}.dump(2) + "\n";
}

}  // namespace ungrain::cli
