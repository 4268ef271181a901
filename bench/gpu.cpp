// ungrain-bench-gpu [WORD] [--json FILE]
//
// Times of the filters on a GPU, images in its memory: the median of many runs, by events. "planes": the
// filter's own stages, from float planes to float planes. "image to image": all that the GPU does, with the
// conversion of the samples, which is what NPP's bilateral filter does too and is compared with. Every row is
// held against what bounds it on this chip: the least bytes, exponentials or FP32 instructions that the
// filter needs, at rates that are measured first. No time is printed of a result that differs from the CPU
// version's. Then images that lie in the host's memory, copies and all.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/bm3d_gpu.h"
#include "bench/gpu_ceilings.h"
#include "bench/npp.h"
#include "bench/pictures.h"
#include "cuda/memory.h"
#include "methods/bilateral/bilateral.h"
#include "ungrain/denoiser.h"
#include "ungrain/estimate.h"
#include "ungrain/methods.h"
#include "ungrain/noise_model.h"

namespace ungrain::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int runs = 25;
constexpr int warm_up = 5;
constexpr int fewest_runs = 5;
constexpr double enough_ms = 400;  // slow ones are run less often

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Spread {
  double median = 0;
  double low = 0;   // a tenth of the runs are below
  double high = 0;  // and a tenth above
};

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {at(0.5), at(0.1), at(0.9)};
}

// once() returns ms.
Spread repeated(const std::function<double()>& once) {
  std::vector<double> values;
  double total = 0;
  for (int run = 0; run < warm_up + runs; ++run) {
    const double ms = once();
    total += ms;
    if (run >= warm_up) values.push_back(ms);
    if (static_cast<int>(values.size()) >= fewest_runs && total > enough_ms) break;
  }
  return spread_of(std::move(values));
}

// ---- What bounds a filter --------------------------------------------------------------------------------

// The least that a filter does for each pixel, whatever the kernel.
struct Work {
  double samples = 1;  // floats that are read, and as many written
  double exponentials = 0;
  double instructions = 0;  // FP32
  double products = 0;      // multiply-adds of halves
};

double pairs_of(int radius) { return ((2.0 * radius + 1) * (2 * radius + 1) - 1) / 2; }

// Each weight serves both its pixels. FP32 of a pair: the difference and its square, the exponent, and for
// both pixels the weight's sum and the values' sums.
Work bilateral_work(int radius, int channels) {
  const double pairs = pairs_of(radius);
  return {static_cast<double>(channels), pairs, pairs * (2 * channels + 1 + 2 + 2 * channels)};
}
// Of the second pass no weight serves two pixels: the strength is a pixel's own.
Work adaptive_work(int radius) {
  const double pairs = pairs_of(radius);
  return {1, 3 * pairs, pairs * 7 + 2 * pairs * 5};
}
Work separable_work(int radius) { return {1, 2.0 * radius, 2.0 * radius * 7}; }
Work gaussian_work(int radius) { return {1, 0, 2 * (2.0 * radius + 1)}; }
// Half the shifts: each distance serves both its pixels. FP32 of a pair: the differences' squares,
// `smoothing` for their sum over the patch, the exponent, and for both pixels the sums.
Work nlm_work(int search, int channels, double smoothing) {
  const double pairs = (static_cast<double>(search) * search - 1) / 2;
  return {static_cast<double>(channels), pairs, pairs * (2 * channels + smoothing + 1 + 2 + 2 * channels)};
}
constexpr double running_sums = 4;  // two across, two down, whatever the patch
double gaussian_sums(int patch) { return 2.0 * patch; }
// Every pixel against every other. Of a pair: an exponential, the sums of both pixels, and a product of
// vectors that have the patch's pixels and four numbers more, by eights.
Work whole_image_work(double pixels, int channels, int numbers) {
  const double pairs = pixels / 2;
  return {static_cast<double>(channels), pairs, pairs * 2 * (1 + channels),
          pairs * std::ceil((numbers + 4) / 8.0) * 8};
}
Work copying_work() { return {}; }

struct Bound {
  double ms = 0;
  const char* by = "";
};

class Ceilings {
 public:
  Ceilings() : rates_(measure_rates()) {}

