#pragma once

#include <nlohmann/json.hpp>

#include "ungrain/noise_model.h"

namespace ungrain::cli {

// {"channels": [{"levels": [...], "deviations": [...], "spectrum": [64 numbers]}, ...]}, pixel units.
nlohmann::json to_json(const NoiseModel& model);

// The model and how it was found.
nlohmann::json to_json(const NoiseModelEstimate& estimate);

}  // namespace ungrain::cli
