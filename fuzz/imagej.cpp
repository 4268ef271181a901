// The description that ImageJ writes into TIFF files. The input: a byte, the number of images that a stack is
// cut down to, and the description.
#include <string_view>

#include "fuzz.h"
#include "io/imagej.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ungrain;
  if (size < 1) return 0;
  const std::int64_t images = data[0] + 1;
  const std::string_view description(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::optional<io::ImageJStack> stack = io::parse_imagej(description);
  if (!stack) return 0;
  fuzz::require(stack->images >= 1, "a stack of no image");
  const std::optional<io::ImageJStack> changed = io::parse_imagej(io::with_images(description, images));
  fuzz::require(changed && changed->images == images, "a description that says another number of images");
  return 0;
}