  Bound bound(const Work& work, const Size& size) {
    const double pixels = static_cast<double>(size.width) * size.height;
    const auto bytes = static_cast<std::size_t>(pixels * work.samples * sizeof(float));
    const Bound candidates[] = {{2.0 * static_cast<double>(bytes) / copy_rate(bytes) * 1e3, "bytes"},
                                {pixels * work.exponentials / rates_.exponentials * 1e3, "ex2"},
                                {pixels * work.instructions / rates_.multiply_adds * 1e3, "FP32"},
                                {pixels * work.products / rates_.products * 1e3, "mma"}};
    return *std::max_element(std::begin(candidates), std::end(candidates),
                             [](const Bound& a, const Bound& b) { return a.ms < b.ms; });
  }

  const Rates& rates() const { return rates_; }
  double copy_rate(std::size_t bytes) {
    const auto [found, fresh] = copies_.try_emplace(bytes, 0.0);
    if (fresh) found->second = measure_copy(bytes);
    return found->second;
  }

 private:
  Rates rates_;
  std::map<std::size_t, double> copies_;  // by the bytes that are read
};

// ---- Rows ------------------------------------------------------------------------------------------------

struct Row {
  std::string filter;
  Size size;
  ImageSpec spec;
  int radius = 0;
  double error = 0;     // of the white level
  Spread kernels = {};  // ms, the filter's stages, from planes to planes
  Spread image = {};    // ms on the GPU, from image to image
  Spread whole = {};    // ms on the host's clock, with what goes around it
  Bound bound = {};
  double npp = 0;             // ms; 0: none
  double npp_difference = 0;  // of the white level

  double allowed = 0;  // error

  bool right() const { return error <= std::max(allowed, tolerance_for(spec)); }
};

void time_ours(const MethodParams& params, const Sample& sample, Row& row) {
  Denoiser denoiser = Denoiser::create(params, row.spec, {.device = {Device::Kind::cuda}});
  const GpuImage& in = source_for(row.spec).device;
  const GpuImage out(row.spec);
  denoiser.run(in.view(), out.view());
  row.error = sample.difference(out);
  if (!row.right()) return;
  std::vector<double> kernels;
  row.whole = repeated([&] {
    const Report report = denoiser.run(in.view(), out.view());
    double ms = 0;
    for (const StageTime& stage : report.stages) ms += stage.ms;
    kernels.push_back(ms);
    return report.ms;
  });
  kernels.erase(kernels.begin(), kernels.begin() + warm_up);
  row.kernels = spread_of(std::move(kernels));
  const cuda::OwnStream stream;
  const cuda::Event start;
  const cuda::Event end;
  row.image = repeated([&] {
    start.record(stream.get());
    denoiser.run_async(in.view(), out.view(), {stream.get()});
    end.record(stream.get());
    denoiser.wait();
    end.wait();
    return end.ms_since(start);
  });
  // The same bits are expected; a NaN is kept.
  if (const double again = sample.difference(out); !(again <= row.error)) row.error = again;
}

void time_npp(const Sample& sample, Row& row) {
  const GpuImage out(row.spec);
  const std::function<bool()> run = npp_bilateral(source_for(row.spec).device.view(), out.view(), row.radius);
  if (!run || !run()) return;
  const cuda::Event start;
  const cuda::Event end;
  row.npp = repeated([&] {
              start.record(nullptr);
              if (!run()) throw std::runtime_error("NPP refuses what it took before");
              end.record(nullptr);
              end.wait();
              return end.ms_since(start);
            }).median;
  row.npp_difference = sample.difference(out);
}

void print_row(const Row& row) {
  if (!row.right()) {
    fmt::print("| {} | {} | {} | {} | WRONG by {:.1e} of the white level | | | | | | | | | | | |\n",
               row.filter, row.size.name, type_name(row.spec), row.radius, row.error);
    return;
  }
  const double pixels = static_cast<double>(row.size.width) * row.size.height;
  fmt::print(
      "| {:<19} | {:<6} | {:<7} | {:>2} | {:>8.4f} | {:>7.4f} | {:>8.4f} | {:>8.4f} | {:>7.0f} | {:>8.4f} | "
      "{:<5} | {:>3.0f} % | {:>8} | {:>5} | {:>6} | {:.0e} |\n",
      row.filter, row.size.name, type_name(row.spec), row.radius, row.kernels.median,
      row.kernels.high - row.kernels.low, row.image.median, row.whole.median,
      pixels / row.kernels.median / 1e3, row.bound.ms, row.bound.by, 100 * row.bound.ms / row.kernels.median,
      row.npp > 0 ? fmt::format("{:.4f}", row.npp) : "-",
      row.npp > 0 ? fmt::format("{:.2f}", row.npp / row.image.median) : "-",
      row.npp > 0 ? fmt::format("{:.0e}", row.npp_difference) : "-", row.error);
  std::fflush(stdout);
}

