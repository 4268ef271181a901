// "Did you mean" for mistyped names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ungrain/parameters.h"

namespace ungrain {

// "; did you mean 'bilateral'?", or the list of names where none is near.
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names);

}  // namespace ungrain
