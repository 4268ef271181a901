// The search for similar patches on a GPU.
#pragma once

#include <string>

#include "core/method.h"
#include "core/patch_search.h"

namespace ungrain::cuda {

Pipeline patch_search_cuda(std::string name, const PatchSearch& search, const ImageSpec& spec);

}  // namespace ungrain::cuda
