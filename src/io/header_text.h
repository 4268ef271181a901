// The words of a PNM or PFM header.
#pragma once

#include <cstdint>
#include <string>

#include "io/source_file.h"

namespace ungrain::io {

constexpr bool is_space(int byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r' || byte == '\v' || byte == '\f';
}
constexpr bool is_digit(int byte) { return byte >= '0' && byte <= '9'; }

// Skips white space and comments, which go from # to the end of the line.
void skip_space(ByteStream& bytes);
// The next word, up to white space or a comment, which stay unread; empty at the end of the file. At most 64
// characters.
std::string next_word(ByteStream& bytes);
// Reads a whole number; throws where the word is none. Numbers beyond 64 bits become the largest 64-bit
// number.
std::int64_t next_integer(const SourceFile& file, ByteStream& bytes, const char* what);
// The one white-space character between a header and binary samples; a comment may stand before it.
void end_header(const SourceFile& file, ByteStream& bytes);

}  // namespace ungrain::io
