// The options of ungrain cluster. The program reads them, and so does the Python module for ungrain-cluster,
// which runs without the program.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "option_table.h"

namespace ungrain::cli {

// Calls `read` to read the words by the table, which has the methods for volumes where --volume is among
// them. Returns cluster.py's settings as one line of JSON: the method's parameters stay words whose values
// were checked, because their scale depends on the image. Empty where `read` returns false.
using ReadWords = std::function<bool(OptionTable& table, const Arguments& words)>;
std::string cluster_options(const Arguments& words, const ReadWords& read);

std::string json_string(std::string_view text);  // bytes that are not ASCII stay as they are

}  // namespace ungrain::cli
