// The memory of this machine, as the library plans with it.
#pragma once

#include <cstddef>
#include <string>

#include "ungrain/export.h"

UNGRAIN_API_BEGIN
namespace ungrain {

// Bytes that this process may still take: what the machine has free, or what is left of the process' own
// limit.
std::size_t free_memory();

std::string bytes_text(std::size_t bytes);  // "1.5 GiB"

}  // namespace ungrain
UNGRAIN_API_END
