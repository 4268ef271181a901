// DICOM files. Frames are read in both directions, so that deflated pixels are decoded again.
#include "fuzz.h"
#include "io/builtin_formats.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ungrain;
  const fuzz::MemoryFile memory(data, size);
  fuzz::expect_io_errors_only(memory.path(), [&] {
    const io::SourceFile source(memory.path());
    if (!io::is_dicom(source)) return;
    const auto file = io::open_dicom(source, {});
    const ImageSpec& spec = file->info().spec;
    constexpr double most_pixels = 1 << 24;  // to be quick: what 64 KiB of RLE hold
    if (static_cast<double>(spec.width) * spec.height > most_pixels) return;
    file->select_page(file->info().pages - 1);
    fuzz::read_all(*file);
    file->select_page(0);
    fuzz::read_all(*file);
  });
  return 0;
}
