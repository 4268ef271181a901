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

void fail(const std::filesystem::path& file, std::string_view what) {
  throw Error(ErrorCode::io, one_line(fmt::format("{}: {}", file.native(), what)));
}

void fail(const std::filesystem::path& file, std::string_view what, int error_number) {
  fail(file, fmt::format("{}: {}", what, std::generic_category().message(error_number)));
}

void fail_beyond_float(const std::filesystem::path& file, int row, double value) {
  fail(file, fmt::format("row {} has the value {:g}, which is beyond what 32-bit floats hold", row, value));
}

}  // namespace ungrain::io
