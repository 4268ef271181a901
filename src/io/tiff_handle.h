// libtiff as this program uses it: files by descriptor, messages kept instead of printed.
#pragma once

#include <tiffio.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "io/source_file.h"

namespace ungrain::io {

class TiffHandle {
 public:
  // One page of a file, by the offset of its directory. Throws where libtiff cannot read it.
  TiffHandle(const SourceFile& file, std::uint64_t directory);
  // A new file, open for reading and writing and empty. `mode` is libtiff's: "w8" makes a BigTIFF.
  TiffHandle(int descriptor, const std::filesystem::path& named, const char* mode);

  TIFF* get() const { return tiff_.get(); }
  // libtiff's first message since the last call.
  std::string take_message();
  bool has_message() const;
  void close() { tiff_.reset(); }  // writes what is buffered

  template <class Value>
  Value field(std::uint32_t tag, Value otherwise) const {
    Value value{};
    return TIFFGetFieldDefaulted(get(), tag, &value) == 1 ? value : otherwise;
  }

 private:
  struct Client;  // seen by libtiff's callbacks; its address must not change
  struct Close {
    void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  };
  std::shared_ptr<Client> client_;
  std::unique_ptr<TIFF, Close> tiff_;
};

}  // namespace ungrain::io
