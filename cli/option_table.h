// The options of a command, each described once. This table reads the command line; --help, the manual and
// the shells' completions are printed from it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "commands.h"

namespace ungrain::cli {

// Receives the text of an option. Converts from a variable that stores it.
struct SetText : std::function<void(const std::string& text)> {
  using function::function;
  SetText(std::string& to) : function([&to](const std::string& text) { to = text; }) {}  // NOLINT: implicit
  SetText(std::vector<std::string>& to)                                                  // NOLINT: implicit
      : function([&to](const std::string& text) { to.push_back(text); }) {}
  SetText(bool& flag) : function([&flag](const std::string&) { flag = true; }) {}  // NOLINT: implicit
};

struct Option {
  std::vector<std::string> names;  // "-o", "--output"; one without dashes is found by its position
  std::string value;               // its name in texts: "PATH"; empty: a flag
  std::string help;
  SetText set;
  std::string group;                      // its heading in --help
  std::vector<std::string> choices = {};  // values that are completed
  // The same, where it takes time to find them; only completions ask.
  std::function<std::vector<std::string>()> slow_choices = {};
  bool only_choices = false;    // no other values are allowed
  bool file = false;            // the value is a file's name
  bool repeated = false;        // by position: takes all remaining words
  bool chooses_method = false;  // set before the others, which depend on it
  bool yields = false;          // to an option of the chosen method with the same name
  std::string method = {};      // that it belongs to; empty: to all

  bool positional() const { return !names.front().starts_with('-'); }
  bool flag() const { return !positional() && value.empty(); }
  std::vector<std::string> completed_values() const { return slow_choices ? slow_choices() : choices; }
  // Allows only these words, and lists them in the help in place of "{}".
  Option& only(std::vector<std::string> words);
};

class OptionTable {
 public:
  OptionTable(std::string summary, std::string program);
  OptionTable(const OptionTable&) = delete;
  OptionTable& operator=(const OptionTable&) = delete;

  // `spelling`: "-o,--output PATH", "--flag", "file" or "files...". The reference is valid until the next
  // call.
  Option& add(std::string_view spelling, std::string help, SetText set);
  // An option that takes one word of a list, each with its value.
  template <class Value>
  Option& add(std::string_view spelling, std::string help, Value& value,
              const std::type_identity_t<std::vector<std::pair<std::string, Value>>>& choices) {
    std::map<std::string, Value> values(choices.begin(), choices.end());
    std::vector<std::string> words;
    for (const auto& choice : choices) words.push_back(choice.first);
    const auto set = [&value, values](const std::string& text) { value = values.at(text); };
    return add(spelling, std::move(help), set).only(std::move(words));
  }
  void begin_group(std::string heading) { group_ = std::move(heading); }  // of the options added from here on
  // Only this method's options count among those that belong to methods. It may change while words are read.
  void follow_method(const std::string& method) { method_ = &method; }
  // Replaces "there is no option" at the beginning of the message.
  void refuse_with(std::string words) { refusal_ = std::move(words); }

  // Sets the options' variables, in the order of the table. False: help was asked for. Throws UsageError with
  // one line that names the option; for an unknown option it names the nearest one, or the methods that have
  // it.
  bool read(const Arguments& words);
  // Every option that was read with its text, in the order of the table.
  std::vector<std::pair<const Option*, std::string>> given() const;
  // The same of a group's options, by their long names.
  std::vector<std::pair<std::string, std::string>> given(std::string_view group) const;
  std::string help() const;
  const std::vector<Option>& options() const { return options_; }

 private:
  struct TypedOption;
  std::vector<TypedOption> split(const Arguments& words, Arguments& files) const;
  const Option* find(std::string_view name, bool of_any_method) const;
  bool chosen(const Option& option) const;
  [[noreturn]] void refuse(const std::string& name) const;

  std::string summary_;
  std::string program_;
  std::string group_ = "Options";
  std::string refusal_ = "there is no option";
  std::vector<Option> options_;
  std::map<const Option*, std::string> given_;
  const std::string* method_ = nullptr;
  bool help_wanted_ = false;
};

}  // namespace ungrain::cli
