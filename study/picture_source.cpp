#include "study/picture_source.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "core/convert.h"
#include "io/image_file.h"
#include "scene/scene.h"
#include "ungrain/error.h"
#include "ungrain/noise.h"

namespace ungrain::study {
namespace {

Image gray_bytes(const Image& image) {
  const ImageSpec spec{.width = image.spec().width, .height = image.spec().height};
  Image gray(spec);
  const bool rgb = image.spec().colour == Colour::rgb;
  const std::vector<double> weights = rgb ? std::vector{0.299, 0.587, 0.114} : std::vector{1.0};
  std::vector<double> channel(static_cast<std::size_t>(spec.width));
  std::vector<double> sum(channel.size());
  for (int y = 0; y < spec.height; ++y) {
    std::fill(sum.begin(), sum.end(), 0.0);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      load_row(image.view(), y, static_cast<int>(k), channel.data());
      for (std::size_t x = 0; x < sum.size(); ++x) sum[x] += weights[k] * channel[x];
    }
    store_row(gray.view(), y, 0, sum.data(), 255 / image.spec().white());
  }
  return gray;
}

// Large pictures take a core half a minute: all cores, piece by piece.
Image rendered(const ImageSpec& spec) {
  constexpr int piece = 16;  // rows
  Image image(spec);
  const Scene scene(spec.width, spec.height);
  std::atomic<int> next = 0;
  const auto render = [&] {
    for (int first = next.fetch_add(piece); first < spec.height; first = next.fetch_add(piece))
      scene.render_rows(first, image.view().rows(first, std::min(piece, spec.height - first)));
  };
  std::vector<std::jthread> others;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) others.emplace_back(render);
  render();
  others.clear();
  return image;
}

}  // namespace

PictureSource::PictureSource(const std::filesystem::path& file)
    : name_(file.filename().string()), own_(std::make_shared<Image>(gray_bytes(io::read_image(file)))) {
  const Size least = window_check_size;
  if (!has(least)) {
    throw Error(ErrorCode::io,
                fmt::format("{}: {} x {}, the study takes pictures from {} x {} on", file.string(),
                            size().width, size().height, least.width, least.height));
  }
}

Size PictureSource::size() const { return {own_->spec().width, own_->spec().height}; }

bool PictureSource::has(const Size& size) const {
  return own_ == nullptr || (size.width <= own_->spec().width && size.height <= own_->spec().height);
}

Image PictureSource::clean(const Size& size) const {
  const ImageSpec spec{.width = size.width, .height = size.height};
  if (own_ == nullptr) {
    Image& scene = (*rendered_)[{size.width, size.height}];
    if (scene.spec().width == 0) scene = rendered(spec);
    return scene.copy();
  }
  Image part(spec);
  const ImageSpec& whole = own_->spec();
  const int left = (whole.width - size.width) / 2;
  const int top = (whole.height - size.height) / 2;
  for (int y = 0; y < size.height; ++y) {
    const std::uint8_t* from =
        own_->samples<std::uint8_t>() + static_cast<std::ptrdiff_t>(top + y) * whole.width + left;
    std::copy_n(from, size.width, part.samples<std::uint8_t>() + static_cast<std::ptrdiff_t>(y) * size.width);
  }
  return part;
}

Image PictureSource::noisy(const Size& size, double sigma, int seed) const {
  const Image picture = clean(size);
  Image result(picture.spec());
  add_noise(picture.view(), result.view(), {NoiseKind::gaussian, sigma, static_cast<std::uint64_t>(seed)});
  return result;
}

}  // namespace ungrain::study
