// No exception crosses the C API: what is thrown becomes a status and a message of the thread.
#pragma once

#include <string>
#include <string_view>

#include "ungrain.h"
#include "ungrain/error.h"

namespace ungrain::c {

// One line, cut where it is long. Allocates nothing.
void set_message(std::string_view message) noexcept;
const char* message() noexcept;

// Within a catch block: the status of what was thrown, whose message becomes the thread's.
ungrain_status status_of_thrown() noexcept;

template <class Work>
ungrain_status guarded(const Work& work) noexcept {
  try {
    work();
    return UNGRAIN_OK;
  } catch (...) {
    return status_of_thrown();
  }
}

// Throws where a callback said stop; `who` it was, for the message where it gave none.
void go_on(ungrain_status status, const char* who);

[[noreturn]] void invalid(const std::string& what);

// Throws Error(invalid_argument) that names the argument.
void check_there(const void* pointer, const char* what);
inline std::string_view text(const char* given, const char* what) {
  check_there(given, what);
  return given;
}

}  // namespace ungrain::c
