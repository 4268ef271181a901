#include "io/signature.h"

#include <array>

namespace ungrain::io {

std::string_view format_by_signature(const SourceFile& file) {
  struct Signature {
    std::size_t at;
    std::string_view bytes;
    std::string_view name;
  };
  using namespace std::string_view_literals;
  static constexpr std::array signatures = {
      Signature{0, "\x89PNG", "PNG"},  Signature{0, "\xff\xd8\xff", "JPEG"}, Signature{0, "II*\0"sv, "TIFF"},
      Signature{0, "MM\0*"sv, "TIFF"}, Signature{0, "II+\0"sv, "TIFF"},      Signature{0, "MM\0+"sv, "TIFF"},
      Signature{0, "GIF8", "GIF"},     Signature{8, "WEBP", "WebP"},         Signature{4, "ftyp", "HEIF"},
  };
  std::array<char, 16> start{};
  const std::string_view head(start.data(), file.read_some(start.data(), start.size(), 0));
  for (const Signature& signature : signatures) {
    if (head.size() > signature.at && head.substr(signature.at).starts_with(signature.bytes))
      return signature.name;
  }
  return {};
}

}  // namespace ungrain::io
