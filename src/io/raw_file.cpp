#include "io/raw_file.h"

#include "io/signature.h"
#include "io/tiff_pages.h"

namespace ungrain::io {

ImageSpec raw_spec(const RawInfo& raw) {
  return {.width = raw.colour ? (raw.width + 1) / 2 : raw.width,
          .height = raw.colour ? (raw.height + 1) / 2 : raw.height,
          .channels = raw.colour ? 4 : 1,
          .type = PixelType::f32,
          .colour = raw.colour ? Colour::multi : Colour::gray,
          .range = raw.white - raw.mean_black()};
}

std::string raw_kind(const SourceFile& file) {
  return has_raw_signature(file) ? "camera raw" : raw_kind_of_tiff(file);
}

}  // namespace ungrain::io
