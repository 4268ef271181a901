// The noisy picture that a ladder filters, with and without its margin, on the host and, where there is one,
// on the GPU.
#pragma once

#include <vector>

#include "study/picture_source.h"
#include "study/rung.h"

namespace ungrain::study {

inline constexpr double noise_sigma = 20;  // of 255

class StudyPicture {
 public:
  StudyPicture(const PictureSource& source, const Size& size, bool on_gpu, int seed = 1);

  const ImageSpec& spec() const { return spec_; }  // float, white at 255
  Size size() const { return {spec_.width, spec_.height}; }
  RungCall call(const Strengths& strengths, const Shape& shape, bool whole) const;

  void upload_plain() const;    // once more to the GPU, without its margin; waits until it is there
  void forget_result();         // makes every pixel of both results NaN
  void forget_device_result();  // of the GPU's
  std::vector<float> result(bool on_host) const;
  // The first, the middle and the last rows of the GPU's result: a sample that is quick to fetch.
  std::vector<float> sampled_rows() const;
  double psnr(const std::vector<float>& result) const;  // against the picture without noise

 private:
  ImageSpec spec_;
  Image clean_;
  int stride_;
  bool on_gpu_;
  Image plain_;
  std::vector<float> padded_;
  std::vector<std::uint8_t> padded_bytes_;
  mutable std::vector<float> host_out_;
#if UNGRAIN_HAVE_CUDA
  cuda::DeviceBuffer device_plain_;
  cuda::DeviceBuffer device_padded_;
  cuda::DeviceBuffer device_bytes_;
  cuda::DeviceBuffer device_out_;
#endif
};

}  // namespace ungrain::study
