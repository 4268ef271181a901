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

// Sets every sample of `call.out` to call.sample(plane, x, y).
template <class Call>
__global__ void __launch_bounds__(block_columns* block_rows)
    sample_kernel(const __grid_constant__ Call call) {
  const int x = call.out.rect.x0 + static_cast<int>(blockIdx.x * block_columns + threadIdx.x);
  const int y = call.out.rect.y0 + block_row(call.out.count) * block_rows + static_cast<int>(threadIdx.y);
  if (x >= call.out.rect.x1 || y >= call.out.rect.y1) return;
  const int plane = block_plane(call.out.count);
  call.out.at(plane, x, y) = call.sample(plane, x, y);
}

__device__ inline float sample_of(const ConstPlanes& planes, int plane, int x, int y) {
  return planes.row(plane, y)[x - planes.rect.x0];
}

struct CurvesCall {
  ConstPlanes in;
  Planes out;
  CurveShape shapes[max_channels];
  const float* tables[max_channels];  // on the GPU

  __device__ float sample(int plane, int x, int y) const {
    return curve_at(shapes[plane], tables[plane], sample_of(in, plane, x, y));
  }
};

struct FillCall {
  ConstPlanes in;
  Planes out;
  Extent image;
  FillArea area;
  FillTables black[max_channels];
  FillTables white[max_channels];

  __device__ float sample(int plane, int x, int y) const {
    return filled_sample(black[plane], white[plane], in, image, area, plane, x, y);
  }
};

struct MixCall {
  ConstPlanes source;
  ConstPlanes result;
  Planes out;
  float share;

  __device__ float sample(int plane, int x, int y) const {
    const float after = sample_of(result, plane, x, y);
    return after + share * (sample_of(source, plane, x, y) - after);
  }
};

dim3 blocks_over(const Planes& out) {
  return tall_grid(blocks_for(out.rect.width(), block_columns), blocks_for(out.rect.height(), block_rows),
                   out.count);
}

// Tables one after the other. Page-locked, so that copies are asynchronous; allocated by the first upload,
// when a GPU is certain to exist.
class Tables {
 public:
  explicit Tables(std::vector<std::vector<float>> tables) : tables_(std::move(tables)) {
    for (const std::vector<float>& table : tables_) floats_ += table.size();
  }
  std::size_t floats() const { return floats_; }

  // Returns each table's address on the GPU.
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
void launch_over(const DeviceStageCall& stage, const Call& call) {
  cuda::launch(sample_kernel<Call>, blocks_over(stage.out), dim3(block_columns, block_rows), 0, stage.stream,
               call);
}

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
    launch_over(call, made);
  };
}

void launch_fill(Stage& stage, std::vector<ChannelFill> fills, const FillArea& area) {
  std::vector<std::vector<float>> floats;
  for (const ChannelFill& fill : fills) {
    floats.push_back(fill.black.draws);
    floats.push_back(fill.white.draws);
  }
  const auto tables = std::make_shared<Tables>(std::move(floats));
  stage.scratch = tables->floats();
  stage.launch = [tables, area, fills = std::move(fills)](const DeviceStageCall& call) {
    const std::vector<const float*> places = tables->upload(call);
    FillCall made{call.in[0], call.out, call.image, area, {}, {}};
    for (std::size_t plane = 0; plane < fills.size(); ++plane) {
      made.black[plane] = {fills[plane].black.shape, places[2 * plane]};
      made.white[plane] = {fills[plane].white.shape, places[2 * plane + 1]};
    }
    launch_over(call, made);
  };
}

void launch_mix(Stage& stage, float share) {
  stage.launch = [share](const DeviceStageCall& call) {
    launch_over(call, MixCall{call.in[0], call.in[1], call.out, share});
  };
}

}  // namespace

PointwiseStages pointwise_stages() { return {launch_curves, launch_fill, launch_mix}; }

}  // namespace ungrain::cuda
