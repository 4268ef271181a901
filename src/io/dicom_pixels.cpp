#include "io/dicom_pixels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "io/failure.h"
#include "io/packed_rows.h"

namespace ungrain::io {
namespace {

constexpr std::size_t block_bytes = std::size_t{4} << 20U;

// The bits of a sample that count, as a number.
template <int Bytes>
class Samples {
 public:
  Samples(const DicomPixels& pixels, bool big_endian)
      : big_(big_endian),
        lowest_(static_cast<unsigned>(pixels.lowest_bit)),
        mask_(pixels.bits == 32 ? 0xffffffffU : (1U << static_cast<unsigned>(pixels.bits)) - 1),
        sign_(pixels.is_signed ? 1U << static_cast<unsigned>(pixels.bits - 1) : 0) {}

  std::int64_t at(const std::byte* from) const {
    std::uint32_t bits = 0;
    for (int i = 0; i < Bytes; ++i) {
      bits = bits << 8U | std::to_integer<std::uint32_t>(from[big_ ? i : Bytes - 1 - i]);
    }
    bits = bits >> lowest_ & mask_;
    return static_cast<std::int64_t>(bits) - ((bits & sign_) != 0 ? std::int64_t{mask_} + 1 : 0);
  }

 private:
  bool big_;
  unsigned lowest_;
  std::uint32_t mask_;
  std::uint32_t sign_;
};

template <class To>
void put(std::byte* to, std::size_t index, To value) {
  std::memcpy(to + index * sizeof value, &value, sizeof value);
}

// A row of stored samples as samples of `type`.
template <int Bytes>
void convert_row(const Samples<Bytes>& samples, const std::byte* from, std::size_t count, PixelType type,
                 const DicomScaling& scaling, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t sample = samples.at(from + i * Bytes);
    if (type == PixelType::u8) {
      put(to, i, static_cast<std::uint8_t>(sample));
    } else if (type == PixelType::u16) {
      put(to, i, static_cast<std::uint16_t>(sample));
    } else {
      put(to, i, static_cast<float>(static_cast<double>(sample) * scaling.slope + scaling.intercept));
    }
  }
}

void convert_row(const DicomPixels& pixels, bool big_endian, const std::byte* from, std::size_t count,
                 PixelType type, const DicomScaling& scaling, std::byte* to) {
  if (pixels.bytes == 1) return convert_row(Samples<1>(pixels, big_endian), from, count, type, scaling, to);
  if (pixels.bytes == 2) return convert_row(Samples<2>(pixels, big_endian), from, count, type, scaling, to);
  convert_row(Samples<4>(pixels, big_endian), from, count, type, scaling, to);
}

}  // namespace

DicomPixelReader::DicomPixelReader(const DicomFile& file)
    : file_(file), pixels_(file.pixels), source_(file.path), bytes_(source_) {
  if (source_.stamp() != file.stamp) fail(file.path, "changed while it was read");
  if (pixels_.syntax->deflated) bytes_.inflate_from(pixels_.data_begin);
}

std::uint64_t DicomPixelReader::decoding_bytes(const DicomPixels& pixels) {
  std::uint64_t longest = 0;
  for (const DicomFragment& fragment : pixels.fragments) longest = std::max(longest, fragment.length);
  return longest == 0 ? 0 : longest + pixels.frame_bytes();
}

void DicomPixelReader::read_rows(int frame, int first, const ImageView& rows, const DicomScaling& scaling) {
  const std::size_t samples =
      static_cast<std::size_t>(pixels_.width) * static_cast<std::size_t>(pixels_.channels);
  const std::size_t stored = samples * static_cast<std::size_t>(pixels_.bytes);
  const bool rle = pixels_.syntax->pixels == DicomPixelCoding::rle;
  if (rle && decoded_frame_ != frame) decode_rle(frame);
  const int block_rows = static_cast<int>(
      std::clamp<std::size_t>(block_bytes / stored, 1, static_cast<std::size_t>(pixels_.height)));
  row_.resize(row_bytes(rows.spec));
  for (int done = 0; done < rows.spec.height; done += block_rows) {
    const int count = std::min(block_rows, rows.spec.height - done);
    if (!rle) read_stored(frame, first + done, count);
    const std::byte* block =
        rle ? frame_.data() + static_cast<std::size_t>(first + done) * stored : stored_.data();
    for (int y = 0; y < count; ++y) {
      convert_row(pixels_, !rle && pixels_.syntax->encoding.big_endian,
                  block + static_cast<std::size_t>(y) * stored, samples, rows.spec.type, scaling,
                  row_.data());
      unpack_row(row_.data(), rows, done + y);
    }
  }
}

