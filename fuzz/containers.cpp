// What we read of formats that libvips decodes: chunks of PNG, blocks of GIF, boxes of JPEG XL and JPEG 2000,
// headers of OpenEXR and WebP, comments of JPEG, Photoshop's resources. The input: a byte that chooses, and
// the file.
#include "fuzz.h"
#include "io/boxes.h"
#include "io/container_checks.h"
#include "io/exr_header.h"
#include "io/jpeg_segments.h"
#include "io/jxl_header.h"
#include "io/metadata.h"
#include "io/png_chunks.h"
#include "io/signature.h"

namespace {

using namespace ungrain;

void read_box_files(const io::SourceFile& file, const io::Bytes& bytes) {
  io::Metadata metadata;
  io::read_box_metadata(file, metadata);
  io::jxl_is_animated(file);
  metadata.exif = metadata.exif.empty() ? bytes : metadata.exif;
  io::with_jp2_boxes(bytes, metadata);
  io::with_jxl_boxes(bytes, metadata);
}

void read_resources(const io::Bytes& bytes) {
  const io::Bytes iptc = io::iptc_in_photoshop(bytes);
  const io::Bytes again = io::photoshop_with_iptc(bytes, iptc);
  fuzz::require(io::iptc_in_photoshop(again) == iptc, "IPTC that is not what was put in");
  io::Metadata metadata;
  metadata.xmp = bytes;
  metadata.exif = bytes;
  io::set_upright(metadata);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const fuzz::MemoryFile memory(data + 1, size - 1);
  const auto* begin = reinterpret_cast<const std::byte*>(data) + 1;
  const io::Bytes bytes(begin, begin + size - 1);
  fuzz::expect_io_errors_only(memory.path(), [&] {
    const io::SourceFile file(memory.path());
    io::what_it_is_instead(file);
    switch (data[0] % 7) {
      case 0:
        io::read_png_contents(file);
        io::check_frames(file, "PNG", {});
        break;
      case 1:
        io::check_frames(file, "GIF", {});
        break;
      case 2:
        read_box_files(file, bytes);
        break;
      case 3:
        io::exr_channels(file);
        break;
      case 4:
        io::check_frames(file, "WebP", {});
        break;
      case 5:
        io::read_jpeg_segments(file);
        break;
      default:
        read_resources(bytes);
        break;
    }
  });
  return 0;
}
