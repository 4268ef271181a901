#include "io/imagej.h"

#include <fmt/format.h>

#include <charconv>

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

}  // namespace

std::optional<ImageJStack> parse_imagej(std::string_view description) {
  if (!description.starts_with(mark)) return std::nullopt;
  ImageJStack stack;
  while (!description.empty()) {
    const std::string_view line = take_line(description);
    if (!line.starts_with(images_key)) continue;
    const std::string_view digits = line.substr(images_key.size());
    std::int64_t images = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), images);
    if (error == std::errc{} && images >= 1) stack.images = images;
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
