#include "ungrain/image.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>

#include "core/refuse_ycbcr.h"
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
    case Colour::ycbcr:
      return "ycbcr";
  }
  return "?";
}

namespace {

void validate_slice(const ImageSpec& spec) {
  const SliceShape& slice = spec.slice;
  const auto fail = [](const std::string& what) { throw Error(ErrorCode::invalid_argument, what); };
  if (spec.colour == Colour::ycbcr) fail("a volume is gray, rgb or multi, not ycbcr");
  if (slice.width < 1 || slice.height < 1 || std::int64_t{slice.width} * slice.height != spec.width) {
    fail(fmt::format("slices of {} x {} voxels do not make rows of {}", slice.width, slice.height,
                     spec.width));
  }
  const bool whole = slice.whole_width == 0 && slice.whole_height == 0;
  const auto lies_in = [](int first, int count, int of) { return first >= 0 && first <= of - count; };
  if (whole ? slice.x != 0 || slice.y != 0
            : !lies_in(slice.x, slice.width, slice.whole_width) ||
                  !lies_in(slice.y, slice.height, slice.whole_height)) {
    fail("a part of a volume's slices lies outside them");
  }
}

}  // namespace

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
      ((spec.colour == Colour::rgb || spec.colour == Colour::ycbcr) && colours != 3)) {
    fail(fmt::format("{} channels{} cannot be {}", spec.channels, spec.alpha ? " with alpha" : "",
                     name(spec.colour)));
  }
  if (!std::isfinite(spec.range) || spec.range < 0) {
    fail(fmt::format("the range must be a positive number, got {}", spec.range));
  }
  const auto divides = [](int step) { return step == 1 || step == 2 || step == 4; };
  const auto [x, y] = spec.chroma;
  if (!divides(x) || !divides(y)) {
    fail(fmt::format("one sample of chroma for {} x {} of luma: 1, 2 and 4 are supported", x, y));
  }
  if (spec.colour != Colour::ycbcr && spec.chroma != Subsampling{}) {
    fail(fmt::format("only ycbcr has fewer samples of chroma, not {}", name(spec.colour)));
  }
  if (spec.slice != SliceShape{}) validate_slice(spec);
}

Strides interleaved_strides(const ImageSpec& spec) {
  const std::ptrdiff_t sample = bytes_per_sample(spec.type);
  return {.x = sample * spec.channels, .y = sample * spec.channels * spec.width, .channel = sample};
}

Strides planar_strides(const ImageSpec& spec) {
  const std::ptrdiff_t sample = bytes_per_sample(spec.type);
  return {.x = sample, .y = sample * spec.width, .channel = sample * spec.width * spec.height};
}

Strides default_strides(const ImageSpec& spec) {
  return spec.colour == Colour::ycbcr ? planar_strides(spec) : interleaved_strides(spec);
}

ImageSpec luma_spec(const ImageSpec& spec) {
  ImageSpec luma = spec;
  luma.channels = 1;
  luma.colour = Colour::gray;
  luma.alpha = false;
  luma.chroma = {};
  return luma;
}

ImageSpec chroma_spec(const ImageSpec& spec) {
  ImageSpec chroma = luma_spec(spec);
  chroma.channels = 2;
  chroma.colour = Colour::multi;
  chroma.width = (spec.width - 1) / spec.chroma.x + 1;
  chroma.height = (spec.height - 1) / spec.chroma.y + 1;
  return chroma;
}

namespace {

template <class View>
View luma_of(View view) {
  view.spec = luma_spec(view.spec);
  return view;
}

template <class View>
View chroma_of(const View& view) {
  const Subsampling step = view.spec.chroma;
  const auto row_from = [&](int y) { return (y + step.y - 1) / step.y; };  // of chroma, at or after luma's y
  const int first = row_from(view.region.y);
  View chroma = view.rows(first * step.y - view.region.y, view.spec.height);
  chroma.spec = chroma_spec(view.spec);
  chroma.spec.height = row_from(view.region.y + view.spec.height) - first;
  using Byte = std::conditional_t<std::is_same_v<View, ImageView>, std::byte, const std::byte>;
  chroma.data = static_cast<Byte*>(chroma.data) + view.strides.channel;
  chroma.strides.y *= step.y;
  if (!view.region.whole()) {
    chroma.region = {0, first, chroma.spec.width, row_from(view.region.image_height)};
  }
  return chroma;
}

}  // namespace

ImageView luma_view(const ImageView& view) { return luma_of(view); }
ConstImageView luma_view(const ConstImageView& view) { return luma_of(view); }
ImageView chroma_view(const ImageView& view) { return chroma_of(view); }
ConstImageView chroma_view(const ConstImageView& view) { return chroma_of(view); }

void refuse_ycbcr(const ImageSpec& spec, const char* what) {
  if (spec.colour != Colour::ycbcr) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("{} take no ycbcr image: give them luma_view() and chroma_view()", what));
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