// Rows into stored_, channels interleaved.
void DicomPixelReader::read_stored(int frame, int first, int count) {
  const auto channels = static_cast<std::size_t>(pixels_.channels);
  const auto bytes = static_cast<std::size_t>(pixels_.bytes);
  const std::size_t pixels = static_cast<std::size_t>(pixels_.width) * static_cast<std::size_t>(count);
  const std::size_t before = static_cast<std::size_t>(pixels_.width) * static_cast<std::size_t>(first);
  const std::uint64_t begin = static_cast<std::uint64_t>(frame) * pixels_.frame_bytes();
  stored_.resize(pixels * channels * bytes);
  if (!pixels_.planes) {
    read_bytes(stored_.data(), stored_.size(), begin + before * channels * bytes);
    return;
  }
  const std::uint64_t plane_bytes = pixels_.frame_bytes() / channels;
  plane_.resize(pixels * bytes);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    read_bytes(plane_.data(), plane_.size(), begin + channel * plane_bytes + before * bytes);
    for (std::size_t i = 0; i < pixels; ++i) {
      std::memcpy(stored_.data() + (i * channels + channel) * bytes, plane_.data() + i * bytes, bytes);
    }
  }
}

// Bytes of the pixels; `offset` counts from their first.
void DicomPixelReader::read_bytes(std::byte* to, std::size_t size, std::uint64_t offset) {
  if (!pixels_.swapped) {
    bytes_.read(to, size, pixels_.at + offset);
    return;
  }
  // The two bytes of each word are exchanged.
  const std::uint64_t begin = offset / 2 * 2;
  std::vector<std::byte> words(static_cast<std::size_t>((offset + size + 1) / 2 * 2 - begin));
  bytes_.read(words.data(), words.size(), pixels_.at + begin);
  for (std::size_t i = 0; i < size; ++i) {
    to[i] = words[static_cast<std::size_t>(((offset + i) ^ 1U) - begin)];
  }
}

// PS3.5, annex G: one segment for each byte of the samples, the most significant of the first channel first.
void DicomPixelReader::decode_rle(int frame) {
  constexpr std::size_t header_bytes = 64;
  const DicomFragment& fragment = pixels_.fragments[static_cast<std::size_t>(frame)];
  decoded_frame_ = -1;
  fragment_.resize(static_cast<std::size_t>(fragment.length));
  bytes_.read(fragment_.data(), fragment_.size(), fragment.at);
  if (fragment_.size() < header_bytes) fail(file_.path, "its RLE pixels are damaged: they are too short");
  const auto word = [&](std::size_t index) {
    std::size_t value = 0;
    for (std::size_t i = 4; i-- > 0;) {
      value = value << 8U | std::to_integer<std::size_t>(fragment_[4 * index + i]);
    }
    return value;
  };
  const auto bytes = static_cast<std::size_t>(pixels_.bytes);
  const std::size_t segments = bytes * static_cast<std::size_t>(pixels_.channels);
  if (word(0) != segments) {
    fail(file_.path, fmt::format("its RLE pixels are damaged: {} segments instead of {}", word(0), segments));
  }
  frame_.resize(static_cast<std::size_t>(pixels_.frame_bytes()));
  for (std::size_t i = 0; i < segments; ++i) {
    const std::size_t begin = word(i + 1);
    const std::size_t end = i + 1 < segments ? word(i + 2) : fragment_.size();
    if (begin < header_bytes || begin > end || end > fragment_.size()) {
      fail(file_.path, fmt::format("its RLE pixels are damaged: segment {} is at {} to {} of {} bytes", i + 1,
                                   begin, end, fragment_.size()));
    }
    decode_segment(begin, end, i / bytes * bytes + (bytes - 1 - i % bytes));
  }
  decoded_frame_ = frame;
}

// Bytes [begin, end) of the fragment give one byte of each pixel, at `place` in it.
void DicomPixelReader::decode_segment(std::size_t begin, std::size_t end, std::size_t place) {
  const std::size_t pixel =
      static_cast<std::size_t>(pixels_.bytes) * static_cast<std::size_t>(pixels_.channels);
  const std::size_t count = frame_.size() / pixel;
  std::size_t done = 0;
  std::size_t at = begin;
  while (done < count && at < end) {
    const auto code = std::to_integer<unsigned>(fragment_[at++]);
    if (code == 128) continue;  // nothing, by definition
    const bool repeated = code > 128;
    const std::size_t length = repeated ? 257 - code : code + 1;
    if ((repeated ? 1 : length) > end - at) break;
    const std::size_t taken = std::min(length, count - done);
    for (std::size_t i = 0; i < taken; ++i) {
      frame_[(done + i) * pixel + place] = fragment_[repeated ? at : at + i];
    }
    at += repeated ? 1 : length;
    done += taken;
  }
  if (done < count) {
    fail(file_.path,
         fmt::format("its RLE pixels are damaged: a segment ends after {} of {} pixels", done, count));
  }
}

}  // namespace ungrain::io
