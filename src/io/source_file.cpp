#include "io/source_file.h"

#include <cerrno>
#include <utility>

#include "io/failure.h"
#include "platform/files.h"

namespace ungrain::io {
namespace {

FileStamp stamp_of(const platform::FileStatus& status) {
  return {.device = status.device,
          .inode = status.inode,
          .size = status.size,
          .seconds = status.seconds,
          .nanoseconds = status.nanoseconds};
}

}  // namespace

SourceFile::SourceFile(std::filesystem::path path) : path_(std::move(path)) {
  // Non-blocking, so that opening a named pipe without a writer does not wait; regular files ignore it.
  descriptor_ = platform::open_file(path_, {.wait = false});
  if (descriptor_ < 0) {
    if (errno == ENOENT) fail(path_, "there is no such file");
    fail(path_, "cannot be opened", errno);
  }
  const std::optional<platform::FileStatus> status = platform::status_of(descriptor_);
  const char* problem = nullptr;
  if (!status) {
    problem = "cannot be examined";
  } else if (status->kind == platform::FileKind::folder) {
    problem = "is a folder, not an image";
  } else if (status->kind != platform::FileKind::file) {
    problem = "is not a regular file";
  } else if (status->size == 0) {
    problem = "the file is empty";
  }
  if (problem != nullptr) {
    platform::close_file(descriptor_);
    fail(path_, problem);
  }
  stamp_ = stamp_of(*status);
  access_ = {.mode = status->mode, .group = status->group};
}

SourceFile::SourceFile(SourceFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      stamp_(other.stamp_),
      access_(other.access_) {}

SourceFile::~SourceFile() {
  if (descriptor_ >= 0) platform::close_file(descriptor_);
}

std::size_t SourceFile::read_some(void* to, std::size_t size, std::uint64_t offset) const {
  constexpr std::size_t largest_read = std::size_t{1} << 30U;  // some systems refuse 2 GiB and more
  std::size_t done = 0;
  while (done < size) {
    const std::size_t part = std::min(size - done, largest_read);
    const std::ptrdiff_t got =
        platform::read_at(descriptor_, static_cast<std::byte*>(to) + done, part, offset + done);
    if (got < 0) {
      if (errno == EINTR) continue;
      fail(path_, "cannot be read", errno);
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void SourceFile::read(void* to, std::size_t size, std::uint64_t offset) const {
  if (read_some(to, size, offset) < size) fail(path_, "changed while it was read: it is shorter now");
}

void check_unchanged(const std::filesystem::path& path, const FileStamp& stamp) {
  const std::optional<platform::FileStatus> status = platform::status_of(path);
  if (!status || stamp_of(*status) != stamp) fail(path, "changed while it was read");
}

bool ByteStream::fill() {
  constexpr std::size_t block_bytes = 64 * 1024;
  block_offset_ += block_.size();
  at_ = 0;
  block_.resize(block_bytes);
  block_.resize(file_->read_some(block_.data(), block_bytes, block_offset_));
  return !block_.empty();
}

int ByteStream::peek() {
  if (at_ == block_.size() && !fill()) return end;
  return block_[at_];
}

int ByteStream::next() {
  const int byte = peek();
  if (byte != end) ++at_;
  return byte;
}

void ByteStream::seek(std::uint64_t offset) {
  block_.clear();
  block_offset_ = offset;
  at_ = 0;
}

}  // namespace ungrain::io
