#include "io/byte_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <utility>

#include "io/failure.h"
#include "io/temporary_file.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

constexpr int poll_ms = 50;  // signals are handled on another thread and interrupt no call

bool passing(int error_number) { return error_number == EINTR || error_number == EAGAIN; }

[[noreturn]] void throw_cancelled() { throw Error(ErrorCode::cancelled, "interrupted"); }

bool is_ready(int descriptor, short events) {
  pollfd wanted{descriptor, events, 0};
  return ::poll(&wanted, 1, poll_ms) != 0;
}

class FileSink : public ByteSink {
 public:
  FileSink(const std::filesystem::path& path, const FileAccess& access) : file_(path, access) {}
  void write(const void* from, std::size_t size) override {
    file_.write(from, size, offset_);
    offset_ += size;
  }
  // Without what a write that failed has left.
  void finish() override {
    if (::ftruncate(file_.descriptor(), static_cast<off_t>(offset_)) != 0)
      fail(file_.target(), "cannot be written", errno);
    file_.commit();
  }

 private:
  TemporaryFile file_;
  std::uint64_t offset_ = 0;
};

}  // namespace

OwnedDescriptor::OwnedDescriptor(OwnedDescriptor&& other) noexcept
    : number_(std::exchange(other.number_, -1)) {}

OwnedDescriptor& OwnedDescriptor::operator=(OwnedDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

void OwnedDescriptor::close() noexcept {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

ByteSource::ByteSource(OwnedDescriptor descriptor, std::string name, StopWaiting stop)
    : descriptor_(std::move(descriptor)), name_(std::move(name)), stop_(std::move(stop)) {
  struct stat status {};
  if (::fstat(descriptor_.number(), &status) != 0) fail(name_, "cannot be examined", errno);
  if (S_ISDIR(status.st_mode)) fail(name_, "is a folder, not a clip");
  if (!S_ISREG(status.st_mode)) return;
  size_ = static_cast<std::uint64_t>(status.st_size);
  access_ = {.mode = status.st_mode & 0777U, .group = status.st_gid};
}

std::unique_ptr<ByteSource> ByteSource::open(const std::filesystem::path& path, StopWaiting stop) {
  OwnedDescriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.number() < 0) {
    if (errno == ENOENT) fail(path, "there is no such file");
    fail(path, "cannot be opened", errno);
  }
  return std::make_unique<ByteSource>(std::move(descriptor), path.native(), std::move(stop));
}

std::unique_ptr<ByteSource> ByteSource::standard_input(StopWaiting stop) {
  OwnedDescriptor descriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  if (descriptor.number() < 0) fail("standard input", "cannot be read", errno);
  return std::make_unique<ByteSource>(std::move(descriptor), "standard input", std::move(stop));
}

std::size_t ByteSource::fetch(void* to, std::size_t size) {
  constexpr std::size_t largest_read = std::size_t{1} << 30U;
  for (;;) {
    if (stop_ && stop_()) throw_cancelled();
    if (!is_ready(descriptor_.number(), POLLIN)) continue;
    const ssize_t got = ::read(descriptor_.number(), to, std::min(size, largest_read));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (!passing(errno)) fail(name_, "cannot be read", errno);
  }
}

int ByteSource::next() {
  if (at_ == block_.size()) {
    constexpr std::size_t block_bytes = std::size_t{1} << 16U;
    at_ = 0;
    block_.resize(block_bytes);
    block_.resize(fetch(block_.data(), block_bytes));
    if (block_.empty()) return end;
  }
  return block_[at_++];
}

std::size_t ByteSource::read(void* to, std::size_t size) {
  auto* bytes = static_cast<unsigned char*>(to);
  std::size_t done = 0;
  constexpr std::size_t small = 4096;  // cheaper through the block than by calls of their own
  while (done < size) {
    if (at_ < block_.size()) {
      const std::size_t part = std::min(size - done, block_.size() - at_);
      std::memcpy(bytes + done, block_.data() + at_, part);
      at_ += part;
      done += part;
    } else if (size - done < small) {
      const int byte = next();
      if (byte == end) break;
      --at_;
    } else {
      const std::size_t part = fetch(bytes + done, size - done);
      if (part == 0) break;
      done += part;
    }
  }
  return done;
}

bool ByteSource::starts_with(std::string_view bytes) {
  block_.erase(block_.begin(), block_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = 0;
  while (block_.size() < bytes.size()) {
    std::vector<unsigned char> more(bytes.size() - block_.size());
    more.resize(fetch(more.data(), more.size()));
    if (more.empty()) return false;
    block_.insert(block_.end(), more.begin(), more.end());
  }
  return std::memcmp(block_.data(), bytes.data(), bytes.size()) == 0;
}

DescriptorSink::DescriptorSink(OwnedDescriptor descriptor, std::string name, StopWaiting stop)
    : descriptor_(std::move(descriptor)), name_(std::move(name)), stop_(std::move(stop)) {}

void DescriptorSink::write(const void* from, std::size_t size) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds patience{2};  // with a reader that takes nothing, after `stop`
  struct stat status {};
  const bool regular = ::fstat(descriptor_.number(), &status) == 0 && S_ISREG(status.st_mode);
  // A pipe that is ready takes PIPE_BUF bytes without blocking.
  const std::size_t most = regular ? std::size_t{1} << 20U : PIPE_BUF;
  const auto* bytes = static_cast<const char*>(from);
  Clock::time_point last = Clock::now();
  while (size > 0) {
    if (!is_ready(descriptor_.number(), POLLOUT)) {
      if (stop_ && stop_() && Clock::now() - last > patience) throw_cancelled();
      continue;
    }
    const ssize_t put = ::write(descriptor_.number(), bytes, std::min(size, most));
    if (put < 0 && passing(errno)) continue;
    if (put < 0) fail(name_, "cannot be written", errno);
    bytes += put;
    size -= static_cast<std::size_t>(put);
    last = Clock::now();
  }
}

std::unique_ptr<ByteSink> create_sink(const std::filesystem::path& path, const FileAccess& access,
                                      StopWaiting stop) {
  struct stat status {};
  const bool special =
      ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
  if (!special) return std::make_unique<FileSink>(path, access);
  OwnedDescriptor descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (descriptor.number() < 0) fail(path, "cannot be opened", errno);
  return std::make_unique<DescriptorSink>(std::move(descriptor), path.native(), std::move(stop));
}

std::unique_ptr<ByteSink> standard_output_sink(StopWaiting stop) {
  OwnedDescriptor descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (descriptor.number() < 0) fail("standard output", "cannot be written", errno);
  return std::make_unique<DescriptorSink>(std::move(descriptor), "standard output", std::move(stop));
}

}  // namespace ungrain::io
