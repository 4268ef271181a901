// Rungs that call the library: its CPU version, and last on every ladder the product's kernels.
#pragma once

#include <string_view>

#include "study/rung.h"
#include "ungrain/denoiser.h"
#include "ungrain/parameters.h"

namespace ungrain::study {

MethodParams library_params(std::string_view ladder, const Strengths& strengths);

// Timed as its report says: the filter's stages, without what goes around them.
Rung threads_rung(std::string_view ladder);
Rung product_rung(std::string_view ladder);

}  // namespace ungrain::study
