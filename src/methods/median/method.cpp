#include "core/choices.h"
#include "methods/median/median.h"

namespace ungrain {

namespace {

Cost cost(const MedianParams& p, const ImageSpec& spec) {
  // Sorting networks, whose length grows a little faster than the window does.
  const double side = 2 * p.radius + 1;
  const double wide = is_float(spec.type) ? 4 : static_cast<double>(bytes_per_sample(spec.type));
  const double images = 2 * p.radius_t + 1;
  return {.cpu_ns = 0.006 * side * side * side * images * wide * spec.channels,
          .gpu_ns = 0.001 * side * side * side * images * spec.channels};
}

}  // namespace

const Method& median_method() {
  using P = MedianParams;
  static const Method method = make_method<P>({
      .summary = "median of a square window; removes outliers such as salt and pepper, a baseline",
      .descriptors =
          {
              describe::number(&P::radius, "radius", {.min = 0, .max = 64, .unit = Unit::pixels},
                               "half-width of the window"),
              describe::radius_t(&P::radius_t),
              describe::border(&P::border),
          },
      .cost = cost,
      .depth = {{"radius_t", "radius"}},
      .reference = median_reference,
      .cpu = median_cpu,
      .cuda = UNGRAIN_CUDA_VERSION(median_cuda),
  });
  return method;
}

}  // namespace ungrain
