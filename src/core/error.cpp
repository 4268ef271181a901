#include "ungrain/error.h"

namespace ungrain {

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid-argument";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::out_of_memory:
      return "out-of-memory";
    case ErrorCode::no_device:
      return "no-device";
    case ErrorCode::device:
      return "device";
    case ErrorCode::io:
      return "io";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::bad_pixels:
      return "bad-pixels";
    case ErrorCode::internal:
      return "internal";
  }
  return "?";
}

}  // namespace ungrain
