// A file that takes another's place only once it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "io/file_access.h"
#include "io/file_guard.h"

namespace ungrain::io {

// Made beside its target, hidden and with the same extension; commit() renames it over the target, the
// destructor without commit() removes it. Where the target is a symbolic link, what it points to is replaced.
// The first in a folder removes what killed processes left there.
class TemporaryFile {
 public:
  // Throws where the target's folder is missing or not writable, or the target is there and is not a regular
  // file or may not be written. A new target is open to nobody who has no access to the files it is made
  // from.
  TemporaryFile(const std::filesystem::path& target, const FileAccess& access);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& target() const { return named_; }  // as it was given, for messages

  int descriptor() const { return descriptor_; }  // open for reading and writing

  void write(const void* from, std::size_t size, std::uint64_t offset);
  // To the disk, the permissions of the file it replaces, and in its place. Replacing it by a file of the
  // same name (as some libraries do) instead of writing to it is allowed.
  void commit();

 private:
  void create(const FileAccess& access);
  void set_permissions(int descriptor) const;
  void remove_guard();

  std::filesystem::path named_;
  std::filesystem::path target_;  // links followed
  std::filesystem::path path_;
  std::optional<FileGuard> guard_;
  int descriptor_ = -1;
  unsigned mode_ = 0600;  // of a new target
  bool committed_ = false;
};

// Has remove_temporaries() remove this file, or folder once it is empty, too.
void track_temporary(const std::filesystem::path& path);

}  // namespace ungrain::io
