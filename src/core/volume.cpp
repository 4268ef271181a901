#include "ungrain/volume.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "core/registry.h"
#include "ungrain/error.h"

namespace ungrain {

ImageSpec volume_spec(const ImageSpec& slice, int depth) {
  const std::int64_t voxels = std::int64_t{slice.width} * slice.height;
  if (voxels > std::numeric_limits<int>::max()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("slices of {} x {} voxels are too large", slice.width, slice.height));
  }
  ImageSpec spec = slice;
  spec.width = static_cast<int>(voxels);
  spec.height = depth;
  spec.slice = {.width = slice.width, .height = slice.height};
  validate(spec);
  return spec;
}

ImageSpec slice_spec(const ImageSpec& volume) {
  ImageSpec spec = volume;
  spec.width = volume.slice.width;
  spec.height = volume.slice.height;
  spec.slice = {};
  return spec;
}

namespace {

template <class View>
View slice_of(View row) {
  row.spec = slice_spec(row.spec);
  row.strides.y = row.strides.x * row.spec.width;
  row.region = {};
  return row;
}

}  // namespace

ImageView slice_view(const ImageView& row) { return slice_of(row); }
ConstImageView slice_view(const ConstImageView& row) { return slice_of(row); }

double voxel_aspect(const std::array<double, 3>& spacing) {
  const double aspect = spacing[2] / std::sqrt(spacing[0] * spacing[1]);
  const bool positive = spacing[0] > 0 && spacing[1] > 0 && spacing[2] > 0;
  if (!positive || !(aspect > 0) || std::isinf(aspect)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("spacing takes three positive numbers, got {}, {}, {}", spacing[0], spacing[1],
                            spacing[2]));
  }
  return aspect;
}

void follow_voxels(MethodParams& params, double aspect,
                   const std::function<bool(const std::string& name)>& is_given) {
  const Method& method = find_method(params.method());
  for (const auto& [name, follows] : method.depth) {
    if (is_given(name)) continue;
    const ParamInfo& info = method.descriptor(name).info;
    double value = follows.empty() ? aspect : std::get<double>(params.get(follows)) / aspect;
    if (info.kind == ParamKind::integer) value = std::round(value);
    params.set(name, std::clamp(value, info.min, info.max));
  }
}

}  // namespace ungrain
