// Bytes in order from and to files, pipes and other programs: for clips, which are read and written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/file_access.h"

namespace ungrain::io {

// Asked while a read or a write waits. True: the wait ends in Error(cancelled).
using StopWaiting = std::function<bool()>;

// A descriptor that is closed with its owner.
class OwnedDescriptor {
 public:
  OwnedDescriptor() = default;
  explicit OwnedDescriptor(int number) : number_(number) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept;
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept;
  ~OwnedDescriptor() { close(); }
  int number() const { return number_; }
  void close() noexcept;

 private:
  int number_ = -1;
};

class ByteSource {
 public:
  static constexpr int end = -1;

  // `name` stands in messages.
  ByteSource(OwnedDescriptor descriptor, std::string name, StopWaiting stop);
  // Opens a file or a named pipe. Throws where there is none.
  static std::unique_ptr<ByteSource> open(const std::filesystem::path& path, StopWaiting stop);
  static std::unique_ptr<ByteSource> standard_input(StopWaiting stop);

  const std::string& name() const { return name_; }
  const FileAccess& access() const { return access_; }
  std::optional<std::uint64_t> size() const { return size_; }  // of regular files
  int next();                                                  // a byte, or `end`
  std::size_t read(void* to, std::size_t size);                // fewer bytes only at the end
  // Whether the next bytes are these; they stay unread. For the first bytes of a stream.
  bool starts_with(std::string_view bytes);

 private:
  std::size_t fetch(void* to, std::size_t size);  // once, 0 at the end

  OwnedDescriptor descriptor_;
  std::string name_;
  StopWaiting stop_;
  std::optional<std::uint64_t> size_;
  FileAccess access_;
  std::vector<unsigned char> block_;
  std::size_t at_ = 0;
};

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(const void* from, std::size_t size) = 0;
  // Makes what was written final; nothing is written afterwards.
  virtual void finish() = 0;
};

// A pipe or the like.
class DescriptorSink : public ByteSink {
 public:
  DescriptorSink(OwnedDescriptor descriptor, std::string name, StopWaiting stop);
  // After `stop` it still writes as long as the reader takes bytes, so that a frame that was begun is
  // finished.
  void write(const void* from, std::size_t size) override;
  void finish() override { descriptor_.close(); }

 private:
  OwnedDescriptor descriptor_;
  std::string name_;
  StopWaiting stop_;
};

// A regular file takes its place in finish(); a named pipe or a device is written as it is.
std::unique_ptr<ByteSink> create_sink(const std::filesystem::path& path, const FileAccess& access,
                                      StopWaiting stop);
std::unique_ptr<ByteSink> standard_output_sink(StopWaiting stop);

}  // namespace ungrain::io
