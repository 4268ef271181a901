// Disk space for data that does not fit into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace ungrain::io {

// In $TMPDIR or /tmp, without a name, so that no file can be left behind.
class ScratchFile {
 public:
  explicit ScratchFile(std::filesystem::path owner);  // the file that errors name
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile();

  void write(const void* from, std::size_t size, std::uint64_t offset);
  void read(void* to, std::size_t size, std::uint64_t offset) const;  // reads what was written

 private:
  std::filesystem::path owner_;
  std::filesystem::path folder_;
  int descriptor_ = -1;
};

}  // namespace ungrain::io
