// What the library throws. It never prints, exits or aborts.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "ungrain/export.h"

UNGRAIN_API_BEGIN
namespace ungrain {

// The numbers are stable: other languages' bindings carry them.
enum class ErrorCode : int {
  invalid_argument = 1,  // an invalid parameter, option, size or layout
  unsupported = 2,       // a combination that is valid but that this build or method does not offer
  out_of_memory = 3,     // the work does not fit the memory it may use
  no_device = 4,         // the device asked for is not there
  device = 5,            // the device failed
  io = 6,                // a file could not be read or written
  cancelled = 7,         // the cancel token was set
  bad_pixels = 8,        // NaN or infinity where the caller asked for an error
  internal = 9,          // a bug of the library
};

std::string_view name(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace ungrain
UNGRAIN_API_END
