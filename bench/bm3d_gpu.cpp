#include "bench/bm3d_gpu.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
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
#include "ungrain/noise_model.h"

namespace ungrain::bench {
namespace {

constexpr int runs = 9;
constexpr int warm_up = 2;
constexpr double sigma = 25.0 / 255;
// What GPU and CPU may differ in.
constexpr double psnr_tolerance = 0.02;  // dB

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

constexpr Bm3dProfile profiles[] = {Bm3dProfile::fast, Bm3dProfile::normal, Bm3dProfile::high};

bool is_wanted(const std::string& only, Bm3dProfile profile, const Size& size) {
  return fmt::format("bm3d {} {}", name_of(profile), size.name).starts_with(only);
}

// bm3d, and ridge, which starts from it.
struct GroupFilter {
  std::string name;
  MethodParams params;
  double most_pixels;  // the result is compared with the CPU's, which takes its time
};

std::vector<GroupFilter> group_filters() {
  std::vector<GroupFilter> list;
  for (const Bm3dProfile profile : profiles)
    list.push_back(
        {fmt::format("bm3d {}", name_of(profile)), Bm3dParams{.profile = profile, .sigma = {sigma}}, 1e9});
  constexpr double most = 2.2e6;
  list.push_back({"ridge fast", RidgeParams{.profile = RidgeProfile::fast, .sigma = {sigma}}, most});
  list.push_back({"ridge normal", RidgeParams{.sigma = {sigma}}, most});
  list.push_back({"ridge high", RidgeParams{.profile = RidgeProfile::high, .sigma = {sigma}}, most});
  return list;
}

Bm3dRow time_row(const Picture& picture, const Size& size, const GroupFilter& filter) {
  const ImageSpec spec = picture.noisy.view().spec;
  const MethodParams& params = filter.params;
  Bm3dRow row{.filter = filter.name, .image = size.name, .type = type_name(spec)};
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
  Denoiser::create(params, spec, {.device = {Device::Kind::cpu}}).run(picture.noisy.view(), made.view());
  row.cpu_psnr = psnr(picture.clean.view(), made.view());
  row.right = std::abs(row.psnr - row.cpu_psnr) <= psnr_tolerance && row.psnr > row.noisy_psnr;
  return row;
}

void print_row(const Bm3dRow& row) {
  std::vector<std::string> stages;
  for (std::size_t i = 0; i < row.stages.size(); ++i)
    stages.push_back(fmt::format("{} {:.3f}", row.stages[i], row.stage_ms[i]));
  const std::string cpu = row.cpu_psnr > 0 ? fmt::format("{:.3f}", row.cpu_psnr) : "-";
  if (row.right) {
    fmt::print("| {} | {} | {} | {:.3f} | {} | {:.3f} | {:.3f} | {} |\n", row.filter, row.image, row.type,
               row.kernels_ms, fmt::join(stages, ", "), row.noisy_psnr, row.psnr, cpu);
  } else {
    fmt::print("| {} | {} | {} | WRONG | | {:.3f} | {:.3f} | {} |\n", row.filter, row.image, row.type,
               row.noisy_psnr, row.psnr, cpu);
  }
  std::fflush(stdout);
}

// The kernels of one step on a gray picture, in the order in which they run.
class StepKernels {
 public:
  // `matched`: where patches are looked for, and step 2's pilot.
  StepKernels(const Picture& picture, const GpuImage& matched, const Bm3dSettings& settings, int index)
      : step_(index == 0 ? settings.first : settings.second),
        fast_(cuda::bm3d_fast_filter(settings, index, 1)) {
    const ImageSpec spec = picture.noisy.view().spec;
    const Rect whole{0, 0, spec.width, spec.height};
    const auto plane_of = [&](const GpuImage& image) {
      return ConstPlanes{static_cast<const float*>(image.view().data), whole, spec.width,
                         static_cast<std::ptrdiff_t>(spec.width) * spec.height, 1};
    };
    const auto count = [&](int length) {
      return (length - step_.patch + step_.spacing - 1) / step_.spacing + 1;
    };
    match_.plane = plane_of(matched);
    match_.image = {spec.width, spec.height};
    match_.grid = {step_.spacing,     spec.width - step_.patch, spec.height - step_.patch, 0, 0,
                   count(spec.width), count(spec.height)};
    match_.patch = step_.patch;
    match_.search = step_.search;
    match_.nearly = true;  // as bm3d searches
    match_.count = step_.group;
    match_.max_distance = static_cast<float>(step_.max_distance * step_.patch * step_.patch);
    match_.middle = 0.5F;
    match_.scale = 255;
    offsets_ = cuda::DeviceBuffer(2 * static_cast<std::size_t>(references()) * step_.group);
    found_ = cuda::DeviceBuffer(static_cast<std::size_t>(references()));
    scratch_ = cuda::DeviceBuffer(cuda::group_match_scratch(match_) * sizeof(float));
    match_.offsets = static_cast<std::int8_t*>(offsets_.data());
    match_.found = static_cast<std::uint8_t*>(found_.data());
    match_.scratch = static_cast<float*>(scratch_.data());

    filter_.noisy = plane_of(picture.device);
    if (index == 1) filter_.basic = plane_of(matched);
    filter_.grid = match_.grid;
    filter_.count = step_.group;
    filter_.offsets = match_.offsets;
    filter_.found = match_.found;
    sums_ =
        cuda::DeviceBuffer(cuda::Bm3dSums::floats(1, spec.width, spec.height, step_.patch) * sizeof(float));
    left_ = cuda::DeviceBuffer(sizeof(unsigned) * static_cast<std::size_t>(1 + references()));
    filter_.sums.rect = whole;
    filter_.sums.patch = step_.patch;
    filter_.sums.values = static_cast<unsigned long long*>(sums_.data());
    filter_.sums.weights = filter_.sums.values + static_cast<std::size_t>(spec.width) * spec.height;
    if (fast_) cuda::set_fast_units(*fast_, filter_.sums);
    filter_.sigma[0] = static_cast<float>(sigma);
    filter_.middle[0] = match_.middle;
    filter_.strength = static_cast<float>(step_.strength);
    const std::vector<double> window = patch_window(step_.patch, step_.kaiser);
    std::copy(window.begin(), window.end(), filter_.window);
    filter_.left_over = static_cast<unsigned*>(left_.data());
    cuda::check(cudaMemset(sums_.data(), 0, sums_.size()), "clearing");
    cuda::check(cudaMemset(left_.data(), 0, sizeof(unsigned)), "clearing");
  }

