// Tells temporary files in use from those that a killed process left behind.
//
// Each temporary file has a guard beside it: an empty file, NAME.lock, that the process keeps locked. The
// kernel releases the lock when the process ends for any reason, and a network file system shows the lock to
// other machines. The temporary file itself is not locked, for two reasons: encoders may replace it by a new
// file of the same name, and on some network file systems a lock keeps other descriptors from writing.
#pragma once

#include <filesystem>
#include <optional>

namespace ungrain::io {

class FileGuard {
 public:
  // Creates and locks the guard of `file`. Null, with errno, on failure; EEXIST: the name is taken.
  static std::optional<FileGuard> create(const std::filesystem::path& file);
  FileGuard(FileGuard&& other) noexcept;
  FileGuard& operator=(FileGuard&&) = delete;
  ~FileGuard();  // removes the guard; the guarded file must be removed or renamed first

  const std::filesystem::path& path() const { return path_; }

 private:
  FileGuard(std::filesystem::path path, int descriptor);

  std::filesystem::path path_;
  int descriptor_;
};

// Removes the temporary files in `folder`, with their guards, whose processes have ended; once per folder and
// process. Only files of this user whose guard can be locked: on a file system without locks they stay.
void remove_leftovers(const std::filesystem::path& folder);

}  // namespace ungrain::io
