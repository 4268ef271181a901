#include "study/study_picture.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "scene/scene.h"
#include "ungrain/noise.h"

namespace ungrain::study {
namespace {

constexpr double noise_sigma = 20;  // of 255
constexpr int stride_unit = 32;     // rows begin where a texture's may

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

Image noisy_bytes(const Image& clean) {
  Image noisy(clean.spec());
  add_noise(clean.view(), noisy.view(), {NoiseKind::gaussian, noise_sigma, 1});
  return noisy;
}

// Pictures are never smaller than the margin: one reflection is enough.
int mirrored(int position, int size) {
  if (position < 0) return -1 - position;
  return position < size ? position : 2 * size - 1 - position;
}

cuda::DeviceBuffer uploaded(const void* data, std::size_t bytes) {
  cuda::DeviceBuffer memory(bytes);
  cuda::check(cudaMemcpy(memory.data(), data, bytes, cudaMemcpyHostToDevice), "uploading");
  return memory;
}

// The library works on streams of its own, which do not wait for copies on the default one.
void wait_for_gpu() { cuda::check(cudaDeviceSynchronize(), "waiting for the GPU"); }

}  // namespace

StudyPicture::StudyPicture(const Size& size)
    : spec_{.width = size.width, .height = size.height, .type = PixelType::f32, .range = 255},
      clean_(rendered({.width = size.width, .height = size.height})),
      stride_((size.width + 2 * margin + stride_unit - 1) / stride_unit * stride_unit),
      plain_(spec_),
      padded_(static_cast<std::size_t>(stride_) * (size.height + 2 * margin)),
      padded_bytes_(padded_.size()),
      host_out_(static_cast<std::size_t>(size.width) * size.height) {
  const auto [width, height] = size;
  const Image noisy = noisy_bytes(clean_);
  const std::uint8_t* bytes = noisy.samples<std::uint8_t>();
  for (int y = -margin; y < height + margin; ++y) {
    for (int x = -margin; x < width + margin; ++x) {
      const auto from = static_cast<std::size_t>(mirrored(y, height)) * width + mirrored(x, width);
      const auto to = static_cast<std::size_t>(y + margin) * stride_ + (x + margin);
      padded_bytes_[to] = bytes[from];
      padded_[to] = static_cast<float>(bytes[from]);
    }
  }
  for (std::size_t i = 0; i < host_out_.size(); ++i)
    plain_.samples<float>()[i] = static_cast<float>(bytes[i]);
  device_plain_ = uploaded(plain_.samples<float>(), host_out_.size() * sizeof(float));
  device_padded_ = uploaded(padded_.data(), padded_.size() * sizeof(float));
  device_bytes_ = uploaded(padded_bytes_.data(), padded_bytes_.size());
  device_out_ = cuda::DeviceBuffer(host_out_.size() * sizeof(float));
  wait_for_gpu();
}

double StudyPicture::psnr(const std::vector<float>& result) const {
  const std::uint8_t* clean = clean_.samples<std::uint8_t>();
  double squares = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double difference = static_cast<double>(result[i]) - clean[i];
    squares += difference * difference;
  }
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(result.size()) / squares);
}

RungCall StudyPicture::call(const Strengths& strengths, const Shape& shape, bool whole) const {
  const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(margin) * stride_ + margin;
  const ConstImageView host_view = plain_.view();
  return {.device = {.pixels = device_padded_.floats().data() + first,
                     .bytes = static_cast<const std::uint8_t*>(device_bytes_.data()) + first,
                     .out = device_out_.floats().data(),
                     .width = spec_.width,
                     .height = spec_.height,
                     .stride = stride_},
          .host = {.pixels = padded_.data() + first,
                   .bytes = padded_bytes_.data() + first,
                   .out = host_out_.data(),
                   .width = spec_.width,
                   .height = spec_.height,
                   .stride = stride_},
          .host_view = host_view,
          .device_view = {device_plain_.data(), spec_, host_view.strides, {Space::Memory::cuda, 0}},
          .strengths = strengths,
          .shape = shape,
          .whole = whole};
}

void StudyPicture::forget_result() {
  host_out_.assign(host_out_.size(), std::numeric_limits<float>::quiet_NaN());
  forget_device_result();
}

void StudyPicture::forget_device_result() {
  cuda::check(cudaMemset(device_out_.data(), 0xff, device_out_.size()), "clearing memory");
  wait_for_gpu();
}

std::vector<float> StudyPicture::result(bool on_host) const {
  if (on_host) return host_out_;
  std::vector<float> result(host_out_.size());
  cuda::check(cudaMemcpy(result.data(), device_out_.data(), device_out_.size(), cudaMemcpyDeviceToHost),
              "downloading");
  return result;
}

std::vector<float> StudyPicture::sampled_rows() const {
  constexpr int most_rows = 4;
  const int rows = std::min(most_rows, spec_.height);
  const auto samples = static_cast<std::size_t>(rows) * static_cast<std::size_t>(spec_.width);
  std::vector<float> result(3 * samples);
  const int starts[] = {0, (spec_.height - rows) / 2, spec_.height - rows};
  for (std::size_t i = 0; i < 3; ++i) {
    const float* from = device_out_.floats().data() + static_cast<std::ptrdiff_t>(starts[i]) * spec_.width;
    cuda::check(
        cudaMemcpy(result.data() + i * samples, from, samples * sizeof(float), cudaMemcpyDeviceToHost),
        "downloading");
  }
  return result;
}

}  // namespace ungrain::study
