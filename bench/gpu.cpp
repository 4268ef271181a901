// Kernel times of the bilateral family on a GPU, images in its memory: median of many runs, by events around
// the filter's own stages. Beside them NPP's bilateral filter on the same image, and how far each is from the
// rate of the special function unit, which makes one exponential a tap.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/common.h"
#include "cuda/memory.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods.h"
#include "ungrain/noise.h"

#ifdef UNGRAIN_BENCH_NPP
#include <nppi_filtering_functions.h>
#endif

namespace ungrain {
namespace {

using bench::median;
using bench::spec_of;

constexpr int runs = 25;
constexpr int warm_up = 5;
// ex2.approx.f32, measured on an H200; one special function unit of four lanes a quarter of a multiprocessor.
constexpr double exponentials_per_second = 4.15e12;

struct NamedSize : bench::Size {
  const char* name;
};
constexpr NamedSize sizes[] = {{{1920, 1080}, "1080p"}, {{5522, 3651}, "20 Mpx"}};

// Mid-gray with a ramp and noise of 25 of 255, on the GPU.
class GpuImage {
 public:
  GpuImage(const ImageSpec& spec, bool fill)
      : spec_(spec), memory_(static_cast<std::size_t>(interleaved_strides(spec).y) * spec.height) {
    if (!fill) return;
    ImageSpec float_spec = spec;
    float_spec.type = PixelType::f32;
    float_spec.range = 1;
    Image clean(float_spec);
    float* samples = clean.samples<float>();
    for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(spec.width) * spec.height * spec.channels;
         ++i) {
      samples[i] = 0.3F + 0.4F * static_cast<float>(i % spec.width) / static_cast<float>(spec.width);
    }
    Image noisy(spec);
    add_noise(clean.view(), noisy.view(), {NoiseKind::gaussian, 25.0 / 255, 1});
    cuda::check(cudaMemcpy(memory_.data(), noisy.view().data, memory_.size(), cudaMemcpyHostToDevice),
                "uploading");
  }
  ImageView view() const {
    return {memory_.data(), spec_, interleaved_strides(spec_), {Space::Memory::cuda, 0}};
  }

