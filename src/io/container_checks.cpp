#include "io/container_checks.h"

#include <fmt/format.h>

#include <array>

#include "io/failure.h"
#include "io/jxl_header.h"
#include "io/png_chunks.h"

namespace ungrain::io {
namespace {

// Skips a GIF's sequence of blocks, up to the byte behind its terminator.
bool skip_gif_blocks(ByteStream& bytes) {
  while (true) {
    const int size = bytes.next();
    if (size == ByteStream::end) return false;
    if (size == 0) return true;
    for (int i = 0; i < size; ++i) {
      if (bytes.next() == ByteStream::end) return false;
    }
  }
}

bool skip(ByteStream& bytes, int count) {
  for (int i = 0; i < count; ++i) {
    if (bytes.next() == ByteStream::end) return false;
  }
  return true;
}

int colour_table_bytes(int flags) { return (flags & 0x80) != 0 ? 3 << ((flags & 7) + 1) : 0; }

void check_gif(const SourceFile& file) {
  ByteStream bytes(file);
  int frames = 0;
  const auto truncated = [&] {
    fail(file.path(), fmt::format("truncated: {} whole frame{} found, then the file ends", frames,
                                  frames == 1 ? " was" : "s were"));
  };
  if (!skip(bytes, 10)) truncated();
  const int flags = bytes.next();
  if (!skip(bytes, 2 + colour_table_bytes(flags))) truncated();
  while (true) {
    const int kind = bytes.next();
    if (kind == 0x3b) return;  // the end
    if (kind == 0x21) {        // an extension
      if (!skip(bytes, 1) || !skip_gif_blocks(bytes)) truncated();
    } else if (kind == 0x2c) {
      if (!skip(bytes, 8)) truncated();
      const int image_flags = bytes.next();
      if (image_flags == ByteStream::end || !skip(bytes, colour_table_bytes(image_flags) + 1)) truncated();
      if (!skip_gif_blocks(bytes)) truncated();
      ++frames;
    } else if (kind == ByteStream::end) {
      truncated();
    } else {
      fail(file.path(), fmt::format("damaged behind frame {}", frames));
    }
  }
}

void check_png(const SourceFile& file, const PageList& wanted) {
  const PngContents contents = read_png_contents(file);
  const bool first_only = wanted.largest() == 1;
  if (contents.frames > 1 && !first_only) {
    fail(file.path(), fmt::format("an animated PNG of {} frames, of which only the first can be read: "
                                  "--pages 1 takes it",
                                  contents.frames));
  }
}

void check_jxl(const SourceFile& file, const PageList& wanted) {
  if (wanted.largest() == 1 || !jxl_is_animated(file)) return;
  fail(file.path(),
       "an animated JPEG XL file of several frames, of which only the first can be read: --pages 1 takes it");
}

void check_webp(const SourceFile& file) {
  std::array<unsigned char, 8> head{};
  if (file.read_some(head.data(), head.size(), 0) < head.size()) return;
  std::uint64_t promised = 8;
  for (unsigned i = 0; i < 4; ++i) promised += static_cast<std::uint64_t>(head[4 + i]) << (8 * i);
  if (promised > file.size()) {
    fail(file.path(),
         fmt::format("truncated: its header promises {} bytes, the file has {}", promised, file.size()));
  }
}

}  // namespace

void check_frames(const SourceFile& file, std::string_view format, const PageList& wanted) {
  if (format == "GIF") check_gif(file);
  if (format == "PNG") check_png(file, wanted);
  if (format == "WebP") check_webp(file);
  if (format == "JPEG XL") check_jxl(file, wanted);
}

}  // namespace ungrain::io
