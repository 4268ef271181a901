#include "bench/npp.h"

#include "cuda/memory.h"

#ifdef UNGRAIN_BENCH_NPP
#include <nppi_filtering_functions.h>
#endif

namespace ungrain::bench {

#ifdef UNGRAIN_BENCH_NPP

namespace {

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

template <class Sample>
using Filter = NppStatus (*)(const Sample*, int, NppiSize, NppiPoint, Sample*, int, NppiSize, int, int,
                             Npp32f, Npp32f, NppiBorderType, NppStreamContext);

template <class Sample>
std::function<bool()> bound(Filter<Sample> filter, const ConstImageView& in, const ImageView& out,
                            int radius) {
  const auto sigma_range = static_cast<Npp32f>(0.1 * in.spec.white());
  const auto sigma_space = static_cast<Npp32f>(radius) / 2;
  const NppiSize size{in.spec.width, in.spec.height};
  return [=, context = npp_context()] {
    return filter(static_cast<const Sample*>(in.data), static_cast<int>(in.strides.y), size, {0, 0},
                  static_cast<Sample*>(out.data), static_cast<int>(out.strides.y), size, radius, 1,
                  sigma_range * sigma_range, sigma_space * sigma_space, NPP_BORDER_REPLICATE,
                  context) == NPP_SUCCESS;
  };
}

}  // namespace

bool have_npp() { return true; }

std::function<bool()> npp_bilateral(const ConstImageView& in, const ImageView& out, int radius) {
  const bool rgb = in.spec.channels == 3;
  switch (in.spec.type) {
    case PixelType::u8:
      return bound<Npp8u>(
          rgb ? nppiFilterBilateralGaussBorder_8u_C3R_Ctx : nppiFilterBilateralGaussBorder_8u_C1R_Ctx, in,
          out, radius);
    case PixelType::u16:
      return bound<Npp16u>(
          rgb ? nppiFilterBilateralGaussBorder_16u_C3R_Ctx : nppiFilterBilateralGaussBorder_16u_C1R_Ctx, in,
          out, radius);
    case PixelType::f32:
      return bound<Npp32f>(
          rgb ? nppiFilterBilateralGaussBorder_32f_C3R_Ctx : nppiFilterBilateralGaussBorder_32f_C1R_Ctx, in,
          out, radius);
    default:
      return {};
  }
}

#else

bool have_npp() { return false; }
std::function<bool()> npp_bilateral(const ConstImageView&, const ImageView&, int) { return {}; }

#endif

}  // namespace ungrain::bench
