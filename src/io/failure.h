// How this folder fails: Error(io), one line, the file's name first.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace ungrain::io {

// Without line breaks and other control characters, which file names and other people's messages may have.
std::string one_line(std::string_view text);

[[noreturn]] void fail(const std::filesystem::path& file, std::string_view what);
// "<file>: <what>: <what errno says>".
[[noreturn]] void fail(const std::filesystem::path& file, std::string_view what, int error_number);
// Of a 64-bit float that 32 bits cannot hold.
[[noreturn]] void fail_beyond_float(const std::filesystem::path& file, int row, double value);

}  // namespace ungrain::io
