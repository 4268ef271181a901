#include "bench/bm3d_gpu.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/pictures.h"
#include "cuda/memory.h"
#include "methods/bm3d/cuda_filter.h"
#include "methods/bm3d/transforms.h"
#include "scene/scene.h"
#include "ungrain/methods.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"

namespace ungrain::bench {
namespace {

constexpr int runs = 9;
constexpr int warm_up = 2;
constexpr double sigma = 25.0 / 255;
// What GPU and CPU may differ in.
constexpr double psnr_tolerance = 0.01;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void upload(const Image& image, const GpuImage& to) {
  cuda::check(cudaMemcpy(to.view().data, image.view().data, image.bytes(), cudaMemcpyHostToDevice),
              "uploading");
}

struct Picture {
  explicit Picture(const ImageSpec& spec) : clean(render_scene(spec)), noisy(spec), device(spec) {
    add_noise(clean.view(), noisy.view(), {NoiseKind::gaussian, sigma, 1});
    upload(noisy, device);
  }
  Image clean;
  Image noisy;
  GpuImage device;
};

const char* name_of(Bm3dProfile profile) {
  return profile == Bm3dProfile::fast ? "fast" : profile == Bm3dProfile::normal ? "normal" : "high";
}

Bm3dRow time_row(const Picture& picture, const Size& size, Bm3dProfile profile, bool with_cpu) {
  const ImageSpec spec = picture.noisy.view().spec;
  const Bm3dParams params{.profile = profile, .sigma = {sigma}};
  Bm3dRow row{.profile = name_of(profile), .image = size.name, .type = type_name(spec)};
  Denoiser denoiser = Denoiser::create(params, spec, {.device = {Device::Kind::cuda}});
  const GpuImage out(spec);
  std::vector<std::vector<double>> times;
  std::vector<double> all;
  for (int run = 0; run < warm_up + runs; ++run) {
    const Report report = denoiser.run(picture.device.view(), out.view());
    if (run < warm_up) continue;
    times.resize(report.stages.size());
    row.stages.clear();
    double sum = 0;
    for (std::size_t stage = 0; stage < report.stages.size(); ++stage) {
      row.stages.push_back(report.stages[stage].name);
      times[stage].push_back(report.stages[stage].ms);
      sum += report.stages[stage].ms;
    }
    all.push_back(sum);
  }
  for (const std::vector<double>& stage : times) row.stage_ms.push_back(median(stage));
  row.kernels_ms = median(all);
  Image made(spec);
  cuda::check(cudaMemcpy(made.view().data, out.view().data, made.bytes(), cudaMemcpyDeviceToHost),
              "downloading");
  row.noisy_psnr = psnr(picture.clean.view(), picture.noisy.view());
  row.psnr = psnr(picture.clean.view(), made.view());
  row.right = std::isfinite(row.psnr) && row.psnr > row.noisy_psnr;
  if (with_cpu) {
    Denoiser::create(params, spec, {.device = {Device::Kind::cpu}}).run(picture.noisy.view(), made.view());
    row.cpu_psnr = psnr(picture.clean.view(), made.view());
    row.right = row.right && std::abs(row.psnr - row.cpu_psnr) <= psnr_tolerance;
  }
  return row;
}

void print_row(const Bm3dRow& row) {
  std::vector<std::string> stages;
  for (std::size_t i = 0; i < row.stages.size(); ++i)
    stages.push_back(fmt::format("{} {:.3f}", row.stages[i], row.stage_ms[i]));
  const std::string cpu = row.cpu_psnr > 0 ? fmt::format("{:.3f}", row.cpu_psnr) : "-";
  if (row.right) {
    fmt::print("| bm3d {} | {} | {} | {:.3f} | {} | {:.3f} | {:.3f} | {} |\n", row.profile, row.image,
               row.type, row.kernels_ms, fmt::join(stages, ", "), row.noisy_psnr, row.psnr, cpu);
  } else {
    fmt::print("| bm3d {} | {} | {} | WRONG | | {:.3f} | {:.3f} | {} |\n", row.profile, row.image, row.type,
               row.noisy_psnr, row.psnr, cpu);
  }
  std::fflush(stdout);
}

// Groups of `count` patches at random places around every reference.
struct RandomGroups {
  RandomGroups(const cuda::Bm3dGrid& grid, int count, int reach)
      : references(grid.count_i * grid.count_j),
        offsets(2 * static_cast<std::size_t>(references) * count),
        found(static_cast<std::size_t>(references)) {
    std::mt19937 random(1);
    std::vector<std::int8_t> places(offsets.size());
    const auto within = [&](int position, int last) {
      const int low = std::max(-reach, -position);
      const int high = std::min(reach, last - position);
      return static_cast<std::int8_t>(low +
                                      static_cast<int>(random() % static_cast<unsigned>(high - low + 1)));
    };
    for (int r = 0; r < references; ++r) {
      const int x = std::min(r % grid.count_i * grid.spacing, grid.last_x);
      const int y = std::min(r / grid.count_i * grid.spacing, grid.last_y);
      for (int n = 1; n < count; ++n) {
        std::int8_t* const place = places.data() + 2 * (static_cast<std::size_t>(r) * count + n);
        place[0] = within(x, grid.last_x);
        place[1] = within(y, grid.last_y);
      }
    }
    const std::vector<std::uint8_t> sizes(found.size(), static_cast<std::uint8_t>(count));
    cuda::check(cudaMemcpy(offsets.data(), places.data(), places.size(), cudaMemcpyHostToDevice),
                "uploading");
    cuda::check(cudaMemcpy(found.data(), sizes.data(), sizes.size(), cudaMemcpyHostToDevice), "uploading");
  }

