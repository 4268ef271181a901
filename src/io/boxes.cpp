#include "io/boxes.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#if UNGRAIN_HAVE_BROTLI
#include <brotli/decode.h>
#endif

namespace ungrain::io {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t head_bytes = 8;
constexpr std::size_t uuid_bytes = 16;
// The UUID that marks EXIF in JPEG 2000 files.
constexpr std::string_view exif_uuid = "JpgTiffExif->JP2"sv;
constexpr std::string_view xmp_uuid = "\xbe\x7a\xcf\xcb\x97\xa9\x42\xe8\x9c\x71\x99\x94\x91\xe3\xaf\xac"sv;
constexpr std::string_view iptc_uuid = "\x33\xc7\xa4\xd2\xb8\x1d\x47\x23\xa0\xba\xf1\xa3\xe0\x97\xad\x38"sv;
constexpr std::string_view jxl_signature = "\0\0\0\x0cJXL \x0d\x0a\x87\x0a"sv;
constexpr std::string_view jp2_signature = "\0\0\0\x0cjP  \x0d\x0a\x87\x0a"sv;
constexpr std::string_view jxl_file_type =
    "\0\0\0\x14"
    "ftypjxl \0\0\0\0jxl "sv;

void append(Bytes& to, std::string_view text) {
  for (const char c : text) to.push_back(static_cast<std::byte>(c));
}
void append(Bytes& to, const Bytes& bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

void append_number(Bytes& to, std::uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) to.push_back(static_cast<std::byte>(value >> (8 * i) & 0xffU));
}

std::uint64_t number(const std::byte* from, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8U | std::to_integer<std::uint64_t>(from[i]);
  return value;
}

bool begins(const Bytes& bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(),
                    [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

void append_box(Bytes& to, std::string_view type, const Bytes& contents) {
  constexpr std::uint64_t largest = 0xffffffffU;
  if (contents.size() + head_bytes > largest) {
    append_number(to, 1, 4);
    append(to, type);
    append_number(to, contents.size() + head_bytes + 8, 8);
  } else {
    append_number(to, contents.size() + head_bytes, 4);
    append(to, type);
  }
  append(to, contents);
}

void append_uuid_box(Bytes& to, std::string_view uuid, const Bytes& contents) {
  if (contents.empty()) return;
  Bytes inside;
  append(inside, uuid);
  append(inside, contents);
  append_box(to, "uuid", inside);
}

struct Box {
  std::string type;
  std::uint64_t begin = 0;
  std::uint64_t contents = 0;
  std::uint64_t end = 0;
};

// `read` gives bytes of a source that is `size` long.
template <class Read>
std::vector<Box> list_boxes(std::uint64_t begin, std::uint64_t size, Read read) {
  constexpr std::size_t most_boxes = 4096;
  std::vector<Box> boxes;
  while (begin + head_bytes <= size && boxes.size() < most_boxes) {
    std::array<std::byte, head_bytes> head{};
    read(head.data(), head.size(), begin);
    Box box{std::string(reinterpret_cast<const char*>(head.data()) + 4, 4), begin, begin + head_bytes, 0};
    std::uint64_t length = number(head.data(), 4);
    if (length == 1) {
      if (begin + head_bytes + 8 > size) break;
      read(head.data(), head.size(), begin + head_bytes);
      length = number(head.data(), 8);
      box.contents += 8;
    }
    if (length == 0) length = size - begin;
    if (length > size - begin || begin + length < box.contents) break;
    box.end = begin + length;
    begin = box.end;
    boxes.push_back(std::move(box));
  }
  return boxes;
}

std::vector<Box> boxes_of(const Bytes& bytes, std::uint64_t begin, std::uint64_t end) {
  return list_boxes(begin, end, [&](std::byte* to, std::size_t size, std::uint64_t at) {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size, to);
  });
}

Bytes part(const Bytes& bytes, std::uint64_t begin, std::uint64_t end) {
  return {bytes.begin() + static_cast<std::ptrdiff_t>(begin),
          bytes.begin() + static_cast<std::ptrdiff_t>(end)};
}

// The header of a JPEG 2000 file with an ICC profile in place of the named colour space.
Bytes with_profile(const Bytes& file, const Box& header, const Bytes& icc) {
  Bytes inside;
  for (const Box& box : boxes_of(file, header.contents, header.end)) {
    if (box.type != "colr") append(inside, part(file, box.begin, box.end));
  }
  Bytes colour;
  append_number(colour, 2, 1);  // a restricted ICC profile
  append_number(colour, 0, 2);  // precedence and approximation: none
  append(colour, icc);
  append_box(inside, "colr", colour);
  Bytes whole;
  append_box(whole, "jp2h", inside);
  return whole;
}

// Decodes a Brotli stream; empty where it is damaged or this build has no Brotli.
Bytes decompressed([[maybe_unused]] const Bytes& stream) {
#if UNGRAIN_HAVE_BROTLI
  for (std::size_t size = std::size_t{1} << 16U; size <= std::size_t{1} << 26U; size *= 4) {
    Bytes plain(size);
    std::size_t got = size;
    if (BrotliDecoderDecompress(stream.size(), reinterpret_cast<const std::uint8_t*>(stream.data()), &got,
                                reinterpret_cast<std::uint8_t*>(plain.data())) ==
        BROTLI_DECODER_RESULT_SUCCESS) {
      plain.resize(got);
      return plain;
    }
  }
#endif
  return {};
}

void take_metadata(const std::string& type, const Bytes& contents, Metadata& metadata) {
  if (type == "Exif" && contents.size() > 4) {
    const std::uint64_t skipped = number(contents.data(), 4) + 4;  // distance to the start of the EXIF
    if (skipped < contents.size()) metadata.exif = part(contents, skipped, contents.size());
  } else if (type == "xml " && !contents.empty()) {
    metadata.xmp = contents;
  } else if (begins(contents, exif_uuid)) {
    metadata.exif = part(contents, uuid_bytes, contents.size());
  } else if (begins(contents, xmp_uuid)) {
    metadata.xmp = part(contents, uuid_bytes, contents.size());
  } else if (begins(contents, iptc_uuid)) {
    metadata.iptc = part(contents, uuid_bytes, contents.size());
  }
}

}  // namespace

void read_box_metadata(const SourceFile& file, Metadata& metadata) {
  constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20U;
  std::array<std::byte, 12> start{};
  if (file.read_some(start.data(), start.size(), 0) < start.size()) return;
  const Bytes head(start.begin(), start.end());
  if (!begins(head, jxl_signature) && !begins(head, jp2_signature)) return;
  const auto read = [&](std::byte* to, std::size_t size, std::uint64_t at) { file.read(to, size, at); };
  for (const Box& box : list_boxes(0, file.size(), read)) {
    const std::uint64_t size = box.end - box.contents;
    const bool wanted = box.type == "Exif" || box.type == "xml " || box.type == "uuid" || box.type == "brob";
    if (!wanted || size > most_bytes) continue;
    Bytes contents(static_cast<std::size_t>(size));
    file.read(contents.data(), contents.size(), box.contents);
    if (box.type != "brob") {
      take_metadata(box.type, contents, metadata);
    } else if (size > 4) {  // the type of the box that was compressed, then its contents
      const std::string type(reinterpret_cast<const char*>(contents.data()), 4);
      const Bytes plain = decompressed(part(contents, 4, size));
      if (plain.empty()) metadata.unread = "compressed metadata";
      take_metadata(type, plain, metadata);
    }
  }
}

std::optional<std::uint64_t> jxl_codestream_at(const SourceFile& file) {
  std::array<std::byte, 12> start{};
  if (file.read_some(start.data(), start.size(), 0) < 2) return std::nullopt;
  const Bytes head(start.begin(), start.end());
  if (begins(head, "\xff\x0a")) return 0;
  if (!begins(head, jxl_signature)) return std::nullopt;
  const auto read = [&](std::byte* to, std::size_t size, std::uint64_t at) { file.read(to, size, at); };
  for (const Box& box : list_boxes(0, file.size(), read)) {
    if (box.type == "jxlc") return box.contents;
    if (box.type == "jxlp") return box.contents + 4;  // behind the number of the part
  }
  return std::nullopt;
}

Bytes with_jxl_boxes(Bytes encoded, const Metadata& metadata) {
  if (metadata.exif.empty() && metadata.xmp.empty()) return encoded;
  Bytes file;
  Bytes exif;
  if (!metadata.exif.empty()) {
    append_number(exif, 0, 4);  // offset of the EXIF: 0
    append(exif, metadata.exif);
  }
  if (!begins(encoded, jxl_signature)) {
    append(file, jxl_signature);
    append(file, jxl_file_type);
    append_box(file, "jxlc", encoded);
  } else {
    file = std::move(encoded);
  }
  if (!exif.empty()) append_box(file, "Exif", exif);
  if (!metadata.xmp.empty()) append_box(file, "xml ", metadata.xmp);
  return file;
}

Bytes with_jp2_boxes(Bytes encoded, const Metadata& metadata) {
  if (!begins(encoded, jp2_signature)) return encoded;
  Bytes file;
  for (const Box& box : boxes_of(encoded, 0, encoded.size())) {
    if (box.type == "jp2h" && !metadata.icc.empty()) {
      append(file, with_profile(encoded, box, metadata.icc));
    } else if (box.type == "jp2c") {  // its length may be 0: to the end of the file
      append_box(file, box.type, part(encoded, box.contents, box.end));
    } else {
      append(file, part(encoded, box.begin, box.end));
    }
  }
  append_uuid_box(file, exif_uuid, metadata.exif);
  append_uuid_box(file, xmp_uuid, metadata.xmp);
  append_uuid_box(file, iptc_uuid, metadata.iptc);
  return file;
}

}  // namespace ungrain::io
