#include "io/scratch_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "io/failure.h"
#include "platform/files.h"

namespace ungrain::io {

ScratchFile::ScratchFile(std::filesystem::path owner) : owner_(std::move(owner)) {
  std::error_code error;
  folder_ = std::filesystem::temp_directory_path(error);
  if (error) fail(owner_, "there is no folder for temporary files (TMPDIR)", error.value());
  descriptor_ = platform::open_unnamed_file(folder_);
  if (descriptor_ < 0) {
    fail(owner_, fmt::format("no temporary file can be made in {}", folder_.string()), errno);
  }
}

ScratchFile::~ScratchFile() { platform::close_file(descriptor_); }

void ScratchFile::write(const void* from, std::size_t size, std::uint64_t offset) {
  for (std::size_t done = 0; done < size;) {
    const std::ptrdiff_t put = platform::write_at(descriptor_, static_cast<const std::byte*>(from) + done,
                                                  size - done, offset + done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0)
      fail(owner_, fmt::format("its temporary file in {} cannot be written", folder_.string()), errno);
    done += static_cast<std::size_t>(put);
  }
}

void ScratchFile::read(void* to, std::size_t size, std::uint64_t offset) const {
  for (std::size_t done = 0; done < size;) {
    const std::ptrdiff_t got =
        platform::read_at(descriptor_, static_cast<std::byte*>(to) + done, size - done, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      fail(owner_, fmt::format("its temporary file in {} cannot be read", folder_.string()), errno);
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace ungrain::io
