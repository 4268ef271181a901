// What an engineer writes first: one include, one denoiser, one run.
#include <cmath>
#include <cstdio>
#include <vector>

#include <ungrain/ungrain.h>

int main() {
  const ungrain::ImageSpec spec{.width = 64, .height = 48, .type = ungrain::PixelType::f32};
  const std::vector<float> clean(64 * 48, 0.5F);
  std::vector<float> noisy(clean.size());
  ungrain::add_noise({clean.data(), spec}, {noisy.data(), spec}, {ungrain::NoiseKind::gaussian, 0.1, 1});
  auto denoiser = ungrain::Denoiser::create(ungrain::BilateralParams{.radius = 3, .sigma_range = 0.5}, spec);
  const double before = ungrain::psnr({clean.data(), spec}, {noisy.data(), spec});
  denoiser.run({noisy.data(), spec}, {noisy.data(), spec});
  const double after = ungrain::psnr({clean.data(), spec}, {noisy.data(), spec});
  std::printf("ungrain %s: %.2f dB -> %.2f dB\n", UNGRAIN_VERSION, before, after);
  return after > before + 5 ? 0 : 1;
}