MethodParams bilateral(int radius, double white, BilateralQuality quality) {
  return BilateralParams{
      .radius = radius,
      .sigma_space = radius / 2.0,
      .sigma_range = 0.1 * white,
      .quality = quality,
      .colour = quality == BilateralQuality::grid ? ColourMode::per_channel : ColourMode::joint,
      .border = Border::clamp};  // as NPP's
}

constexpr Size whole_image_sizes[] = {
    {"64", 64, 64}, {"128", 128, 128}, {"256", 256, 256}, {"512", 512, 512}, {"1024", 1024, 1024}};

constexpr double of_halves = 2e-4;  // what comparing patches as halves may cost

std::vector<Row> run_rows(Ceilings& ceilings, const std::string& only) {
  std::vector<Row> rows;
  const auto add = [&](const std::string& filter, const Size& size, const ImageSpec& spec, int radius,
                       const MethodParams& params, const Work& work, bool with_npp, double allowed = 0) {
    if (!(filter + " " + size.name).starts_with(only)) return;
    Row row{.filter = filter, .size = size, .spec = spec, .radius = radius, .allowed = allowed};
    const Sample sample(params, spec);
    row.bound = ceilings.bound(work, size);
    time_ours(params, sample, row);
    if (with_npp && row.right()) time_npp(sample, row);
    print_row(row);
    rows.push_back(row);
  };
  fmt::print(
      "| filter | image | type | r | planes ms | spread | image to image ms | whole ms | Mpixel/s | bound ms "
      "| "
      "by | of bound | NPP ms | NPP / image to image | NPP differs | error |\n"
      "|---|---|---|--:|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|\n");
  for (const Size& size : sizes) {
    for (const bool rgb : {false, true}) {
      for (const PixelType type : {PixelType::f32, PixelType::u8, PixelType::u16}) {
        const ImageSpec spec = spec_of(size, type, rgb);
        for (const int radius : {1, 2, 3, 4, 5, 7, 9, 11, 13, 15}) {
          add(rgb ? "bilateral joint" : "bilateral", size, spec, radius,
              bilateral(radius, spec.white(), BilateralQuality::exact), bilateral_work(radius, spec.channels),
              true);
        }
      }
    }
    const ImageSpec spec = spec_of(size, PixelType::f32);
    for (const int radius : {1, 3, 4, 5, 6, 7, 8, 9, 10, 15}) {
      const AdaptiveBilateralParams adaptive{
          .radius = radius, .sigma_space = radius / 2.0, .sigma_range = 0.1, .factor = 2};
      add("adaptive-bilateral", size, spec, radius, adaptive, adaptive_work(radius), false);
      if (radius % 2 == 0 || radius == 9) continue;  // these radii are for adaptive-bilateral's two kernels
      add("bilateral separable", size, spec, radius, bilateral(radius, 1, BilateralQuality::separable),
          separable_work(radius), false);
      if (radius < smallest_grid_radius) continue;  // the filter itself
      add("bilateral grid", size, spec, radius, bilateral(radius, 1, BilateralQuality::grid), copying_work(),
          false);
    }
    constexpr int search = 21;
    const ImageSpec rgb = spec_of(size, PixelType::f32, true);
    for (const int patch : {3, 5, 7}) {
      const MethodParams plain =
          NlmParams{.search = search, .patch = patch, .h = 0.1, .self = SelfWeight::one};
      const MethodParams full = NlmParams{.search = search, .patch = patch, .sigma = 0.1, .h = 0.1};
      const MethodParams mixed =
          NlmBilateralParams{.search = search, .patch = patch, .sigma_h = 0.1, .sigma_range = 0.3};
      const Work work = nlm_work(search, 1, running_sums);
      const Work joint_work = nlm_work(search, 3, running_sums);
      add("nlm", size, spec, patch, plain, work, false);
      add("nlm with noise", size, spec, patch, full, work, false);
      add("nlm-bilateral", size, spec, patch, mixed, work, false);
      add("nlm joint", size, rgb, patch, plain, joint_work, false);
      add("nlm-bilateral joint", size, rgb, patch, mixed, joint_work, false);
    }
    for (const PixelType type : {PixelType::u8, PixelType::u16}) {
      const ImageSpec integers = spec_of(size, type);
      const NlmParams plain{
          .search = search, .patch = 7, .h = 0.1 * integers.white(), .self = SelfWeight::one};
      add("nlm", size, integers, 7, plain, nlm_work(search, 1, running_sums), false);
    }
    for (const double patch_sigma : {1.2, 1.6, 2.1, 2.8}) {
      const MethodParams gaussian =
          NlmParams{.search = search, .patch_sigma = patch_sigma, .sigma = 0.1, .h = 0.1};
      const int patch = 2 * static_cast<int>(std::lround(1.8 * patch_sigma)) + 1;
      add("nlm gaussian", size, spec, patch, gaussian, nlm_work(search, 1, gaussian_sums(patch)), false);
      if (patch > 9) continue;
      add("nlm gaussian joint", size, rgb, patch, gaussian, nlm_work(search, 3, gaussian_sums(patch)), false);
    }
    for (const int radius : {1, 2, 4}) {
      add("median", size, spec, radius, MedianParams{.radius = radius}, copying_work(), false);
      add("box", size, spec, radius, BoxParams{.radius = radius}, copying_work(), false);
      add("gaussian", size, spec, 3 * radius, GaussianParams{.sigma = static_cast<double>(radius)},
          gaussian_work(3 * radius), false);
    }
  }
  for (const Size& size : whole_image_sizes) {
    const ImageSpec spec = spec_of(size, PixelType::f32);
    const ImageSpec rgb = spec_of(size, PixelType::f32, true);
    const double pixels = static_cast<double>(size.width) * size.height;
    for (const int patch : {3, 5, 7, 9}) {
      const int area = patch * patch;
      const NlmParams plain{.search = whole_image, .patch = patch, .h = 0.05, .self = SelfWeight::one};
      NlmParams full{.search = whole_image, .patch = patch, .sigma = 0.1, .h = 0.05};
      const NlmBilateralParams mixed{
          .search = whole_image, .patch = patch, .sigma_h = 0.05, .sigma_range = 0.3};
      add("whole nlm", size, spec, patch, plain, whole_image_work(pixels, 1, area), false, of_halves);
      if (size.width > 512 || patch == 9) continue;
      add("whole nlm, noise", size, spec, patch, full, whole_image_work(pixels, 1, area), false, of_halves);
      full.precision = Precision::single;
      add("whole nlm, float", size, spec, patch, full, whole_image_work(pixels, 1, 3 * area), false);
      add("whole nlm-bilateral", size, spec, patch, mixed, copying_work(), false, of_halves);
      if (size.width > 256) continue;
      add("whole nlm joint", size, rgb, patch, plain, whole_image_work(pixels, 3, 3 * area), false,
          of_halves);
    }
  }
  return rows;
}

