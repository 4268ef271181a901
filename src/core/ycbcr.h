// Frames of luma and chroma (Colour::ycbcr). A method that takes no such frames is built twice, for luma and
// for chroma, and both pipelines run as one.
#pragma once

#include <array>
#include <vector>

#include "core/method.h"
#include "core/noise_stages.h"
#include "core/planes.h"
#include "device/backend.h"
#include "ungrain/image.h"
#include "ungrain/parameters.h"

namespace ungrain {

// Whether luma and chroma are filtered apart.
inline bool is_split(const Method& method, const ImageSpec& spec) {
  return spec.colour == Colour::ycbcr && !(method.takes_ycbcr && method.takes_ycbcr(spec));
}

// Parameters of luma and of chroma: lists and noise models of three channels are divided, other values serve
// both. Throws Error(invalid_argument) where a value cannot be divided (an image). A friend of the public
// MethodParams, whose header makes it visible: so its functions are hidden one by one.
class YcbcrParams {
 public:
  UNGRAIN_HIDDEN static MethodParams luma(const MethodParams& params);
  UNGRAIN_HIDDEN static MethodParams chroma(const MethodParams& params);
  UNGRAIN_HIDDEN static MethodParams joined(MethodParams luma, MethodParams chroma);
  // Of a method that takes ycbcr: one set with lists or a noise model of three channels. `params` gives
  // everything but the noise.
  UNGRAIN_HIDDEN static MethodParams with_noise_of(MethodParams params, const MethodParams& luma,
                                                   const MethodParams& chroma, const ImageSpec& spec);
};

// Runs both pipelines, built for luma_spec() and chroma_spec(). Chroma's results have luma's room, as in an
// image. `make` copies the source where one pipeline has no stages.
Pipeline joined_pipeline(Pipeline luma, Pipeline chroma, const ImageSpec& spec, const PointwiseStages& make);

// The conversions of luma and chroma.
std::array<LoadCall, 2> split(const LoadCall& call);
std::array<StoreCall, 2> split(const StoreCall& call);
// And of filters that take samples: Pipeline::direct's own for luma, its `chroma` for chroma.
std::array<DirectData, 2> split(const DirectData& data);
std::array<DeviceDirectCall, 2> split(const DeviceDirectCall& call);
// What of the view's chroma channels is undefined.
std::vector<ByteRows> undefined_room(const ImageView& view);

// Up to the next row of chroma.
constexpr int whole_chroma_rows(int rows, const ImageSpec& spec) {
  return (rows + spec.chroma.y - 1) / spec.chroma.y * spec.chroma.y;
}

}  // namespace ungrain
