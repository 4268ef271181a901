#include "raw_mosaic.h"

#include <algorithm>
#include <vector>

#include "io/dng_output.h"

namespace ungrain::cli {
namespace {

// 14 bits, like many cameras.
constexpr double black_level = 512;
constexpr double white_level = 16383;

// From CIE XYZ to linear sRGB (IEC 61966-2-1).
constexpr io::RawInfo::Matrix srgb_of_xyz = {
    {{3.2406, -1.5372, -0.4986}, {-0.9689, 1.8758, 0.0415}, {0.0557, -0.2040, 1.0570}}};

io::RawInfo::Matrix product(const io::RawInfo::Matrix& a, const io::RawInfo::Matrix& b) {
  io::RawInfo::Matrix result{};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) result[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
  }
  return result;
}

io::RawInfo raw_of(const ImageSpec& scene, const CameraSettings& camera) {
  io::RawInfo raw;
  raw.width = scene.width;
  raw.height = scene.height;
  raw.black.fill(black_level);
  raw.white = white_level;
  PoissonGaussian noise = camera_noise(camera, white_level - black_level);
  constexpr double of_rounding = 1.0 / 12;
  noise.b += of_rounding;
  if (camera.noise) raw.noise.assign(4, noise);
  raw.camera_of_xyz = product(camera_colours(camera), srgb_of_xyz);
  raw.neutral = {1 / camera.red_gain, 1, 1 / camera.blue_gain};
  raw.make = "ungrain";
  raw.model = "simulated camera";
  raw.iso = camera.iso;
  return raw;
}

}  // namespace

void write_mosaic(io::InputFile& scene, const ImageSpec& spec, const CameraSettings& camera,
                  const std::filesystem::path& path) {
  const io::RawInfo raw = raw_of(spec, camera);
  Image light(spec);
  scene.read_rows(0, light.view());
  const ImageSpec mosaic_spec{
      .width = spec.width, .height = spec.height, .type = PixelType::f32, .range = white_level - black_level};
  Image mosaic(mosaic_spec);
  expose_camera(light.view(), mosaic.view(), camera);

  io::FileInfo info;
  info.spec = io::raw_spec(raw);
  info.access = scene.access();
  const std::unique_ptr<io::OutputFile> output = io::create_dng(path, info, raw, {});
  Image samples(info.spec);
  const auto at = [&](int x, int y) {
    return mosaic.samples<float>()[static_cast<std::size_t>(std::min(y, spec.height - 1)) * spec.width +
                                   std::min(x, spec.width - 1)];
  };
  auto* to = samples.samples<float>();
  for (int y = 0; y < info.spec.height; ++y) {
    for (int x = 0; x < info.spec.width; ++x) {
      for (int i = 0; i < 4; ++i) to[raw.pattern[i]] = at(2 * x + i % 2, 2 * y + i / 2);
      to += 4;
    }
  }
  output->write_rows(0, samples.view());
  scene.check_unchanged();
  output->commit();
}

}  // namespace ungrain::cli
