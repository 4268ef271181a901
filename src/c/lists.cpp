// Methods, their parameters and presets, and devices. The lists are made once, so that their strings stay.
#include <deque>
#include <vector>

#include "c/structs.h"
#include "ungrain/denoiser.h"
#include "ungrain/parameters.h"
#include "ungrain/volume.h"

using namespace ungrain;

namespace {

struct Parameter {
  ParamInfo info;
  std::string takes;
  std::vector<const char*> choices;
};

struct Listed {
  MethodInfo info;
  bool for_volumes = false;
  std::vector<Parameter> parameters;
};

Listed listed(MethodInfo info, bool for_volumes) {
  Listed method{std::move(info), for_volumes, {}};
  for (const ParamInfo& param : method.info.params) {
    Parameter& added = method.parameters.emplace_back(Parameter{param, what_it_takes(param), {}});
    for (const std::string& choice : added.info.choices) added.choices.push_back(choice.c_str());
  }
  return method;
}

// A deque, whose elements never move, and of lists of parameters that are complete.
const std::deque<Listed>& all_methods() {
  static const std::deque<Listed> list = [] {
    std::deque<Listed> all;
    for (MethodInfo& info : methods()) all.push_back(listed(std::move(info), false));
    for (MethodInfo& info : volume_methods()) all.push_back(listed(std::move(info), true));
    return all;
  }();
  return list;
}

const Listed& method_named(const char* name) {
  const std::string_view wanted = c::text(name, "the method's name");
  for (const Listed& method : all_methods()) {
    if (method.info.name == wanted) return method;
  }
  method_info(wanted);  // throws, with the nearest name
  c::invalid("there is no method '" + std::string(wanted) + "'");
}

struct ListedDevice {
  DeviceInfo info;
  std::string name;
};

const std::vector<ListedDevice>& all_devices() {
  static const std::vector<ListedDevice> list = [] {
    std::vector<ListedDevice> all;
    for (DeviceInfo& info : devices()) {
      std::string its_name = name(info.device);
      all.push_back({std::move(info), std::move(its_name)});
    }
    return all;
  }();
  return list;
}

template <class List>
const auto& at(const List& list, std::size_t index, const char* what) {
  if (index >= list.size()) {
    c::invalid(std::string("there is no ") + what + " " + std::to_string(index) + ": there are " +
               std::to_string(list.size()));
  }
  return list[index];
}

void write_method(const Listed& method, ungrain_method_info* to) {
  ungrain_method_info info{};
  info.for_volumes = method.for_volumes ? 1 : 0;
  info.name = method.info.name.c_str();
  info.summary = method.info.summary.c_str();
  info.parameters = method.parameters.size();
  info.presets = method.info.presets.size();
  info.has_reference = method.info.has_reference ? 1 : 0;
  info.has_cpu = method.info.has_cpu ? 1 : 0;
  info.has_cuda = method.info.has_cuda ? 1 : 0;
  c::write(info, to);
}

ungrain_status count_of(std::size_t (*count)(), size_t* to) noexcept {
  return c::guarded([&] {
    c::check_there(to, "where the number goes");
    *to = count();
  });
}

}  // namespace

ungrain_status ungrain_method_count(size_t* count) {
  return count_of([] { return all_methods().size(); }, count);
}

ungrain_status ungrain_method_at(size_t index, ungrain_method_info* info) {
  return c::guarded([&] { write_method(at(all_methods(), index, "method"), info); });
}

ungrain_status ungrain_method_named(const char* method, ungrain_method_info* info) {
  return c::guarded([&] { write_method(method_named(method), info); });
}

ungrain_status ungrain_parameter_at(const char* method, size_t index, ungrain_parameter_info* info) {
  return c::guarded([&] {
    const Parameter& from = at(method_named(method).parameters, index, "parameter");
    ungrain_parameter_info to{};
    to.kind = static_cast<std::int32_t>(from.info.kind);
    to.name = from.info.name.c_str();
    to.help = from.info.help.c_str();
    to.takes = from.takes.c_str();
    to.default_text = from.info.default_text.c_str();
    to.rule = from.info.rule.c_str();
    to.choices = from.choices.data();
    to.choice_count = from.choices.size();
    to.min = from.info.min;
    to.max = from.info.max;
    to.named = from.info.named.c_str();
    to.named_value = from.info.named_value;
    to.fallback = static_cast<std::int32_t>(from.info.fallback);
    to.unit = static_cast<std::int32_t>(from.info.unit);
    to.odd = from.info.odd ? 1 : 0;
    c::write(to, info);
  });
}

ungrain_status ungrain_preset_at(const char* method, size_t index, ungrain_preset_info* info) {
  return c::guarded([&] {
    const PresetInfo& from = at(method_named(method).info.presets, index, "preset");
    ungrain_preset_info to{};
    to.name = from.name.c_str();
    to.help = from.help.c_str();
    c::write(to, info);
  });
}

ungrain_status ungrain_device_count(size_t* count) {
  return count_of([] { return all_devices().size(); }, count);
}

ungrain_status ungrain_device_at(size_t index, ungrain_device_info* info) {
  return c::guarded([&] {
    const ListedDevice& from = at(all_devices(), index, "device");
    ungrain_device_info to{};
    to.usable = from.info.usable ? 1 : 0;
    to.name = from.name.c_str();
    to.description = from.info.description.c_str();
    to.reason = from.info.reason.c_str();
    to.speed = from.info.speed;
    c::write(to, info);
  });
}
