// ungrain-bench-volume FILE METHOD [NAME=VALUE ...]: adds noise to a clean volume, filters it and prints PSNR
// and times. Names are the method's parameters, and
//   noise=9      deviation of the added Gaussian noise, percent of the volume's largest value
//   clean=PATH   FILE is noisy already, PATH is the clean volume; sigma is to be given
//   device=cpu  threads=0  runs=3  slices=0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "io/image_file.h"
#include "ungrain/denoiser.h"
#include "ungrain/volume.h"

namespace {

using namespace ungrain;

struct Volume {
  ImageSpec spec;
  std::vector<float> data;
};

Volume read_volume(const std::string& path) {
  const auto file = io::InputFile::open(path);
  ImageSpec slice = file->info().spec;
  slice.type = PixelType::f32;
  Volume volume{volume_spec(slice, file->info().pages), {}};
  for (int z = 0; z < file->info().pages; ++z) {
    Image page(file->info().spec);
    file->select_page(z);
    file->read_rows(0, page.view());
    const auto samples = static_cast<std::size_t>(slice.width) * slice.height * slice.channels;
    for (std::size_t i = 0; i < samples; ++i) {
      switch (page.spec().type) {
        case PixelType::u8:
          volume.data.push_back(page.samples<std::uint8_t>()[i]);
          break;
        case PixelType::u16:
          volume.data.push_back(page.samples<std::uint16_t>()[i]);
          break;
        default:
          volume.data.push_back(page.samples<float>()[i]);
      }
    }
  }
  return volume;
}

double psnr(const std::vector<float>& a, const std::vector<float>& b, double peak) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return 10 * std::log10(peak * peak * static_cast<double>(a.size()) / sum);
}

void run(const std::vector<std::string>& arguments) {
  Options options;
  options.device = {Device::Kind::cpu};
  double noise = 9;
  int runs = 3;
  Volume clean = read_volume(arguments.at(0));
  Volume noisy = clean;
  bool is_noisy = false;
  MethodParams params = MethodParams::defaults(arguments.at(1));
  std::string sigma;
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    const std::size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    const std::string value = arguments[i].substr(equals + 1);
    if (name == "noise") {
      noise = std::stod(value);
    } else if (name == "clean") {
      clean = read_volume(value);
      is_noisy = true;
    } else if (name == "device") {
      options.device = parse_device(value);
    } else if (name == "threads") {
      options.threads = std::stoi(value);
    } else if (name == "runs") {
      runs = std::stoi(value);
    } else if (name == "slices") {
      options.band_rows = std::stoi(value);
    } else if (name == "sigma") {
      sigma = value;
    } else {
      params.set_text(name, value);
    }
  }
  const double peak = *std::max_element(clean.data.begin(), clean.data.end());
  const double deviation = noise / 100 * peak;
  noisy.spec.range = peak;
  if (!is_noisy) {
    std::mt19937 generator(1);
    std::normal_distribution<double> normal(0, deviation);
    for (float& value : noisy.data) value += static_cast<float>(normal(generator));
  }
  params.set_text("sigma", sigma.empty() ? fmt::format("{}", deviation) : sigma);
  const ConstImageView in(noisy.data.data(), noisy.spec);
  params = resolve(params, in);
  Denoiser denoiser = Denoiser::create(params, noisy.spec, options);
  std::vector<float> result(noisy.data.size());
  Report best;
  double wall = 0;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    Report report = denoiser.run(in, {result.data(), noisy.spec});
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (i == 0 || ms < wall) {
      wall = ms;
      best = std::move(report);
    }
  }
  double kernels = 0;
  std::string stages;
  for (const StageTime& stage : best.stages) {
    kernels += stage.ms;
    stages += fmt::format(" {} {:.2f}", stage.name, stage.ms);
  }
  fmt::print(
      "{} {} {} x {} x {}: noisy {:.3f} dB, result {:.3f} dB; {:.2f} ms, stages {:.2f} ms ({}); {:.3f} "
      "Mvoxel/s\n",
      arguments[1], name(denoiser.device()), noisy.spec.slice.width, noisy.spec.slice.height,
      noisy.spec.height, psnr(noisy.data, clean.data, peak), psnr(result, clean.data, peak), wall, kernels,
      stages.empty() ? "" : stages.substr(1), static_cast<double>(noisy.data.size()) / wall / 1e3);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count < 3) {
      fmt::print(stderr, "usage: ungrain-bench-volume FILE METHOD [NAME=VALUE ...]\n");
      return 2;
    }
    run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "ungrain-bench-volume: {}\n", error.what());
    return 1;
  }
}
