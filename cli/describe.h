// What each command takes, read from the very app that reads its command line: for the manual and for the
// shells' completions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "commands.h"

namespace ungrain::cli {

struct OptionText {
  std::vector<std::string> names;  // "-o", "--output"
  std::string value;               // what it is called in texts: "PATH"; empty: a flag
  std::string help;
  std::vector<std::string> choices;  // all values there are, or empty
  bool file = false;                 // the value is a file's name
};

struct CommandText {
  std::string name;
  std::string summary;
  std::vector<OptionText> positionals;
  std::vector<OptionText> options;  // without those of the methods
};

struct MethodText {
  std::string name;
  std::string summary;
  std::vector<OptionText> options;
};

std::vector<CommandText> describe_commands();
std::vector<MethodText> describe_methods();  // of `ungrain denoise --method NAME`

inline constexpr std::string_view default_method = "bm3d";

}  // namespace ungrain::cli
