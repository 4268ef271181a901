#include "io/exr_header.h"

#include <cstdint>

namespace ungrain::io {
namespace {

// Reads up to a zero byte; at most 256 characters.
std::string next_name(ByteStream& bytes) {
  constexpr std::size_t longest = 256;
  std::string name;
  for (int byte = bytes.next(); byte > 0 && name.size() < longest; byte = bytes.next()) {
    name.push_back(static_cast<char>(byte));
  }
  return name;
}

std::uint32_t next_number(ByteStream& bytes) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(bytes.next() & 0xff) << (8 * i);
  return value;
}

}  // namespace

std::vector<std::string> exr_channels(const SourceFile& file) {
  constexpr int most_attributes = 1024;
  constexpr std::size_t most_channels = 1024;
  constexpr int after_name = 16;  // type, flags, sampling
  std::vector<std::string> channels;
  ByteStream bytes(file, 8);  // magic number and version
  for (int i = 0; i < most_attributes; ++i) {
    const std::string name = next_name(bytes);
    if (name.empty()) return channels;
    next_name(bytes);  // its type
    const std::uint32_t size = next_number(bytes);
    if (size > file.size() - bytes.offset()) return channels;
    const std::uint64_t end = bytes.offset() + size;
    if (name == "channels") {
      while (bytes.offset() < end && channels.size() < most_channels) {
        const std::string channel = next_name(bytes);
        if (channel.empty()) break;
        channels.push_back(channel);
        for (int skipped = 0; skipped < after_name; ++skipped) bytes.next();
      }
      return channels;
    }
    bytes.seek(end);
  }
  return channels;
}

}  // namespace ungrain::io
