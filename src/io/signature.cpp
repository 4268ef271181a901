#include "io/signature.h"

#include <algorithm>
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

namespace {

// Whether a brand in the first box of an MPEG-4 family file marks a picture.
bool is_picture_brand(std::string_view brand) {
  static constexpr std::array pictures = {"heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1",
                                          "miaf", "avif", "avis", "jxl ", "jp2 ", "jpx ", "mif2"};
  return std::find(pictures.begin(), pictures.end(), brand) != pictures.end();
}

bool is_svg(const SourceFile& file) {
  std::array<char, 1024> start{};
  const std::string_view head(start.data(), file.read_some(start.data(), start.size(), 0));
  const std::size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos || head[first] != '<') return false;
  return head.find("<svg") != std::string_view::npos;
}

}  // namespace

bool has_raw_signature(const SourceFile& file) {
  using namespace std::string_view_literals;
  std::array<char, 16> start{};
  const std::string_view head(start.data(), file.read_some(start.data(), start.size(), 0));
  const auto has = [&](std::size_t at, std::string_view text) {
    return head.size() >= at + text.size() && head.substr(at, text.size()) == text;
  };
  return has(4, "ftypcrx ") || has(0, "FUJIFILMCCD-RAW") || has(0, "IIRO") || has(0, "IIRS") ||
         has(0, "MMOR") || has(0, "IIU\0"sv) || has(0, "FOVb") || has(0, "\0MRM"sv) ||
         (has(8, "CR") && (has(0, "II*\0"sv) || has(0, "MM\0*"sv)));
}

std::string what_it_is_instead(const SourceFile& file) {
  using namespace std::string_view_literals;
  constexpr std::string_view video =
      "a video, of which single frames can be filtered: ffmpeg -i VIDEO frame-%05d.png takes it apart";
  std::array<char, 16> start{};
  const std::string_view head(start.data(), file.read_some(start.data(), start.size(), 0));
  const auto has = [&](std::size_t at, std::string_view text) {
    return head.size() >= at + text.size() && head.substr(at, text.size()) == text;
  };
  if (has(4, "ftypavis") || has(4, "ftypmsf1") || has(4, "ftyphevc")) {
    return "a sequence of several images (an animation), which cannot be read";
  }
  if (has(0, "%PDF-")) return "a PDF document, not an image";
  if (is_svg(file)) return "an SVG drawing (vector graphics), not an image";
  if (has(4, "ftyp") && !is_picture_brand(head.substr(8, 4))) return std::string(video);
  if (has(0, "\x1a\x45\xdf\xa3") || (has(0, "RIFF") && has(8, "AVI ")) || has(0, "FLV\1") ||
      has(0, "YUV4MPEG2") || has(0, "\0\0\1\xba"sv) || has(4, "moov") || has(4, "mdat")) {
    return std::string(video);
  }
  return "";
}

}  // namespace ungrain::io
