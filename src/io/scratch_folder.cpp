#include "io/scratch_folder.h"

#include <stdlib.h>  // NOLINT: mkdtemp is POSIX, not <cstdlib>

#include <cerrno>

#include "io/failure.h"
#include "io/temporary_file.h"

namespace ungrain::io {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) fail("TMPDIR", "names no folder for temporary files", error.value());
  std::string name = (parent / "ungrain-XXXXXX").native();
  if (::mkdtemp(name.data()) == nullptr) fail(parent, "no temporary folder can be made in it", errno);
  path_ = name;
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
