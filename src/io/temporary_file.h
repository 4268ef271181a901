// A file that takes another's place only once it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace ungrain::io {

// Made beside its target, hidden and with the same extension; commit() renames it over the target, the
// destructor without commit() removes it. Where the target is a symbolic link, what it points to is replaced.
class TemporaryFile {
 public:
  // Throws where the target's folder is missing or not writable, or the target is there and is not a regular
  // file or may not be written.
  explicit TemporaryFile(const std::filesystem::path& target);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& target() const { return named_; }  // as it was given, for messages

  void write(const void* from, std::size_t size, std::uint64_t offset);
  // To the disk, the permissions of the file it replaces, and in its place. Replacing it by a file of the
  // same name (as some libraries do) instead of writing to it is allowed.
  void commit();

 private:
  void create();
  void copy_permissions(int descriptor) const;

  std::filesystem::path named_;
  std::filesystem::path target_;  // links followed
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool committed_ = false;
};

// Has remove_temporaries() remove this file, or folder once it is empty, too.
void track_temporary(const std::filesystem::path& path);

}  // namespace ungrain::io
