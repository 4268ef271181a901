// Conversion between samples on the GPU, of any type and layout, and float planes there.
#pragma once

#include "device/backend.h"

namespace ungrain::cuda {

// Non-finite samples are replaced as core/convert.h's fill_nonfinite does.
void load_planes(const LoadCall& call, Stream stream);
void store_planes(const StoreCall& call, Stream stream);

}  // namespace ungrain::cuda