  int references;
  cuda::DeviceBuffer offsets;
  cuda::DeviceBuffer found;
};

double time_filter(const Picture& picture, const Bm3dSettings& settings, int index) {
  const ImageSpec spec = picture.noisy.view().spec;
  const Bm3dStep& step = index == 0 ? settings.first : settings.second;
  const std::optional<cuda::Bm3dFast> fast = cuda::bm3d_fast_filter(settings, index);
  if (!fast) return 0;
  cuda::Bm3dFilterCall call;
  const Rect whole{0, 0, spec.width, spec.height};
  call.noisy = {static_cast<const float*>(picture.device.view().data), whole, spec.width,
                static_cast<std::ptrdiff_t>(spec.width) * spec.height, 1};
  if (index == 1) call.basic = call.noisy;
  const auto count = [&](int length) { return (length - step.patch + step.spacing - 1) / step.spacing + 1; };
  call.grid = {step.spacing,      spec.width - step.patch, spec.height - step.patch, 0, 0,
               count(spec.width), count(spec.height)};
  call.count = step.group;
  const RandomGroups groups(call.grid, step.group, step.search / 2);
  call.offsets = static_cast<const std::int8_t*>(groups.offsets.data());
  call.found = static_cast<const std::uint8_t*>(groups.found.data());
  const cuda::DeviceBuffer sums(cuda::Bm3dSums::floats(1, spec.width, spec.height, step.patch) *
                                sizeof(float));
  const cuda::DeviceBuffer left(sizeof(unsigned) * static_cast<std::size_t>(1 + groups.references));
  call.sums.rect = whole;
  call.sums.patch = step.patch;
  call.sums.values = static_cast<unsigned long long*>(sums.data());
  call.sums.weights = call.sums.values + static_cast<std::size_t>(spec.width) * spec.height;
  cuda::set_fast_units(*fast, call.sums);
  call.sigma[0] = static_cast<float>(sigma);
  call.strength = static_cast<float>(step.strength);
  const std::vector<double> window = patch_window(step.patch, step.kaiser);
  std::copy(window.begin(), window.end(), call.window);
  call.left_over = static_cast<unsigned*>(left.data());
  cuda::check(cudaMemset(sums.data(), 0, sums.size()), "clearing");
  cuda::check(cudaMemset(left.data(), 0, sizeof(unsigned)), "clearing");
  const cuda::Event start;
  const cuda::Event end;
  std::vector<double> times;
  for (int run = 0; run < warm_up + runs; ++run) {
    start.record(nullptr);
    cuda::launch_bm3d_fast(*fast, call, {});
    end.record(nullptr);
    end.wait();
    if (run >= warm_up) times.push_back(end.ms_since(start));
  }
  return median(times);
}

}  // namespace

std::vector<Bm3dRow> run_bm3d() {
  fmt::print(
      "\nbm3d, the demo scene with noise of 25 of 255, float samples in the GPU's memory; PSNR in dB. The "
      "CPU's "
      "result at 512 x 512 must agree to {} dB, or the row has no time:\n\n"
      "| filter | image | type | kernels ms | by stage ms | noisy dB | GPU dB | CPU dB |\n"
      "|---|---|---|--:|---|--:|--:|--:|\n",
      psnr_tolerance);
  std::vector<Bm3dRow> rows;
  for (const Size& size : sizes) {
    for (const bool rgb : {false, true}) {
      const Picture picture(spec_of(size, PixelType::f32, rgb));
      for (const Bm3dProfile profile : {Bm3dProfile::fast, Bm3dProfile::normal, Bm3dProfile::high}) {
        rows.push_back(time_row(picture, size, profile, size.width <= 512));
        print_row(rows.back());
      }
    }
  }
  return rows;
}

void run_bm3d_filters() {
  fmt::print(
      "\nbm3d's filtering kernels alone, aggregation included, 1080p gray, groups at random places:\n\n"
      "| profile | step 1 ms | step 2 ms |\n|---|--:|--:|\n");
  const Picture picture(spec_of(middle, PixelType::f32));
  for (const Bm3dProfile profile : {Bm3dProfile::fast, Bm3dProfile::normal, Bm3dProfile::high}) {
    const bool is_fast = profile == Bm3dProfile::fast;
    const bool is_high = profile == Bm3dProfile::high;
    Bm3dSettings settings;
    settings.sigma = {sigma};
    settings.first.transform = PatchTransform::bior15;
    settings.first.spacing = is_fast ? 5 : is_high ? 1 : 3;
    settings.first.search = is_fast ? 25 : 39;
    settings.second.strength = 1;
    settings.second.group = 32;
    settings.second.spacing = is_fast ? 5 : is_high ? 2 : 3;
    settings.second.search = is_fast ? 25 : is_high ? 45 : 39;
    fmt::print("| {} | {:.3f} | {:.3f} |\n", name_of(profile), time_filter(picture, settings, 0),
               time_filter(picture, settings, 1));
    std::fflush(stdout);
  }
}

std::string json_of(const Bm3dRow& row) {
  std::vector<std::string> stages;
  for (std::size_t i = 0; i < row.stages.size(); ++i)
    stages.push_back(fmt::format(R"("{}": {:.6g})", row.stages[i], row.stage_ms[i]));
  return fmt::format(
      R"({{"profile": "{}", "image": "{}", "type": "{}", "right": {}, "kernels_ms": {:.6g}, "stages_ms": {{{}}}, "noisy_psnr": {:.5g}, "psnr": {:.5g}, "cpu_psnr": {:.5g}}})",
      row.profile, row.image, row.type, row.right, row.kernels_ms, fmt::join(stages, ", "), row.noisy_psnr,
      row.psnr, row.cpu_psnr);
}

}  // namespace ungrain::bench
