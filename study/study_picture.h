// The noisy picture that a ladder filters, on the host and on the GPU, with and without its margin.
#pragma once

#include <vector>

#include "study/rung.h"

namespace ungrain::study {

class StudyPicture {
 public:
  explicit StudyPicture(const Size& size);

  const ImageSpec& spec() const { return spec_; }  // float, white at 255
  Size size() const { return {spec_.width, spec_.height}; }
  RungCall call(const Strengths& strengths, const Shape& shape, bool whole) const;

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
  Image plain_;
  std::vector<float> padded_;
  std::vector<std::uint8_t> padded_bytes_;
  mutable std::vector<float> host_out_;
  cuda::DeviceBuffer device_plain_;
  cuda::DeviceBuffer device_padded_;
  cuda::DeviceBuffer device_bytes_;
  cuda::DeviceBuffer device_out_;
};

}  // namespace ungrain::study
