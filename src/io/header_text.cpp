#include "io/header_text.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "io/failure.h"

namespace ungrain::io {

namespace {

void skip_comment(ByteStream& bytes) {
  while (bytes.peek() != '\n' && bytes.peek() != ByteStream::end) bytes.next();
}

}  // namespace

void skip_space(ByteStream& bytes) {
  for (;;) {
    const int byte = bytes.peek();
    if (is_space(byte)) {
      bytes.next();
    } else if (byte == '#') {
      skip_comment(bytes);
    } else {
      return;
    }
  }
}

std::string next_word(ByteStream& bytes) {
  constexpr std::size_t longest = 64;
  skip_space(bytes);
  std::string word;
  while (bytes.peek() != ByteStream::end && !is_space(bytes.peek()) && bytes.peek() != '#' &&
         word.size() < longest) {
    word.push_back(static_cast<char>(bytes.next()));
  }
  return word;
}

std::int64_t next_integer(const SourceFile& file, ByteStream& bytes, const char* what) {
  const std::string word = next_word(bytes);
  std::int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (stop != end || word.empty() || error == std::errc::invalid_argument) {
    fail(file.path(), fmt::format("its header is damaged: the {} is \"{}\", not a number", what, word));
  }
  return error == std::errc::result_out_of_range ? std::numeric_limits<std::int64_t>::max() : value;
}

void end_header(const SourceFile& file, ByteStream& bytes) {
  if (bytes.peek() == '#') skip_comment(bytes);
  if (!is_space(bytes.next())) fail(file.path(), "its header is damaged: it does not end in white space");
}

}  // namespace ungrain::io
