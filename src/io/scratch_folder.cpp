#include "io/scratch_folder.h"

#include <cerrno>

#include "io/failure.h"
#include "io/temporary_file.h"
#include "platform/files.h"

namespace ungrain::io {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) fail("TMPDIR", "names no folder for temporary files", error.value());
  path_ = platform::make_private_folder(parent, "ungrain-");
  if (path_.empty()) fail(parent, "no temporary folder can be made in it", errno);
  track_temporary(path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;  // errors at exit are ignored: there is nobody to report them to
  fs::remove_all(path_, ignored);
}

fs::path ScratchFolder::file(const std::string& name) const {
  fs::path path = path_ / name;
  track_temporary(path);
  return path;
}

}  // namespace ungrain::io
