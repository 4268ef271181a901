// The backends of box.
#pragma once

#include "core/method.h"
#include "ungrain/methods/box.h"

namespace ungrain {

Pipeline box_reference(const BoxParams& params, const ImageSpec& spec);
Pipeline box_cpu(const BoxParams& params, const ImageSpec& spec);
Pipeline box_cuda(const BoxParams& params, const ImageSpec& spec);

}  // namespace ungrain
