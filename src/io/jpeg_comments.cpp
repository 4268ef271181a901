#include "io/jpeg_comments.h"

#include <array>
#include <cstdint>

namespace ungrain::io {

std::vector<std::string> read_jpeg_comments(const SourceFile& file) {
  constexpr unsigned comment = 0xfe;
  constexpr unsigned start_of_scan = 0xda;
  std::vector<std::string> comments;
  for (std::uint64_t at = 2; at + 4 <= file.size();) {
    std::array<unsigned char, 4> head{};  // marker and length, which counts itself
    file.read(head.data(), head.size(), at);
    const unsigned length = static_cast<unsigned>(head[2]) << 8U | head[3];
    if (head[0] != 0xff || head[1] == start_of_scan || length < 2 || length > file.size() - at - 2) break;
    if (head[1] == comment && length > 2) {
      std::string text(length - 2, ' ');
      file.read(text.data(), text.size(), at + head.size());
      comments.push_back(std::move(text));
    }
    at += 2 + length;
  }
  return comments;
}

}  // namespace ungrain::io
