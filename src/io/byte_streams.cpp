#include "io/byte_streams.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "io/failure.h"
#include "io/temporary_file.h"
#include "platform/console.h"
#include "platform/files.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

constexpr int poll_ms = 50;  // signals are handled on another thread and interrupt no call

bool passing(int error_number) { return error_number == EINTR || error_number == EAGAIN; }

[[noreturn]] void throw_cancelled() { throw Error(ErrorCode::cancelled, "interrupted"); }

class FileSink : public ByteSink {
 public:
  FileSink(const std::filesystem::path& path, const FileAccess& access) : file_(path, access) {}
  void write(const void* from, std::size_t size) override {
    file_.write(from, size, offset_);
    offset_ += size;
  }
  // Without what a write that failed has left.
  void finish() override {
    if (!platform::resize_file(file_.descriptor(), offset_)) fail(file_.target(), "cannot be written", errno);
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
  if (number_ >= 0) platform::close_file(std::exchange(number_, -1));
}

ByteSource::ByteSource(OwnedDescriptor descriptor, std::string name, StopWaiting stop)
    : descriptor_(std::move(descriptor)), name_(std::move(name)), stop_(std::move(stop)) {
  const std::optional<platform::FileStatus> status = platform::status_of(descriptor_.number());
  if (!status) fail(name_, "cannot be examined", errno);
  if (status->kind == platform::FileKind::folder) fail(name_, "is a folder, not a clip");
  if (status->kind != platform::FileKind::file) return;
  size_ = status->size;
  access_ = {.mode = status->mode, .group = status->group};
}

std::unique_ptr<ByteSource> ByteSource::open(const std::filesystem::path& path, StopWaiting stop) {
  OwnedDescriptor descriptor(platform::open_file(path, {}));
  if (descriptor.number() < 0) {
    if (errno == ENOENT) fail(path, "there is no such file");
    fail(path, "cannot be opened", errno);
  }
  return std::make_unique<ByteSource>(std::move(descriptor), path.string(), std::move(stop));
}

std::unique_ptr<ByteSource> ByteSource::standard_input(StopWaiting stop) {
  OwnedDescriptor descriptor(platform::duplicate(platform::standard_input));
  if (descriptor.number() < 0) fail("standard input", "cannot be read", errno);
  return std::make_unique<ByteSource>(std::move(descriptor), "standard input", std::move(stop));
}

std::size_t ByteSource::fetch(void* to, std::size_t size) {
  constexpr std::size_t largest_read = std::size_t{1} << 30U;
  for (;;) {
    if (stop_ && stop_()) throw_cancelled();
    if (!platform::wait_readable(descriptor_.number(), poll_ms)) continue;
    const std::ptrdiff_t got = platform::read_some(descriptor_.number(), to, std::min(size, largest_read));
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
  const std::optional<platform::FileStatus> status = platform::status_of(descriptor_.number());
  const bool regular = status && status->kind == platform::FileKind::file;
  const std::size_t most = regular ? std::size_t{1} << 20U : platform::pipe_block();
  const auto* bytes = static_cast<const char*>(from);
  Clock::time_point last = Clock::now();
  while (size > 0) {
    if (!platform::wait_writable(descriptor_.number(), poll_ms)) {
      if (stop_ && stop_() && Clock::now() - last > patience) throw_cancelled();
      continue;
    }
    const std::ptrdiff_t put = platform::write_some(descriptor_.number(), bytes, std::min(size, most));
    if (put < 0 && passing(errno)) continue;
    if (put < 0) fail(name_, "cannot be written", errno);
    bytes += put;
    size -= static_cast<std::size_t>(put);
    last = Clock::now();
  }
}

std::unique_ptr<ByteSink> create_sink(const std::filesystem::path& path, const FileAccess& access,
                                      StopWaiting stop) {
  const std::optional<platform::FileStatus> status = platform::status_of(path);
  const bool special = status && status->kind == platform::FileKind::other;
  if (!special) return std::make_unique<FileSink>(path, access);
  OwnedDescriptor descriptor(platform::open_file(path, {.read = false, .write = true}));
  if (descriptor.number() < 0) fail(path, "cannot be opened", errno);
  return std::make_unique<DescriptorSink>(std::move(descriptor), path.string(), std::move(stop));
}

std::unique_ptr<ByteSink> standard_output_sink(StopWaiting stop) {
  OwnedDescriptor descriptor(platform::duplicate(platform::standard_output));
  if (descriptor.number() < 0) fail("standard output", "cannot be written", errno);
  return std::make_unique<DescriptorSink>(std::move(descriptor), "standard output", std::move(stop));
}

}  // namespace ungrain::io
