#include "cpu/pointwise.h"

#include <algorithm>
#include <memory>

namespace ungrain {
namespace {

// Calls body(plane, x0, x1, y) for every row of every plane.
template <class Body>
void for_plane_rows(const StageCall& call, Body body) {
  const Rect& area = call.out.rect;
  constexpr int pixels = 1 << 14;
  const int at_once = std::max(1, pixels / std::max(1, area.width()));
  call.workers.for_each((area.height() + at_once - 1) / at_once, [&](std::int64_t item, int) {
    const int begin = area.y0 + static_cast<int>(item) * at_once;
    for (int y = begin; y < std::min(area.y1, begin + at_once); ++y) {
      for (int plane = 0; plane < call.out.count; ++plane) body(plane, y);
    }
  });
}

const float* row_of(const ConstPlanes& planes, int plane, int y, int x) {
  return planes.row(plane, y) + (x - planes.rect.x0);
}

void run_curves(const StageCall& call, const std::vector<PointCurve>& curves) {
  for_plane_rows(call, [&](int plane, int y) {
    const PointCurve& curve = curves[static_cast<std::size_t>(plane)];
    const float* from = row_of(call.in[0], plane, y, call.out.rect.x0);
    float* to = call.out.row(plane, y);
    for (int x = 0; x < call.out.rect.width(); ++x)
      to[x] = curve_at(curve.shape, curve.table.data(), from[x]);
  });
}

void run_fill(const StageCall& call, const std::vector<ChannelFill>& fills, const FillArea& area) {
  for_plane_rows(call, [&](int plane, int y) {
    const ChannelFill& fill = fills[static_cast<std::size_t>(plane)];
    const FillTables black{fill.black.shape, fill.black.draws.data()};
    const FillTables white{fill.white.shape, fill.white.draws.data()};
    float* to = call.out.row(plane, y);
    for (int x = call.out.rect.x0; x < call.out.rect.x1; ++x) {
      to[x - call.out.rect.x0] = filled_sample(black, white, call.in[0], call.image, area, plane, x, y);
    }
  });
}

void run_mix(const StageCall& call, float share) {
  for_plane_rows(call, [&](int plane, int y) {
    const float* source = row_of(call.in[0], plane, y, call.out.rect.x0);
    const float* result = row_of(call.in[1], plane, y, call.out.rect.x0);
    float* to = call.out.row(plane, y);
    for (int x = 0; x < call.out.rect.width(); ++x) to[x] = result[x] + share * (source[x] - result[x]);
  });
}

void make_curves(Stage& stage, std::vector<PointCurve> curves) {
  stage.run = [shared = std::make_shared<const std::vector<PointCurve>>(std::move(curves))](
                  const StageCall& call) { run_curves(call, *shared); };
}

void make_fill(Stage& stage, std::vector<ChannelFill> fills, const FillArea& area) {
  stage.run = [area, shared = std::make_shared<const std::vector<ChannelFill>>(std::move(fills))](
                  const StageCall& call) { run_fill(call, *shared, area); };
}

void make_mix(Stage& stage, float share) {
  stage.run = [share](const StageCall& call) { run_mix(call, share); };
}

}  // namespace

PointwiseStages cpu_pointwise_stages() { return {make_curves, make_fill, make_mix}; }

}  // namespace ungrain
