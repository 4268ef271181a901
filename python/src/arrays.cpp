#include "arrays.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "errors.h"
#include "ungrain/error.h"
#include "ungrain/volume.h"

namespace nb = nanobind;

namespace ungrain::python {
namespace {

[[noreturn]] void invalid(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

std::string text(const std::vector<std::size_t>& shape) {
  std::string list;
  for (const std::size_t size : shape) list += (list.empty() ? "" : ", ") + std::to_string(size);
  return "(" + list + (shape.size() == 1 ? ",)" : ")");
}

// The meaning of each axis.
struct Axes {
  std::optional<int> z;  // of a volume
  int y = 0;
  int x = 0;
  std::optional<int> channel;
  std::vector<int> stack;
};

int counted_from_front(int axis, int dimensions, const char* option) {
  if (axis < -dimensions || axis >= dimensions) {
    invalid(std::string(option) + " takes an axis of the array, which has " + std::to_string(dimensions) +
            ", got " + std::to_string(axis));
  }
  return axis < 0 ? axis + dimensions : axis;
}

Axes axes_of(const std::vector<std::size_t>& shape, const Layout& layout) {
  const int dimensions = static_cast<int>(shape.size());
  Axes axes;
  for (const int given : layout.stack_axes) {
    const int axis = counted_from_front(given, dimensions, "axis");
    if (std::count(axes.stack.begin(), axes.stack.end(), axis) > 0)
      invalid("axis names axis " + std::to_string(given) + " twice");
    axes.stack.push_back(axis);
  }
  std::vector<int> left;
  for (int axis = 0; axis < dimensions; ++axis) {
    if (std::count(axes.stack.begin(), axes.stack.end(), axis) == 0) left.push_back(axis);
  }
  const std::size_t sides = layout.solid ? 3 : 2;
  if (left.size() == sides + 1) {
    axes.channel = counted_from_front(layout.channel_axis, dimensions, "channel_axis");
    const auto found = std::find(left.begin(), left.end(), *axes.channel);
    if (found == left.end())
      invalid("channel_axis and axis both name axis " + std::to_string(layout.channel_axis));
    left.erase(found);
  }
  if (left.size() != sides && layout.solid) {
    invalid("an array of shape " + text(shape) +
            " is no volume: depth x height x width; channel_axis= names a fourth axis");
  }
  if (left.size() != sides) {
    invalid(
        "an array of shape " + text(shape) +
        (axes.stack.empty() ? "" : " with " + std::to_string(axes.stack.size()) + " of its axes stacked") +
        " is no image: height x width, or height x width x channels; axis= names the axes of a stack");
  }
  if (layout.solid) axes.z = left[0];
  axes.y = left[sides - 2];
  axes.x = left[sides - 1];
  return axes;
}

int side(std::size_t size, const char* what) {
  if (size > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    invalid(std::string("the image's ") + what + " is " + std::to_string(size) + " pixels: too many");
  }
  return static_cast<int>(size);
}

ImageSpec spec_of(const std::vector<std::size_t>& shape, const Axes& axes, PixelType type,
                  const Layout& layout) {
  ImageSpec spec;
  spec.height = side(shape[axes.y], "height");
  spec.width = side(shape[axes.x], "width");
  const std::size_t channels = axes.channel ? shape[*axes.channel] : 1;
  if (channels < 1 || channels > max_channels) {
    invalid("an array of shape " + text(shape) + " has " + std::to_string(channels) + " channels in axis " +
            std::to_string(*axes.channel) + ": 1 to " + std::to_string(max_channels) +
            " are supported; a stack of images is told by axis=");
  }
  spec.channels = static_cast<int>(channels);
  spec.type = type;
  spec.range = layout.range;
  const std::string& wanted = layout.channels;
  if (wanted == "auto") {
    // An array cannot say that its last channel is alpha.
    spec.colour = channels == 1 ? Colour::gray : channels == 3 ? Colour::rgb : Colour::multi;
  } else if (wanted == "gray" || wanted == "gray-alpha") {
    spec.colour = Colour::gray;
    spec.alpha = wanted != "gray";
  } else if (wanted == "rgb" || wanted == "rgba") {
    spec.colour = Colour::rgb;
    spec.alpha = wanted != "rgb";
  } else if (wanted == "multi") {
    spec.colour = Colour::multi;
  } else {
    invalid("channels takes one of auto, gray, gray-alpha, rgb, rgba, multi, got '" + wanted + "'");
  }
  validate(spec);
  return axes.z ? volume_spec(spec, side(shape[*axes.z], "depth")) : spec;
}

struct TypeName {
  nb::dlpack::dtype_code code;
  int bits;
  PixelType type;
  const char* name;
};
constexpr std::array<TypeName, 4> types{{{nb::dlpack::dtype_code::UInt, 8, PixelType::u8, "uint8"},
                                         {nb::dlpack::dtype_code::UInt, 16, PixelType::u16, "uint16"},
                                         {nb::dlpack::dtype_code::Float, 16, PixelType::f16, "float16"},
                                         {nb::dlpack::dtype_code::Float, 32, PixelType::f32, "float32"}}};

PixelType type_of(const nb::dlpack::dtype& dtype, const char* name) {
  for (const TypeName& known : types) {
    if (dtype.code == static_cast<std::uint8_t>(known.code) && dtype.bits == known.bits && dtype.lanes == 1)
      return known.type;
  }
  throw InvalidType(std::string(name) + " takes uint8, uint16, float16 or float32");
}

template <class Array>
Space space_of(const Array& array, const char* name) {
  switch (array.device_type()) {
    case nb::device::cpu::value:
    case nb::device::cuda_host::value:
      return {};
    case nb::device::cuda::value:
    case nb::device::cuda_managed::value:
      return {Space::Memory::cuda, array.device_id()};
    default:
      throw Error(ErrorCode::unsupported,
                  std::string(name) + " lies on a device that is neither the host nor an NVIDIA GPU");
  }
}

template <class Pointer, class Array>
void describe(Images<Pointer>& images, const Array& array, const Layout& layout, const char* name) {
  images.shape.resize(array.ndim());
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) images.shape[axis] = array.shape(axis);
  const PixelType type = type_of(array.dtype(), name);
  const Axes axes = axes_of(images.shape, layout);
  const std::ptrdiff_t sample = bytes_per_sample(type);
  const auto stride = [&](int axis) { return static_cast<std::ptrdiff_t>(array.stride(axis)) * sample; };

  images.offsets = {0};
  for (const int axis : axes.stack) {
    std::vector<std::ptrdiff_t> inner;
    inner.reserve(images.offsets.size() * images.shape[axis]);
    for (const std::ptrdiff_t offset : images.offsets) {
      for (std::size_t index = 0; index < images.shape[axis]; ++index)
        inner.push_back(offset + static_cast<std::ptrdiff_t>(index) * stride(axis));
    }
    images.offsets = std::move(inner);
  }
  if (!axes.stack.empty()) images.sequence = images.shape[axes.stack.back()];
  images.first.data = array.data();
  images.first.spec = spec_of(images.shape, axes, type, layout);
  images.first.strides = {stride(axes.x), stride(axes.y), axes.channel ? stride(*axes.channel) : sample};
  if (axes.z) {
    const auto width = static_cast<std::ptrdiff_t>(images.shape[axes.x]);
    const bool one_column = width == 1 || images.shape[axes.y] == 1;
    if (!one_column && stride(axes.y) != stride(axes.x) * width)
      invalid(std::string(name) + " has gaps between the rows of its slices");
    if (width == 1) images.first.strides.x = stride(axes.y);
    images.first.strides.y = stride(*axes.z);
  }
  images.first.space = space_of(array, name);
}

}  // namespace

InputImages input_images(nb::handle array, const Layout& layout, const char* name) {
  InputImages images;
  if (!nb::try_cast(array, images.array, false))
    throw InvalidType(std::string(name) + " is no array that can be read");
  describe(images, images.array, layout, name);
  return images;
}

OutputImages output_images(nb::handle array, const Layout& layout, const char* name) {
  OutputImages images;
  if (!nb::try_cast(array, images.array, false))
    invalid(std::string(name) + " is no array that can be written");
  describe(images, images.array, layout, name);
  return images;
}

ImageSpec image_spec(const std::vector<std::size_t>& shape, PixelType type, const Layout& layout) {
  return spec_of(shape, axes_of(shape, layout), type, layout);
}

PixelType pixel_type(const std::string& dtype) {
  for (const TypeName& known : types) {
    if (dtype == known.name) return known.type;
  }
  throw InvalidType("dtype takes uint8, uint16, float16 or float32, got " + dtype);
}

}  // namespace ungrain::python
