// NPY files.
#include "fuzz.h"
#include "io/builtin_formats.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ungrain;
  return fuzz::read_format(data, size, io::is_npy,
                           [](io::SourceFile file) { return io::open_npy(std::move(file), {}); });
}
