// Errors of this folder: Error(io), one line, the file's name first.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace ungrain::io {

// Replaces line breaks and other control characters, which file names and foreign messages may contain.
std::string one_line(std::string_view text);
// The first or the last line that is not empty, of another program's errors; "no reason given" where there is
// none.
std::string first_line(std::string_view text);
std::string last_line(std::string_view text);

[[noreturn]] void fail(const std::filesystem::path& file, std::string_view what);
// "<file>: <what>: <errno's message>".
[[noreturn]] void fail(const std::filesystem::path& file, std::string_view what, int error_number);
// For a 64-bit float outside the range of 32 bits.
[[noreturn]] void fail_beyond_float(const std::filesystem::path& file, int row, double value);

}  // namespace ungrain::io
