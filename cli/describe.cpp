#include "describe.h"

#include <algorithm>

#include "arguments.h"
#include "io/image_file.h"

namespace ungrain::cli {
namespace {

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const MethodInfo& method : methods()) names.push_back(method.name);
  return names;
}

std::vector<std::string> formats_without_dot() {
  std::vector<std::string> names = io::writable_extensions();
  for (std::string& name : names) name.erase(0, 1);
  return names;
}

// Of options whose values are words of a list, which CLI11 knows nothing of.
std::vector<std::string> choices_of(const std::string& option) {
  if (option == "--method" || option == "name") return method_names();
  if (option == "--device") return {"auto", "cpu", "cuda", "cuda:all", "reference"};
  if (option == "--depth") return {"u8", "u16", "f16", "f32"};
  if (option == "--nonfinite") return {"fill", "keep", "error"};
  if (option == "--alpha") return words_of(alpha_choices);
  if (option == "--frames") return {"still", "even"};
  if (option == "--channels") return words_of(channels_choices);
  if (option == "--compression") return words_of(compression_choices());
  if (option == "--format") return formats_without_dot();
  if (option == "shell") return {"bash", "zsh", "fish"};
  return {};
}

OptionText text_of(const CLI::Option& option) {
  OptionText text;
  if (option.nonpositional()) {
    for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  } else {
    text.names.push_back(option.get_name());
  }
  text.help = option.get_description();
  text.choices = choices_of(text.names.back());
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() != 0) text.value = type.empty() ? "VALUE" : type;
  const std::string& name = text.names.back();
  text.file = type == "PATH" || type == "FILE" || name == "file" || name == "files";
  return text;
}

OptionText text_of(const ParamInfo& info) {
  OptionText text{{option_name(info.name)}, "VALUE", option_help(info), info.choices, false};
  if (info.kind == ParamKind::choice && info.fallback != Fallback::none) text.choices.emplace_back("auto");
  text.file = info.kind == ParamKind::image;
  return text;
}

bool is_methods_option(const std::string& name) { return !other_methods_option(name).empty(); }

CommandText text_of(const Command& command) {
  CommandText text{std::string(command.name), std::string(command.summary), {}, {}};
  if (command.elsewhere) return text;
  see_options_of(command.run, [&](const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
      OptionText one = text_of(*option);
      if (!option->nonpositional()) {
        text.positionals.push_back(std::move(one));
      } else if (command.run != denoise_command || !is_methods_option(one.names.back())) {
        text.options.push_back(std::move(one));
      }
    }
  });
  return text;
}

}  // namespace

std::vector<CommandText> describe_commands() {
  std::vector<CommandText> texts;
  for (const Command& command : commands()) texts.push_back(text_of(command));
  return texts;
}

std::vector<MethodText> describe_methods() {
  std::vector<MethodText> texts;
  for (const MethodInfo& method : methods()) {
    MethodText text{method.name, method.summary, {}};
    for (const ParamInfo& info : method.params) text.options.push_back(text_of(info));
    if (!method.presets.empty()) {
      OptionText preset{{"--preset"}, "NAME", "values to start from:", {}, false};
      for (const PresetInfo& info : method.presets) {
        preset.choices.push_back(info.name);
        preset.help += (preset.choices.size() > 1 ? ", " : " ") + info.name + " (" + info.help + ")";
      }
      text.options.push_back(std::move(preset));
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace ungrain::cli
