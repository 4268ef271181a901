// Kernel times of the bilateral family on a GPU, images in its memory: median of many runs, by events around the
// filter's own stages. Beside them NPP's bilateral filter on the same image, and how far each is from the rate of
// the special function unit, which makes one exponential a tap.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cuda/memory.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods.h"
#include "ungrain/noise.h"

#ifdef UNGRAIN_BENCH_NPP
#include <nppi_filtering_functions.h>
#endif

namespace ungrain {
namespace {

constexpr int runs = 25;
constexpr int warm_up = 5;
// ex2.approx.f32, measured on an H200; one special function unit of four lanes a quarter of a multiprocessor.
constexpr double exponentials_per_second = 4.15e12;

struct Size {
  const char* name;
  int width;
  int height;
};
constexpr Size sizes[] = {{"1080p", 1920, 1080}, {"20 Mpx", 5522, 3651}};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Mid-gray with a ramp and noise of 25 of 255, on the GPU.
class GpuImage {
 public:
  GpuImage(const ImageSpec& spec, bool fill) : spec_(spec), memory_(static_cast<std::size_t>(interleaved_strides(spec).y) * spec.height) {
    if (!fill) return;
    ImageSpec float_spec = spec;
    float_spec.type = PixelType::f32;
    float_spec.range = 1;
    Image clean(float_spec);
    float* samples = clean.samples<float>();
    for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(spec.width) * spec.height * spec.channels; ++i) {
      samples[i] = 0.3F + 0.4F * static_cast<float>(i % spec.width) / static_cast<float>(spec.width);
    }
    Image noisy(spec);
    add_noise(clean.view(), noisy.view(), {NoiseKind::gaussian, 25.0 / 255, 1});
    cuda::check(cudaMemcpy(memory_.data(), noisy.view().data, memory_.size(), cudaMemcpyHostToDevice), "uploading");
  }
  ImageView view() const {
    return {memory_.data(), spec_, interleaved_strides(spec_), {Space::Memory::cuda, 0}};
  }

 private:
  ImageSpec spec_;
  cuda::DeviceBuffer memory_;
};

struct Times {
  double kernels = 0;  // ms, the filter's stages
  double whole = 0;    // ms, with conversion and what goes around it
};

Times time_ours(const MethodParams& params, const ImageSpec& spec) {
  Denoiser denoiser = Denoiser::create(params, spec, {.device = {Device::Kind::cuda}});
  const GpuImage in(spec, true);
  const GpuImage out(spec, false);
  std::vector<double> kernels;
  std::vector<double> whole;
  for (int run = 0; run < warm_up + runs; ++run) {
    const Report report = denoiser.run(in.view(), out.view());
    if (run < warm_up) continue;
    double ms = 0;
    for (const StageTime& stage : report.stages) ms += stage.ms;
    kernels.push_back(ms);
    whole.push_back(report.ms);
  }
  return {median(kernels), median(whole)};
}

#ifdef UNGRAIN_BENCH_NPP
NppStreamContext npp_context() {
  NppStreamContext context{};
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, 0), "asking for the GPU");
  context.nMultiProcessorCount = properties.multiProcessorCount;
  context.nMaxThreadsPerMultiProcessor = properties.maxThreadsPerMultiProcessor;
  context.nMaxThreadsPerBlock = properties.maxThreadsPerBlock;
  context.nSharedMemPerBlock = properties.sharedMemPerBlock;
  context.nCudaDevAttrComputeCapabilityMajor = properties.major;
  context.nCudaDevAttrComputeCapabilityMinor = properties.minor;
  return context;
}

double time_npp(const ImageSpec& spec, int radius) {
  const GpuImage in(spec, true);
  const GpuImage out(spec, false);
  const NppStreamContext context = npp_context();
  const NppiSize size{spec.width, spec.height};
  const int step = static_cast<int>(interleaved_strides(spec).y);
  const auto run = [&] {
    if (spec.type == PixelType::f32) {
      return nppiFilterBilateralGaussBorder_32f_C1R_Ctx(
          static_cast<const Npp32f*>(in.view().data), step, size, {0, 0}, static_cast<Npp32f*>(out.view().data), step,
          size, radius, 1, 0.01F, static_cast<Npp32f>(radius * radius) / 4, NPP_BORDER_REPLICATE, context);
    }
    return nppiFilterBilateralGaussBorder_8u_C1R_Ctx(
        static_cast<const Npp8u*>(in.view().data), step, size, {0, 0}, static_cast<Npp8u*>(out.view().data), step, size,
        radius, 1, 650.0F, static_cast<Npp32f>(radius * radius) / 4, NPP_BORDER_REPLICATE, context);
  };
  const cuda::Event start;
  const cuda::Event end;
  std::vector<double> ms;
  for (int i = 0; i < warm_up + runs; ++i) {
    start.record(nullptr);
    if (run() != NPP_SUCCESS) return 0;
    end.record(nullptr);
    end.wait();
    if (i >= warm_up) ms.push_back(end.ms_since(start));
  }
  return median(ms);
}
#else
double time_npp(const ImageSpec&, int) { return 0; }
#endif

