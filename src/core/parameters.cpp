#include "ungrain/parameters.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/descriptor.h"
#include "core/method.h"
#include "core/nearest.h"
#include "core/noise_handling.h"
#include "core/registry.h"
#include "core/ycbcr.h"
#include "ungrain/error.h"
#include "ungrain/noise_model.h"

namespace ungrain {

const Descriptor& Method::descriptor(std::string_view wanted) const {
  std::vector<std::string> names;
  for (const Descriptor& d : descriptors) {
    if (d.info.name == wanted) return d;
    names.push_back(d.info.name);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} has no parameter '{}'{}", name, wanted, did_you_mean(wanted, names)));
}

const Preset& Method::preset(std::string_view wanted) const {
  std::vector<std::string> names;
  for (const Preset& preset : presets) {
    if (preset.info.name == wanted) return preset;
    names.push_back(preset.info.name);
  }
  if (presets.empty()) throw Error(ErrorCode::invalid_argument, fmt::format("{} has no presets", name));
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} has no preset '{}'{}", name, wanted, did_you_mean(wanted, names)));
}

MethodInfo info_of(const Method& method) {
  MethodInfo info;
  info.name = method.name;
  info.summary = method.summary;
  for (const Descriptor& d : method.descriptors) info.params.push_back(d.info);
  for (const Preset& preset : method.presets) info.presets.push_back(preset.info);
  info.has_reference = method.reference != nullptr;
  info.has_cpu = method.cpu != nullptr;
  info.has_cuda = method.cuda != nullptr;
  return info;
}

MethodParams MethodParams::defaults(std::string_view method) {
  const Method& found = find_method(method);
  return {found.name, found.defaults()};
}

void MethodParams::set(std::string_view name, const ParamValue& value) {
  const Descriptor& d = find_method(method_).descriptor(name);
  check_value(d.info, value);
  d.assign(writable(), value);
  if (chroma_ == nullptr) return;
  MethodParams chroma = *chroma_;
  chroma.set(name, value);
  chroma_ = std::make_shared<const MethodParams>(std::move(chroma));
  *this = YcbcrParams::joined(YcbcrParams::luma(*this), YcbcrParams::chroma(*this));
}

void MethodParams::set_text(std::string_view name, std::string_view text) {
  set(name, parse_value(find_method(method_).descriptor(name).info, text));
}

// Chroma keeps what was found in it.
void MethodParams::set_noise(NoiseHandling handling) {
  noise_ = std::move(handling);
  if (chroma_ == nullptr) return;
  MethodParams chroma = *chroma_;
  const NoiseHandling found = chroma.noise_;
  chroma.noise_ = noise_;
  const bool for_both = noise_.model != nullptr && noise_.model->channels.size() > 1;
  if (!for_both) {
    chroma.noise_.model = found.model;
    chroma.noise_.cut_model = found.cut_model;
    chroma.noise_.cut_at_black = found.cut_at_black;
    chroma.noise_.cut_at_white = found.cut_at_white;
    chroma.noise_.applied_strength = found.applied_strength;
  }
  chroma_ = std::make_shared<const MethodParams>(std::move(chroma));
}

ParamValue MethodParams::get(std::string_view name) const {
  return find_method(method_).descriptor(name).get(values_.get());
}

std::string MethodParams::get_text(std::string_view name) const {
  const Descriptor& d = find_method(method_).descriptor(name);
  return value_text(d.info, d.get(values_.get()));
}

Unit MethodParams::unit(std::string_view name) const {
  const Descriptor& d = find_method(method_).descriptor(name);
  return d.unit ? d.unit(values_.get()) : d.info.unit;
}

void MethodParams::scale_strengths(double factor) {
  for (const Descriptor& d : find_method(method_).descriptors) {
    const Unit in = unit(d.info.name);
    if (in != Unit::intensity && in != Unit::intensity_squared) continue;
    const double by = in == Unit::intensity ? factor : factor * factor;
    ParamValue value = d.get(values_.get());
    if (auto* number = std::get_if<double>(&value)) {
      *number *= by;
    } else if (auto* list = std::get_if<std::vector<double>>(&value)) {
      for (double& element : *list) element *= by;
    }
    d.assign(writable(), value);
  }
  if (chroma_ == nullptr) return;
  MethodParams chroma = *chroma_;
  chroma.scale_strengths(factor);
  chroma_ = std::make_shared<const MethodParams>(std::move(chroma));
}

void MethodParams::validate(const ImageSpec& spec) const {
  ungrain::validate(spec);
  const Method& method = find_method(method_);
  if (is_split(method, spec)) {
    YcbcrParams::luma(*this).validate(luma_spec(spec));
    YcbcrParams::chroma(*this).validate(chroma_spec(spec));
    return;
  }
  for (const Descriptor& d : method.descriptors) {
    const ParamValue value = d.get(values_.get());
    try {
      check_value(d.info, value);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", method_, error.what()));
    }
    const auto* list = std::get_if<std::vector<double>>(&value);
    const auto channels = static_cast<std::size_t>(spec.colour_channels());
    if (list != nullptr && list->size() != 1 && list->size() != channels) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: {} has {} values, the image {} colour channels", method_, d.info.name,
                              list->size(), channels));
    }
  }
  if (method.check) method.check(values_.get(), spec);
  check_noise(method, values_.get(), noise_, spec);
}

void MethodParams::check_is(std::string_view method) const {
  if (method != method_) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("these are parameters of {}, not of {}", method_, method));
  }
}

void* MethodParams::writable() {
  if (values_.use_count() > 1) values_ = find_method(method_).copy(values_.get());
  return values_.get();
}

bool MethodParams::needs_image() const {
  const Method& method = find_method(method_);
  if (chroma_ != nullptr && chroma_->needs_image()) return true;
  return needs_noise(method, values_.get(), noise_) || looks_for_cut(method, values_.get(), noise_);
}

int MethodParams::clip_radius_t() const {
  const Method& method = find_method(method_);
  if (method.clip_radius_t) return method.clip_radius_t(values_.get());
  return std::any_of(method.descriptors.begin(), method.descriptors.end(),
                     [](const Descriptor& each) { return each.info.name == "radius_t"; })
             ? 1
             : 0;
}

void MethodParams::apply_preset(std::string_view name, double white) {
  find_method(method_).preset(name).apply(writable(), white);
  if (chroma_ == nullptr) return;
  MethodParams chroma = *chroma_;
  chroma.apply_preset(name, white);
  chroma_ = std::make_shared<const MethodParams>(std::move(chroma));
}

}  // namespace ungrain
