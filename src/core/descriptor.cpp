#include "core/descriptor.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/nearest.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

bool can_be_unset(const ParamInfo& info) {
  return info.fallback != Fallback::none || info.kind == ParamKind::image;
}

std::string number_text(double value) { return fmt::format("{}", value); }

std::string shown(const ParamValue& value) {
  struct Show {
    std::string operator()(std::monostate) const { return "nothing"; }
    std::string operator()(double number) const { return number_text(number); }
    std::string operator()(const std::string& text) const { return fmt::format("'{}'", text); }
    std::string operator()(const std::vector<double>& list) const {
      return fmt::format("{}", fmt::join(list, ","));
    }
    std::string operator()(const ConstImageView& view) const {
      return fmt::format("an image of {} x {}", view.spec.width, view.spec.height);
    }
  };
  return std::visit(Show{}, value);
}

[[noreturn]] void reject(const ParamInfo& info, const std::string& given) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} takes {}, got {}", info.name, what_it_takes(info), given));
}

bool number_fits(const ParamInfo& info, double value) {
  if (!info.named.empty() && value == info.named_value) return true;
  if (!(value >= info.min && value <= info.max)) return false;  // NaN too
  if (info.kind == ParamKind::integer && value != std::floor(value)) return false;
  return !info.odd || std::fmod(value, 2) == 1;
}

std::string range_text(const ParamInfo& info) {
  if (std::isinf(info.max)) return std::isinf(info.min) ? "" : fmt::format(" from {} up", info.min);
  return fmt::format(" from {} to {}", info.min, info.max);
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

}  // namespace

std::string what_it_takes(const ParamInfo& info) {
  const std::string unset = (info.named.empty() ? "" : ", or " + info.named) +
                            std::string(info.fallback == Fallback::none ? "" : ", or auto");
  switch (info.kind) {
    case ParamKind::real:
      return fmt::format("a number{}{}", range_text(info), unset);
    case ParamKind::integer:
      return fmt::format("{} whole number{}{}", info.odd ? "an odd" : "a", range_text(info), unset);
    case ParamKind::choice:
      return fmt::format("one of {}{}", fmt::join(info.choices, ", "), unset);
    case ParamKind::per_channel:
      return fmt::format("a number{}, or one for each colour channel{}", range_text(info), unset);
    case ParamKind::image:
      return "an image, or none";
  }
  return "?";
}

void check_value(const ParamInfo& info, const ParamValue& value) {
  if (is_unset(value)) {
    if (!can_be_unset(info)) reject(info, shown(value));
    return;
  }
  bool fits = false;
  switch (info.kind) {
    case ParamKind::real:
    case ParamKind::integer: {
      const double* number = std::get_if<double>(&value);
      fits = number != nullptr && number_fits(info, *number);
      break;
    }
    case ParamKind::choice: {
      const auto* text = std::get_if<std::string>(&value);
      for (const std::string& option : info.choices) fits = fits || (text != nullptr && *text == option);
      if (!fits && text != nullptr) {
        const std::string near = nearest(*text, info.choices);
        reject(info, shown(value) + (near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
      }
      break;
    }
    case ParamKind::per_channel: {
      if (const double* number = std::get_if<double>(&value)) {
        fits = number_fits(info, *number);
      } else if (const auto* list = std::get_if<std::vector<double>>(&value)) {
        fits = !list->empty();
        for (const double element : *list) fits = fits && number_fits(info, element);
      }
      break;
    }
    case ParamKind::image: {
      const auto* view = std::get_if<ConstImageView>(&value);
      fits = view != nullptr && view->data != nullptr;
      break;
    }
  }
  if (!fits) reject(info, shown(value));
}

ParamValue parse_value(const ParamInfo& info, std::string_view text) {
  const auto given = [&] { return fmt::format("'{}'", text); };
  ParamValue value;
  if (info.fallback != Fallback::none && text == "auto") {
    value = std::monostate{};
  } else if (info.kind == ParamKind::choice) {
    value = std::string(text);
  } else if (!info.named.empty() && text == info.named) {
    value = info.named_value;
  } else if (info.kind == ParamKind::image) {
    if (text != "none") reject(info, given());
  } else if (info.kind == ParamKind::per_channel) {
    std::vector<double> list;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t comma = std::min(text.find(',', at), text.size());
      const std::optional<double> number = parse_number(text.substr(at, comma - at));
      if (!number) reject(info, given());
      list.push_back(*number);
      at = comma + 1;
    }
    value = list;
  } else {
    const std::optional<double> number = parse_number(text);
    if (!number) reject(info, given());
    value = *number;
  }
  check_value(info, value);
  return value;
}

std::string value_text(const ParamInfo& info, const ParamValue& value) {
  if (is_unset(value)) return info.kind == ParamKind::image ? "none" : "auto";
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const double* number = std::get_if<double>(&value);
  if (number != nullptr && !info.named.empty() && *number == info.named_value) return info.named;
  return shown(value);
}

Descriptor describe::named_value(Descriptor descriptor, std::string word, double value) {
  descriptor.info.named = std::move(word);
  descriptor.info.named_value = value;
  return descriptor;
}

ParamInfo describe::number(std::string name, ParamKind kind, const NumberRange& range, std::string help) {
  ParamInfo info;
  info.name = std::move(name);
  info.help = std::move(help);
  info.kind = kind;
  info.unit = range.unit;
  info.min = range.min;
  info.max = range.max;
  info.odd = range.odd;
  return info;
}

}  // namespace ungrain
