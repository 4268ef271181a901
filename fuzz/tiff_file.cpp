// TIFF files from their header to their last row, decoded by libtiff, which itself is not under test.
#include "fuzz.h"
#if UNGRAIN_HAVE_TIFF
#include "io/tiff_input.h"
#endif

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
#if UNGRAIN_HAVE_TIFF
  using namespace ungrain;
  const fuzz::MemoryFile memory(data, size);
  fuzz::expect_io_errors_only(memory.path(), [&] {
    io::SourceFile source(memory.path());
    if (!io::is_tiff(source)) return;
    const std::unique_ptr<io::InputFile> file = io::open_tiff(std::move(source), {});
    const ImageSpec& spec = file->info().spec;
    constexpr double most_samples = 1e6;
    if (static_cast<double>(spec.width) * spec.height * spec.channels > most_samples ||
        static_cast<double>(file->decoding_bytes()) > most_samples) {
      return;
    }
    for (int page = 0; page < std::min(file->info().pages, 3); ++page) {
      file->select_page(page);
      fuzz::read_all(*file);
    }
  });
#else
  static_cast<void>(data), static_cast<void>(size);
#endif
  return 0;
}
