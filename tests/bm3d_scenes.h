// Scenes, noise and ways to run bm3d that its tests share.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/engine.h"
#include "cpu/cpu_backend.h"
#include "groups/match_simd.h"
#include "methods/bm3d/bm3d.h"
#include "methods/bm3d/fast.h"
#include "scene/scene.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods/bm3d.h"
#include "ungrain/noise.h"
#include "ungrain/noise_model.h"

namespace ungrain::testing {

// The demo's scene in float, 0 to 255.
inline Image scene_of(int width, int height, int channels = 1) {
  return render_scene({.width = width,
                       .height = height,
                       .channels = channels,
                       .type = PixelType::f32,
                       .colour = channels == 3 ? Colour::rgb : Colour::gray,
                       .range = 255});
}

// With white Gaussian noise.
inline Image noisy_of(const Image& clean, double sigma, std::uint64_t seed = 5) {
  Image noisy(clean.spec());
  add_noise(clean.view(), noisy.view(), {NoiseKind::gaussian, sigma, seed});
  return noisy;
}

// Whether this processor compares pixels of 7 bits where others compare 8: then more groups have other
// patches.
inline bool searches_7_bits() { return match_depth(false) < 127; }

inline std::shared_ptr<const NoiseModel> shared(NoiseModel model) {
  return std::make_shared<const NoiseModel>(std::move(model));
}

// Noise that is stronger in dark parts and at low frequencies, and falls faster across than down.
inline NoiseModel falling_model(const ImageSpec& spec, double sigma) {
  NoiseModel model = white_noise_model(spec, {sigma});
  for (NoiseModel::Channel& channel : model.channels) {
    channel.levels = {20, 200};
    channel.deviations = {sigma, 0.5 * sigma};
    for (int i = 0; i < 64; ++i) channel.spectrum[i] = 1.6 / (1 + 0.2 * (i % 8) + 0.1 * (i / 8));
  }
  return model;
}

// Noise that is stronger in bright parts, the same at all frequencies.
inline NoiseModel rising_model(const ImageSpec& spec, double sigma, double in_the_dark = 0.3) {
  NoiseModel model = white_noise_model(spec, {sigma});
  for (NoiseModel::Channel& channel : model.channels) {
    channel.levels = {10, 120, 230};
    channel.deviations = {in_the_dark * sigma, sigma, 1.5 * sigma};
  }
  return model;
}

inline Image filtered(const MethodParams& params, const ConstImageView& in, const Options& options = {}) {
  Image out(in.spec);
  Denoiser::create(params, in.spec, options).run(in, out.view());
  return out;
}

// With what is not given measured in the image.
inline Image filtered(const Bm3dParams& params, const Image& in, const Device& device) {
  return filtered(resolve(params, in.view()), in.view(), {.device = device});
}

// Settings as the fast version takes them, on the general one.
inline Image filtered_generally(const Bm3dParams& params, const ConstImageView& in) {
  const MethodParams resolved = Denoiser::create(params, in.spec).params();
  Engine engine(bm3d_general(bm3d_settings(resolved.as<Bm3dParams>(), in.spec), in.spec), in.spec,
                {.band_rows = in.spec.height}, make_cpu_backend(2));
  Image out(in.spec);
  engine.run(in, out.view());
  return out;
}

}  // namespace ungrain::testing