ImageSpec spec_of(const Size& size, PixelType type, bool rgb) {
  ImageSpec spec{.width = size.width, .height = size.height, .type = type};
  if (rgb) {
    spec.channels = 3;
    spec.colour = Colour::rgb;
  }
  return spec;
}

void print_row(const std::string& what, const Size& size, const char* type, int radius, const Times& ours, double npp,
               double taps) {
  const double bound = taps * size.width * size.height / exponentials_per_second * 1e3;
  fmt::print("| {:<22} | {:<6} | {:<8} | {:>2} | {:>8.4f} | {:>8.4f} | {:>8} | {:>6} | {:>5.0f} % |\n", what, size.name, type,
             radius, ours.kernels, ours.whole, npp > 0 ? fmt::format("{:.4f}", npp) : "-",
             npp > 0 ? fmt::format("{:.2f}", npp / ours.kernels) : "-", 100 * bound / ours.kernels);
  std::fflush(stdout);
}

void run_all() {
  fmt::print("| filter | image | type | r | kernels ms | whole ms | NPP ms | NPP / ours | of ex2 rate |\n"
             "|---|---|---|---|---|---|---|---|---|\n");
  const auto bilateral = [](int radius, double white, BilateralQuality quality) {
    return MethodParams(BilateralParams{.radius = radius, .sigma_space = radius / 2.0, .sigma_range = 0.1 * white, .quality = quality,
                                        .colour = quality == BilateralQuality::grid ? ColourMode::per_channel : ColourMode::joint});
  };
  const auto taps = [](int radius) { return (2.0 * radius + 1) * (2 * radius + 1); };
  for (const Size& size : sizes) {
    for (const int radius : {1, 2, 3, 5, 7, 9, 11, 13, 15}) {
      const ImageSpec spec = spec_of(size, PixelType::f32, false);
      print_row("bilateral", size, "f32", radius, time_ours(bilateral(radius, 1, BilateralQuality::exact), spec),
                time_npp(spec, radius), taps(radius));
    }
    for (const int radius : {1, 7, 15}) {
      const ImageSpec bytes = spec_of(size, PixelType::u8, false);
      print_row("bilateral", size, "u8", radius, time_ours(bilateral(radius, 255, BilateralQuality::exact), bytes),
                time_npp(bytes, radius), taps(radius));
      const ImageSpec words = spec_of(size, PixelType::u16, false);
      print_row("bilateral", size, "u16", radius, time_ours(bilateral(radius, 65535, BilateralQuality::exact), words), 0,
                taps(radius));
      const ImageSpec rgb = spec_of(size, PixelType::f32, true);
      print_row("bilateral joint", size, "f32 rgb", radius, time_ours(bilateral(radius, 1, BilateralQuality::exact), rgb), 0,
                taps(radius));
    }
    for (const int radius : {3, 5, 7, 15}) {
      const ImageSpec spec = spec_of(size, PixelType::f32, false);
      const MethodParams adaptive =
          AdaptiveBilateralParams{.radius = radius, .sigma_space = radius / 2.0, .sigma_range = 0.1, .factor = 2};
      print_row("adaptive-bilateral", size, "f32", radius, time_ours(adaptive, spec), 0, 2 * taps(radius));
      print_row("bilateral separable", size, "f32", radius,
                time_ours(bilateral(radius, 1, BilateralQuality::separable), spec), 0, 2 * (2 * radius + 1));
      print_row("bilateral grid", size, "f32", radius, time_ours(bilateral(radius, 1, BilateralQuality::grid), spec), 0, 0);
    }
    const ImageSpec spec = spec_of(size, PixelType::f32, false);
    for (const int radius : {1, 2, 4}) {
      print_row("median", size, "f32", radius, time_ours(MedianParams{.radius = radius}, spec), 0, 0);
      print_row("box", size, "f32", radius, time_ours(BoxParams{.radius = radius}, spec), 0, 0);
      print_row("gaussian", size, "f32", 3 * radius, time_ours(GaussianParams{.sigma = static_cast<double>(radius)}, spec), 0, 0);
    }
  }
}

}  // namespace
}  // namespace ungrain

int main() {
  try {
    ungrain::run_all();
  } catch (const std::exception& error) {
    fmt::print(stderr, "ungrain-bench-gpu: {}\n", error.what());
    return 1;
  }
  return 0;
}
