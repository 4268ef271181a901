#include "io/scratch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>  // NOLINT: mkostemp is POSIX, not <cstdlib>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "io/failure.h"

namespace ungrain::io {

ScratchFile::ScratchFile(std::filesystem::path owner) : owner_(std::move(owner)) {
  std::error_code error;
  folder_ = std::filesystem::temp_directory_path(error);
  if (error) fail(owner_, "there is no folder for temporary files (TMPDIR)", error.value());
  std::string name = (folder_ / "ungrain-XXXXXX").native();
  descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    fail(owner_, fmt::format("no temporary file can be made in {}", folder_.native()), errno);
  }
  ::unlink(name.c_str());
}

ScratchFile::~ScratchFile() { ::close(descriptor_); }

void ScratchFile::write(const void* from, std::size_t size, std::uint64_t offset) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t put = ::pwrite(descriptor_, static_cast<const std::byte*>(from) + done, size - done,
                                 static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0)
      fail(owner_, fmt::format("its temporary file in {} cannot be written", folder_.native()), errno);
    done += static_cast<std::size_t>(put);
  }
}

void ScratchFile::read(void* to, std::size_t size, std::uint64_t offset) const {
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = ::pread(descriptor_, static_cast<std::byte*>(to) + done, size - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      fail(owner_, fmt::format("its temporary file in {} cannot be read", folder_.native()), errno);
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace ungrain::io
