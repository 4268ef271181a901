// The one definition of a parameter: name, member, kind, range, unit and one line of help. Everything that
// handles parameters by name (command line, bindings, generated documents, validation) reads it.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ungrain/image.h"
#include "ungrain/parameters.h"

namespace ungrain {

struct NoiseEstimate;

struct Descriptor {
  ParamInfo info;
  std::function<ParamValue(const void* params)> get;
  std::function<void(void* params, const ParamValue& checked)> assign;
  // Fills in an unset Fallback::derived value once the values that it follows are known; empty for the other
  // kinds.
  std::function<void(void* params, const ImageSpec& spec)> derive;
  // Whether an unset Fallback::automatic value is needed, given the other parameters; empty for the other
  // kinds.
  std::function<bool(const void* params)> needed;
  // What an unset Fallback::automatic value becomes; empty: the noise's level.
  std::function<ParamValue(const NoiseEstimate& estimate)> measured;
  // Where the unit depends on other parameters; empty: info.unit.
  std::function<Unit(const void* params)> unit;
};

inline bool is_unset(const ParamValue& value) { return std::holds_alternative<std::monostate>(value); }

// Throws Error(invalid_argument): "radius takes a whole number from 0 to 128, got 500".
void check_value(const ParamInfo& info, const ParamValue& value);
std::string value_text(const ParamInfo& info, const ParamValue& value);

inline constexpr double unbounded = std::numeric_limits<double>::infinity();

// Both ends inclusive: a max of `unbounded` allows infinity.
struct NumberRange {
  double min = 0;
  double max = unbounded;
  Unit unit = Unit::none;
  bool odd = false;
};

namespace describe {

ParamInfo number(std::string name, ParamKind kind, const NumberRange& range, std::string help);

// A number that always has a value. Number is int or double.
template <class Params, class Number>
Descriptor number(Number Params::*member, std::string name, const NumberRange& range, std::string help) {
  constexpr ParamKind kind = std::is_integral_v<Number> ? ParamKind::integer : ParamKind::real;
  Descriptor d;
  d.info = number(std::move(name), kind, range, std::move(help));
  d.get = [member](const void* p) -> ParamValue {
    return static_cast<double>(static_cast<const Params*>(p)->*member);
  };
  d.assign = [member](void* p, const ParamValue& value) {
    static_cast<Params*>(p)->*member = static_cast<Number>(std::get<double>(value));
  };
  d.info.default_text = value_text(d.info, static_cast<double>(Params{}.*member));
  return d;
}

// The same descriptor with a word that stands for one special value.
Descriptor named_value(Descriptor descriptor, std::string word, double value);

// A number that may be left unset.
template <class Params, class Number>
Descriptor optional_number(std::optional<Number> Params::*member, std::string name, const NumberRange& range,
                           Fallback fallback, std::string help) {
  constexpr ParamKind kind = std::is_integral_v<Number> ? ParamKind::integer : ParamKind::real;
  Descriptor d;
  d.info = number(std::move(name), kind, range, std::move(help));
  d.info.fallback = fallback;
  d.info.default_text = "auto";
  d.get = [member](const void* p) -> ParamValue {
    const std::optional<Number>& value = static_cast<const Params*>(p)->*member;
    if (!value) return std::monostate{};
    return static_cast<double>(*value);
  };
  d.assign = [member](void* p, const ParamValue& value) {
    std::optional<Number>& to = static_cast<Params*>(p)->*member;
    if (const double* given = std::get_if<double>(&value)) {
      to = static_cast<Number>(*given);
    } else {
      to.reset();
    }
  };
  return d;
}

// The noise's standard deviation: measured from the image where it is unset and `needed`.
template <class Params>
Descriptor noise_level(std::optional<double> Params::*member, bool (*needed)(const Params&),
                       std::string help) {
  Descriptor d = optional_number(member, "sigma", {.min = 0, .unit = Unit::intensity}, Fallback::automatic,
                                 std::move(help));
  d.info.default_text = "auto (measured)";
  d.needed = [needed](const void* params) { return needed(*static_cast<const Params*>(params)); };
  return d;
}

// Computed by `rule` where it is unset; stays unset while what it follows is unset. `rule_text` is the rule
// in words.
template <class Params, class Number>
Descriptor derived(std::optional<Number> Params::*member, std::string name, const NumberRange& range,
                   std::string rule_text, std::optional<Number> (*rule)(const Params&, const ImageSpec&),
                   std::string help) {
  Descriptor d = optional_number(member, std::move(name), range, Fallback::derived, std::move(help));
  d.info.rule = rule_text;
  d.info.default_text = std::move(rule_text);
  d.derive = [member, rule](void* p, const ImageSpec& spec) {
    auto* params = static_cast<Params*>(p);
    if (!(params->*member)) params->*member = rule(*params, spec);
  };
  return d;
}

template <class Params, class Enum>
Descriptor choice(Enum Params::*member, std::string name,
                  const std::vector<std::pair<std::string, Enum>>& options, std::string help) {
  Descriptor d;
  d.info.name = std::move(name);
  d.info.help = std::move(help);
  d.info.kind = ParamKind::choice;
  for (const auto& [text, value] : options) d.info.choices.push_back(text);
  d.get = [member, options](const void* p) -> ParamValue {
    for (const auto& [text, value] : options) {
      if (value == static_cast<const Params*>(p)->*member) return text;
    }
    return "value " + std::to_string(static_cast<int>(static_cast<const Params*>(p)->*member));
  };
  d.assign = [member, options](void* p, const ParamValue& given) {
    for (const auto& [text, value] : options) {
      if (text == std::get<std::string>(given)) static_cast<Params*>(p)->*member = value;
    }
  };
  const Params defaults{};
  d.info.default_text = std::get<std::string>(d.get(&defaults));
  return d;
}

// A choice that may be left unset; `rule` then computes it, as for a derived number.
template <class Params, class Enum>
Descriptor derived_choice(std::optional<Enum> Params::*member, std::string name,
                          const std::vector<std::pair<std::string, Enum>>& options, std::string rule_text,
                          std::optional<Enum> (*rule)(const Params&, const ImageSpec&), std::string help) {
  Descriptor d;
  d.info.name = std::move(name);
  d.info.help = std::move(help);
  d.info.kind = ParamKind::choice;
  d.info.fallback = Fallback::derived;
  d.info.rule = rule_text;
  d.info.default_text = std::move(rule_text);
  for (const auto& [text, value] : options) d.info.choices.push_back(text);
  d.get = [member, options](const void* p) -> ParamValue {
    const std::optional<Enum>& chosen = static_cast<const Params*>(p)->*member;
    if (!chosen) return std::monostate{};
    for (const auto& [text, value] : options) {
      if (value == *chosen) return text;
    }
    return "value " + std::to_string(static_cast<int>(*chosen));
  };
  d.assign = [member, options](void* p, const ParamValue& given) {
    std::optional<Enum>& to = static_cast<Params*>(p)->*member;
    to.reset();
    const auto* wanted = std::get_if<std::string>(&given);
    for (const auto& [text, value] : options) {
      if (wanted != nullptr && text == *wanted) to = value;
    }
  };
  d.derive = [member, rule](void* p, const ImageSpec& spec) {
    auto* params = static_cast<Params*>(p);
    if (!(params->*member)) params->*member = rule(*params, spec);
  };
  return d;
}

// One number for all colour channels, or one for each. An empty list is unset.
template <class Params>
Descriptor per_channel(std::vector<double> Params::*member, std::string name, const NumberRange& range,
                       Fallback fallback, std::string help) {
  Descriptor d;
  d.info = number(std::move(name), ParamKind::per_channel, range, std::move(help));
  d.info.fallback = fallback;
  d.get = [member](const void* p) -> ParamValue {
    const std::vector<double>& list = static_cast<const Params*>(p)->*member;
    if (list.empty()) return std::monostate{};
    return list;
  };
  d.assign = [member](void* p, const ParamValue& value) {
    std::vector<double>& to = static_cast<Params*>(p)->*member;
    if (const auto* list = std::get_if<std::vector<double>>(&value)) {
      to = *list;
    } else if (const double* one = std::get_if<double>(&value)) {
      to = {*one};
    } else {
      to.clear();
    }
  };
  const Params defaults{};
  d.info.default_text = value_text(d.info, d.get(&defaults));
  return d;
}

// A second image (a map of noise levels, a guide). A null one is unset.
template <class Params>
Descriptor image(ConstImageView Params::*member, std::string name, std::string help) {
  Descriptor d;
  d.info.name = std::move(name);
  d.info.help = std::move(help);
  d.info.kind = ParamKind::image;
  d.info.default_text = "none";
  d.get = [member](const void* p) -> ParamValue {
    const ConstImageView& view = static_cast<const Params*>(p)->*member;
    if (view.data == nullptr) return std::monostate{};
    return view;
  };
  d.assign = [member](void* p, const ParamValue& value) {
    const auto* view = std::get_if<ConstImageView>(&value);
    static_cast<Params*>(p)->*member = view != nullptr ? *view : ConstImageView{};
  };
  return d;
}

}  // namespace describe
}  // namespace ungrain
