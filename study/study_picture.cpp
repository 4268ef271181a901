#include "study/study_picture.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ungrain::study {
namespace {

constexpr int stride_unit = 32;  // rows begin where a texture's may

// Pictures are never smaller than the margin: one reflection is enough.
int mirrored(int position, int size) {
  if (position < 0) return -1 - position;
  return position < size ? position : 2 * size - 1 - position;
}

#if UNGRAIN_HAVE_CUDA
void upload_to(const cuda::DeviceBuffer& memory, const void* data) {
  cuda::check(cudaMemcpy(memory.data(), data, memory.size(), cudaMemcpyHostToDevice), "uploading");
}

// The library works on streams of its own, which do not wait for copies on the default one.
void wait_for_gpu() { cuda::check(cudaDeviceSynchronize(), "waiting for the GPU"); }
#endif

}  // namespace

StudyPicture::StudyPicture(const PictureSource& source, const Size& size, bool on_gpu, int seed)
    : spec_{.width = size.width, .height = size.height, .type = PixelType::f32, .range = 255},
      clean_(source.clean(size)),
      stride_((size.width + 2 * margin + stride_unit - 1) / stride_unit * stride_unit),
      on_gpu_(on_gpu),
      plain_(spec_),
      padded_(static_cast<std::size_t>(stride_) * (size.height + 2 * margin)),
      padded_bytes_(padded_.size()),
      host_out_(static_cast<std::size_t>(size.width) * size.height) {
  const auto [width, height] = size;
  const Image noisy = source.noisy(size, noise_sigma, seed);
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
#if UNGRAIN_HAVE_CUDA
  if (!on_gpu_) return;
  device_plain_ = cuda::DeviceBuffer(host_out_.size() * sizeof(float));
  device_padded_ = cuda::DeviceBuffer(padded_.size() * sizeof(float));
  device_bytes_ = cuda::DeviceBuffer(padded_bytes_.size());
  device_out_ = cuda::DeviceBuffer(host_out_.size() * sizeof(float));
  upload_to(device_padded_, padded_.data());
  upload_to(device_bytes_, padded_bytes_.data());
  upload_plain();
#endif
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
  RungCall call{.device = {.width = spec_.width, .height = spec_.height, .stride = stride_},
                .host = {.pixels = padded_.data() + first,
                         .bytes = padded_bytes_.data() + first,
                         .out = host_out_.data(),
                         .width = spec_.width,
                         .height = spec_.height,
                         .stride = stride_},
                .host_view = host_view,
                .device_view = {},
                .strengths = strengths,
                .shape = shape,
                .whole = whole};
#if UNGRAIN_HAVE_CUDA
  if (on_gpu_) {
    call.device.pixels = device_padded_.floats().data() + first;
    call.device.bytes = static_cast<const std::uint8_t*>(device_bytes_.data()) + first;
    call.device.out = device_out_.floats().data();
    call.device_view = {device_plain_.data(), spec_, host_view.strides, {Space::Memory::cuda, 0}};
  }
#endif
  return call;
}

void StudyPicture::upload_plain() const {
#if UNGRAIN_HAVE_CUDA
  upload_to(device_plain_, plain_.samples<float>());
  wait_for_gpu();
#endif
}

void StudyPicture::forget_result() {
  host_out_.assign(host_out_.size(), std::numeric_limits<float>::quiet_NaN());
  forget_device_result();
}

void StudyPicture::forget_device_result() {
#if UNGRAIN_HAVE_CUDA
  if (!on_gpu_) return;
  cuda::check(cudaMemset(device_out_.data(), 0xff, device_out_.size()), "clearing memory");
  wait_for_gpu();
#endif
}

std::vector<float> StudyPicture::result(bool on_host) const {
  if (on_host || !on_gpu_) return host_out_;
  std::vector<float> result(host_out_.size());
#if UNGRAIN_HAVE_CUDA
  cuda::check(cudaMemcpy(result.data(), device_out_.data(), device_out_.size(), cudaMemcpyDeviceToHost),
              "downloading");
#endif
  return result;
}

std::vector<float> StudyPicture::sampled_rows() const {
  constexpr int most_rows = 4;
  const int rows = std::min(most_rows, spec_.height);
  const auto samples = static_cast<std::size_t>(rows) * static_cast<std::size_t>(spec_.width);
  std::vector<float> result(3 * samples);
#if UNGRAIN_HAVE_CUDA
  const int starts[] = {0, (spec_.height - rows) / 2, spec_.height - rows};
  for (std::size_t i = 0; i < 3 && on_gpu_; ++i) {
    const float* from = device_out_.floats().data() + static_cast<std::ptrdiff_t>(starts[i]) * spec_.width;
    cuda::check(
        cudaMemcpy(result.data() + i * samples, from, samples * sizeof(float), cudaMemcpyDeviceToHost),
        "downloading");
  }
#endif
  return result;
}

}  // namespace ungrain::study
