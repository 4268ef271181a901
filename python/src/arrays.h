// Arrays of any library as ungrain's views.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <string>
#include <vector>

#include "ungrain/image.h"

namespace ungrain::python {

// How an array's axes are read.
struct Layout {
  std::vector<int> stack_axes;  // each index along these is an image of its own
  int channel_axis = -1;        // counted in the whole array; used only where three axes are left
  std::string channels = "auto";
  double range = 0;  // white level; 0: the type's own
  // z, y, x and, of four axes, channel_axis: a volume (ungrain/volume.h), whose rows have no gaps.
  bool solid = false;
};

// An array as images: one, or a stack of images that differ only in their address.
template <class Pointer>
struct Images {
  BasicImageView<Pointer> first;
  std::vector<std::ptrdiff_t> offsets;  // bytes, of each image from `first`
  std::vector<std::size_t> shape;       // the array's own
  std::size_t sequence = 1;             // images along the stack's last axis, which follow one another

  BasicImageView<Pointer> at(std::size_t index) const {
    using Byte =
        std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const std::byte, std::byte>;
    BasicImageView<Pointer> view = first;
    view.data = static_cast<Byte*>(first.data) + offsets[index];
    return view;
  }
};

// Keeps the array alive while its images are in use.
struct InputImages : Images<const void*> {
  nanobind::ndarray<nanobind::ro> array;
};
struct OutputImages : Images<void*> {
  nanobind::ndarray<> array;
};

// `array` is a NumPy array, a DLPack capsule or any object that exports one. `name` is its name in messages.
InputImages input_images(nanobind::handle array, const Layout& layout, const char* name);
OutputImages output_images(nanobind::handle array, const Layout& layout, const char* name);

// The spec of an array of that shape and type.
ImageSpec image_spec(const std::vector<std::size_t>& shape, PixelType type, const Layout& layout);
PixelType pixel_type(const std::string& dtype);

}  // namespace ungrain::python
