#include "ungrain/parameters.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/descriptor.h"
#include "core/method.h"
#include "core/nearest.h"
#include "core/noise_handling.h"
#include "core/registry.h"
#include "ungrain/error.h"

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
}

void MethodParams::set_text(std::string_view name, std::string_view text) {
  const Descriptor& d = find_method(method_).descriptor(name);
  d.assign(writable(), parse_value(d.info, text));
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
}

void MethodParams::validate(const ImageSpec& spec) const {
  ungrain::validate(spec);
  const Method& method = find_method(method_);
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
  return needs_noise(method, values_.get(), noise_) || looks_for_cut(method, values_.get(), noise_);
}

void MethodParams::apply_preset(std::string_view name, double white) {
  find_method(method_).preset(name).apply(writable(), white);
}

}  // namespace ungrain
