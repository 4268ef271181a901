#include "noise/views.h"

#include <fmt/format.h>

#include <cstdint>

#include "core/convert.h"
#include "core/refuse_ycbcr.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

}  // namespace

std::string describe_channels(const ImageSpec& spec) {
  const std::string count = spec.colour == Colour::multi ? fmt::format(" ({} channels)", spec.channels) : "";
  return fmt::format("{}{}{}", name(spec.colour), count, spec.alpha ? " with alpha" : "");
}

void check_images(const ConstImageView& in, const ImageView& out) {
  validate(in.spec);
  validate(out.spec);
  refuse_ycbcr(in.spec, "functions that add noise");
  if (in.space.memory != Space::Memory::host || out.space.memory != Space::Memory::host) {
    throw Error(ErrorCode::unsupported, "noise is added in host memory only");
  }
  if (in.data == nullptr || out.data == nullptr) fail("noise was to be added to an image without pixels");
  if (in.spec.channels != out.spec.channels || in.spec.colour != out.spec.colour ||
      in.spec.alpha != out.spec.alpha) {
    fail(fmt::format("the input is {} and the output {}: they must be equal", describe_channels(in.spec),
                     describe_channels(out.spec)));
  }
  check_place(in.region, in.spec);
  check_place(out.region, out.spec);
}

void check_place(const Region& region, const ImageSpec& spec) {
  if (region.whole()) return;
  const std::int64_t right = std::int64_t{region.x} + spec.width;
  const std::int64_t bottom = std::int64_t{region.y} + spec.height;
  const bool inside =
      region.x >= 0 && region.y >= 0 && right <= region.image_width && bottom <= region.image_height;
  if (!inside) {
    fail(fmt::format("the view of {} x {} pixels at ({}, {}) leaves its image of {} x {}", spec.width,
                     spec.height, region.x, region.y, region.image_width, region.image_height));
  }
}

// Alpha has no white level: opaque is the type's maximum.
void copy_alpha(const ConstImageView& in, int in_y, const ImageView& out, int out_y,
                std::vector<double>& values) {
  const int channel = in.spec.channels - 1;
  if (in.spec.type == out.spec.type) return copy_row(in, in_y, out, out_y, channel);
  load_row(in, in_y, channel, values.data());
  store_row(out, out_y, channel, values.data(), natural_range(out.spec.type) / natural_range(in.spec.type));
}

}  // namespace ungrain
