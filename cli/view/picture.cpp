#include "view/picture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "ungrain/convert.h"
#include "ungrain/error.h"
#include "view/in_parallel.h"

namespace ungrain::cli::view {
namespace {

int shown_channels(const ImageSpec& spec) { return spec.colour_channels() >= 3 ? 3 : 1; }

ConstImageView columns(ConstImageView view, int x, int width) {
  view.data = static_cast<const std::byte*>(view.data) + x * view.strides.x;
  view.spec.width = width;
  return view;
}

std::uint8_t byte_of(double value) {
  return static_cast<std::uint8_t>(std::lround(std::isnan(value) ? 0 : std::clamp(value, 0.0, 255.0)));
}

double per_value(const Window& window) {
  const double range = window.high - window.low;
  return range > 0 ? 255 / range : 255;
}

}  // namespace

namespace {

// Rows [first, end) of the small image.
void halve_rows(const ConstImageView& image, const ImageView& small, int first, int end) {
  const int channels = image.spec.channels;
  const auto width = static_cast<std::size_t>(image.spec.width);
  const auto half = static_cast<std::size_t>(small.spec.width);
  std::vector<float> samples(static_cast<std::size_t>(channels) * (2 * width + half));
  std::vector<float*> upper;
  std::vector<float*> lower;
  std::vector<float*> means;
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    float* const own = samples.data() + c * (2 * width + half);
    upper.push_back(own);
    lower.push_back(own + width);
    means.push_back(own + 2 * width);
  }
  for (int y = first; y < end; ++y) {
    load_channels(image, 2 * y, channels, upper.data());
    load_channels(image, std::min(2 * y + 1, image.spec.height - 1), channels, lower.data());
    for (std::size_t c = 0; c < means.size(); ++c) {
      const auto mean = [&](std::size_t x, std::size_t right) {
        return (upper[c][2 * x] + upper[c][right] + lower[c][2 * x] + lower[c][right]) / 4;
      };
      const std::size_t whole = width / 2;
      for (std::size_t x = 0; x < whole; ++x) means[c][x] = mean(x, 2 * x + 1);
      if (whole < half) means[c][whole] = mean(whole, width - 1);
    }
    store_channels(small, y, channels, means.data());
  }
}

}  // namespace

ConstImageView part_view(ConstImageView image, const Part& part) {
  image.data =
      static_cast<const std::byte*>(image.data) + part.x0 * image.strides.x + part.y0 * image.strides.y;
  image.spec.width = part.width();
  image.spec.height = part.height();
  return image;
}

Image copied(const ConstImageView& image, const Part& part) {
  const ConstImageView from = part_view(image, part);
  Image copy(from.spec);
  for (int y = 0; y < part.height(); ++y) copy_pixels(from, y, copy.view(), y);
  return copy;
}

Image halved(const ConstImageView& image) {
  ImageSpec spec = image.spec;
  spec.width = (image.spec.width + 1) / 2;
  spec.height = (image.spec.height + 1) / 2;
  Image small(spec);
  in_parallel(spec.height, spec.width,
              [&, to = small.view()](int first, int end) { halve_rows(image, to, first, end); });
  return small;
}

Picture::Picture(std::shared_ptr<Document> document, int page, std::size_t memory)
    : document_(std::move(document)), page_(page) {
  const ImageSpec& given = document_->info().spec;
  const std::uint64_t size =
      static_cast<std::uint64_t>(given.width) * given.height * given.channels * bytes_per_sample(given.type);
  if (size > memory) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("{}: {} x {} pixels do not fit into the memory for pictures (--memory)",
                            file().name, given.width, given.height));
  }
  Image pixels = document_->read(page);
  noise_options_ = document_->noise_options(page);
  if (const std::optional<FrameColours> colours = document_->colours()) {
    levels_.push_back(to_rgb(std::as_const(pixels).view(), *colours));
    frame_ = std::move(pixels);
  } else {
    levels_.push_back(std::move(pixels));
  }
  constexpr int smallest = 64;  // for coarse previews; what is shown ends with the first of one tile
  const auto longest = [&] { return std::max(levels_.back().spec().width, levels_.back().spec().height); };
  while (longest() > smallest) {
    if (longest() > largest_thumbnail) thumbnail_level_ = levels();
    levels_.push_back(halved(std::as_const(levels_.back()).view()));
  }
  noise_.resize(levels_.size());
  find_window();
}

std::size_t Picture::bytes() const {
  std::size_t sum = frame_ ? frame_->bytes() : 0;
  for (const Image& level : levels_) sum += level.bytes();
  return sum;
}

