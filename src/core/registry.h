// The list of methods.
#pragma once

#include <span>
#include <string_view>

#include "core/method.h"

namespace ungrain {

std::span<const Method* const> all_methods();         // of images
std::span<const Method* const> all_volume_methods();  // of volumes as solids
const Method& find_method(std::string_view name);     // throws Error(invalid_argument) with the nearest name

}  // namespace ungrain
