// Rungs that call the library: its CPU version, and last on every ladder the product's kernels.
#pragma once

#include <string>
#include <string_view>

#include "study/rung.h"
#include "ungrain/denoiser.h"
#include "ungrain/methods/common.h"
#include "ungrain/parameters.h"

namespace ungrain::study {

// `precision` is of searches of the whole image on a GPU, `computes` what Rung::computes says.
MethodParams library_params(std::string_view ladder, const Strengths& strengths,
                            Precision precision = Precision::single, std::string_view computes = {});

// Timed as its report says: the filter's stages, without what goes around them.
Rung threads_rung(std::string_view ladder);
Rung one_thread_rung(std::string_view ladder);
Rung product_rung(std::string_view ladder, const std::string& computes = {});
// Searches of the whole image: as they are by default, and within 2e-4 of the range.
Rung product_rung_in_halves(std::string_view ladder);

}  // namespace ungrain::study
