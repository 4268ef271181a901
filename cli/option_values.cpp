#include "option_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ungrain/parameters.h"

namespace ungrain::cli {

std::string option_name(const std::string& parameter) {
  std::string name = "--" + parameter;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string option_help(const ParamInfo& info) {
  std::string scale;
  if (info.unit == Unit::intensity || info.unit == Unit::intensity_squared) scale = ", on the 0-255 scale";
  if (info.unit == Unit::pixels) scale = ", pixels";
  const std::string fallback = info.default_text.empty() ? "" : "; default " + info.default_text;
  return fmt::format("{} ({}{}{})", info.help, what_it_takes(info), scale, fallback);
}

std::size_t parse_bytes(std::string_view option, const std::string& text) {
  const auto fail = [&] {
    throw UsageError(fmt::format("{} takes a size such as 512M or 2G, got '{}'", option, text));
  };
  std::string_view digits = text;
  if (digits.ends_with("iB")) digits.remove_suffix(2);
  if (digits.size() > 1 && digits.ends_with('B')) digits.remove_suffix(1);
  double factor = 1;
  if (!digits.empty()) {
    constexpr std::string_view suffixes = "KMGT";
    const std::size_t power = suffixes.find(static_cast<char>(std::toupper(digits.back())));
    if (power != std::string_view::npos) {
      factor = std::pow(1024.0, static_cast<double>(power) + 1);
      digits.remove_suffix(1);
    }
  }
  const double bytes = read_number<double>(digits).value_or(0) * factor;
  if (!(bytes >= 1) || bytes > 1e18) fail();
  return static_cast<std::size_t>(bytes);
}

double parse_range(const std::string& text, std::string_view option) {
  const double value = read_number<double>(text).value_or(0);
  if (!std::isfinite(value) || value <= 0) {
    throw UsageError(fmt::format("{} takes a number above 0, got '{}'", option, text));
  }
  return value;
}

std::uint64_t parse_whole(std::string_view option, const std::string& text, std::uint64_t largest,
                          std::uint64_t smallest) {
  const std::optional<std::uint64_t> value = read_number<std::uint64_t>(text);
  if (!value || *value > largest || *value < smallest) {
    throw UsageError(
        fmt::format("{} takes a whole number from {} to {}, got '{}'", option, smallest, largest, text));
  }
  return *value;
}

double parse_amount(const ParamInfo& info, const std::string& text) {
  return naming_option(info.name, [&] { return std::get<double>(parse_value(info, text)); });
}

Size parse_size(const std::string& text) {
  const std::size_t cross = std::min(text.find('x'), text.size());
  const std::string_view height = std::string_view(text).substr(std::min(cross + 1, text.size()));
  const Size size{read_number<int>(std::string_view(text).substr(0, cross)).value_or(0),
                  read_number<int>(height).value_or(0)};
  constexpr int largest = 65536;
  if (size.width < 1 || size.height < 1 || size.width > largest || size.height > largest) {
    throw UsageError(fmt::format("--size takes WIDTHxHEIGHT, each from 1 to {}, got '{}'", largest, text));
  }
  return size;
}

std::array<double, 3> parse_spacing(std::string_view option, const std::string& text) {
  std::array<double, 3> spacing{};
  std::size_t begin = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::size_t end = axis < 2 ? text.find(',', begin) : text.size();
    const std::optional<double> number =
        end == std::string::npos ? std::nullopt : read_number<double>(text.substr(begin, end - begin));
    if (!number || !(*number > 0) || std::isinf(*number))
      throw UsageError(fmt::format("{} takes three numbers above 0, such as 1,1,3; got '{}'", option, text));
    spacing[axis] = *number;
    begin = end + 1;
  }
  return spacing;
}

}  // namespace ungrain::cli
