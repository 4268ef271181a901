// Temporary files that need a name.
#pragma once

#include <filesystem>
#include <string>

namespace ungrain::io {

// In $TMPDIR or /tmp, for this user only. Removed with all that is in it by the destructor, and, as far as it
// came from file(), by remove_temporaries().
class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  // The path that a file of this name will have; it is not made.
  std::filesystem::path file(const std::string& name) const;

 private:
  std::filesystem::path path_;
};

}  // namespace ungrain::io
