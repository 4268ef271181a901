// The options of ungrain cluster. The program reads them, and so does the Python module for ungrain-cluster,
// which runs without the program.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "option_table.h"

namespace ungrain::cli {

// Has `read` read the words by the table. What cluster.py works with, on one line of JSON: the method's
// parameters are words whose values were checked, because their scale is the image's. Empty where `read`
// returns false.
std::string cluster_options(const std::function<bool(OptionTable& table)>& read);

std::string json_string(std::string_view text);  // bytes that are not ASCII as they are

}  // namespace ungrain::cli
