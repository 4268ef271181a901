#include "io/failure.h"

#include <fmt/format.h>

#include <system_error>

#include "ungrain/error.h"

namespace ungrain::io {

std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) c = ' ';
  }
  return line;
}

namespace {
constexpr std::string_view line_ends = "\r\n";
constexpr const char* no_reason = "no reason given";
}  // namespace

std::string first_line(std::string_view text) {
  const std::size_t start = text.find_first_not_of(line_ends);
  if (start == std::string_view::npos) return no_reason;
  text = text.substr(start);
  return one_line(text.substr(0, text.find_first_of(line_ends)));
}

std::string last_line(std::string_view text) {
  const std::size_t end = text.find_last_not_of(line_ends);
  if (end == std::string_view::npos) return no_reason;
  text = text.substr(0, end + 1);
  const std::size_t before = text.find_last_of(line_ends);
  return one_line(before == std::string_view::npos ? text : text.substr(before + 1));
}

void fail(const std::filesystem::path& file, std::string_view what) {
  throw Error(ErrorCode::io, one_line(fmt::format("{}: {}", file.string(), what)));
}

void fail(const std::filesystem::path& file, std::string_view what, int error_number) {
  fail(file, fmt::format("{}: {}", what, std::generic_category().message(error_number)));
}

void fail_beyond_float(const std::filesystem::path& file, int row, double value) {
  fail(file, fmt::format("row {} has the value {:g}, which is beyond what 32-bit floats hold", row, value));
}

}  // namespace ungrain::io