 private:
  ImageSpec spec_;
  cuda::DeviceBuffer memory_;
};

// Making the noise takes longer than any filter: one picture for each kind of image.
const GpuImage& source_for(const ImageSpec& spec) {
  static std::vector<std::pair<ImageSpec, std::unique_ptr<GpuImage>>> made;
  for (const auto& [of, image] : made) {
    if (of == spec) return *image;
  }
  made.emplace_back(spec, std::make_unique<GpuImage>(spec, true));
  return *made.back().second;
}

struct Times {
  double kernels = 0;  // ms, the filter's stages
  double whole = 0;    // ms, with conversion and what goes around it
};

Times time_ours(const MethodParams& params, const ImageSpec& spec) {
  Denoiser denoiser = Denoiser::create(params, spec, {.device = {Device::Kind::cuda}});
  const GpuImage& in = source_for(spec);
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
  const GpuImage& in = source_for(spec);
  const GpuImage out(spec, false);
  const NppStreamContext context = npp_context();
  const NppiSize size{spec.width, spec.height};
  const int step = static_cast<int>(interleaved_strides(spec).y);
  const auto run = [&] {
    if (spec.type == PixelType::f32) {
      return nppiFilterBilateralGaussBorder_32f_C1R_Ctx(
          static_cast<const Npp32f*>(in.view().data), step, size, {0, 0},
          static_cast<Npp32f*>(out.view().data), step, size, radius, 1, 0.01F,
          static_cast<Npp32f>(radius * radius) / 4, NPP_BORDER_REPLICATE, context);
    }
    return nppiFilterBilateralGaussBorder_8u_C1R_Ctx(
        static_cast<const Npp8u*>(in.view().data), step, size, {0, 0}, static_cast<Npp8u*>(out.view().data),
        step, size, radius, 1, 650.0F, static_cast<Npp32f>(radius * radius) / 4, NPP_BORDER_REPLICATE,
        context);
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

void print_row(const std::string& what, const NamedSize& size, const char* type, int radius,
               const Times& ours, double npp, double taps) {
  const double bound = taps * size.width * size.height / exponentials_per_second * 1e3;
  fmt::print("| {:<22} | {:<6} | {:<8} | {:>2} | {:>8.4f} | {:>8.4f} | {:>8} | {:>6} | {:>5.0f} % |\n", what,
             size.name, type, radius, ours.kernels, ours.whole, npp > 0 ? fmt::format("{:.4f}", npp) : "-",
             npp > 0 ? fmt::format("{:.2f}", npp / ours.kernels) : "-", 100 * bound / ours.kernels);
  std::fflush(stdout);
}

void run_all(const std::string& only) {
  fmt::print(
      "| filter | image | type | r | kernels ms | whole ms | NPP ms | NPP / ours | of ex2 rate |\n"
      "|---|---|---|---|---|---|---|---|---|\n");
  const auto bilateral = [](int radius, double white, BilateralQuality quality) {
    return MethodParams(BilateralParams{
        .radius = radius,
        .sigma_space = radius / 2.0,
        .sigma_range = 0.1 * white,
        .quality = quality,
        .colour = quality == BilateralQuality::grid ? ColourMode::per_channel : ColourMode::joint});
  };
  const auto row = [&](const std::string& what, const NamedSize& size, const char* type, int radius,
                       const MethodParams& params, const ImageSpec& spec, bool npp, double taps_each) {
    if (!what.starts_with(only)) return;
    print_row(what, size, type, radius, time_ours(params, spec), npp ? time_npp(spec, radius) : 0, taps_each);
  };
  const auto taps = [](int radius) { return (2.0 * radius + 1) * (2 * radius + 1); };
  for (const NamedSize& size : sizes) {
    for (const int radius : {1, 2, 3, 5, 7, 9, 11, 13, 15}) {
      const ImageSpec spec = spec_of(size, PixelType::f32, false);
      row("bilateral", size, "f32", radius, bilateral(radius, 1, BilateralQuality::exact), spec, true,
          taps(radius));
    }
    for (const int radius : {1, 7, 15}) {
      const ImageSpec bytes = spec_of(size, PixelType::u8, false);
      row("bilateral", size, "u8", radius, bilateral(radius, 255, BilateralQuality::exact), bytes, true,
          taps(radius));
      const ImageSpec words = spec_of(size, PixelType::u16, false);
      row("bilateral", size, "u16", radius, bilateral(radius, 65535, BilateralQuality::exact), words, false,
          taps(radius));
      const ImageSpec rgb = spec_of(size, PixelType::f32, true);
      row("bilateral joint", size, "f32 rgb", radius, bilateral(radius, 1, BilateralQuality::exact), rgb,
          false, taps(radius));
    }
    for (const int radius : {3, 5, 7, 15}) {
      const ImageSpec spec = spec_of(size, PixelType::f32, false);
      const MethodParams adaptive = AdaptiveBilateralParams{
          .radius = radius, .sigma_space = radius / 2.0, .sigma_range = 0.1, .factor = 2};
      row("adaptive-bilateral", size, "f32", radius, adaptive, spec, false, 2 * taps(radius));
      row("bilateral separable", size, "f32", radius, bilateral(radius, 1, BilateralQuality::separable), spec,
          false, 2 * (2 * radius + 1));
      row("bilateral grid", size, "f32", radius, bilateral(radius, 1, BilateralQuality::grid), spec, false,
          0);
    }
    const ImageSpec spec = spec_of(size, PixelType::f32, false);
    for (const int radius : {1, 2, 4}) {
      row("median", size, "f32", radius, MedianParams{.radius = radius}, spec, false, 0);
      row("box", size, "f32", radius, BoxParams{.radius = radius}, spec, false, 0);
      row("gaussian", size, "f32", 3 * radius, GaussianParams{.sigma = static_cast<double>(radius)}, spec,
          false, 0);
    }
  }
}

// Many images from page-locked memory and back, several at a time: against the kernels alone and the copies
// alone.
void run_throughput() {
  constexpr int images = 64;
  constexpr int queues = 4;
  const ImageSpec spec = spec_of(sizes[1], PixelType::u8, false);
  const std::size_t bytes = static_cast<std::size_t>(interleaved_strides(spec).y) * spec.height;
  const MethodParams params = BilateralParams{.radius = 7, .sigma_space = 3.5, .sigma_range = 25.5};
  const GpuImage source(spec, true);
  const GpuImage target(spec, false);
  struct Queue {
    Denoiser denoiser;
    cuda::OwnStream stream;
    cuda::PinnedBuffer in;
    cuda::PinnedBuffer out;
    cuda::DeviceBuffer device;
  };
  std::vector<Queue> list;
  const Denoiser first = Denoiser::create(params, spec, {.device = {Device::Kind::cuda}});
  for (int i = 0; i < queues; ++i) {
    list.push_back(
        {first.clone(), {}, cuda::PinnedBuffer(bytes), cuda::PinnedBuffer(bytes), cuda::DeviceBuffer(bytes)});
    cuda::check(cudaMemcpy(list.back().in.data(), source.view().data, bytes, cudaMemcpyDeviceToHost),
                "downloading");
  }
  const auto timed = [&](const std::function<void(Queue&)>& work) {
    const auto once = [&] {
      for (int i = 0; i < images; ++i) work(list[static_cast<std::size_t>(i % queues)]);
      cuda::check(cudaDeviceSynchronize(), "waiting");
    };
    once();
    const auto start = std::chrono::steady_clock::now();
    once();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() /
           images;
  };
  const double kernels =
      timed([&](Queue& q) { q.denoiser.run_async(source.view(), target.view(), {q.stream.get()}); });
  const double copies = timed([&](Queue& q) {
    cuda::check(cudaMemcpyAsync(q.device.data(), q.in.data(), bytes, cudaMemcpyHostToDevice, q.stream.get()),
                "uploading");
    cuda::check(cudaMemcpyAsync(q.out.data(), q.device.data(), bytes, cudaMemcpyDeviceToHost, q.stream.get()),
                "downloading");
  });
  const double both = timed([&](Queue& q) {
    q.denoiser.run_async(ConstImageView(static_cast<const void*>(q.in.data()), spec),
                         ImageView(q.out.data(), spec), {q.stream.get()});
  });
  fmt::print(
      "\n{} images of 20 Mpx, u8, radius 7, page-locked, {} queues, ms an image: kernels alone {:.3f}, "
      "copies alone "
      "{:.3f}, together {:.3f} = {:.0f} % of the slower\n",
      images, queues, kernels, copies, both, 100 * std::max(kernels, copies) / both);
}

}  // namespace
}  // namespace ungrain

// With a word: only the rows whose filter begins with it.
int main(int count, char** words) {
  try {
    ungrain::run_all(count > 1 ? words[1] : "");
    if (count <= 1 || words[1] == std::string("throughput")) ungrain::run_throughput();
  } catch (const std::exception& error) {
    fmt::print(stderr, "ungrain-bench-gpu: {}\n", error.what());
    return 1;
  }
  return 0;
}
