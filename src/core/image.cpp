#include "ungrain/image.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <new>

#include "ungrain/error.h"

namespace ungrain {

std::string_view name(Colour colour) {
  switch (colour) {
    case Colour::gray:
      return "gray";
    case Colour::rgb:
      return "rgb";
    case Colour::multi:
      return "multi";
  }
  return "?";
}

void validate(const ImageSpec& spec) {
  const auto fail = [](const std::string& what) { throw Error(ErrorCode::invalid_argument, what); };
  if (spec.width < 1 || spec.height < 1) {
    fail(fmt::format("the image is {} x {} pixels: it must have at least one", spec.width, spec.height));
  }
  if (spec.channels < 1 || spec.channels > max_channels) {
    fail(fmt::format("the image has {} channels: 1 to {} are supported", spec.channels, max_channels));
  }
  const int colours = spec.colour_channels();
  if (colours < 1 || (spec.colour == Colour::gray && colours != 1) ||
      (spec.colour == Colour::rgb && colours != 3)) {
    fail(fmt::format("{} channels{} cannot be {}", spec.channels, spec.alpha ? " with alpha" : "",
                     name(spec.colour)));
  }
  if (!std::isfinite(spec.range) || spec.range < 0) {
    fail(fmt::format("the range must be a positive number, got {}", spec.range));
  }
}

Strides interleaved_strides(const ImageSpec& spec) {
  const std::ptrdiff_t sample = bytes_per_sample(spec.type);
  return {.x = sample * spec.channels, .y = sample * spec.channels * spec.width, .channel = sample};
}

Strides planar_strides(const ImageSpec& spec) {
  const std::ptrdiff_t sample = bytes_per_sample(spec.type);
  return {.x = sample, .y = sample * spec.width, .channel = sample * spec.width * spec.height};
}

namespace {
constexpr std::align_val_t alignment{64};
}

Image::Image(const ImageSpec& spec) : spec_(spec) {
  validate(spec);
  data_.reset(static_cast<std::byte*>(::operator new(bytes(), alignment)));
  std::memset(data_.get(), 0, bytes());
}

std::size_t Image::bytes() const {
  return static_cast<std::size_t>(spec_.width) * spec_.height * spec_.channels * bytes_per_sample(spec_.type);
}

Image Image::copy() const {
  if (data_ == nullptr) return {};
  Image other(spec_);
  std::memcpy(other.data_.get(), data_.get(), bytes());
  return other;
}

void Image::Free::operator()(std::byte* memory) const { ::operator delete(memory, alignment); }

}  // namespace ungrain
