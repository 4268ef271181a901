#include "io/png_chunks.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "io/failure.h"

namespace ungrain::io {
namespace {

constexpr std::uint64_t signature_bytes = 8;
constexpr std::uint64_t chunk_frame = 12;  // length, type, checksum
// Keyword, no compression, no language, no translated keyword.
constexpr std::string_view plain_xmp_head = {"XML:com.adobe.xmp\0\0\0\0\0", 22};

std::uint32_t big_endian_number(const std::byte* from) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8U | std::to_integer<std::uint32_t>(from[i]);
  return value;
}

void append_number(Bytes& to, std::uint32_t value) {
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    to.push_back(static_cast<std::byte>(value >> shift & 0xffU));
}

std::uint32_t checksum(const Bytes& bytes, std::size_t from) {
  std::uint32_t crc = 0xffffffffU;
  for (std::size_t i = from; i < bytes.size(); ++i) {
    crc ^= std::to_integer<std::uint32_t>(bytes[i]);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ (crc & 1U ? 0xedb88320U : 0);
  }
  return ~crc;
}

void append_chunk(Bytes& to, std::string_view type, const Bytes& data) {
  append_number(to, static_cast<std::uint32_t>(data.size()));
  const std::size_t begin = to.size();
  for (const char c : type) to.push_back(static_cast<std::byte>(c));
  to.insert(to.end(), data.begin(), data.end());
  append_number(to, checksum(to, begin));
}

bool starts_with(const Bytes& data, std::string_view text) {
  return data.size() >= text.size() &&
         std::equal(text.begin(), text.end(), data.begin(),
                    [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

// Offset of the first pixel chunk; 0: there is none.
std::uint64_t pixels_at(std::fstream& stream) {
  for (std::uint64_t at = signature_bytes;;) {
    std::array<std::byte, 8> head{};
    stream.seekg(static_cast<std::streamoff>(at));
    stream.read(reinterpret_cast<char*>(head.data()), head.size());
    if (!stream) return 0;
    if (std::string_view(reinterpret_cast<const char*>(head.data()) + 4, 4) == "IDAT") return at;
    at += chunk_frame + big_endian_number(head.data());
  }
}

// Moves the bytes from `place` on back, beginning at the end.
bool insert(std::fstream& stream, std::uint64_t place, const Bytes& bytes) {
  constexpr std::uint64_t block_bytes = std::uint64_t{1} << 20U;
  std::vector<char> block(block_bytes);
  stream.seekg(0, std::ios::end);
  for (auto end = static_cast<std::uint64_t>(stream.tellg()); end > place;) {
    const std::uint64_t count = std::min(block_bytes, end - place);
    end -= count;
    stream.seekg(static_cast<std::streamoff>(end));
    stream.read(block.data(), static_cast<std::streamsize>(count));
    stream.seekp(static_cast<std::streamoff>(end + bytes.size()));
    stream.write(block.data(), static_cast<std::streamsize>(count));
    if (!stream) return false;
  }
  stream.seekp(static_cast<std::streamoff>(place));
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  stream.flush();
  return static_cast<bool>(stream);
}

}  // namespace

PngContents read_png_contents(const SourceFile& file) {
  constexpr std::uint32_t most_text = 16U << 20U;
  PngContents contents;
  for (std::uint64_t at = signature_bytes; at + chunk_frame <= file.size();) {
    std::array<std::byte, 8> head{};
    file.read(head.data(), head.size(), at);
    const std::uint32_t length = big_endian_number(head.data());
    const std::string type(reinterpret_cast<const char*>(head.data()) + 4, 4);
    if (length > file.size() - at - chunk_frame) return contents;
    if ((type == "tEXt" || type == "zTXt" || type == "iTXt") && length <= most_text) {
      Bytes data(length);
      file.read(data.data(), data.size(), at + head.size());
      // A compressed XMP packet is copied as a text chunk.
      if (type == "iTXt" && starts_with(data, plain_xmp_head)) {
        contents.xmp.assign(data.begin() + plain_xmp_head.size(), data.end());
      } else {
        contents.texts.push_back({type, std::move(data)});
      }
    } else if (type == "acTL" && length >= 4) {
      std::array<std::byte, 4> frames{};
      file.read(frames.data(), frames.size(), at + head.size());
      contents.frames = big_endian_number(frames.data());
    } else if (type == "pHYs") {
      contents.has_resolution = true;
    } else if (type == "IEND") {
      contents.complete = true;
      return contents;
    }
    at += chunk_frame + length;
  }
  return contents;
}

void add_png_texts(const std::filesystem::path& file, const std::vector<PngText>& texts, const Bytes& xmp,
                   const std::filesystem::path& named) {
  if (texts.empty() && xmp.empty()) return;
  Bytes chunks;
  if (!xmp.empty()) {
    Bytes data;
    for (const char c : plain_xmp_head) data.push_back(static_cast<std::byte>(c));
    data.insert(data.end(), xmp.begin(), xmp.end());
    append_chunk(chunks, "iTXt", data);
  }
  for (const PngText& text : texts) append_chunk(chunks, text.type, text.data);
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  const std::uint64_t place = pixels_at(stream);
  if (place == 0 || !insert(stream, place, chunks)) fail(named, "cannot be written");
}

void drop_second_exif(const std::filesystem::path& file, const std::filesystem::path& named) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  bool seen = false;
  for (std::uint64_t at = signature_bytes;;) {
    std::array<std::byte, 8> head{};
    stream.seekg(static_cast<std::streamoff>(at));
    stream.read(reinterpret_cast<char*>(head.data()), head.size());
    if (!stream) return;
    const std::string_view type(reinterpret_cast<const char*>(head.data()) + 4, 4);
    const std::uint64_t next = at + chunk_frame + big_endian_number(head.data());
    if (type == "eXIf" && seen) {
      Bytes end;
      append_chunk(end, "IEND", {});
      std::array<char, chunk_frame> last{};
      stream.seekg(static_cast<std::streamoff>(next));
      stream.read(last.data(), last.size());
      // Removes only the block that libpng writes: the last chunk but one.
      if (!stream || !std::equal(last.begin(), last.end(), reinterpret_cast<const char*>(end.data()))) return;
      stream.seekp(static_cast<std::streamoff>(at));
      stream.write(last.data(), last.size());
      stream.close();
      std::error_code error;
      if (stream) std::filesystem::resize_file(file, at + chunk_frame, error);
      if (!stream || error) fail(named, "cannot be written");
      return;
    }
    seen = seen || type == "eXIf";
    at = next;
  }
}

}  // namespace ungrain::io
