// A regular file that is open for reading, with its state at opening.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/file_access.h"

namespace ungrain::io {

// Differs between two files, and between two states of one.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t seconds = 0;  // of the last change
  std::int64_t nanoseconds = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// Throws where the name now refers to another file, or the file was written to since.
void check_unchanged(const std::filesystem::path& path, const FileStamp& stamp);

class SourceFile {
 public:
  // Throws unless `path` is a regular file that can be read and is not empty.
  explicit SourceFile(std::filesystem::path path);
  SourceFile(SourceFile&& other) noexcept;
  SourceFile& operator=(SourceFile&&) = delete;
  ~SourceFile();

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return stamp_.size; }
  const FileAccess& access() const { return access_; }

  // Reads up to `size` bytes from `offset` on; fewer at the end of the file.
  std::size_t read_some(void* to, std::size_t size, std::uint64_t offset) const;
  // Reads all of them or throws: the file was long enough when it was opened.
  void read(void* to, std::size_t size, std::uint64_t offset) const;
  const FileStamp& stamp() const { return stamp_; }
  void check_unchanged() const { io::check_unchanged(path_, stamp_); }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  FileStamp stamp_;
  FileAccess access_;
};

// The bytes of a file in order, for headers and numbers in ASCII.
class ByteStream {
 public:
  static constexpr int end = -1;

  explicit ByteStream(const SourceFile& file, std::uint64_t offset = 0)
      : file_(&file), block_offset_(offset) {}

  int next();  // a byte, or `end`
  int peek();
  std::uint64_t offset() const { return block_offset_ + at_; }  // of the byte that next() returns
  void seek(std::uint64_t offset);

 private:
  bool fill();

  const SourceFile* file_;
  std::vector<unsigned char> block_;
  std::uint64_t block_offset_;
  std::size_t at_ = 0;
};

}  // namespace ungrain::io
