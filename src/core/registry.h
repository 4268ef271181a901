// The list of methods.
#pragma once

#include <span>
#include <string_view>

#include "core/method.h"

namespace ungrain {

std::span<const Method* const> all_methods();
const Method& find_method(std::string_view name);  // throws Error(invalid_argument) with the nearest name

}  // namespace ungrain
