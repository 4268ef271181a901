// Bound by memory: 8 or 12 bytes a sample, and a table of 16 KB a plane that stays in the cache.
#include <algorithm>
#include <memory>
#include <mutex>

#include "cuda/launch.cuh"
#include "cuda/pointwise.h"
#include "ungrain/image.h"

namespace ungrain::cuda {
namespace {

constexpr int block_columns = 32;
constexpr int block_rows = 8;

struct CurvesCall {
  ConstPlanes in;
  Planes out;
  CurveShape shapes[max_channels];
  const float* tables[max_channels];  // on the GPU
};

__global__ void __launch_bounds__(block_columns* block_rows)
    curves_kernel(const __grid_constant__ CurvesCall call) {
  const int x = call.out.rect.x0 + static_cast<int>(blockIdx.x * block_columns + threadIdx.x);
  const int plane = static_cast<int>(blockIdx.z);
  if (x >= call.out.rect.x1) return;
  for (int y = call.out.rect.y0 + static_cast<int>(blockIdx.y * block_rows + threadIdx.y);
       y < call.out.rect.y1; y += static_cast<int>(gridDim.y) * block_rows) {
    call.out.at(plane, x, y) =
        curve_at(call.shapes[plane], call.tables[plane], call.in.row(plane, y)[x - call.in.rect.x0]);
  }
}

struct FillCall {
  ConstPlanes in;
  Planes out;
  Extent image;
  bool wraps;
  FillTables black[max_channels];
  FillTables white[max_channels];
};

__global__ void __launch_bounds__(block_columns* block_rows)
    fill_kernel(const __grid_constant__ FillCall call) {
  const int x = call.out.rect.x0 + static_cast<int>(blockIdx.x * block_columns + threadIdx.x);
  const int plane = static_cast<int>(blockIdx.z);
  if (x >= call.out.rect.x1) return;
  for (int y = call.out.rect.y0 + static_cast<int>(blockIdx.y * block_rows + threadIdx.y);
       y < call.out.rect.y1; y += static_cast<int>(gridDim.y) * block_rows) {
    call.out.at(plane, x, y) =
        filled_sample(call.black[plane], call.white[plane], call.in, call.image, call.wraps, plane, x, y);
  }
}

struct MixCall {
  ConstPlanes source;
  ConstPlanes result;
  Planes out;
  float share;
};

__global__ void __launch_bounds__(block_columns* block_rows)
    mix_kernel(const __grid_constant__ MixCall call) {
  const int x = call.out.rect.x0 + static_cast<int>(blockIdx.x * block_columns + threadIdx.x);
  const int plane = static_cast<int>(blockIdx.z);
  if (x >= call.out.rect.x1) return;
  for (int y = call.out.rect.y0 + static_cast<int>(blockIdx.y * block_rows + threadIdx.y);
       y < call.out.rect.y1; y += static_cast<int>(gridDim.y) * block_rows) {
    const float source = call.source.row(plane, y)[x - call.source.rect.x0];
    const float result = call.result.row(plane, y)[x - call.result.rect.x0];
    call.out.at(plane, x, y) = result + call.share * (source - result);
  }
}

dim3 blocks_over(const Planes& out) {
  constexpr int most_rows = 65535;  // of a grid
  return dim3(static_cast<unsigned>(blocks_for(out.rect.width(), block_columns)),
              static_cast<unsigned>(std::min(blocks_for(out.rect.height(), block_rows), most_rows)),
              static_cast<unsigned>(out.count));
}

// Tables one after the other. Page-locked, so that copies wait for nothing; made by the first upload, when a
// GPU is there for certain.
class Tables {
 public:
  explicit Tables(std::vector<std::vector<float>> tables) : tables_(std::move(tables)) {
    for (const std::vector<float>& table : tables_) floats_ += table.size();
  }
  std::size_t floats() const { return floats_; }

  // Where each lies on the GPU.
  std::vector<const float*> upload(const DeviceStageCall& call) {
    std::call_once(made_, [&] {
      pinned_ = PinnedBuffer(floats_ * sizeof(float));
      auto* to = reinterpret_cast<float*>(pinned_.data());
      for (const std::vector<float>& table : tables_) to = std::copy(table.begin(), table.end(), to);
    });
    check(cudaMemcpyAsync(call.scratch.data(), pinned_.data(), floats_ * sizeof(float),
                          cudaMemcpyHostToDevice, handle(call.stream)),
          "uploading tables");
    std::vector<const float*> places;
    const float* at = call.scratch.data();
    for (const std::vector<float>& table : tables_) {
      places.push_back(at);
      at += table.size();
    }
    return places;
  }

 private:
  std::vector<std::vector<float>> tables_;
  std::size_t floats_ = 0;
  std::once_flag made_;
  PinnedBuffer pinned_;
};

template <class Call>
void launch_over(void (*kernel)(Call), const DeviceStageCall& stage, const Call& call) {
  cuda::launch(kernel, blocks_over(stage.out), dim3(block_columns, block_rows), 0, stage.stream, call);
}

}  // namespace

void launch_curves(Stage& stage, std::vector<PointCurve> curves) {
  std::vector<std::vector<float>> floats;
  for (const PointCurve& curve : curves) floats.push_back(curve.table);
  const auto tables = std::make_shared<Tables>(std::move(floats));
  stage.scratch = tables->floats();
  stage.launch = [tables, curves = std::move(curves)](const DeviceStageCall& call) {
    const std::vector<const float*> places = tables->upload(call);
    CurvesCall made{call.in[0], call.out, {}, {}};
    for (std::size_t plane = 0; plane < curves.size(); ++plane) {
      made.shapes[plane] = curves[plane].shape;
      made.tables[plane] = places[plane];
    }
    launch_over(curves_kernel, call, made);
  };
}

void launch_fill(Stage& stage, std::vector<ChannelFill> fills, bool wraps) {
  std::vector<std::vector<float>> floats;
  for (const ChannelFill& fill : fills) {
    for (const FillCurves* side : {&fill.black, &fill.white}) {
      floats.push_back(side->beyond);
      floats.push_back(side->spread);
    }
  }
  const auto tables = std::make_shared<Tables>(std::move(floats));
  stage.scratch = tables->floats();
  stage.launch = [tables, wraps, fills = std::move(fills)](const DeviceStageCall& call) {
    const std::vector<const float*> places = tables->upload(call);
    FillCall made{call.in[0], call.out, call.image, wraps, {}, {}};
    for (std::size_t plane = 0; plane < fills.size(); ++plane) {
      const float* const* of = places.data() + 4 * plane;
      made.black[plane] = {fills[plane].black.shape, of[0], of[1]};
      made.white[plane] = {fills[plane].white.shape, of[2], of[3]};
    }
    launch_over(fill_kernel, call, made);
  };
}

void launch_mix(Stage& stage, float share) {
  stage.launch = [share](const DeviceStageCall& call) {
    launch_over(mix_kernel, call, MixCall{call.in[0], call.in[1], call.out, share});
  };
}

}  // namespace ungrain::cuda
