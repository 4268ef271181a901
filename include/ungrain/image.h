// Images: their description (ImageSpec), views of memory that the caller owns, and an image that owns its
// memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include "ungrain/export.h"

UNGRAIN_API_BEGIN
namespace ungrain {

enum class PixelType : std::uint8_t { u8, u16, f16, f32 };

// Properties of a sample type: one row for each, in PixelType's order.
struct PixelTypeInfo {
  PixelType type;
  std::string_view name;
  int bytes;
  bool is_float;
  double white;  // default white level of an image
};
inline constexpr std::array<PixelTypeInfo, 4> pixel_types{{
    {PixelType::u8, "u8", 1, false, 255},
    {PixelType::u16, "u16", 2, false, 65535},
    {PixelType::f16, "f16", 2, true, 1},
    {PixelType::f32, "f32", 4, true, 1},
}};

constexpr const PixelTypeInfo& info_of(PixelType type) { return pixel_types[static_cast<std::size_t>(type)]; }
constexpr std::string_view name(PixelType type) { return info_of(type).name; }
constexpr int bytes_per_sample(PixelType type) { return info_of(type).bytes; }
constexpr bool is_float(PixelType type) { return info_of(type).is_float; }
constexpr double natural_range(PixelType type) { return info_of(type).white; }

enum class Colour : std::uint8_t {
  gray,   // one colour channel
  rgb,    // three: sRGB red, green, blue
  multi,  // one to four independent channels
  ycbcr,  // three: luma, then two colour differences, Cb and Cr, of fewer samples perhaps (Subsampling)
};

std::string_view name(Colour colour);

inline constexpr int max_channels = 4;

// Columns and rows of luma for one sample of chroma: 1, 2 or 4. 4:2:0 is {2, 2}, 4:2:2 {2, 1}, 4:4:4 {1, 1}.
struct Subsampling {
  int x = 1;
  int y = 1;
  friend bool operator==(const Subsampling&, const Subsampling&) = default;
};

// How far around a pixel something looks.
struct Reach {
  int x = 0;
  int y = 0;
  bool whole = false;  // every pixel of the image
  int before = 0;      // images before it in a sequence (frames, slices)
  int after = 0;       // and after it

  constexpr int slices() const { return before + 1 + after; }
  friend bool operator==(const Reach&, const Reach&) = default;
};

// Of a volume, whose rows are its slices: what one row holds, line after line of the slice.
struct SliceShape {
  int width = 0;  // voxels; 0: a row is a row of pixels
  int height = 0;
  // Where these lie in the slices of a larger volume. Widths and heights of 0: they are the whole slices.
  int x = 0;
  int y = 0;
  int whole_width = 0;
  int whole_height = 0;
  friend bool operator==(const SliceShape&, const SliceShape&) = default;
};

struct ImageSpec {
  int width = 0;
  int height = 0;
  int channels = 1;  // alpha included
  PixelType type = PixelType::u8;
  Colour colour = Colour::gray;
  bool alpha = false;  // the last channel is alpha: carried through, never filtered
  double range = 0;    // white level in pixel units; 0: the type's own (255, 65535, 1)
  // Of ycbcr. Its channels are planes (planar_strides(), or other strides whose x is one sample), and those
  // of Cb and Cr have as much room as luma's: row k of chroma lies in the room of luma's row k * chroma.y,
  // its ceil(width / chroma.x) samples at the row's start. The rest of the room is undefined: it is never
  // looked at, and written as 0. Parts of an image are full rows, the first of them a multiple of chroma.y.
  Subsampling chroma = {};
  // Of a volume (ungrain/volume.h): `width` is slice.width * slice.height, and `height` counts the slices.
  SliceShape slice = {};

