// The machine: memory, processor, times. Part of the library; the rest of this folder is part of src/io.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace ungrain::platform {

inline constexpr std::size_t unknown_memory = std::numeric_limits<std::size_t>::max();

// Bytes that this process may still allocate without paging: of the machine, the container and the address
// space the least. `unknown_memory` where the system does not tell.
std::size_t available_memory();

std::string processor_name();  // empty where the system does not tell

// Instructions of 64-bit ARM that multiply and add bytes (SDOT). False on other processors.
bool arm_has_byte_dots();

std::int64_t thread_time_ns();  // that this thread has been running on a processor

}  // namespace ungrain::platform
