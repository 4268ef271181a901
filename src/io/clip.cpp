#include "io/clip.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "io/failure.h"
#include "ungrain/memory.h"

namespace ungrain::io {
namespace {

static_assert(std::endian::native == std::endian::little, "frames of 16 bits are little-endian");

// Calls use(offset, bytes) for each run of bytes of a packed frame, by its place in the Image's memory.
template <class Use>
void for_each_run(const ImageSpec& spec, Use use) {
  const auto sample = static_cast<std::size_t>(bytes_per_sample(spec.type));
  const std::size_t row = sample * static_cast<std::size_t>(spec.width);
  const std::size_t plane = row * static_cast<std::size_t>(spec.height);
  if (spec.colour != Colour::ycbcr) {
    use(std::size_t{0}, plane * static_cast<std::size_t>(spec.channels));
    return;
  }
  for (int channel = 0; channel < spec.channels; ++channel) {
    const std::size_t start = plane * static_cast<std::size_t>(channel);
    const bool is_chroma = channel == 1 || channel == 2;
    if (!is_chroma || spec.chroma == Subsampling{}) {
      use(start, plane);
      continue;
    }
    const std::size_t bytes = sample * static_cast<std::size_t>((spec.width - 1) / spec.chroma.x + 1);
    for (int y = 0; y < spec.height; y += spec.chroma.y)
      use(start + row * static_cast<std::size_t>(y), bytes);
  }
}

ImageSpec with_bits(ImageSpec spec, int bits) {
  spec.type = bits == 8 ? PixelType::u8 : PixelType::u16;
  spec.range = bits == 8 || bits == 16 ? 0 : (1 << bits) - 1;
  return spec;
}

}  // namespace

std::uint64_t packed_bytes(const ImageSpec& spec) {
  std::uint64_t sum = 0;
  for_each_run(spec, [&](std::size_t, std::size_t bytes) { sum += bytes; });
  return sum;
}

std::uint64_t read_packed(ByteSource& from, Image& frame) {
  std::uint64_t sum = 0;
  bool whole = true;
  for_each_run(frame.spec(), [&](std::size_t offset, std::size_t bytes) {
    if (!whole) return;
    const std::size_t got = from.read(frame.samples<std::byte>() + offset, bytes);
    sum += got;
    whole = got == bytes;
  });
  return sum;
}

void append_packed(const Image& frame, std::vector<std::byte>& to) {
  for_each_run(frame.spec(), [&](std::size_t offset, std::size_t bytes) {
    const std::byte* start = frame.samples<std::byte>() + offset;
    to.insert(to.end(), start, start + bytes);
  });
}

ImageSpec gray_frame(int width, int height, int bits) {
  return with_bits({.width = width, .height = height}, bits);
}

ImageSpec ycbcr_frame(int width, int height, int bits, Subsampling chroma) {
  return with_bits(
      {.width = width, .height = height, .channels = 3, .colour = Colour::ycbcr, .chroma = chroma}, bits);
}

int bits_of(const ImageSpec& spec) { return static_cast<int>(std::lround(std::log2(spec.white() + 1))); }

void check_frame_memory(const std::string& name, const ImageSpec& spec) {
  const std::size_t needed = static_cast<std::size_t>(spec.width) * static_cast<std::size_t>(spec.height) *
                             static_cast<std::size_t>(spec.channels * bytes_per_sample(spec.type));
  if (const std::size_t free = free_memory(); needed > free / 4) {
    fail(name, fmt::format("a frame of {} x {} takes {} of memory, {} are free", spec.width, spec.height,
                           bytes_text(needed), bytes_text(free)));
  }
}

}  // namespace ungrain::io
