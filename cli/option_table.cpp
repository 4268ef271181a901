#include "option_table.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ungrain/parameters.h"

namespace ungrain::cli {
namespace {

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "  --name VALUE     help", the help on a line of its own where the name is too long.
std::string help_line(const std::string& name, const std::string& help) {
  constexpr std::size_t column = 30;
  const std::string start = "  " + name;
  const std::string break_line = start.size() < column ? "" : fmt::format("\n{:{}}", "", column);
  return fmt::format("{:<{}}{}{}\n", start, column, break_line, help);
}

}  // namespace

// An option as it was typed; the method decides whether it is valid.
struct OptionTable::TypedOption {
  std::string word;  // whole
  std::string name;
  std::optional<std::string> value;
};

Option& Option::only(std::vector<std::string> words) {
  choices = std::move(words);
  only_choices = true;
  help = fmt::format(fmt::runtime(help), fmt::join(choices, ", "));
  return *this;
}

OptionTable::OptionTable(std::string summary, std::string program)
    : summary_(std::move(summary)), program_(std::move(program)) {
  add("-h,--help", "Print this help message and exit", help_wanted_);
}

Option& OptionTable::add(std::string_view spelling, std::string help, SetText set) {
  Option option{.names = {}, .value = "", .help = std::move(help), .set = std::move(set), .group = group_};
  if (const std::size_t space = spelling.find(' '); space != std::string_view::npos) {
    option.value = spelling.substr(space + 1);
    spelling = spelling.substr(0, space);
  }
  if (spelling.ends_with("...")) {
    option.repeated = true;
    spelling.remove_suffix(3);
  }
  const std::size_t comma = spelling.find(',');
  option.names.emplace_back(spelling.substr(0, comma));
  if (comma != std::string_view::npos) option.names.emplace_back(spelling.substr(comma + 1));
  const std::string& name = option.names.back();
  option.file = option.value == "PATH" || option.value == "FILE" || name == "file" || name == "files";
  return options_.emplace_back(std::move(option));
}

bool OptionTable::chosen(const Option& option) const {
  const auto of_method = [this](const Option& other) {
    return method_ != nullptr && !other.method.empty() && other.method == *method_;
  };
  if (!option.yields) return option.method.empty() || of_method(option);
  return std::none_of(options_.begin(), options_.end(),
                      [&](const Option& other) { return of_method(other) && other.names == option.names; });
}

const Option* OptionTable::find(std::string_view name, bool of_any_method) const {
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const Option& option) {
    return !option.positional() && (of_any_method || chosen(option)) && contains(option.names, name);
  });
  return found == options_.end() ? nullptr : &*found;
}

void OptionTable::refuse(const std::string& name) const {
  std::vector<std::string> known;
  std::vector<std::string> owners;
  for (const Option& option : options_) {
    if (chosen(option) && !option.positional()) known.push_back(option.names.back());
    if (!option.method.empty() && contains(option.names, name)) owners.push_back(option.method);
  }
  if (!owners.empty()) {
    throw UsageError(
        fmt::format("{} is an option of {}, not of the method chosen", name, fmt::join(owners, ", ")));
  }
  const std::string near = nearest(name, known);
  throw UsageError(
      fmt::format("{} {}{}", refusal_, name,
                  near.empty() ? "; --help lists them" : fmt::format("; did you mean {}?", near)));
}

// An option's value may be joined to it or be the next word: -3 can be a value, but an option such as -q
// cannot.
std::vector<OptionTable::TypedOption> OptionTable::split(const Arguments& words, Arguments& files) const {
  std::vector<TypedOption> typed;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == "--") {
      files.insert(files.end(), word + 1, words.end());
      break;
    }
    if (word->size() < 2 || !word->starts_with('-')) {
      files.push_back(*word);
      continue;
    }
    const std::size_t end = word->starts_with("--") ? std::min(word->find('='), word->size()) : 2;
    TypedOption option{*word, word->substr(0, end), std::nullopt};
    const Option* known = find(option.name, true);
    const auto next = word + 1;
    if (end < word->size()) {
      option.value = word->substr(end + ((*word)[end] == '=' ? 1 : 0));
    } else if (known != nullptr && !known->flag() && next != words.end() && !next->starts_with("--") &&
               find(*next, true) == nullptr) {
      option.value = *next;
      word = next;
    }
    typed.push_back(std::move(option));
  }
  return typed;
}

