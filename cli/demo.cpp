// ungrain demo: computes a scene, adds noise and runs every method on it; writes pictures and a table.
#include <filesystem>

#include <fmt/format.h>

#include "arguments.h"
#include "commands.h"
#include "io/frame_files.h"
#include "io/image_file.h"
#include "io/y4m.h"
#include "output.h"
#include "scene/clip.h"
#include "scene/scene.h"
#include "signals.h"
#include "ungrain/convert.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/memory.h"
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

struct ClipSettings {
  int frames = 0;
  std::string format = "y4m";  // or the extension of an image format
  double sigma = 25;
  std::uint64_t seed = 1;
};

// Gaussian noise on the samples of each plane, other noise in each frame.
void add_frame_noise(const Image& clean, Image& noisy, const ClipSettings& settings, int frame) {
  constexpr std::uint64_t between_frames = 1'000'003;
  const Noise noise{NoiseKind::gaussian, settings.sigma,
                    settings.seed + between_frames * static_cast<std::uint64_t>(frame)};
  if (clean.spec().colour != Colour::ycbcr) {
    add_noise(clean.view(), noisy.view(), noise);
    return;
  }
  add_noise(luma_view(clean.view()), luma_view(noisy.view()), noise);
  Noise of_chroma = noise;
  of_chroma.seed += between_frames / 2;
  add_noise(chroma_view(clean.view()), chroma_view(noisy.view()), of_chroma);
}

std::unique_ptr<io::FrameWriter> create_clip(const fs::path& folder, const std::string& name,
                                             const std::string& format, const ImageSpec& spec) {
  io::ClipInfo info;
  info.spec = spec;
  info.rate = {25, 1};
  info.aspect = {1, 1};
  if (format == "y4m") {
    if (spec.colour == Colour::ycbcr) info.range = "LIMITED";
    return io::create_y4m(io::create_sink(folder / (name + ".y4m"), {}, {}), info);
  }
  std::error_code error;
  fs::create_directories(folder / name, error);
  if (error)
    throw Error(ErrorCode::io,
                fmt::format("{}: the folder cannot be made: {}", (folder / name).string(), error.message()));
  return io::create_frame_files(io::FramePattern(folder / name / ("f%05d." + format)), info, 1, {}, {});
}

int write_clip(const fs::path& folder, ImageSpec spec, const ClipSettings& settings) {
  if (settings.format == "y4m" && spec.colour == Colour::rgb) {
    spec.colour = Colour::ycbcr;
    spec.chroma = {2, 2};
  }
  const SceneClip clip(spec.width, spec.height, settings.frames);
  const auto clean = create_clip(folder, "clean", settings.format, spec);
  const auto noisy = create_clip(folder, "noisy", settings.format, spec);
  io::Frame truth{Image(spec)};
  io::Frame with_noise{Image(spec)};
  for (int frame = 0; frame < settings.frames; ++frame) {
    if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted");
    clip.render(frame, truth.pixels.view());
    add_frame_noise(truth.pixels, with_noise.pixels, settings, frame);
    truth.number = with_noise.number = frame;
    clean->write(truth);
    noisy->write(with_noise);
  }
  clean->finish();
  noisy->finish();
  print(
      "{} frames of {} x {}, a cut before frame {}, gaussian noise {:g} of 255, seed {}: clean and noisy in "
      "{}\n",
      settings.frames, spec.width, spec.height, clip.cut(), settings.sigma, settings.seed, folder.string());
  return exit_done;
}

}  // namespace

int demo_command(const Arguments& arguments) {
  std::string size_text = "768x512";
  std::string folder = "ungrain-demo";
  double sigma = 25;
  std::uint64_t seed = 1;
  bool gray = false;
  ClipSettings clip;
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
  constexpr int most_frames = 1'000'000;
  table.add("--frames N",
            "instead of the pictures, a clip of N frames: clean.y4m and noisy.y4m, 4:2:0, with a cut in the "
            "middle (default: none)",
            [&](const std::string& text) {
              clip.frames = static_cast<int>(parse_whole("--frames", text, most_frames, 1));
            });
  table.add(
      "--format KIND",
      "of the clip: y4m, or an image format such as png for files clean/f00001.png and so on (default y4m)",
      clip.format);
  add_device_option(table, "auto, cpu, cuda, cuda:N, cuda:all or reference (default auto)", options.device);
  if (!parse(table, arguments)) return exit_done;
  if (clip.frames == 0 && clip.format != "y4m") throw UsageError("--format is for a clip: --frames N");
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
  if (clip.frames > 0) {
    clip.sigma = sigma;
    clip.seed = seed;
    return write_clip(folder, spec, clip);
  }
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
