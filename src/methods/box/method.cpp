#include "core/choices.h"
#include "methods/box/box.h"

namespace ungrain {

namespace {

Cost cost(const BoxParams& p, const ImageSpec& spec) {
  return {.cpu_ns = 0.06 * p.radius * spec.channels + 0.5 * spec.channels, .gpu_ns = 0.02 * spec.channels};
}

}  // namespace

const Method& box_method() {
  using P = BoxParams;
  static const Method method = make_method<P>({
      .summary = "mean of a square window; blurs edges, a baseline",
      .descriptors =
          {
              describe::number(&P::radius, "radius", {.min = 0, .max = 1024, .unit = Unit::pixels},
                               "half-width of the window"),
              describe::number(&P::radius_z, "radius_z", {.min = 0, .max = 64},
                               "images before and after each that take part, in a sequence"),
              describe::border(&P::border),
          },
      .cost = cost,
      .depth = {{"radius_z", "radius"}},
      .reference = box_reference,
      .cpu = box_cpu,
      .cuda = UNGRAIN_CUDA_VERSION(box_cuda),
  });
  return method;
}

}  // namespace ungrain
