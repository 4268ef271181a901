#pragma once

#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

namespace ungrain::cli {

// One line; bytes of a file name that are not UTF-8 are replaced without an error.
inline std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// JSON has no infinity.
inline nlohmann::json json_number(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (std::isnan(value)) return "nan";
  return value;
}

}  // namespace ungrain::cli