// ---- How NPP compares colours
// ------------------------------------------------------------------------------

// NPP's documentation does not say how the channels enter a weight. Holds its result in RGB against the
// definitions that are in use; the one that it computes differs by rounding only.
void run_npp_colours() {
  constexpr int radius = 3;
  const ImageSpec spec = spec_of(sizes[0], PixelType::f32, true);
  const GpuImage out(spec);
  const std::function<bool()> run = npp_bilateral(source_for(spec).device.view(), out.view(), radius);
  if (!run || !run()) {
    fmt::print("\nHow NPP compares colours: ABSENT\n");
    return;
  }
  cuda::check(cudaDeviceSynchronize(), "waiting");
  fmt::print(
      "\nNPP's bilateral in RGB, radius {}, against definitions of the difference of two colours:\n\n"
      "| difference | window | largest error, of the white level |\n|---|---|--:|\n",
      radius);
  struct Definition {
    const char* name;
    double sigma_range;  // times 0.1 of the white level, which NPP is given
    ColourMode colour;
    ColourDistance distance;
  };
  const Definition definitions[] = {
      {"root of the mean of squares (ours)", 1, ColourMode::joint, ColourDistance::euclidean},
      {"root of the sum of squares", 1 / std::sqrt(3.0), ColourMode::joint, ColourDistance::euclidean},
      {"sum of absolutes", 1, ColourMode::joint, ColourDistance::city_block},
      {"mean of absolutes", 3, ColourMode::joint, ColourDistance::city_block},
      {"each channel by itself", 1, ColourMode::per_channel, ColourDistance::euclidean}};
  for (const Definition& definition : definitions) {
    for (const Window window : {Window::square, Window::disc}) {
      const BilateralParams params{.radius = radius,
                                   .sigma_space = radius / 2.0,
                                   .sigma_range = 0.1 * spec.white() * definition.sigma_range,
                                   .window = window,
                                   .colour = definition.colour,
                                   .colour_distance = definition.distance,
                                   .border = Border::clamp};
      fmt::print("| {} | {} | {:.1e} |\n", definition.name, window == Window::disc ? "disc" : "square",
                 Sample(params, spec).difference(out));
    }
  }
}

