#include "frames.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "ungrain/error.h"
#include "ungrain/half.h"

namespace ungrain::vapoursynth {
namespace {

// VapourSynth's floats have chroma from -0.5 to 0.5, the library's from 0 to 1.
constexpr float chroma_middle = 0.5F;

bool moves_chroma(const ImageSpec& spec, int channel) {
  return spec.colour == Colour::ycbcr && channel > 0 && is_float(spec.type);
}

// A plane of a frame, and where its samples lie in an image.
struct Plane {
  std::ptrdiff_t stride = 0;  // bytes, in the frame
  int width = 0;              // samples
  int height = 0;
  int rows_between = 1;  // rows of the image from one row of the plane to the next
};

Plane plane_of(const VSFrame& frame, const VSAPI& api, const ImageSpec& spec, int channel) {
  const bool chroma = spec.colour == Colour::ycbcr && channel > 0;
  return {api.getStride(&frame, channel), api.getFrameWidth(&frame, channel),
          api.getFrameHeight(&frame, channel), chroma ? spec.chroma.y : 1};
}

template <class T>
void copy_samples(const T* from, std::ptrdiff_t from_step, T* to, std::ptrdiff_t to_step, int count) {
  for (int i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
}

void copy_row(const std::byte* from, std::ptrdiff_t from_step, std::byte* to, std::ptrdiff_t to_step,
              int count, std::ptrdiff_t bytes) {
  if (from_step == bytes && to_step == bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(count * bytes));
    return;
  }
  const auto copy = [&]<class T>(const T* in, T* out) {
    copy_samples(in, from_step / bytes, out, to_step / bytes, count);
  };
  switch (bytes) {
    case 1:
      copy(reinterpret_cast<const std::uint8_t*>(from), reinterpret_cast<std::uint8_t*>(to));
      break;
    case 2:
      copy(reinterpret_cast<const std::uint16_t*>(from), reinterpret_cast<std::uint16_t*>(to));
      break;
    default:
      copy(reinterpret_cast<const std::uint32_t*>(from), reinterpret_cast<std::uint32_t*>(to));
      break;
  }
}

void add(std::byte* row, PixelType type, int count, float offset) {
  if (type == PixelType::f32) {
    auto* samples = reinterpret_cast<float*>(row);
    for (int i = 0; i < count; ++i) samples[i] += offset;
  } else {
    auto* samples = reinterpret_cast<std::uint16_t*>(row);
    for (int i = 0; i < count; ++i) samples[i] = float_to_half(half_to_float(samples[i]) + offset);
  }
}

}  // namespace

std::optional<std::int64_t> property(const VSFrame& frame, const VSAPI& api, const char* name) {
  int error = 0;
  const std::int64_t value = api.mapGetInt(api.getFramePropertiesRO(&frame), name, 0, &error);
  if (error != 0) return std::nullopt;
  return value;
}

ImageSpec spec_of(const VSVideoInfo& clip) {
  const VSVideoFormat& format = clip.format;
  const auto fail = [](const std::string& what) { throw Error(ErrorCode::unsupported, what); };
  if (format.colorFamily == cfUndefined || clip.width == 0 || clip.height == 0) {
    fail("clips whose format or size varies are not supported");
  }
  ImageSpec spec;
  spec.width = clip.width;
  spec.height = clip.height;
  spec.channels = format.numPlanes;
  spec.colour = format.colorFamily == cfGray  ? Colour::gray
                : format.colorFamily == cfRGB ? Colour::rgb
                                              : Colour::ycbcr;
  if (format.sampleType == stFloat) {
    spec.type = format.bitsPerSample == 16 ? PixelType::f16 : PixelType::f32;
  } else {
    if (format.bitsPerSample > 16) {
      fail("integer samples of " + std::to_string(format.bitsPerSample) +
           " bits are not supported, 8 to 16 are");
    }
    spec.type = format.bitsPerSample == 8 ? PixelType::u8 : PixelType::u16;
    spec.range = (1 << format.bitsPerSample) - 1;
  }
  if (spec.colour == Colour::ycbcr) {
    if (format.subSamplingW > 2 || format.subSamplingH > 2)
      fail("chroma of an eighth of luma's size is not supported");
    spec.chroma = {1 << format.subSamplingW, 1 << format.subSamplingH};
  }
  return spec;
}

void copy_rows(const VSFrame& frame, const VSAPI& api, int first, const ImageView& rows) {
  const ImageSpec& spec = rows.spec;
  const std::ptrdiff_t bytes = bytes_per_sample(spec.type);
  for (int channel = 0; channel < spec.channels; ++channel) {
    const Plane plane = plane_of(frame, api, spec, channel);
    const auto* from = reinterpret_cast<const std::byte*>(api.getReadPtr(&frame, channel));
    auto* to = static_cast<std::byte*>(rows.data) + channel * rows.strides.channel;
    // `first` is a row of chroma too: parts of an image start at one.
    for (int y = 0; y < spec.height; y += plane.rows_between) {
      const int row = (first + y) / plane.rows_between;
      if (row >= plane.height) break;
      copy_row(from + row * plane.stride, bytes, to + y * rows.strides.y, rows.strides.x, plane.width, bytes);
      if (moves_chroma(spec, channel)) {
        add(to + y * rows.strides.y, spec.type, plane.width, chroma_middle);
      }
    }
  }
}

Image image_of(const VSFrame& frame, const VSAPI& api, const ImageSpec& spec) {
  Image image(spec);
  copy_rows(frame, api, 0, image.view());
  return image;
}

void copy_image(const ConstImageView& image, VSFrame& frame, const VSAPI& api) {
  const ImageSpec& spec = image.spec;
  const std::ptrdiff_t bytes = bytes_per_sample(spec.type);
  for (int channel = 0; channel < spec.channels; ++channel) {
    const Plane plane = plane_of(frame, api, spec, channel);
    const auto* from = static_cast<const std::byte*>(image.data) + channel * image.strides.channel;
    auto* to = reinterpret_cast<std::byte*>(api.getWritePtr(&frame, channel));
    for (int row = 0; row < plane.height; ++row) {
      copy_row(from + row * plane.rows_between * image.strides.y, image.strides.x, to + row * plane.stride,
               bytes, plane.width, bytes);
      if (moves_chroma(spec, channel)) {
        add(to + row * plane.stride, spec.type, plane.width, -chroma_middle);
      }
    }
  }
}

}  // namespace ungrain::vapoursynth
