// The backends of median.
#pragma once

#include "core/method.h"
#include "ungrain/methods/median.h"

namespace ungrain {

Pipeline median_reference(const MedianParams& params, const ImageSpec& spec);
Pipeline median_cpu(const MedianParams& params, const ImageSpec& spec);
Pipeline median_cuda(const MedianParams& params, const ImageSpec& spec);

}  // namespace ungrain
