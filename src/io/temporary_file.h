// A file that replaces its target only when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "io/file_access.h"
#include "io/file_guard.h"

namespace ungrain::io {

// Created beside its target, hidden and with the same extension. commit() renames it over the target; the
// destructor without commit() removes it. Where the target is a symbolic link, the file it points to is
// replaced. The first one in a folder removes what killed processes left there.
class TemporaryFile {
 public:
  // Throws where the target's folder is missing or not writable, or the target exists and is not a regular
  // file or not writable. Nobody without access to the source files can read a new target.
  TemporaryFile(const std::filesystem::path& target, const FileAccess& access);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& target() const { return named_; }  // as given, for messages

  int descriptor() const { return descriptor_; }  // open for reading and writing

  void write(const void* from, std::size_t size, std::uint64_t offset);
  // Flushes the file to the disk, copies the permissions of the replaced file and renames it. Libraries may
  // replace the temporary file by a new file of the same name instead of writing to it.
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

// Registers a file, or a folder that will be empty, for remove_temporaries().
void track_temporary(const std::filesystem::path& path);

}  // namespace ungrain::io
