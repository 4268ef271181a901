#include "bench/pictures.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/convert.h"
#include "ungrain/noise.h"

namespace ungrain::bench {
namespace {

constexpr int sample_width = 96;
constexpr int sample_height = 48;

Image noisy_picture(const ImageSpec& spec) {
  ImageSpec float_spec = spec;
  float_spec.type = PixelType::f32;
  float_spec.range = 1;
  Image clean(float_spec);
  float* samples = clean.samples<float>();
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(spec.width) * spec.height * spec.channels; ++i) {
    samples[i] = 0.3F + 0.4F * static_cast<float>(i % spec.width) / static_cast<float>(spec.width);
  }
  Image noisy(spec);
  add_noise(clean.view(), noisy.view(), {NoiseKind::gaussian, 25.0 / 255, 1});
  return noisy;
}

// Rows and columns of a view of the whole image.
ConstImageView part_of(ConstImageView view, int x, int y, int width, int height) {
  view.region = {x, y, view.spec.width, view.spec.height};
  view.data = static_cast<const std::byte*>(view.data) + y * view.strides.y + x * view.strides.x;
  view.spec.width = width;
  view.spec.height = height;
  return view;
}

ImageSpec part_spec(ImageSpec spec) {
  spec.width = std::min(spec.width, sample_width);
  spec.height = std::min(spec.height, sample_height);
  return spec;
}

// A part of an image in GPU memory.
Image downloaded(const GpuImage& made, int x, int y, const ImageSpec& part) {
  const ImageView whole = made.view();
  Image got(part);
  const auto* from = static_cast<const std::byte*>(whole.data) + y * whole.strides.y + x * whole.strides.x;
  cuda::check(
      cudaMemcpy2D(got.view().data, static_cast<std::size_t>(got.view().strides.y), from,
                   static_cast<std::size_t>(whole.strides.y), static_cast<std::size_t>(got.view().strides.y),
                   static_cast<std::size_t>(part.height), cudaMemcpyDeviceToHost),
      "downloading");
  return got;
}

// Of the white level.
double largest_difference(const ConstImageView& expected, const Image& got) {
  std::vector<float> a(static_cast<std::size_t>(expected.spec.width));
  std::vector<float> b(a.size());
  double largest = 0;
  for (int y = 0; y < expected.spec.height; ++y) {
    for (int channel = 0; channel < expected.spec.channels; ++channel) {
      load_row(expected, y, channel, a.data());
      load_row(got.view(), y, channel, b.data());
      for (std::size_t x = 0; x < a.size(); ++x) {
        const double difference = std::fabs(static_cast<double>(a[x]) - b[x]);
        if (!(difference <= largest)) largest = difference;  // keeps a NaN
      }
    }
  }
  return largest / expected.spec.white();
}

}  // namespace

ImageSpec spec_of(const Size& size, PixelType type, bool rgb) {
  ImageSpec spec{.width = size.width, .height = size.height, .type = type};
  if (rgb) {
    spec.channels = 3;
    spec.colour = Colour::rgb;
  }
  return spec;
}

std::size_t bytes_of(const ImageSpec& spec) {
  return static_cast<std::size_t>(interleaved_strides(spec).y) * static_cast<std::size_t>(spec.height);
}

std::string type_name(const ImageSpec& spec) {
  return std::string(name(spec.type)) + (spec.channels == 3 ? " rgb" : "");
}

const Source& source_for(const ImageSpec& spec) {
  static std::vector<std::pair<ImageSpec, std::unique_ptr<Source>>> made;
  for (const auto& [of, source] : made) {
    if (of == spec) return *source;
  }
  made.emplace_back(spec, std::make_unique<Source>(Source{noisy_picture(spec), GpuImage(spec)}));
  const Source& source = *made.back().second;
  cuda::check(
      cudaMemcpy(source.device.view().data, source.host.view().data, bytes_of(spec), cudaMemcpyHostToDevice),
      "uploading");
  return source;
}

Sample::Sample(const MethodParams& params, const ImageSpec& spec) {
  Denoiser denoiser =
      Denoiser::create(params, spec, {.device = {Device::Kind::cpu}, .band_rows = sample_height});
  const Denoiser::Reach reach = denoiser.reach();
  const ImageSpec part = part_spec(spec);
  const auto places = [](int whole, int of_part) {
    return std::set<int>{0, (whole - of_part) / 2, whole - of_part};
  };
  for (const int y : places(spec.height, part.height)) {
    for (const int x : places(spec.width, part.width)) {
      Image expected(part);
      ImageView out = expected.view();
      out.region = {x, y, spec.width, spec.height};
      const int x0 = std::max(0, x - reach.x);
      const int y0 = std::max(0, y - reach.y);
      const int x1 = std::min(spec.width, x + part.width + reach.x);
      const int y1 = std::min(spec.height, y + part.height + reach.y);
      denoiser.run(part_of(source_for(spec).host.view(), x0, y0, x1 - x0, y1 - y0), out);
      parts_.push_back({x, y, std::move(expected)});
    }
  }
}

double Sample::difference(const GpuImage& made) const {
  double largest = 0;
  for (const Part& part : parts_) {
    const double of_part =
        largest_difference(part.expected.view(), downloaded(made, part.x, part.y, part.expected.spec()));
    if (!(of_part <= largest)) largest = of_part;  // keeps a NaN
  }
  return largest;
}

double tolerance_for(const ImageSpec& spec) {
  constexpr double rounding = 1.2e-4;  // of the GPU's version and of the CPU's, each against the reference
  return is_float(spec.type) ? rounding : std::max(rounding, 1.01 / spec.white());
}

}  // namespace ungrain::bench
