// The windowed search for similar patches in images of 8 bits, with distances and weights of 16 bits.
#pragma once

#include <cstddef>
#include <optional>

#include "core/method.h"
#include "core/patch_search.h"
#include "cpu/patch_search_kernel.h"
#include "cpu/short_search_simd.h"

namespace ungrain {

// Searches that this version is precise enough for and has code for. Others: none.
std::optional<ShortKernel> short_search_kernel(const PatchSearch& search, const SearchKernel& kernel,
                                               const ImageSpec& spec);

// Floats of memory for each worker.
std::size_t short_search_floats(const ShortKernel& kernel, int search);

// The whole stage.
void run_short_search(const ShortKernel& shorts, const SearchKernel& kernel, const StageCall& call);

}  // namespace ungrain
