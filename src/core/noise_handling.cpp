#include "core/noise_handling.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "noise/noise_model.h"
#include "noise/stabilize.h"
#include "ungrain/error.h"
#include "ungrain/noise_model.h"

namespace ungrain {
namespace {

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

void check_number(const char* name, double value, double max) {
  if (value >= 0 && value <= max) return;
  fail(fmt::format("{} takes a number from 0 to {}, got {}", name, max, value));
}

Unit unit_of(const Descriptor& d, const void* values) { return d.unit ? d.unit(values) : d.info.unit; }

bool is_strength(const Descriptor& d, const void* values) {
  const Unit unit = unit_of(d, values);
  return unit == Unit::intensity || unit == Unit::delta_e;
}

bool is_cut(const NoiseHandling& noise) { return noise.cut_at_black || noise.cut_at_white; }

bool same_model(const std::shared_ptr<const NoiseModel>& a, const std::shared_ptr<const NoiseModel>& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

// The given model, which may be among the method's own parameters.
std::shared_ptr<const NoiseModel> model_of(const Method& method, void* values, const NoiseHandling& noise) {
  if (noise.model != nullptr || !method.noise_model) return noise.model;
  return method.noise_model(values);
}

bool has_strengths(const Method& method, const void* values) {
  return std::any_of(method.descriptors.begin(), method.descriptors.end(),
                     [&](const Descriptor& d) { return is_strength(d, values); });
}

void multiply(const Descriptor& d, void* values, double factor) {
  ParamValue value = d.get(values);
  if (auto* number = std::get_if<double>(&value)) *number *= factor;
  if (auto* list = std::get_if<std::vector<double>>(&value)) {
    for (double& element : *list) element *= factor;
  }
  d.assign(values, value);
}

// Whether sigma comes from the model: an earlier apply_noise() then set it.
bool follows_model(const Method& method, void* values, const NoiseHandling& noise, const ImageSpec& spec,
                   const ParamValue& sigma) {
  if (method.noise_model) {
    const auto* levels = std::get_if<std::vector<double>>(&sigma);
    return method.noise_model(values) == noise.model ||
           (levels != nullptr && *levels == std::vector{mean_deviation(*noise.model, 0)});
  }
  const double expected = stabilized_sigma(*noise.model, spec);
  if (const double* number = std::get_if<double>(&sigma)) return *number == expected;
  const auto* levels = std::get_if<std::vector<double>>(&sigma);
  return levels != nullptr && *levels == std::vector{expected};
}

void check_channels(const NoiseModel& model, const ImageSpec& spec) {
  validate(model);
  if (static_cast<int>(model.channels.size()) == spec.colour_channels()) return;
  fail(fmt::format("the noise model has {} channels, the image {} colours", model.channels.size(),
                   spec.colour_channels()));
}

// Throws where one of the method's strengths is set. `what` gives the noise instead.
void check_strengths_unset(const Method& method, const void* values, const char* what) {
  for (const Descriptor& d : method.descriptors) {
    if (!is_strength(d, values) || is_unset(d.get(values))) continue;
    fail(fmt::format("{}: {} and {} exclude each other", method.name, d.info.name, what));
  }
}

void check_model(const Method& method, void* values, const NoiseHandling& noise, const ImageSpec& spec) {
  check_channels(*noise.model, spec);
  const Descriptor* level = noise_level_of(method);
  if (level == nullptr) return;
  const ParamValue sigma = level->get(values);
  if (!is_unset(sigma) && follows_model(method, values, noise, spec, sigma)) return;
  check_strengths_unset(method, values, "a noise model");
}

// The sigma of a method whose input is stabilised Rician noise.
double sigma_of_rician(const NoiseHandling& noise) { return noise.rician->sigma * noise.applied_strength; }

bool follows_rician(const ParamValue& sigma, const NoiseHandling& noise) {
  if (const double* one = std::get_if<double>(&sigma)) return *one == sigma_of_rician(noise);
  const auto* list = std::get_if<std::vector<double>>(&sigma);
  return list != nullptr && *list == std::vector{sigma_of_rician(noise)};
}

void check_rician(const Method& method, void* values, const NoiseHandling& noise, const ImageSpec& spec) {
  validate(*noise.rician);
  const char* other = model_of(method, values, noise) != nullptr ? "a noise model"
                      : is_cut(noise)                            ? "a cut at black or white"
                      : noise.clipping == Clipping::everywhere   ? "undoing a cut at black or white"
                                                                 : nullptr;
  if (other != nullptr) fail(fmt::format("Rician noise and {} exclude each other", other));
  if (spec.colour != Colour::gray && spec.colour != Colour::multi) {
    fail(fmt::format("Rician noise is that of gray images, this one is {}", name(spec.colour)));
  }
  const Descriptor* level = noise_level_of(method);
  if (level == nullptr || follows_rician(level->get(values), noise)) return;
  check_strengths_unset(method, values, "Rician noise");
}

const Descriptor* map_of(const Method& method) {
  for (const Descriptor& d : method.descriptors) {
    if (d.info.name == "sigma_map") return &d;
  }
  return nullptr;
}

bool weighs_planes(const NoiseHandling& noise) { return noise.luminance != 1 || noise.chroma != 1; }

std::shared_ptr<const NoiseModel> with_planes_scaled(NoiseModel model, const NoiseHandling& noise) {
  for (std::size_t c = 0; c < model.channels.size(); ++c) {
    for (double& deviation : model.channels[c].deviations)
      deviation *= c == 0 ? noise.luminance : noise.chroma;
  }
  return std::make_shared<const NoiseModel>(std::move(model));
}

// White noise of the given or measured sigma.
NoiseModel model_of_level(const Method& method, const void* values, const ImageSpec& spec) {
  const ParamValue sigma = noise_level_of(method)->get(values);
  const ParamValue correlation = method.descriptor("correlation").get(values);
  const double* common = std::get_if<double>(&correlation);
  return white_noise_model(spec, std::get<std::vector<double>>(sigma), common != nullptr ? *common : 0);
}

void weigh_planes(const Method& method, void* values, NoiseHandling& noise, const ImageSpec& spec) {
  if (!weighs_planes(noise)) return;
  const NoiseModel whole = noise.model != nullptr ? *noise.model : model_of_level(method, values, spec);
  if (noise.model == nullptr) noise_level_of(method)->assign(values, std::monostate{});
  if (is_cut(noise) && noise.cut_model == nullptr)
    noise.cut_model = std::make_shared<const NoiseModel>(scaled(whole, 1 / noise.applied_strength));
  noise.model = with_planes_scaled(whole, noise);
  noise.luminance = noise.chroma = 1;
}

void assign_rician(const Method& method, void* values, const NoiseHandling& noise) {
  const Descriptor* level = noise_level_of(method);
  if (level == nullptr) return;
  const double sigma = sigma_of_rician(noise);
  if (level->info.kind == ParamKind::per_channel) {
    level->assign(values, std::vector{sigma});
  } else {
    level->assign(values, sigma);
  }
}

void strengthen(const Method& method, void* values, NoiseHandling& noise) {
  if (noise.strength == 1) return;
  if (noise.model != nullptr) {
    noise.model = std::make_shared<const NoiseModel>(scaled(*noise.model, noise.strength));
  } else {
    for (const Descriptor& d : method.descriptors) {
      if (is_strength(d, values)) multiply(d, values, noise.strength);
    }
  }
  noise.applied_strength *= noise.strength;
  noise.strength = 1;
}

}  // namespace

bool operator==(const NoiseHandling& a, const NoiseHandling& b) {
  return same_model(a.model, b.model) && a.rician == b.rician && a.strength == b.strength &&
         a.luminance == b.luminance && a.chroma == b.chroma && a.keep_grain == b.keep_grain &&
         a.clipping == b.clipping && a.cut_at_black == b.cut_at_black && a.cut_at_white == b.cut_at_white &&
         same_model(a.cut_model, b.cut_model) && a.applied_strength == b.applied_strength;
}

const Descriptor* noise_level_of(const Method& method) {
  for (const Descriptor& d : method.descriptors) {
    if (d.info.fallback == Fallback::automatic && d.info.unit == Unit::intensity) return &d;
  }
  return nullptr;
}

void check_noise(const Method& method, void* values, const NoiseHandling& noise, const ImageSpec& spec) {
  for (const NoiseNumber& number : noise_numbers)
    check_number(number.name, noise.*number.member, number.most);
  if (!(noise.applied_strength >= 0) || std::isinf(noise.applied_strength)) {
    fail(fmt::format("applied_strength takes a number from 0 up, got {}", noise.applied_strength));
  }
  if (noise.strength > 1 && !has_strengths(method, values)) {
    fail(fmt::format("{}: strength takes a number from 0 to 1 for this method, which knows no noise; got {}",
                     method.name, noise.strength));
  }
  if (weighs_planes(noise)) {
    if (!method.noise_model)
      fail(fmt::format("luminance and chroma are for bm3d and ridge, not for {}", method.name));
    if (spec.colour != Colour::rgb && spec.colour != Colour::ycbcr) {
      fail(fmt::format("luminance and chroma are for rgb images, this one is {}", name(spec.colour)));
    }
  }
  const Descriptor* map = map_of(method);
  if (map != nullptr && !is_unset(map->get(values))) {
    const char* other = noise.strength != 1                      ? "strength"
                        : weighs_planes(noise)                   ? "luminance or chroma"
                        : is_cut(noise)                          ? "a cut at black or white"
                        : noise.rician                           ? "Rician noise"
                        : noise.clipping == Clipping::everywhere ? "undoing a cut at black or white"
                                                                 : nullptr;
    if (other != nullptr) fail(fmt::format("{}: {} and sigma_map exclude each other", method.name, other));
  }
  if (noise.cut_model != nullptr) check_channels(*noise.cut_model, spec);
  if (noise.rician) check_rician(method, values, noise, spec);
  if (noise.model != nullptr) check_model(method, values, noise, spec);
}

void check_cut(const Method& method, void* values, const NoiseHandling& noise) {
  if (!is_cut(noise) || noise.cut_model != nullptr || knows_noise(method, values, noise)) return;
  fail(fmt::format("{}: a cut at black or white is undone only where {}a noise model is given", method.name,
                   noise_level_of(method) != nullptr ? "sigma or " : ""));
}

bool needs_noise(const Method& method, const void* values, const NoiseHandling& noise) {
  if (noise.model != nullptr || noise.rician) return false;
  return std::any_of(method.descriptors.begin(), method.descriptors.end(), [&](const Descriptor& d) {
    return d.needed && is_unset(d.get(values)) && d.needed(values);
  });
}

bool knows_noise(const Method& method, void* values, const NoiseHandling& noise) {
  if (noise.rician || model_of(method, values, noise) != nullptr) return true;
  const Descriptor* level = noise_level_of(method);
  return level != nullptr && !is_unset(level->get(values));
}

bool looks_for_cut(const Method& method, void* values, const NoiseHandling& noise) {
  if (noise.strength == 0 || noise.applied_strength == 0) return false;  // nothing is removed
  if (noise.rician) return false;                                        // magnitudes are not cut
  if (noise.clipping == Clipping::everywhere) return true;
  return noise.clipping == Clipping::known && knows_noise(method, values, noise);
}

std::vector<ChannelDeviation> noise_before_cut(const Method& method, void* values, const NoiseHandling& noise,
                                               const ImageSpec& spec) {
  std::vector<ChannelDeviation> deviations;
  const bool own = noise.cut_model != nullptr;
  const std::shared_ptr<const NoiseModel> model = own ? noise.cut_model : model_of(method, values, noise);
  std::vector<double> sigma;
  if (model == nullptr) {
    const ParamValue level = noise_level_of(method)->get(values);
    if (const double* one = std::get_if<double>(&level)) sigma = {*one};
    if (const auto* list = std::get_if<std::vector<double>>(&level)) sigma = *list;
  }
  for (int c = 0; c < spec.colour_channels(); ++c) {
    const ChannelDeviation deviation =
        model != nullptr ? ChannelDeviation(*model, spec, c)
                         : ChannelDeviation(sigma[sigma.size() > 1 ? static_cast<std::size_t>(c) : 0]);
    deviations.push_back(own ? deviation : deviation.divided_by(noise.applied_strength));
  }
  return deviations;
}

bool allows_model(const Method& method, const void* values, const ImageSpec& spec) {
  if (method.noise_model) return method.allows_model(values, spec);
  return std::none_of(method.descriptors.begin(), method.descriptors.end(), [&](const Descriptor& d) {
    return is_strength(d, values) && !is_unset(d.get(values));
  });
}

void apply_noise(const Method& method, void* values, NoiseHandling& noise, const ImageSpec& spec) {
  if (method.noise_model && noise.model == nullptr) noise.model = method.noise_model(values);
  if (!has_strengths(method, values)) {
    noise.keep_grain = 1 - (1 - noise.keep_grain) * noise.strength;
    noise.strength = 1;
    return;
  }
  weigh_planes(method, values, noise, spec);
  strengthen(method, values, noise);
  if (noise.rician) assign_rician(method, values, noise);
  if (noise.model == nullptr) return;
  if (method.noise_model) {
    method.noise_model(values) = noise.model;
  } else {
    // Parameters that followed another sigma follow this one.
    for (const Descriptor& d : method.descriptors) {
      if (is_strength(d, values)) d.assign(values, std::monostate{});
    }
    noise_level_of(method)->assign(values, stabilized_sigma(*noise.model, spec));
  }
}

}  // namespace ungrain
