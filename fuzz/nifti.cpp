// NIfTI files, plain and in gzip files. Pages are read in both directions, so that gzip files are decoded
// again.
#include "fuzz.h"
#include "io/builtin_formats.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ungrain;
  const fuzz::MemoryFile memory(data, size);
  fuzz::expect_io_errors_only(memory.path(), [&] {
    io::SourceFile source(memory.path());
    if (!io::is_nifti(source)) return;
    const auto file = io::open_nifti(std::move(source));
    file->select_page(file->info().pages - 1);
    fuzz::read_all(*file);
    file->select_page(0);
    fuzz::read_all(*file);
  });
  return 0;
}
