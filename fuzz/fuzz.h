// What the fuzz targets share. A target aborts where a parser does anything but read the input or refuse it
// with the error that it promises.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "io/image_file.h"
#include "io/source_file.h"
#include "ungrain/error.h"
#include "ungrain/image.h"

namespace ungrain::fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "ungrain fuzz: %s\n", what);
  std::abort();
}

// The input as a file in memory that can be opened by its name.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    require(descriptor_ >= 0 && write(descriptor_, data, size) == static_cast<ssize_t>(size),
            "no memory file");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(descriptor_); }

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// Calls work(), which may refuse the file only by Error(io): one line, the file's name first.
template <class Work>
void expect_io_errors_only(const std::filesystem::path& file, Work work) {
  try {
    work();
  } catch (const Error& error) {
    const std::string message = error.what();
    require(error.code() == ErrorCode::io, "an error of another kind than io");
    require(message.starts_with(file.native() + ": "), "a message without the file's name");
    require(message.find('\n') == std::string::npos, "a message of several lines");
  }
}

// All rows at once, and one by one from the last: the same samples.
inline void read_all(io::InputFile& file) {
  const ImageSpec& spec = file.info().spec;
  validate(spec);
  Image whole(spec);
  file.read_rows(0, whole.view());
  constexpr int most_rows = 8;  // to be quick
  ImageSpec one_row = spec;
  one_row.height = 1;
  Image row(one_row);
  for (int y = std::min(spec.height, most_rows); y-- > 0;) {
    file.read_rows(y, row.view());
    const auto* expected = static_cast<const std::byte*>(whole.view().data) + y * whole.view().strides.y;
    const std::size_t bytes =
        static_cast<std::size_t>(spec.width) * spec.channels * bytes_per_sample(spec.type);
    require(std::memcmp(row.view().data, expected, bytes) == 0, "a row that differs when it is read alone");
  }
  file.check_unchanged();
}

// A file of one of our own formats, from its header to its last row.
inline int read_format(const std::uint8_t* data, std::size_t size, bool (*is_format)(const io::SourceFile&),
                       std::unique_ptr<io::InputFile> (*open)(io::SourceFile)) {
  const MemoryFile memory(data, size);
  expect_io_errors_only(memory.path(), [&] {
    io::SourceFile source(memory.path());
    if (is_format(source)) read_all(*open(std::move(source)));
  });
  return 0;
}

}  // namespace ungrain::fuzz
