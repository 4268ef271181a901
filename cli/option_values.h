// Values of options. These functions throw UsageError that names the option, what it takes and what was
// given.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "commands.h"
#include "ungrain/error.h"
#include "ungrain/parameters.h"

namespace ungrain::cli {

std::string option_name(const std::string& parameter);  // sigma_range -> --sigma-range
std::string option_help(const ParamInfo& info);         // help, what it takes, default

std::size_t parse_bytes(std::string_view option, const std::string& text);         // "512M"
double parse_range(const std::string& text, std::string_view option = "--range");  // a number above 0
std::uint64_t parse_whole(std::string_view option, const std::string& text,
                          std::uint64_t largest = std::numeric_limits<std::uint64_t>::max(),
                          std::uint64_t smallest = 0);
double parse_amount(const ParamInfo& info, const std::string& text);
struct Size {
  int width = 0;
  int height = 0;
};
Size parse_size(const std::string& text);                                               // "768x512"
std::array<double, 3> parse_spacing(std::string_view option, const std::string& text);  // "0.2,0.2,1"

template <class Number>
std::optional<Number> read_number(std::string_view text) {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

// Replaces the library's names of parameters in messages by the option that the user typed.
template <class Work>
auto naming_option(const std::string& parameter, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    std::string message = error.what();
    if (message.starts_with(parameter)) message.replace(0, parameter.size(), option_name(parameter));
    throw UsageError(message);
  }
}

}  // namespace ungrain::cli