  int references() const { return match_.grid.references(); }
  const Bm3dStep& step() const { return step_; }

  double search_ms() const {
    return timed([&] { cuda::launch_group_match(match_, {}); });
  }
  // After the search. Sums only grow; their values do not matter here.
  double filter_ms() const {
    if (!fast_) return 0;
    return timed([&] { cuda::launch_bm3d_fast(*fast_, filter_, {}); });
  }

  // The share of groups that are the same as by a search with differences of floats, and of their members.
  // After the search.
  std::pair<double, double> shares_in_common() const {
    const std::vector<std::int8_t> offsets = downloaded();
    cuda::Bm3dGeneralMatch exact;
    exact.match = match_;
    cuda::launch_bm3d_general_match(exact, {});
    const std::vector<std::int8_t> expected = downloaded();
    cuda::launch_group_match(match_, {});
    std::size_t groups = 0;
    std::size_t members = 0;
    const auto count = static_cast<std::size_t>(step_.group);
    for (std::size_t first = 0; first < offsets.size(); first += 2 * count) {
      const auto places = [&](const std::vector<std::int8_t>& all) {
        std::vector<std::pair<int, int>> sorted;
        for (std::size_t i = first; i < first + 2 * count; i += 2) sorted.emplace_back(all[i], all[i + 1]);
        std::sort(sorted.begin(), sorted.end());
        return sorted;
      };
      const auto ours = places(offsets);
      const auto theirs = places(expected);
      std::vector<std::pair<int, int>> common;
      std::set_intersection(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                            std::back_inserter(common));
      groups += common.size() == count ? 1 : 0;
      members += common.size();
    }
    return {static_cast<double>(groups) / references(),
            static_cast<double>(members) / (static_cast<double>(references()) * static_cast<double>(count))};
  }

 private:
  std::vector<std::int8_t> downloaded() const {
    std::vector<std::int8_t> offsets(offsets_.size());
    cuda::check(cudaMemcpy(offsets.data(), offsets_.data(), offsets.size(), cudaMemcpyDeviceToHost),
                "downloading");
    return offsets;
  }

  template <class Launch>
  static double timed(const Launch& launch) {
    const cuda::Event start;
    const cuda::Event end;
    std::vector<double> times;
    for (int run = 0; run < warm_up + runs; ++run) {
      start.record(nullptr);
      launch();
      end.record(nullptr);
      end.wait();
      if (run >= warm_up) times.push_back(end.ms_since(start));
    }
    return median(times);
  }

