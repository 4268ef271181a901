#include "given_noise.h"

#include <cmath>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "io/failure.h"
#include "io/image_file.h"
#include "ungrain/convert.h"
#include "ungrain/error.h"

namespace ungrain::cli {
namespace {

// As floats, from any type.
Image samples_of(const std::filesystem::path& path) {
  const Image file = io::read_image(path);
  ImageSpec spec = file.spec();
  spec.type = PixelType::f32;
  spec.range = 0;
  Image samples(spec);
  std::vector<double> row(static_cast<std::size_t>(spec.width));
  for (int y = 0; y < spec.height; ++y) {
    for (int channel = 0; channel < spec.channels; ++channel) {
      load_row(file.view(), y, channel, row.data());
      store_row(samples.view(), y, channel, row.data());
    }
  }
  return samples;
}

}  // namespace

GivenNoise::GivenNoise(const std::filesystem::path& path)
    : path_(path), samples_(samples_of(path)), is_kernel_(false) {}

GivenNoise::GivenNoise(const std::filesystem::path& path, double sigma)
    : path_(path), samples_(samples_of(path)), is_kernel_(true), sigma_(sigma) {}

NoiseModel GivenNoise::model_for(const ImageSpec& spec) const {
  const double scale = spec.white() / 255;
  if (!is_kernel_) return scaled(noise_model_of_psd(spec, samples_.view()), scale);
  // With a kernel of any sum, all channels together have the given deviation.
  const NoiseModel model = noise_model_of_kernel(spec, samples_.view(), 1);
  double variance = 0;
  for (const double deviation : image_deviations(model, spec)) variance += deviation * deviation;
  return scaled(model, sigma_ * scale / std::sqrt(variance / spec.colour_channels()));
}

std::shared_ptr<const NoiseModel> GivenNoise::for_image(const ImageSpec& spec) const {
  const std::lock_guard lock(mutex_);
  const std::tuple kind{spec.white(), spec.colour, spec.colour_channels()};
  if (model_ != nullptr && kind_ == kind) return model_;
  try {
    model_ = std::make_shared<const NoiseModel>(model_for(spec));
  } catch (const Error& error) {
    throw Error(ErrorCode::io, fmt::format("{}: {}", io::one_line(path_.string()), error.what()));
  }
  kind_ = kind;
  return model_;
}

std::string GivenNoise::text() const {
  const ConstImageView view = samples_.view();
  const std::string_view bytes(static_cast<const char*>(view.data),
                               static_cast<std::size_t>(view.strides.y) * view.spec.height);
  return fmt::format(" {}x{} #{:x} {}", view.spec.width, view.spec.height,
                     std::hash<std::string_view>{}(bytes), sigma_);
}

}  // namespace ungrain::cli