MeasuredNoise& Picture::noise(int level) {
  std::unique_ptr<MeasuredNoise>& noise = noise_[static_cast<std::size_t>(level)];
  if (!noise) {
    NoiseModelOptions options = noise_options_;
    if (level > 0) options.jpeg_steps = {};
    noise = std::make_unique<MeasuredNoise>(std::as_const(levels_[static_cast<std::size_t>(level)]).view(),
                                            options);
  }
  return *noise;
}

// Photographs are shown from 0 to white. Samples of 16 bits and floats that use little of that range are
// shown from their 0.5th to their 99.5th percentile.
void Picture::find_window() {
  window_ = {0, spec().white()};
  if (spec().type == PixelType::u8) return;
  const Image& small = thumbnail();
  std::vector<float> values;
  std::vector<float> row(static_cast<std::size_t>(small.spec().width));
  for (int channel = 0; channel < shown_channels(small.spec()); ++channel) {
    for (int y = 0; y < small.spec().height; ++y) {
      load_row(small.view(), y, channel, row.data());
      for (const float value : row) {
        if (std::isfinite(value)) values.push_back(value);
      }
    }
  }
  if (values.empty()) return;
  const auto percentile = [&](double share) {
    const auto at =
        values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return static_cast<double>(*at);
  };
  const double low = percentile(0.005);
  const double high = percentile(0.995);
  constexpr double used_well = 0.6;
  if (low >= 0 && high <= spec().white() && high - low >= used_well * spec().white()) return;
  if (high > low) window_ = {low, high};
}

std::vector<std::uint8_t> shown(const ConstImageView& image, const Part& part, const Window& window) {
  const int channels = shown_channels(image.spec);
  const auto width = static_cast<std::size_t>(part.width());
  std::vector<std::uint8_t> bytes(width * static_cast<std::size_t>(part.height()) * 4, 255);
  std::vector<double> row(width);
  const ConstImageView view = columns(image, part.x0, part.width());
  const double scale = per_value(window);
  for (int y = 0; y < part.height(); ++y) {
    std::uint8_t* const to = bytes.data() + static_cast<std::size_t>(y) * width * 4;
    for (int channel = 0; channel < channels; ++channel) {
      load_row(view, part.y0 + y, channel, row.data());
      for (std::size_t x = 0; x < width; ++x) {
        const std::uint8_t value = byte_of((row[x] - window.low) * scale);
        if (channels == 1) {
          std::fill_n(to + 4 * x, 3, value);
        } else {
          to[4 * x + static_cast<std::size_t>(channel)] = value;
        }
      }
    }
  }
  return bytes;
}

std::vector<std::uint8_t> shown_difference(const ConstImageView& a, const ConstImageView& b, const Part& part,
                                           const Window& window, double gain, bool gray) {
  const int channels = shown_channels(a.spec);
  const auto width = static_cast<std::size_t>(part.width());
  std::vector<std::uint8_t> bytes(width * static_cast<std::size_t>(part.height()) * 4, 255);
  std::vector<double> first(width);
  std::vector<double> second(width);
  std::vector<double> sum(width);
  const double scale = gain * per_value(window);
  constexpr double middle = 128;
  for (int y = 0; y < part.height(); ++y) {
    std::uint8_t* const to = bytes.data() + static_cast<std::size_t>(y) * width * 4;
    std::fill(sum.begin(), sum.end(), 0.0);
    for (int channel = 0; channel < channels; ++channel) {
      load_row(columns(a, part.x0, part.width()), part.y0 + y, channel, first.data());
      load_row(columns(b, part.x0, part.width()), part.y0 + y, channel, second.data());
      for (std::size_t x = 0; x < width; ++x) {
        const double difference = (first[x] - second[x]) * scale;
        sum[x] += difference / channels;
        to[4 * x + static_cast<std::size_t>(channel)] = byte_of(middle + difference);
      }
    }
    if (channels == 3 && !gray) continue;
    for (std::size_t x = 0; x < width; ++x) std::fill_n(to + 4 * x, 3, byte_of(middle + sum[x]));
  }
  return bytes;
}

std::vector<std::vector<std::int64_t>> histogram(const ConstImageView& image, const Part& part,
                                                 const Window& window) {
  constexpr std::size_t steps = 256;
  std::vector<std::vector<std::int64_t>> counts;
  std::vector<double> row(static_cast<std::size_t>(part.width()));
  const ConstImageView view = columns(image, part.x0, part.width());
  const double scale = per_value(window);
  for (int channel = 0; channel < shown_channels(image.spec); ++channel) {
    counts.emplace_back(steps, 0);
    for (int y = part.y0; y < part.y1; ++y) {
      load_row(view, y, channel, row.data());
      for (const double value : row) {
        if (std::isfinite(value)) ++counts.back()[byte_of((value - window.low) * scale)];
      }
    }
  }
  return counts;
}

}  // namespace ungrain::cli::view
