// The search for similar patches on the CPU.
#pragma once

#include <string>

#include "core/method.h"
#include "core/patch_search.h"

namespace ungrain {

Pipeline patch_search_cpu(std::string name, const PatchSearch& search, const Pipeline& reference,
                          const ImageSpec& spec);

}  // namespace ungrain
