// The directories, tiles and EXIF of TIFF files. The input: two bytes, the size of a TIFF file, that file,
// and an EXIF block that is added to it.
#include <algorithm>
#include <span>

#include "fuzz.h"
#include "io/tiff_exif.h"
#include "io/tiff_reader.h"


namespace {

using namespace ungrain;

void read_directories(const io::TiffReader& tiff) {
  std::uint64_t at = tiff.first_directory();
  for (int pages = 0; pages < 8 && at != 0; ++pages) {
    const io::TiffDirectory directory = tiff.directory(at);
    for (const io::TiffField& field : directory.fields) {
      if (tiff.holds(field))
        tiff.bytes(field.at, static_cast<std::size_t>(std::min<std::uint64_t>(field.bytes, 64)));
    }
    at = directory.next;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::size_t file_size = std::clamp<std::size_t>(data[0] + 256U * data[1], 1, size - 2);
  const fuzz::MemoryFile memory(data + 2, file_size);
  const std::span<const std::byte> exif(reinterpret_cast<const std::byte*>(data) + 2 + file_size,
                                        size - 2 - file_size);
  fuzz::expect_io_errors_only(memory.path(), [&] {
    const io::SourceFile file(memory.path());
    const io::TiffReader tiff(file);
    read_directories(tiff);
    const std::vector<std::byte> block = io::exif_of_tiff(file);
    fuzz::require(block.size() < 65534, "an EXIF block that no JPEG can hold");

    io::add_exif_to_tiff(memory.path(), exif);
    const io::SourceFile changed(memory.path());
    const io::TiffReader again(changed);
    fuzz::require(again.is_tiff() == tiff.is_tiff(), "a file that is no TIFF any more");
    fuzz::require(io::exif_of_tiff(changed).size() >= block.size(), "EXIF that was lost");
  });
  return 0;
}
