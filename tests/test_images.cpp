#include "test_images.h"

#include <cmath>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "core/convert.h"

namespace ungrain::testing {
namespace {

constexpr std::byte guard{0xA5};
constexpr std::size_t margin = 256;

ImageView one_sample(const ImageView& view, int x, int channel) {
  ImageView sample = view;
  sample.data = static_cast<std::byte*>(view.data) + x * view.strides.x + channel * view.strides.channel;
  sample.spec.width = 1;
  return sample;
}

std::uint32_t scrambled(std::uint32_t v) {
  v ^= v >> 16U;
  v *= 0x7feb352dU;
  v ^= v >> 15U;
  v *= 0x846ca68bU;
  return v ^ (v >> 16U);
}

}  // namespace

const char* name(Layout layout) {
  switch (layout) {
    case Layout::interleaved:
      return "interleaved";
    case Layout::planar:
      return "planar";
    case Layout::padded:
      return "padded";
    case Layout::flipped:
      return "flipped";
  }
  return "?";
}

TestImage::TestImage(const ImageSpec& spec, Layout layout) {
  const std::ptrdiff_t sample = bytes_per_sample(spec.type);
  Strides strides = layout == Layout::planar ? planar_strides(spec) : interleaved_strides(spec);
  if (layout == Layout::padded) strides.y += 3 * sample;
  std::size_t size = static_cast<std::size_t>(spec.width) * spec.height * spec.channels * sample;
  if (layout == Layout::padded) size += static_cast<std::size_t>(3 * sample * spec.height);
  memory_.assign(size + 2 * margin, guard);
  std::byte* first = memory_.data() + margin;
  if (layout == Layout::flipped) {
    first += strides.y * (spec.height - 1);
    strides.y = -strides.y;
  }
  view_ = ImageView(first, spec, strides);
  for (int y = 0; y < spec.height; ++y) {
    for (int c = 0; c < spec.channels; ++c) {
      for (int x = 0; x < spec.width; ++x) set(x, y, c, 0);
    }
  }
}

bool TestImage::guards_intact() const {
  std::vector<std::byte> bytes = memory_;
  const auto* base = memory_.data();
  const ImageSpec& spec = view_.spec;
  for (int y = 0; y < spec.height; ++y) {
    for (int c = 0; c < spec.channels; ++c) {
      for (int x = 0; x < spec.width; ++x) {
        const auto* at = static_cast<const std::byte*>(view_.data) + y * view_.strides.y +
                         x * view_.strides.x + c * view_.strides.channel;
        std::memset(bytes.data() + (at - base), static_cast<int>(guard), bytes_per_sample(spec.type));
      }
    }
  }
  for (const std::byte byte : bytes) {
    if (byte != guard) return false;
  }
  return true;
}

double TestImage::at(int x, int y, int channel) const {
  double value = 0;
  load_row(ConstImageView(one_sample(view_, x, channel)), y, 0, &value);
  return value;
}

void TestImage::set(int x, int y, int channel, double value) {
  store_row(one_sample(view_, x, channel), y, 0, &value);
}

void fill_with_picture(TestImage& image, std::uint32_t seed) {
  const ImageSpec& spec = image.view().spec;
  std::vector<double> row(static_cast<std::size_t>(spec.width));
  for (int y = 0; y < spec.height; ++y) {
    for (int c = 0; c < spec.channels; ++c) {
      for (int x = 0; x < spec.width; ++x) {
        const double gradient = 0.3 + 0.4 * x / spec.width;
        const double edge = (x * 2 + y * 3) % 31 < 15 ? 0.2 : 0;
        const double texture = 0.1 * std::sin(0.9 * x + 0.7 * y + c);
        const std::uint32_t random =
            scrambled(seed + scrambled(static_cast<std::uint32_t>(x) + 7919U * static_cast<std::uint32_t>(y) +
                                       104729U * static_cast<std::uint32_t>(c)));
        const double noise = 0.15 * (static_cast<double>(random) / 4294967296.0 - 0.5);
        const double value = std::fmin(1, std::fmax(0, gradient + edge + texture + noise));
        row[static_cast<std::size_t>(x)] = value * spec.white();
      }
      store_row(image.view(), y, c, row.data());
    }
  }
}

void fill_with(TestImage& image, double value) {
  const ImageSpec& spec = image.view().spec;
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < spec.channels; ++c) image.set(x, y, c, value);
    }
  }
}

ImageSequence::ImageSequence(int count, const ImageSpec& spec, Layout layout) {
  for (int slice = 0; slice < count; ++slice) {
    images.emplace_back(spec, layout);
    fill_with_picture(images.back(), static_cast<std::uint32_t>(slice) + 1);
  }
}

std::vector<ImageView> ImageSequence::views() {
  std::vector<ImageView> list;
  for (TestImage& image : images) list.push_back(image.view());
  return list;
}

std::vector<ConstImageView> ImageSequence::views() const {
  std::vector<ConstImageView> list;
  for (const TestImage& image : images) list.push_back(image.view());
  return list;
}

std::vector<std::uint64_t> ImageSequence::hashes() const {
  std::vector<std::uint64_t> list;
  for (const TestImage& image : images) list.push_back(hash_of(image.view()));
  return list;
}

Difference difference(const TestImage& image, const TestImage& expected) {
  Difference worst;
  const ImageSpec& spec = image.view().spec;
  std::vector<double> got(static_cast<std::size_t>(spec.width));
  std::vector<double> wanted(got.size());
  for (int y = 0; y < spec.height; ++y) {
    for (int c = 0; c < spec.channels; ++c) {
      load_row(image.view(), y, c, got.data());
      load_row(expected.view(), y, c, wanted.data());
      for (std::size_t x = 0; x < got.size(); ++x) {
        worst.finite = worst.finite && std::isfinite(got[x]) && std::isfinite(wanted[x]);
        if (const double error = std::fabs(got[x] - wanted[x]); !(error <= worst.largest)) {
          worst.largest = error;
          worst.where = fmt::format("({}, {}) channel {}: got {}, expected {}", x, y, c, got[x], wanted[x]);
        }
      }
    }
  }
  return worst;
}

std::uint64_t hash_of(const ConstImageView& view) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const int size = bytes_per_sample(view.spec.type);
  for (int y = 0; y < view.spec.height; ++y) {
    for (int x = 0; x < view.spec.width; ++x) {
      for (int c = 0; c < view.spec.channels; ++c) {
        const auto* at = static_cast<const std::uint8_t*>(view.data) + y * view.strides.y +
                         x * view.strides.x + c * view.strides.channel;
        for (int byte = 0; byte < size; ++byte) hash = (hash ^ at[byte]) * 0x100000001b3U;
      }
    }
  }
  return hash;
}

}  // namespace ungrain::testing
