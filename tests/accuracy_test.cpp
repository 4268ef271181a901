// docs/accuracy.md says how far results may be from the reference: the numbers that the tests ask for.
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "all_cases.h"
#include "bm3d_scenes.h"
#include "test_devices.h"
#include "ungrain/metrics.h"

namespace ungrain::testing {
namespace {

const std::string document = UNGRAIN_SOURCE_FOLDER "/docs/accuracy.md";

struct LargestError {
  std::string settings;
  std::string device;
  double of_range;
  int steps_of_16_bits = 1;
};

std::vector<LargestError> largest_errors(const MethodCases& method) {
  if (method.bounded_settings.empty()) return {};
  const std::string on_cuda = method.of_halves > 0 ? "all but the next line's" : method.bounded_settings;
  std::vector<LargestError> errors{{method.bounded_settings, "cpu", method.cpu_tolerance},
                                   {on_cuda, "cuda", method.cuda_tolerance}};
  if (method.of_halves > 0) {
    // A result's difference of less than a step changes it by one step at most.
    const int steps = static_cast<int>(std::floor(method.of_halves * 65535)) + 1;
    errors.push_back({"whole-image, `precision = half`", "cuda", method.of_halves, steps});
  }
  return errors;
}

std::vector<std::string> rows_of_errors() {
  std::vector<std::string> rows;
  for (const MethodCases& method : all_method_cases()) {
    for (const LargestError& error : largest_errors(method)) {
      rows.push_back(fmt::format("| `{}` | {} | {} | {:.0e} | {:.2g} | 1 | {} |", method.method,
                                 error.settings, error.device, error.of_range, error.of_range * 255,
                                 error.steps_of_16_bits));
    }
  }
  return rows;
}

std::string row_of(const std::string& method, const char* device, const PictureAccuracy& accuracy) {
  return fmt::format("| `{}` | {} | {:g} σ | {:g} % | {:g} dB |", method, device, accuracy.rms,
                     accuracy.far_pixels * 100, accuracy.psnr_difference);
}

std::vector<std::string> rows_of_pictures() {
  std::vector<std::string> rows;
  for (const MethodCases& method : all_method_cases()) {
    if (method.cpu_pictures) rows.push_back(row_of(method.method, "cpu", *method.cpu_pictures));
    if (method.cuda_pictures) rows.push_back(row_of(method.method, "cuda", *method.cuda_pictures));
  }
  return rows;
}

std::string joined(const std::vector<std::string>& rows) {
  std::string text;
  for (const std::string& row : rows) text += row + "\n";
  return text;
}

// The rows of the document's tables about methods, in their order.
TEST(Accuracy, TheDocumentSaysWhatTheTestsAskFor) {
  std::ifstream file(document);
  ASSERT_TRUE(file) << document;
  std::string written;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `")) written += line + "\n";
  }
  EXPECT_EQ(written, joined(rows_of_errors()) + joined(rows_of_pictures()));
}

PictureAccuracy measured(const Image& clean, const Image& expected, const Image& image, double sigma) {
  PictureAccuracy found;
  const ImageSpec& spec = clean.spec();
  const auto samples = static_cast<std::size_t>(spec.width) * spec.height * spec.channels;
  const auto* wanted = static_cast<const float*>(expected.view().data);
  const auto* got = static_cast<const float*>(image.view().data);
  double squares = 0;
  std::size_t far = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    const double difference = static_cast<double>(got[i]) - wanted[i];
    squares += difference * difference;
    far += std::fabs(difference) > sigma / 4 ? 1 : 0;
  }
  found.rms = std::sqrt(squares / static_cast<double>(samples)) / sigma;
  found.far_pixels = static_cast<double>(far) / static_cast<double>(samples);
  found.psnr_difference = std::fabs(psnr(clean.view(), image.view()) - psnr(clean.view(), expected.view()));
  return found;
}

// Against the reference, which takes seconds for these few pixels.
template <class Params>
void expect_pictures(Device device, const PictureAccuracy& accuracy) {
  for (const int channels : {1, 3}) {
    for (const double sigma : {10.0, 50.0}) {
      SCOPED_TRACE(fmt::format("{} channels, sigma {}", channels, sigma));
      const Image clean = scene_of(128, 96, channels);
      const Image noisy = noisy_of(clean, sigma);
      Params params;
      params.sigma = {sigma};
      params.search = 19;
      const PictureAccuracy found =
          measured(clean, filtered(params, noisy.view(), {.device = {Device::Kind::reference}}),
                   filtered(params, noisy.view(), {.device = device}), sigma);
      EXPECT_LE(found.rms, accuracy.rms);
      EXPECT_LE(found.far_pixels, accuracy.far_pixels);
      EXPECT_LE(found.psnr_difference, accuracy.psnr_difference);
    }
  }
}

TEST(Accuracy, Bm3dOnTheCpuHoldsOverPictures) {
  expect_pictures<Bm3dParams>({Device::Kind::cpu}, bm3d_cases().cpu_pictures.value());
}

TEST(Accuracy, RidgeOnTheCpuHoldsOverPictures) {
  expect_pictures<RidgeParams>({Device::Kind::cpu}, ridge_cases().cpu_pictures.value());
}

TEST(Accuracy, Bm3dOnCudaHoldsOverPictures) {
  UNGRAIN_NEEDS_GPU();
  expect_pictures<Bm3dParams>({Device::Kind::cuda}, bm3d_cases().cuda_pictures.value());
}

}  // namespace
}  // namespace ungrain::testing
