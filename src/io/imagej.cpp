#include "io/imagej.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace ungrain::io {
namespace {

constexpr std::string_view mark = "ImageJ=";
constexpr std::string_view images_key = "images=";

// Returns the next line without its end and removes it from `text`.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

bool depends_on_images(std::string_view line) {
  for (const std::string_view key : {images_key, std::string_view("channels="), std::string_view("slices="),
                                     std::string_view("frames="), std::string_view("hyperstack=")}) {
    if (line.starts_with(key)) return true;
  }
  return false;
}

// Leaves the number as it was where the text is no positive one.
void read_count(std::string_view text, std::int64_t& count) {
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && number >= 1) count = number;
}

// Nothing where it is none, or 0.
std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number == 0) return std::nullopt;
  return number;
}

// Some programs write another order than ImageJ's own.
bool is_order(std::string_view text) {
  std::string axes(text);
  std::sort(axes.begin(), axes.end());
  return axes == "ctz";
}

}  // namespace

std::optional<ImageJStack> parse_imagej(std::string_view description) {
  if (!description.starts_with(mark)) return std::nullopt;
  ImageJStack stack;
  while (!description.empty()) {
    std::string_view value = take_line(description);
    if (value.ends_with('\r')) value.remove_suffix(1);
    const std::size_t sign = value.find('=');
    if (sign == std::string_view::npos) continue;
    const std::string_view key = value.substr(0, sign + 1);
    value.remove_prefix(sign + 1);
    if (key == images_key) read_count(value, stack.images);
    if (key == "channels=") read_count(value, stack.channels);
    if (key == "slices=") read_count(value, stack.slices);
    if (key == "frames=") read_count(value, stack.frames);
    if (key == "spacing=") stack.spacing = number_of(value);
    if (key == "unit=") stack.unit = value;
    if (key == "zunit=") stack.depth_unit = value;
    if (key == "order=" && is_order(value)) stack.order = value;
  }
  return stack;
}

std::string with_images(std::string_view description, std::int64_t images) {
  std::string result;
  bool written = images == 1;
  while (!description.empty()) {
    const std::string_view line = take_line(description);
    if (depends_on_images(line)) {
      if (!written) result += fmt::format("{}{}\n", images_key, images);
      written = true;
    } else {
      result += line;
      result += '\n';
    }
  }
  if (!written) result += fmt::format("{}{}\n", images_key, images);
  return result;
}

}  // namespace ungrain::io
