// ungrain demo: computes a scene, adds noise and runs every method on it; writes pictures and a table.
#include <filesystem>

#include <fmt/format.h>

#include "arguments.h"
#include "commands.h"
#include "core/convert.h"
#include "core/memory.h"
#include "io/image_file.h"
#include "output.h"
#include "scene/scene.h"
#include "signals.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"

namespace ungrain::cli {
namespace {

namespace fs = std::filesystem;

// What the method removed, amplified four times, around mid-gray: a good residual shows noise and no picture.
Image residual(const Image& noisy, const Image& clean) {
  constexpr double enlarged = 4;
  ImageSpec spec = noisy.spec();
  spec.type = PixelType::u8;
  spec.range = 0;
  Image picture(spec);
  const double to_255 = 255 / noisy.spec().white();
  std::vector<double> before(static_cast<std::size_t>(spec.width));
  std::vector<double> after(before.size());
  for (int y = 0; y < spec.height; ++y) {
    for (int channel = 0; channel < spec.channels; ++channel) {
      load_row(noisy.view(), y, channel, before.data());
      load_row(clean.view(), y, channel, after.data());
      for (std::size_t x = 0; x < before.size(); ++x) {
        before[x] = 128 + enlarged * to_255 * (before[x] - after[x]) / 2;
      }
      store_row(picture.view(), y, channel, before.data());
    }
  }
  return picture;
}

void print_row(const std::string& what, const Metrics& metrics, const std::string& time,
               const fs::path& file) {
  const auto text = [](std::optional<double> value) { return value ? fmt::format("{:.4f}", *value) : "-"; };
  print("{:<18} {:>9.2f} {:>9} {:>9} {:>12}  {}\n", what, metrics.psnr, text(metrics.ssim),
        text(metrics.fsim), time, file.string());
}

// The option for the noise of 0-255 pictures, with the demo's own default.
ParamInfo gaussian_amount(double standard) {
  ParamInfo amount = noise_models().front().amount;
  for (const NoiseInfo& info : noise_models()) {
    if (info.kind == NoiseKind::gaussian) amount = info.amount;
  }
  amount.default_text = fmt::format("{}", standard);
  return amount;
}

// The pictures are held in memory: a size that does not fit would otherwise make the kernel kill the program.
void check_memory(const ImageSpec& spec) {
  constexpr std::size_t pictures = 4;  // clean, noisy, a result, its residual
  const std::size_t needed = pictures * static_cast<std::size_t>(spec.width) * spec.height * spec.channels;
  if (const std::size_t free = free_memory(); needed > free) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("--size {}x{} needs {} of memory, {} are free", spec.width, spec.height,
                            bytes_text(needed), bytes_text(free)));
  }
}

}  // namespace

int demo_command(const Arguments& arguments) {
  std::string size_text = "768x512";
  std::string folder = "ungrain-demo";
  double sigma = 25;
  std::uint64_t seed = 1;
  bool gray = false;
  Options options;
  OptionTable table("Render a scene, add noise, denoise it with every method; pictures and a table.",
                    "ungrain demo");
  table.add("--size WxH", "of the scene (default 768x512)", size_text);
  table.add("-o,--output PATH", "folder for the pictures (default ungrain-demo)", folder);
  const ParamInfo amount = gaussian_amount(sigma);
  table.add("--gaussian SIGMA", option_help(amount),
            [&](const std::string& text) { sigma = parse_amount(amount, text); });
  table.add("--seed N", "of the noise (default 1)",
            [&](const std::string& text) { seed = parse_whole("--seed", text); });
  table.add("--gray", "without colour", gray);
  add_device_option(table, "auto, cpu, cuda, cuda:N, cuda:all or reference (default auto)", options.device);
  if (!parse(table, arguments)) return exit_done;
  options.cancel = interrupted();

  const Size size = parse_size(size_text);
  ImageSpec spec{.width = size.width, .height = size.height};
  spec.channels = gray ? 1 : 3;
  spec.colour = gray ? Colour::gray : Colour::rgb;
  check_device(options.device);
  check_memory(spec);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error(ErrorCode::io, fmt::format("{}: the folder cannot be made: {}", folder, error.message()));
  const std::string extension = io::can_write("picture.png", nullptr) ? ".png" : gray ? ".pgm" : ".ppm";
  const auto file = [&](const std::string& name) { return fs::path(folder) / (name + extension); };

  const Image clean = render_scene(spec);
  Image noisy(spec);
  add_noise(clean.view(), noisy.view(), {NoiseKind::gaussian, sigma, seed});
  io::write_image(file("clean"), clean.view());
  io::write_image(file("noisy"), noisy.view());

  print("{:<18} {:>9} {:>9} {:>9} {:>12}  picture\n", "method", "PSNR dB", "SSIM", "FSIM", "ms");
  print_row("(noisy)", compare(clean.view(), noisy.view()), "", file("noisy"));
  for (const MethodInfo& method : methods()) {
    Denoiser denoiser =
        Denoiser::create(resolve(MethodParams::defaults(method.name), noisy.view()), spec, options);
    Image result(spec);
    denoiser.run(noisy.view(), result.view());  // the first run also starts threads
    const Report report = denoiser.run(noisy.view(), result.view());
    io::write_image(file(method.name), result.view());
    io::write_image(file(method.name + "-residual"), residual(noisy, result).view());
    print_row(method.name, compare(clean.view(), result.view()), fmt::format("{:.1f}", report.ms),
              file(method.name));
  }
  print(
      "{} x {}, gaussian noise {:g} of 255, seed {}; residuals (what was taken away, around gray) beside "
      "each.\n",
      size.width, size.height, sigma, seed);
  return exit_done;
}

}  // namespace ungrain::cli
