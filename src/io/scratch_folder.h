// Temporary files with a name.
#pragma once

#include <filesystem>
#include <string>

namespace ungrain::io {

// In $TMPDIR or /tmp, for this user only. The destructor removes it with its contents; remove_temporaries()
// removes it with the files named by file().
class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  // The path of a file of this name, which is not created.
  std::filesystem::path file(const std::string& name) const;

 private:
  std::filesystem::path path_;
};

}  // namespace ungrain::io