bool OptionTable::read(const Arguments& words) {
  Arguments files;
  const std::vector<TypedOption> typed = split(words, files);
  for (const bool yields : {false, true}) {
    for (const TypedOption& each : typed) {
      const Option* option = find(each.name, !yields);
      if (option != nullptr && option->chooses_method && option->yields == yields && each.value)
        option->set(*each.value);
    }
  }
  for (const auto& [word, name, value] : typed) {
    const Option* option = find(name, false);
    const bool is_long = name.starts_with("--");
    if (option == nullptr || (option->flag() && value && !is_long)) refuse(is_long ? name : word);
    if (option->flag()) {
      if (value) throw UsageError(fmt::format("{} takes no value, got '{}'", name, *value));
      given_[option] = "";
    } else if (value.value_or("").empty()) {
      throw UsageError(fmt::format("{} needs a value: {}", name, option->help));
    } else if (!given_.emplace(option, *value).second) {
      throw UsageError(fmt::format("{} is given twice", option->names.back()));
    }
  }
  if (contains(files, "")) throw UsageError("one of the files has an empty name");

  auto file = files.begin();
  for (const Option& option : options_) {
    const auto found = given_.find(&option);
    if (option.positional()) {
      for (bool more = true; more && file != files.end(); more = option.repeated) option.set(*file++);
    } else if (found != given_.end() && !option.chooses_method) {
      if (option.only_choices && !contains(option.choices, found->second)) {
        throw UsageError(fmt::format("{} takes one of {}, got '{}'", option.names.back(),
                                     fmt::join(option.choices, ", "), found->second));
      }
      option.set(found->second);
    }
  }
  if (help_wanted_) return false;
  if (file != files.end()) throw UsageError(fmt::format("'{}' is one argument too many", *file));
  return true;
}

std::vector<std::pair<const Option*, std::string>> OptionTable::given() const {
  std::vector<std::pair<const Option*, std::string>> texts;
  for (const Option& option : options_) {
    if (const auto found = given_.find(&option); found != given_.end())
      texts.emplace_back(&option, found->second);
  }
  return texts;
}

std::vector<std::pair<std::string, std::string>> OptionTable::given(std::string_view group) const {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [option, text] : given()) {
    if (option->group == group) texts.emplace_back(option->names.back(), text);
  }
  return texts;
}

std::string OptionTable::help() const {
  std::string usage = fmt::format("{}\nUsage: {} [OPTIONS]", summary_, program_);
  std::string positionals;
  std::vector<std::pair<std::string, std::string>> groups;  // heading, lines
  for (const Option& option : options_) {
    if (!chosen(option)) continue;
    if (option.positional()) {
      const std::string& name = option.names.front();
      usage += fmt::format(" [{}{}]", name, option.repeated ? "..." : "");
      positionals += help_line(name + (option.repeated ? " ..." : ""), option.help);
      continue;
    }
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& each) { return each.first == option.group; });
    if (group == groups.end()) group = groups.emplace(groups.end(), option.group, "");
    // The help of a method's option already says which values it takes.
    const std::string value = option.flag() || option.value == "VALUE" ? "" : " " + option.value;
    group->second += help_line(fmt::format("{}{}", fmt::join(option.names, ","), value), option.help);
  }
  if (!positionals.empty()) usage += "\n\nPositionals:\n" + positionals.substr(0, positionals.size() - 1);
  std::string text = usage + "\n";
  const char* between = "\n";
  for (const auto& [heading, lines] : groups) {
    text += fmt::format("{}{}:\n{}", between, heading, lines);
    between = "\n\n";
  }
  return text + "\n";
}

}  // namespace ungrain::cli
