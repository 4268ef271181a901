// Y4M streams, from the header to the last frame.
#include "io/y4m.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ungrain;
  const fuzz::MemoryFile memory(data, size);
  fuzz::expect_io_errors_only(memory.path(), [&] {
    const auto clip = io::open_y4m(io::ByteSource::open(memory.path(), {}));
    const ImageSpec& spec = clip->info().spec;
    validate(spec);
    fuzz::require(io::fits_y4m(spec), "a clip that cannot be written again");
    if (io::packed_bytes(spec) > size)
      return;  // a header alone: nothing to read, and no memory to spend on it
    io::Frame frame{Image(spec)};
    while (clip->read(frame)) fuzz::require(frame.number < static_cast<int>(size), "more frames than bytes");
  });
  return 0;
}
