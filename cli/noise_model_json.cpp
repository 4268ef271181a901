#include "noise_model_json.h"

namespace ungrain::cli {

nlohmann::json to_json(const NoiseModel& model) {
  nlohmann::json channels = nlohmann::json::array();
  for (const NoiseModel::Channel& channel : model.channels) {
    channels.push_back(
        {{"levels", channel.levels}, {"deviations", channel.deviations}, {"spectrum", channel.spectrum}});
  }
  return {{"channels", std::move(channels)}};
}

nlohmann::json to_json(const NoiseModelEstimate& estimate) {
  nlohmann::json model = to_json(estimate.model);
  model["finding"] = name(estimate.finding);
  model["levels"] = estimate.levels;
  model["calm_levels"] = estimate.calm_levels;
  model["limited_by_colour"] = estimate.limited_by_colour;
  return model;
}

}  // namespace ungrain::cli