// ---- Images in the host's memory -------------------------------------------------------------------------

struct EndToEnd {
  Size size;
  std::string type;
  double kernels = 0;
  double copies = 0;    // up and down, one after the other
  double async = 0;     // run_async() on page-locked memory and wait()
  double pinned = 0;    // run() on page-locked memory
  double pageable = 0;  // run() on any memory
};

constexpr int end_to_end_radius = 7;

EndToEnd time_end_to_end(const Size& size, PixelType type) {
  const ImageSpec spec = spec_of(size, type);
  const std::size_t bytes = bytes_of(spec);
  const MethodParams params = bilateral(end_to_end_radius, spec.white(), BilateralQuality::exact);
  Denoiser denoiser = Denoiser::create(params, spec, {.device = {Device::Kind::cuda}});
  const Source& source = source_for(spec);
  const GpuImage device(spec);
  const cuda::PinnedBuffer in(bytes);
  const cuda::PinnedBuffer out(bytes);
  Image pageable(spec);
  std::copy_n(static_cast<const std::byte*>(source.host.view().data), bytes, in.data());
  const ConstImageView pinned_in(static_cast<const void*>(in.data()), spec);
  const ImageView pinned_out(out.data(), spec);
  const cuda::OwnStream stream;
  const auto timed = [](const std::function<void()>& work) {
    return repeated([&] {
             const Clock::time_point start = Clock::now();
             work();
             return ms_since(start);
           })
        .median;
  };
  EndToEnd times{.size = size, .type = type_name(spec)};
  times.kernels = repeated([&] {
                    const Report report = denoiser.run(source.device.view(), device.view());
                    double ms = 0;
                    for (const StageTime& stage : report.stages) ms += stage.ms;
                    return ms;
                  }).median;
  times.copies = timed([&] {
    cuda::check(cudaMemcpyAsync(device.view().data, in.data(), bytes, cudaMemcpyHostToDevice, stream.get()),
                "uploading");
    cuda::check(cudaMemcpyAsync(out.data(), device.view().data, bytes, cudaMemcpyDeviceToHost, stream.get()),
                "downloading");
    stream.wait();
  });
  times.async = timed([&] {
    denoiser.run_async(pinned_in, pinned_out, {stream.get()});
    denoiser.wait();
  });
  times.pinned = timed([&] { denoiser.run(pinned_in, pinned_out); });
  times.pageable = timed([&] { denoiser.run(source.host.view(), pageable.view()); });
  return times;
}

std::vector<EndToEnd> run_end_to_end() {
  fmt::print(
      "\nOne image in the host's memory, bilateral, gray, radius {}, ms on the host's clock:\n\n"
      "| image | type | kernels | copies | run_async, page-locked | run, page-locked | run, any memory |\n"
      "|---|---|--:|--:|--:|--:|--:|\n",
      end_to_end_radius);
  std::vector<EndToEnd> list;
  for (const Size& size : sizes) {
    for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f32}) {
      const EndToEnd times = time_end_to_end(size, type);
      fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} |\n", size.name, times.type,
                 times.kernels, times.copies, times.async, times.pinned, times.pageable);
      std::fflush(stdout);
      list.push_back(times);
    }
  }
  return list;
}

// ---- The noise estimate ----------------------------------------------------------------------------------

struct EstimateTime {
  Size size;
  std::string type;
  Spread white = {};  // ms on the host's clock
  Spread model = {};
  Spread all = {};        // all that the program measures
  Spread processor = {};  // the same for the image in the host's memory
  bool right = false;
};

EstimateTime time_estimate(const Size& size, PixelType type, bool rgb) {
  const ImageSpec spec = spec_of(size, type, rgb);
  const Source& source = source_for(spec);
  const ConstImageView device = source.device.view();
  const ConstImageView host = source.host.view();
  const MethodParams params{Bm3dParams{}};
  EstimateTime times{.size = size, .type = type_name(spec)};
  const NoiseModelEstimate found = estimate_noise_model(device);
  const NoiseModelEstimate expected = estimate_noise_model(host);
  times.right = found.model == expected.model && found.white.channels == expected.white.channels &&
                found.blocks == expected.blocks;
  if (!times.right) return times;
  const auto timed = [](const auto& work) {
    return repeated([&] {
      const Clock::time_point start = Clock::now();
      work();
      return ms_since(start);
    });
  };
  times.white = timed([&] { estimate_noise(device); });
  times.model = timed([&] { estimate_noise_model(device); });
  times.all = timed([&] { resolve_with_noise(params, device); });
  times.processor = timed([&] { resolve_with_noise(params, host); });
  return times;
}

