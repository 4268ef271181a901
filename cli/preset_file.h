// --preset-file: options that were saved under a name, as JSON.
//
//   {"ungrain_preset": 1, "options": {"method": "bm3d", "strength": 0.8, "profile": "high"}}
#pragma once

#include <string>

#include "commands.h"
#include "option_table.h"

namespace ungrain::cli {

void add_preset_file_option(OptionTable& table);

// The words with those of the preset files in them before the others. An option that is also among the words
// is left out of a preset: words win. Throws UsageError with one line that names the file.
Arguments with_preset_files(const Arguments& words, const OptionTable& table);

// The options of a preset file's text, each as one word "--name=value", flags as "--name".
Arguments preset_words(const std::string& text, const OptionTable& table);

// The text of a preset file with these options: words such as --strength 0.8.
std::string preset_text(const Arguments& words);

}  // namespace ungrain::cli
