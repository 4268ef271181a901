#include "io/vips_picture.h"

#include "io/vips_session.h"
#include "ungrain/error.h"

namespace ungrain::io {

BrowserPicture vips_picture(const std::vector<std::uint8_t>& samples, int width, int height, int channels) {
  start_vips();
  const auto failed = [] { return Error(ErrorCode::io, "no PNG file for the page: " + take_vips_message()); };
  const VipsPointer<VipsImage> image(
      vips_image_new_from_memory(samples.data(), samples.size(), width, height, channels, VIPS_FORMAT_UCHAR));
  if (image == nullptr) throw failed();
  image->Type = channels == 1 ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB;
  VipsCall save("pngsave_buffer");
  save.set("in", image.get()).set("filter", VIPS_FOREIGN_PNG_FILTER_ALL);
  if (!save.run()) throw failed();
  std::size_t size = 0;
  const VipsCall::Blob file = save.buffer();
  const auto* bytes = static_cast<const char*>(vips_blob_get(file.get(), &size));
  return {"image/png", std::string(bytes, size)};
}

}  // namespace ungrain::io
