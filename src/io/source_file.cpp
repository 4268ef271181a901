#include "io/source_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "io/failure.h"

namespace ungrain::io {
namespace {

FileStamp stamp_of(const struct stat& status) {
#ifdef __APPLE__
  const auto& modified = status.st_mtimespec;
#else
  const auto& modified = status.st_mtim;
#endif
  return {.device = static_cast<std::uint64_t>(status.st_dev),
          .inode = static_cast<std::uint64_t>(status.st_ino),
          .size = static_cast<std::uint64_t>(status.st_size),
          .seconds = static_cast<std::int64_t>(modified.tv_sec),
          .nanoseconds = static_cast<std::int64_t>(modified.tv_nsec)};
}

}  // namespace

SourceFile::SourceFile(std::filesystem::path path) : path_(std::move(path)) {
  // Non-blocking, so that opening a named pipe without a writer does not wait; regular files ignore it.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    if (errno == ENOENT) fail(path_, "there is no such file");
    fail(path_, "cannot be opened", errno);
  }
  struct stat status {};
  const char* problem = nullptr;
  if (::fstat(descriptor_, &status) != 0) {
    problem = "cannot be examined";
  } else if (S_ISDIR(status.st_mode)) {
    problem = "is a folder, not an image";
  } else if (!S_ISREG(status.st_mode)) {
    problem = "is not a regular file";
  } else if (status.st_size == 0) {
    problem = "the file is empty";
  }
  if (problem != nullptr) {
    ::close(descriptor_);
    fail(path_, problem);
  }
  stamp_ = stamp_of(status);
  access_ = {.mode = status.st_mode & 0777U, .group = status.st_gid};
}

SourceFile::SourceFile(SourceFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      stamp_(other.stamp_),
      access_(other.access_) {}

SourceFile::~SourceFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::size_t SourceFile::read_some(void* to, std::size_t size, std::uint64_t offset) const {
  constexpr std::size_t largest_read = std::size_t{1} << 30U;  // some systems refuse 2 GiB and more
  std::size_t done = 0;
  while (done < size) {
    const std::size_t part = std::min(size - done, largest_read);
    const ssize_t got =
        ::pread(descriptor_, static_cast<std::byte*>(to) + done, part, static_cast<off_t>(offset + done));
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
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || stamp_of(status) != stamp) {
    fail(path, "changed while it was read");
  }
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