  Bm3dStep step_;
  std::optional<cuda::Bm3dFast> fast_;
  cuda::GroupMatchCall match_;
  cuda::Bm3dFilterCall filter_;
  cuda::DeviceBuffer offsets_;
  cuda::DeviceBuffer found_;
  cuda::DeviceBuffer scratch_;
  cuda::DeviceBuffer sums_;
  cuda::DeviceBuffer left_;
};

}  // namespace

std::vector<Bm3dRow> run_bm3d(const std::string& only) {
  fmt::print(
      "\nbm3d and ridge, the demo scene with noise of 25 of 255, float samples in the GPU's memory; PSNR in "
      "dB. The "
      "CPU's "
      "result must agree to {} dB, or the row has no time:\n\n"
      "| filter | image | type | kernels ms | by stage ms | noisy dB | GPU dB | CPU dB |\n"
      "|---|---|---|--:|---|--:|--:|--:|\n",
      psnr_tolerance);
  std::vector<Bm3dRow> rows;
  for (const Size& size : sizes) {
    for (const bool rgb : {false, true}) {
      std::optional<Picture> made;
      for (const GroupFilter& filter : group_filters()) {
        const double pixels = static_cast<double>(size.width) * size.height;
        if (pixels > filter.most_pixels || !(filter.name + " " + size.name).starts_with(only)) continue;
        if (!made) made.emplace(spec_of(size, PixelType::f32, rgb));
        const Picture& picture = *made;
        rows.push_back(time_row(picture, size, filter));
        print_row(rows.back());
      }
    }
  }
  return rows;
}

void run_bm3d_sizes() {
  fmt::print(
      "\nbm3d, gray, tiles of a scene of 1 Mpixel side by side:\n\n| Mpixel | fast ms | normal ms | high ms "
      "| "
      "normal, ns a pixel |\n|--:|--:|--:|--:|--:|\n");
  constexpr int side = 1000;
  const Picture tile(spec_of({"", side, side}, PixelType::f32));
  const auto* const from = static_cast<const float*>(tile.noisy.view().data);
  struct Tiles {
    int across;
    int down;
  };
  for (const auto& [across, down] : {Tiles{1, 1}, Tiles{2, 2}, Tiles{5, 4}, Tiles{7, 7}, Tiles{10, 10}}) {
    const ImageSpec spec = spec_of({"", across * side, down * side}, PixelType::f32);
    Image image(spec);
    auto* to = static_cast<float*>(image.view().data);
    for (int y = 0; y < spec.height; ++y) {
      for (int i = 0; i < across; ++i, to += side)
        std::memcpy(to, from + static_cast<std::ptrdiff_t>(y % side) * side, side * sizeof(float));
    }
    const GpuImage in(spec);
    const GpuImage out(spec);
    upload(image, in);
    fmt::print("| {} ", across * down);
    double normal = 0;
    for (const Bm3dProfile profile : profiles) {
      Denoiser denoiser = Denoiser::create(Bm3dParams{.profile = profile, .sigma = {sigma}}, spec,
                                           {.device = {Device::Kind::cuda}});
      std::vector<double> all;
      for (int run = 0; run < warm_up + runs; ++run) {
        const Report report = denoiser.run(in.view(), out.view());
        double sum = 0;
        for (const auto& stage : report.stages) sum += stage.ms;
        if (run >= warm_up) all.push_back(sum);
      }
      const double ms = median(all);
      if (profile == Bm3dProfile::normal) normal = ms;
      fmt::print("| {:.3f} ", ms);
    }
    fmt::print("| {:.3f} |\n", normal * 1e6 / (1e6 * across * down));
    std::fflush(stdout);
  }
}

void run_bm3d_models() {
  fmt::print(
      "\nbm3d with a noise model of eight levels beside one sigma, 1080p, kernels ms by turns:\n\n"
      "| profile | type | sigma | model | model / sigma |\n|---|---|--:|--:|--:|\n");
  for (const bool rgb : {false, true}) {
    const Picture picture(spec_of(middle, PixelType::f32, rgb));
    const ImageSpec spec = picture.noisy.view().spec;
    NoiseModel model = white_noise_model(spec, {sigma});
    for (NoiseModel::Channel& channel : model.channels) {
      channel.levels = {0.05, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.95};
      channel.deviations.clear();
      for (const double level : channel.levels) channel.deviations.push_back(sigma * std::sqrt(0.4 + level));
      for (int i = 0; i < 64; ++i) channel.spectrum[i] = 1.6 / (1 + 0.15 * (i % 8 + i / 8));
    }
    for (const Bm3dProfile profile : profiles) {
      Bm3dParams by_model{.profile = profile};
      by_model.noise_model = std::make_shared<const NoiseModel>(model);
      const Options on_gpu{.device = {Device::Kind::cuda}};
      Denoiser denoisers[] = {
          Denoiser::create(Bm3dParams{.profile = profile, .sigma = {sigma}}, spec, on_gpu),
          Denoiser::create(by_model, spec, on_gpu)};
      const GpuImage out(spec);
      std::vector<double> times[2];
      for (int run = 0; run < warm_up + runs; ++run) {
        for (int i = 0; i < 2; ++i) {
          const Report report = denoisers[i].run(picture.device.view(), out.view());
          double sum = 0;
          for (const auto& stage : report.stages) sum += stage.ms;
          if (run >= warm_up) times[i].push_back(sum);
        }
      }
      const double of_sigma = median(times[0]);
      const double of_model = median(times[1]);
      fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.2f} |\n", name_of(profile), type_name(spec), of_sigma,
                 of_model, of_model / of_sigma);
      std::fflush(stdout);
    }
  }
}

