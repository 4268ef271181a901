#include "noise/latest_rows.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/convert.h"
#include "core/sample_types.h"
#include "noise/block_batch_simd.h"
#include "noise/block_copy_simd.h"

namespace ungrain {
namespace {

constexpr int side = 8;

template <class Sample>
float value_at(const std::byte* at) {
  Sample sample;
  std::memcpy(&sample, at, sizeof sample);
  return to_real<float>(sample);
}

}  // namespace

float sample_at(const LatestRows& rows, int x, int y, int channel) {
  return with_sample_type(rows.spec().type,
                          [&]<class Sample>(Sample) { return value_at<Sample>(rows.sample(x, y, channel)); });
}

namespace {

// Usual distances between samples are template parameters, known to the compiler.
template <class Sample, std::ptrdiff_t step, int stride>
void copy_row_of_block(const std::byte* from, float scale, float* to) {
  for (int dx = 0; dx < side; ++dx) to[dx * stride] = scale * value_at<Sample>(from + dx * step);
}

template <class Sample, int stride>
void copy_block_rows(const LatestRows& rows, int channel, int x, int y, float scale, float* to) {
  constexpr std::ptrdiff_t size = sizeof(Sample);
  for (int dy = 0; dy < side; ++dy, to += static_cast<std::ptrdiff_t>(side) * stride) {
    const std::byte* from = rows.sample(x, y + dy, channel);
    const std::ptrdiff_t step = rows.stride_x(y + dy);
    if (step == size) {
      copy_row_of_block<Sample, size, stride>(from, scale, to);
    } else if (step == 3 * size) {
      copy_row_of_block<Sample, 3 * size, stride>(from, scale, to);
    } else if (step == 4 * size) {
      copy_row_of_block<Sample, 4 * size, stride>(from, scale, to);
    } else {
      for (int dx = 0; dx < side; ++dx) to[dx * stride] = scale * value_at<Sample>(from + dx * step);
    }
  }
}

}  // namespace

void copy_block(const LatestRows& rows, int channel, int x, int y, float* to) {
  with_sample_type(rows.spec().type,
                   [&]<class Sample>(Sample) { copy_block_rows<Sample, 1>(rows, channel, x, y, 1, to); });
}

void copy_into_batch(const LatestRows& rows, int channel, int x, int y, float scale, float* to) {
  with_sample_type(rows.spec().type, [&]<class Sample>(Sample) {
    copy_block_rows<Sample, batch_blocks>(rows, channel, x, y, scale, to);
  });
}

void copy_blocks(const LatestRows& rows, int first_channel, int channels, int x, int y, float* to) {
  const ImageSpec& spec = rows.spec();
  const std::ptrdiff_t size = bytes_per_sample(spec.type);
  const std::ptrdiff_t pixel = spec.channels * size;
  const bool three = channels == 3 && (spec.channels == 3 || spec.channels == 4);
  const bool all = first_channel == 0 && (spec.channels == 1 || three);
  const bool packed =
      all && !is_float(spec.type) && rows.has_pixels_of(pixel, y) && rows.has_pixels_of(pixel, y + side - 1);
  if (packed) {
    std::array<const void*, side> begins{};
    std::uintptr_t bits = 0;  // of all addresses, to see whether samples are aligned
    for (int dy = 0; dy < side; ++dy) {
      begins[static_cast<std::size_t>(dy)] = rows.sample(x, y + dy, 0);
      bits |= reinterpret_cast<std::uintptr_t>(begins[static_cast<std::size_t>(dy)]);
    }
    if ((bits & static_cast<std::uintptr_t>(size - 1)) == 0)
      return copy_packed_block(spec.type, begins.data(), spec.channels, to);
  }
  for (int c = 0; c < channels; ++c) {
    copy_block(rows, first_channel + c, x, y, to + static_cast<std::ptrdiff_t>(c) * side * side);
  }
}

void prefetch_block(const LatestRows& rows, int x, int y) {
#if defined(__GNUC__)
  for (int dy = 0; dy < side; ++dy) __builtin_prefetch(rows.sample(x, y + dy, 0));
#endif
}

namespace {

bool is_constant_channel(const LatestRows& rows, int channel, int x, int y) {
  return with_sample_type(rows.spec().type, [&]<class Sample>(Sample) {
    const float first = value_at<Sample>(rows.sample(x, y, channel));
    for (int dy = 0; dy < side; ++dy) {
      const std::byte* from = rows.sample(x, y + dy, channel);
      const std::ptrdiff_t step = rows.stride_x(y + dy);
      for (int dx = 0; dx < side; ++dx) {
        if (value_at<Sample>(from + dx * step) != first) return false;
      }
    }
    return true;
  });
}

std::uint64_t word_at(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Contiguous integers are equal if their bytes are. Eight pixels are a whole number of words.
bool are_constant_bytes(const LatestRows& rows, int channel, std::ptrdiff_t pixel, int x, int y) {
  const auto bytes = static_cast<std::size_t>(pixel);
  const std::byte* first = rows.sample(x, y, channel);
  for (int dy = 1; dy < side; ++dy) {
    const std::byte* row = rows.sample(x, y + dy, channel);
    std::uint64_t different = 0;
    for (std::size_t at = 0; at < side * bytes; at += sizeof different) {
      different |= word_at(row + at) ^ word_at(first + at);
    }
    if (different != 0) return false;
  }
  constexpr std::uint64_t ones = 0x0101010101010101U;
  if (bytes == 1) return word_at(first) == ones * std::to_integer<std::uint64_t>(*first);
  return std::memcmp(first, first + bytes, (side - 1) * bytes) == 0;
}

}  // namespace

bool is_constant_block(const LatestRows& rows, int first_channel, int channels, int x, int y) {
  const std::ptrdiff_t pixel = static_cast<std::ptrdiff_t>(channels) * bytes_per_sample(rows.spec().type);
  const bool packed =
      !is_float(rows.spec().type) && rows.has_pixels_of(pixel, y) && rows.has_pixels_of(pixel, y + side - 1);
  if (packed) return are_constant_bytes(rows, first_channel, pixel, x, y);
  for (int c = first_channel; c < first_channel + channels; ++c) {
    if (!is_constant_channel(rows, c, x, y)) return false;
  }
  return true;
}

// Blocks lie all over the image, and flat blocks have flat neighbours: in the image's order they are often in
// a cache already.
void RowsSource::copy(std::span<const NoiseBlock> blocks, int first_channel, int channels, Workers& workers,
                      float* to) const {
  constexpr std::size_t part = 128;
  const std::size_t samples = static_cast<std::size_t>(channels) * side * side;
  const auto parts = static_cast<std::int64_t>((blocks.size() + part - 1) / part);
  workers.for_each_quietly(parts, [&](std::int64_t task, int) {
    const std::size_t first = static_cast<std::size_t>(task) * part;
    const std::size_t count = std::min(blocks.size() - first, part);
    std::array<std::uint64_t, part> order;  // row, column and number of each
    for (std::size_t n = 0; n < count; ++n) {
      const NoiseBlock& block = blocks[first + n];
      order[n] = static_cast<std::uint64_t>(block.y) << 36U | static_cast<std::uint64_t>(block.x) << 8U | n;
    }
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
    const auto number = [&](std::size_t n) { return first + static_cast<std::size_t>(order[n] & 0xffU); };
    for (std::size_t n = 0; n < count; ++n) {
      constexpr std::size_t ahead = 3;
      if (n + ahead < count) {
        const NoiseBlock& soon = blocks[number(n + ahead)];
        prefetch_block(rows_, soon.x, soon.y);
      }
      const NoiseBlock& block = blocks[number(n)];
      copy_blocks(rows_, first_channel, channels, block.x, block.y, to + number(n) * samples);
    }
  });
}

void RowCollector::keep(const ConstImageView& band, int wanted) {
  if (kept_.bytes() == 0) {
    ImageSpec spec = spec_;
    spec.height = std::min(reach - 1 + thick, height_);
    kept_ = Image(spec);
  }
  const int from_band = std::min(band.spec.height, wanted);
  const int from_kept = std::min(kept_rows_, wanted - from_band);
  const ImageView to = kept_.view();
  if (from_kept < kept_rows_) {
    for (int y = 0; y < from_kept; ++y) copy_pixels(to, kept_rows_ - from_kept + y, to, y);
  }
  for (int y = 0; y < from_band; ++y) {
    copy_pixels(band, band.spec.height - from_band + y, to, from_kept + y);
  }
  kept_rows_ = from_kept + from_band;
}

}  // namespace ungrain