std::vector<EstimateTime> run_estimates() {
  fmt::print(
      "\nThe noise of an image in GPU memory, ms on the host's clock:\n\n"
      "| image | type | white | model | all that the program measures | spread | the same by the processor "
      "|\n"
      "|---|---|--:|--:|--:|--:|--:|\n");
  std::vector<EstimateTime> list;
  for (const Size& size : sizes) {
    for (const auto& [type, rgb] :
         {std::pair{PixelType::u8, false}, {PixelType::f32, false}, {PixelType::u8, true}}) {
      const EstimateTime times = time_estimate(size, type, rgb);
      if (times.right) {
        fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} |\n", size.name, times.type,
                   times.white.median, times.model.median, times.all.median, times.all.high - times.all.low,
                   times.processor.median);
      } else {
        fmt::print("| {} | {} | WRONG | | | | |\n", size.name, times.type);
      }
      std::fflush(stdout);
      list.push_back(times);
    }
  }
  return list;
}

struct Throughput {
  std::string type;
  double kernels = 0;  // ms an image, each alone and both
  double copies = 0;
  double together = 0;

  double share() const { return std::max(kernels, copies) / together; }
};

constexpr int throughput_images = 64;
constexpr int throughput_queues = 4;

// Many images from page-locked memory and back, several at a time: against the kernels alone and the copies
// alone.
Throughput time_throughput(PixelType type) {
  const ImageSpec spec = spec_of(large, type);
  const std::size_t bytes = bytes_of(spec);
  const MethodParams params = bilateral(end_to_end_radius, spec.white(), BilateralQuality::exact);
  const Source& source = source_for(spec);
  struct Queue {
    Denoiser denoiser;
    cuda::OwnStream stream;
    cuda::PinnedBuffer in;
    cuda::PinnedBuffer out;
    cuda::DeviceBuffer device;
    GpuImage target;
  };
  std::vector<Queue> list;
  const Denoiser first = Denoiser::create(params, spec, {.device = {Device::Kind::cuda}});
  for (int i = 0; i < throughput_queues; ++i) {
    list.push_back({first.clone(),
                    {},
                    cuda::PinnedBuffer(bytes),
                    cuda::PinnedBuffer(bytes),
                    cuda::DeviceBuffer(bytes),
                    GpuImage(spec)});
    std::copy_n(static_cast<const std::byte*>(source.host.view().data), bytes, list.back().in.data());
  }
  const auto timed = [&](const std::function<void(Queue&)>& work) {
    const auto once = [&] {
      for (int i = 0; i < throughput_images; ++i) work(list[static_cast<std::size_t>(i % throughput_queues)]);
      cuda::check(cudaDeviceSynchronize(), "waiting");
    };
    once();
    const Clock::time_point start = Clock::now();
    once();
    return ms_since(start) / throughput_images;
  };
  Throughput times{.type = type_name(spec)};
  times.kernels =
      timed([&](Queue& q) { q.denoiser.run_async(source.device.view(), q.target.view(), {q.stream.get()}); });
  times.copies = timed([&](Queue& q) {
    cuda::check(cudaMemcpyAsync(q.device.data(), q.in.data(), bytes, cudaMemcpyHostToDevice, q.stream.get()),
                "uploading");
    cuda::check(cudaMemcpyAsync(q.out.data(), q.device.data(), bytes, cudaMemcpyDeviceToHost, q.stream.get()),
                "downloading");
  });
  times.together = timed([&](Queue& q) {
    q.denoiser.run_async(ConstImageView(static_cast<const void*>(q.in.data()), spec),
                         ImageView(q.out.data(), spec), {q.stream.get()});
  });
  return times;
}

std::vector<Throughput> run_throughput() {
  fmt::print(
      "\n{} images of 20 Mpx, gray, radius {}, page-locked, {} queues, ms an image:\n\n"
      "| type | kernels alone | copies alone | together | of the slower |\n"
      "|---|--:|--:|--:|--:|\n",
      throughput_images, end_to_end_radius, throughput_queues);
  std::vector<Throughput> list;
  for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f32}) {
    const Throughput times = time_throughput(type);
    fmt::print("| {} | {:.3f} | {:.3f} | {:.3f} | {:.0f} % |\n", times.type, times.kernels, times.copies,
               times.together, 100 * times.share());
    std::fflush(stdout);
    list.push_back(times);
  }
  return list;
}

