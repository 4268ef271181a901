#include "core/choices.h"
#include "methods/median/median.h"

namespace ungrain {

const Method& median_method() {
  using P = MedianParams;
  static const Method method = make_method<P>({
      .summary = "median of a square window; removes outliers such as salt and pepper, a baseline",
      .descriptors =
          {
              describe::number(&P::radius, "radius", {.min = 0, .max = 64, .unit = Unit::pixels},
                               "half-width of the window"),
              describe::border(&P::border),
          },
      .reference = median_reference,
      .cpu = median_cpu,
      .cuda = UNGRAIN_CUDA_VERSION(median_cuda),
  });
  return method;
}

}  // namespace ungrain