  constexpr bool is_volume() const { return slice.width > 0; }
  constexpr double white() const { return range > 0 ? range : natural_range(type); }
  constexpr int colour_channels() const { return channels - (alpha ? 1 : 0); }
  friend bool operator==(const ImageSpec&, const ImageSpec&) = default;
};

// Throws Error(invalid_argument) naming what is wrong: sizes, channels against colour and alpha, range.
void validate(const ImageSpec& spec);

// Bytes from one sample to the next along each axis; any sign, any order.
struct Strides {
  std::ptrdiff_t x = 0;
  std::ptrdiff_t y = 0;
  std::ptrdiff_t channel = 0;
  friend bool operator==(const Strides&, const Strides&) = default;
};

Strides interleaved_strides(const ImageSpec& spec);
Strides planar_strides(const ImageSpec& spec);
Strides default_strides(const ImageSpec& spec);  // planar for ycbcr, interleaved for the others

struct Space {
  enum class Memory : std::uint8_t { host, cuda };
  Memory memory = Memory::host;
  int device = 0;  // which GPU, where memory is cuda
  friend bool operator==(const Space&, const Space&) = default;
};

// The position of a view in a larger image, so that borders and grids follow the whole image. Width and
// height 0: the view is the whole image.
struct Region {
  int x = 0;
  int y = 0;
  int image_width = 0;
  int image_height = 0;

  constexpr bool whole() const { return image_width == 0 && image_height == 0; }
  friend bool operator==(const Region&, const Region&) = default;
};

// A buffer that the caller owns. Pointer is void* or const void*.
template <class Pointer>
struct BasicImageView {
  Pointer data = nullptr;  // first sample of the first row
  ImageSpec spec;
  Strides strides;
  Space space;
  Region region;

  BasicImageView() = default;
  BasicImageView(Pointer pixels, const ImageSpec& what)
      : data(pixels), spec(what), strides(default_strides(what)) {}
  BasicImageView(Pointer pixels, const ImageSpec& what, const Strides& how, Space where = {},
                 Region lies = {})
      : data(pixels), spec(what), strides(how), space(where), region(lies) {}
  template <class Other>
  requires(std::is_convertible_v<Other, Pointer> && !std::is_same_v<Other, Pointer>)
      BasicImageView(const BasicImageView<Other>& other)  // NOLINT: a view of constants is made from any view
      : data(other.data),
        spec(other.spec),
        strides(other.strides),
        space(other.space),
        region(other.region) {}

  // The rows [first, first + count) of this view; the region, where there is one, moves along.
  BasicImageView rows(int first, int count) const {
    using Byte =
        std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const std::byte, std::byte>;
    BasicImageView part = *this;
    part.data = static_cast<Byte*>(data) + first * strides.y;
    part.spec.height = count;
    if (!region.whole()) part.region.y += first;
    return part;
  }
};

using ImageView = BasicImageView<void*>;
using ConstImageView = BasicImageView<const void*>;

// A ycbcr image's luma as a gray image, and its chroma as an image of two independent channels.
ImageSpec luma_spec(const ImageSpec& spec);
ImageSpec chroma_spec(const ImageSpec& spec);
// The same memory, seen so. Rows of a part of an image whose region is not given count from a row of chroma;
// where it is given, chroma_view() has the rows of chroma that lie in the part, perhaps none.
ImageView luma_view(const ImageView& view);
ConstImageView luma_view(const ConstImageView& view);
ImageView chroma_view(const ImageView& view);
ConstImageView chroma_view(const ConstImageView& view);

// An image that owns its samples: default_strides(), rows without padding, 64-byte aligned, initially zero.
class Image {
 public:
  Image() = default;
  explicit Image(const ImageSpec& spec);

  const ImageSpec& spec() const { return spec_; }
  std::size_t bytes() const;
  ImageView view() { return {data_.get(), spec_}; }
  ConstImageView view() const { return {static_cast<const void*>(data_.get()), spec_}; }
  Image copy() const;

  template <class T>
  T* samples() {
    return reinterpret_cast<T*>(data_.get());
  }
  template <class T>
  const T* samples() const {
    return reinterpret_cast<const T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  ImageSpec spec_;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace ungrain
UNGRAIN_API_END