// ---- The report ------------------------------------------------------------------------------------------

struct Machine {
  std::string gpu;
  int driver = 0;  // the CUDA version that it brings
};

Machine find_machine() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) throw std::runtime_error("needs a GPU");
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, 0), "asking for the GPU");
  Machine machine{.gpu =
                      fmt::format("{}, {} multiprocessors", properties.name, properties.multiProcessorCount)};
  cuda::check(cudaDriverGetVersion(&machine.driver), "asking for the driver");
  return machine;
}

std::string version_text(int cuda) { return fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10); }

struct Results {
  Machine machine;
  Rates rates = {};
  double copy = 0;  // bytes a second, of an image of 20 Mpixel
  std::vector<Row> rows = {};
  std::vector<EndToEnd> end_to_end = {};
  std::vector<Throughput> throughput = {};
  std::vector<EstimateTime> estimates = {};
  std::vector<Bm3dRow> bm3d = {};
};

// Names and types have no character that JSON would escape.
void write_json(const std::string& path, const Results& results) {
  std::vector<std::string> rows;
  for (const Row& row : results.rows) {
    std::string text = fmt::format(
        R"({{"filter": "{}", "image": "{}", "width": {}, "height": {}, "type": "{}", "radius": {}, )",
        row.filter, row.size.name, row.size.width, row.size.height, type_name(row.spec), row.radius);
    text += fmt::format(R"("right": {}, "error": {})", row.right(),
                        std::isfinite(row.error) ? fmt::format("{:.3g}", row.error) : "null");
    if (row.right()) {
      text += fmt::format(
          R"(, "kernels_ms": {:.6g}, "kernels_ms_low": {:.6g}, "kernels_ms_high": {:.6g}, "image_to_image_ms": {:.6g}, "whole_ms": {:.6g}, "bound_ms": {:.6g}, "bound_by": "{}")",
          row.kernels.median, row.kernels.low, row.kernels.high, row.image.median, row.whole.median,
          row.bound.ms, row.bound.by);
    }
    if (row.npp > 0)
      text += fmt::format(R"(, "npp_ms": {:.6g}, "npp_difference": {:.3g})", row.npp, row.npp_difference);
    rows.push_back(text + "}");
  }
  std::vector<std::string> end_to_end;
  for (const EndToEnd& times : results.end_to_end) {
    end_to_end.push_back(fmt::format(
        R"({{"image": "{}", "type": "{}", "radius": {}, "kernels_ms": {:.6g}, "copies_ms": {:.6g}, "run_async_pinned_ms": {:.6g}, "run_pinned_ms": {:.6g}, "run_pageable_ms": {:.6g}}})",
        times.size.name, times.type, end_to_end_radius, times.kernels, times.copies, times.async,
        times.pinned, times.pageable));
  }
  std::vector<std::string> throughput;
  for (const Throughput& times : results.throughput) {
    throughput.push_back(fmt::format(
        R"({{"type": "{}", "images": {}, "queues": {}, "kernels_ms": {:.6g}, "copies_ms": {:.6g}, "together_ms": {:.6g}}})",
        times.type, throughput_images, throughput_queues, times.kernels, times.copies, times.together));
  }
  std::vector<std::string> estimates;
  for (const EstimateTime& times : results.estimates) {
    estimates.push_back(fmt::format(
        R"({{"image": "{}", "type": "{}", "right": {}, "white_ms": {:.6g}, "model_ms": {:.6g}, "all_ms": {:.6g}, "processor_ms": {:.6g}}})",
        times.size.name, times.type, times.right, times.white.median, times.model.median, times.all.median,
        times.processor.median));
  }
  std::vector<std::string> bm3d;
  for (const Bm3dRow& row : results.bm3d) bm3d.push_back(json_of(row));
  std::ofstream file(path);
  file << fmt::format(
      "{{\n\"gpu\": \"{}\",\n\"driver_cuda\": \"{}\",\n\"toolkit_cuda\": \"{}\",\n\"compiler\": \"{}\",\n"
      "\"ex2_per_second\": {:.4g},\n\"fma_per_second\": {:.4g},\n"
      "\"mma_f16_per_second\": {:.4g},\n\"copied_bytes_per_second\": {:.4g},\n"
      "\"rows\": [\n{}\n],\n\"end_to_end\": [\n{}\n],\n\"throughput\": [\n{}\n],\n\"estimate\": [\n{}\n],\n"
      "\"bm3d\": [\n{}\n]\n}}\n",
      results.machine.gpu, version_text(results.machine.driver), version_text(CUDART_VERSION), __VERSION__,
      results.rates.exponentials, results.rates.multiply_adds, results.rates.products, results.copy,
      fmt::join(rows, ",\n"), fmt::join(end_to_end, ",\n"), fmt::join(throughput, ",\n"),
      fmt::join(estimates, ",\n"), fmt::join(bm3d, ",\n"));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

// With a word: only the rows whose filter and image begin with it ("nlm 20 Mpx",
// "bm3d normal"), or just "npp", "end-to-end", "throughput", "estimate", "bm3d models" or "bm3d sizes".
int run(const std::string& only, const std::string& json_path) {
  Results results{.machine = find_machine()};
  Ceilings ceilings;
  results.rates = ceilings.rates();
  results.copy = ceilings.copy_rate(bytes_of(spec_of(large, PixelType::f32)));
  fmt::print(
      "{}, CUDA driver {}, toolkit {}, compiler {}. Measured: {:.2f} T ex2/s, {:.1f} T FP32 instructions/s, "
      "{:.0f} T products of halves/s (mma.sync), copies {:.2f} TB/s at 20 Mpixel, {:.2f} TB/s at 1080p (in "
      "the cache). NPP: {}.\n\n",
      results.machine.gpu, version_text(results.machine.driver), version_text(CUDART_VERSION), __VERSION__,
      results.rates.exponentials / 1e12, results.rates.multiply_adds / 1e12, results.rates.products / 1e12,
      results.copy / 1e12, ceilings.copy_rate(bytes_of(spec_of(middle, PixelType::f32))) / 1e12,
      have_npp() ? "there" : "ABSENT");
  const bool all = only.empty();
  if (only != "end-to-end" && only != "throughput" && only != "npp" && only != "estimate" &&
      !only.starts_with("bm3d") && !only.starts_with("ridge"))
    results.rows = run_rows(ceilings, only);
  if (all || only == "npp") run_npp_colours();
  if (all || only == "end-to-end") results.end_to_end = run_end_to_end();
  if (all || only == "throughput") results.throughput = run_throughput();
  if (all || only == "estimate") results.estimates = run_estimates();
  if (all || only.starts_with("ridge") ||
      (only.starts_with("bm3d") && only != "bm3d sizes" && only != "bm3d models")) {
    results.bm3d = run_bm3d(only);
    run_bm3d_kernels(only, results.rates.products);
  }
  if (all || only == "bm3d" || only == "bm3d models") run_bm3d_models();
  if (all || only == "bm3d" || only == "bm3d sizes") run_bm3d_sizes();
  if (!json_path.empty()) write_json(json_path, results);
  const bool right =
      std::all_of(results.rows.begin(), results.rows.end(), [](const Row& row) { return row.right(); }) &&
      std::all_of(results.estimates.begin(), results.estimates.end(),
                  [](const EstimateTime& times) { return times.right; }) &&
      std::all_of(results.bm3d.begin(), results.bm3d.end(), [](const Bm3dRow& row) { return row.right; });
  if (!right) fmt::print(stderr, "ungrain-bench-gpu: a result differs from the CPU version's\n");
  const char* required = std::getenv("UNGRAIN_REQUIRE");
  const bool peers_missing =
      !have_npp() && required != nullptr && std::string(required).find("peers") != std::string::npos;
  if (peers_missing) fmt::print(stderr, "ungrain-bench-gpu: NPP is missing\n");
  return right && !peers_missing ? 0 : 1;
}

}  // namespace
}  // namespace ungrain::bench

int main(int count, char** words) {
  try {
    std::string only;
    std::string json_path;
    for (int i = 1; i < count; ++i) {
      const std::string word = words[i];
      if (word == "--json" && i + 1 < count) {
        json_path = words[++i];
      } else if (word.starts_with('-') || !only.empty()) {
        throw std::runtime_error("usage: ungrain-bench-gpu [WORD] [--json FILE]");
      } else {
        only = word;
      }
    }
    return ungrain::bench::run(only, json_path);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ungrain-bench-gpu: {}\n", error.what());
    return 1;
  }
}