void run_bm3d_kernels(const std::string& only, double products_per_second) {
  int device = 0;
  int processors = 0;
  int kilohertz = 0;
  cuda::check(cudaGetDevice(&device), "asking for the GPU");
  cuda::check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
              "asking for the GPU");
  cuda::check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, device), "asking for the GPU");
  const double words_per_second = 32.0 * processors * kilohertz * 1e3;
  bool begun = false;
  for (const Size& size : {middle, large}) {
    for (const Bm3dProfile profile : profiles) {
      if (!is_wanted(only, profile, size)) continue;
      if (!begun) {
        fmt::print(
            "\nbm3d's kernels alone, gray. In brackets the share of the bound: of a search the products of "
            "every "
            "candidate's 64 pixels, once, at the measured rate; of the filtering, aggregation included, the "
            "words "
            "of shared memory that are read and added to, at 32 a clock and multiprocessor:\n\n"
            "| profile | image | search 1 ms | filter 1 ms | search 2 ms | filter 2 ms | groups (members) as "
            "by floats, "
            "steps 1 and 2 |\n|---|---|--:|--:|--:|--:|---|\n");
        begun = true;
      }
      const Picture picture(spec_of(size, PixelType::f32));
      const ImageSpec spec = picture.noisy.view().spec;
      const Bm3dParams params{.profile = profile, .sigma = {sigma}};
      const GpuImage basic(spec);
      Bm3dParams first_step = params;
      first_step.steps = 1;
      Denoiser::create(first_step, spec, {.device = {Device::Kind::cuda}})
          .run(picture.device.view(), basic.view());
      const Bm3dSettings settings = bm3d_settings(resolve_derived(params, spec).as<Bm3dParams>(), spec);
      std::string cells;
      std::string shares;
      for (const int index : {0, 1}) {
        const StepKernels kernels(picture, index == 0 ? picture.device : basic, settings, index);
        const Bm3dStep& step = kernels.step();
        const double references = kernels.references();
        const double search = kernels.search_ms();
        const double filter = kernels.filter_ms();
        const double search_bound = references * step.search * step.search * 64 / products_per_second * 1e3;
        const double words = references * step.group * 64 * (index == 0 ? 2 : 3);
        cells += fmt::format(" {:.3f} ({:.0f} %) | {:.3f} ({:.0f} %) |", search, 100 * search_bound / search,
                             filter, 100 * words / words_per_second * 1e3 / filter);
        if (size.width > middle.width) continue;  // comparing takes the host long
        const auto [groups, members] = kernels.shares_in_common();
        shares += fmt::format("{}{:.2f} % ({:.3f} %)", index == 0 ? "" : ", ", 100 * groups, 100 * members);
      }
      fmt::print("| {} | {} |{} {} |\n", name_of(profile), size.name, cells, shares);
      std::fflush(stdout);
    }
  }
}

std::string json_of(const Bm3dRow& row) {
  std::vector<std::string> stages;
  for (std::size_t i = 0; i < row.stages.size(); ++i)
    stages.push_back(fmt::format(R"("{}": {:.6g})", row.stages[i], row.stage_ms[i]));
  return fmt::format(
      R"({{"filter": "{}", "image": "{}", "type": "{}", "right": {}, "kernels_ms": {:.6g}, "stages_ms": {{{}}}, "noisy_psnr": {:.5g}, "psnr": {:.5g}, "cpu_psnr": {:.5g}}})",
      row.filter, row.image, row.type, row.right, row.kernels_ms, fmt::join(stages, ", "), row.noisy_psnr,
      row.psnr, row.cpu_psnr);
}

}  // namespace ungrain::bench
