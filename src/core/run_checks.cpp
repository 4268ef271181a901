#include "core/run_checks.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "core/convert.h"
#include "ungrain/error.h"

namespace ungrain {

Rect rect_of(const ConstImageView& view) {
  return {view.region.x, view.region.y, view.region.x + view.spec.width, view.region.y + view.spec.height};
}

namespace {

[[noreturn]] void invalid(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

void check_planes(const ConstImageView& view, const ImageSpec& spec, const char* which) {
  if (view.strides.x != bytes_per_sample(view.spec.type)) {
    invalid(fmt::format("the {} is ycbcr: its channels must be planes", which));
  }
  const Rect rect = rect_of(view);
  const auto starts_chroma = [&](int y) { return y % spec.chroma.y == 0 || y == spec.height; };
  if (rect.width() != spec.width || !starts_chroma(rect.y0) || !starts_chroma(rect.y1)) {
    invalid(fmt::format("the {}'s region must be full rows, from one that has chroma to the next", which));
  }
}

void check_view(const ConstImageView& view, const ImageSpec& spec, const char* which) {
  if (view.data == nullptr) invalid(fmt::format("the {} has no data", which));
  ImageSpec expected = view.spec;
  expected.channels = spec.channels;
  expected.colour = spec.colour;
  expected.alpha = spec.alpha;
  expected.chroma = spec.chroma;
  expected.slice = spec.slice;
  if (view.spec.slice != spec.slice)
    invalid(fmt::format("the {}'s slices differ from the denoiser's", which));
  if (view.spec != expected) {
    invalid(fmt::format("the {} has {} channels, {}{}; the denoiser was made for {}, {}{}", which,
                        view.spec.channels, name(view.spec.colour), view.spec.alpha ? " with alpha" : "",
                        spec.channels, name(spec.colour), spec.alpha ? " with alpha" : ""));
  }
  const Region& region = view.region;
  const int whole_width = region.whole() ? view.spec.width : region.image_width;
  const int whole_height = region.whole() ? view.spec.height : region.image_height;
  if (whole_width != spec.width || whole_height != spec.height) {
    invalid(fmt::format("the {} is of an image of {} x {}, the denoiser was made for {} x {}", which,
                        whole_width, whole_height, spec.width, spec.height));
  }
  if (view.spec.width < 1 || view.spec.height < 1 ||
      !Rect{0, 0, spec.width, spec.height}.contains(rect_of(view))) {
    invalid(fmt::format("the {}'s region lies outside the image", which));
  }
  if (spec.colour == Colour::ycbcr) check_planes(view, spec, which);
}

struct ByteRange {
  const std::byte* begin;
  const std::byte* end;
};

ByteRange bytes_of(const ConstImageView& view) {
  const auto* low = static_cast<const std::byte*>(view.data);
  const std::byte* high = low + bytes_per_sample(view.spec.type);
  const auto extend = [&](std::ptrdiff_t span) { (span < 0 ? low : high) += span; };
  extend(view.strides.x * (view.spec.width - 1));
  extend(view.strides.y * (view.spec.height - 1));
  extend(view.strides.channel * (view.spec.channels - 1));
  return {low, high};
}

bool overlap(const ConstImageView& a, const ConstImageView& b) {
  const ByteRange first = bytes_of(a);
  const ByteRange second = bytes_of(b);
  return std::less<>{}(first.begin, second.end) && std::less<>{}(second.begin, first.end);
}

bool same_memory(const ConstImageView& a, const ConstImageView& b) {
  return a.data == b.data && a.strides == b.strides && a.spec == b.spec && a.region == b.region;
}

}  // namespace

int fill_reach(const ImageSpec& spec, const Options& options) {
  return is_float(spec.type) && options.nonfinite != NonFinite::error ? fill_radius * spec.chroma.y : 0;
}

void check_images(const ConstImageView& in, const ImageView& out, const ImageSpec& spec, const Reach& reach,
                  bool wraps, const Options& options) {
  check_view(in, spec, "input");
  check_view(out, spec, "output");
  validate(out.spec);
  if (in.spec.type != spec.type || in.spec.white() != spec.white()) {
    invalid(fmt::format("the input is {} with white at {}, the denoiser was made for {} with white at {}",
                        name(in.spec.type), in.spec.white(), name(spec.type), spec.white()));
  }
  runs_in_place(in, out);
  const Rect in_rect = rect_of(in);
  const Rect out_rect = rect_of(out);
  const int fill = fill_reach(spec, options);
  const Rect needed{std::max(0, out_rect.x0 - reach.x - fill), std::max(0, out_rect.y0 - reach.y - fill),
                    std::min(spec.width, out_rect.x1 + reach.x + fill),
                    std::min(spec.height, out_rect.y1 + reach.y + fill)};
  if (!in_rect.contains(needed)) {
    invalid(fmt::format(
        "the output's region needs the input's pixels ({}, {}) to ({}, {}), it has ({}, {}) to ({}, {})",
        needed.x0, needed.y0, needed.x1 - 1, needed.y1 - 1, in_rect.x0, in_rect.y0, in_rect.x1 - 1,
        in_rect.y1 - 1));
  }
  if (wraps && in_rect != Rect{0, 0, spec.width, spec.height}) {
    invalid("border wrap needs the whole image, not a region of it");
  }
}

void check_writer(const ImageSpec& out_spec, const ImageSpec& spec) {
  validate(out_spec);
  ImageSpec expected = spec;
  expected.type = out_spec.type;
  expected.range = out_spec.range;
  if (out_spec != expected)
    invalid("the writer's image differs from the denoiser's in more than type and range");
}

bool runs_in_place(const ConstImageView& in, const ImageView& out) {
  if (in.space != out.space || !overlap(in, out)) return false;
  if (!same_memory(in, out)) invalid("input and output overlap: they must be apart, or the very same view");
  return true;
}

void refuse_pixel(int x, int y) {
  throw Error(ErrorCode::bad_pixels, fmt::format("pixel ({}, {}) is not a finite number", x, y));
}

}  // namespace ungrain
