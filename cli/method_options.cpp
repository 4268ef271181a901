#include "method_options.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "option_values.h"
#include "ungrain/convert.h"
#include "ungrain/volume.h"

namespace ungrain::cli {
namespace {

// Whether a map of floats from 0 to 1 accompanies an image from 0 to 1: read on the 0-255 scale it would have
// no effect.
bool is_in_own_units(const ConstImageView& map, double white) {
  if (!is_float(map.spec.type) || white >= 255) return false;
  std::vector<float> row(static_cast<std::size_t>(map.spec.width));
  for (int y = 0; y < map.spec.height; ++y) {
    for (int channel = 0; channel < map.spec.channels; ++channel) {
      load_row(map, y, channel, row.data());
      if (std::any_of(row.begin(), row.end(), [white](float value) { return value > white; })) return false;
    }
  }
  return true;
}

// The frames before and after that take part in a clip where nothing is given: "4 (fast 2, high 6)".
std::string clip_default(const MethodInfo& method) {
  MethodParams params = MethodParams::defaults(method.name);
  const int usual = params.clip_radius_t();
  std::vector<std::string> others;
  for (const ParamInfo& param : method.params) {
    if (param.name != "profile") continue;
    for (const std::string& profile : param.choices) {
      params.set("profile", profile);
      if (params.clip_radius_t() != usual)
        others.push_back(fmt::format("{} {}", profile, params.clip_radius_t()));
    }
  }
  return others.empty() ? fmt::format("{}", usual) : fmt::format("{} ({})", usual, fmt::join(others, ", "));
}

}  // namespace

std::vector<MethodInfo> methods_for(MethodOptions::For what) {
  if (what != MethodOptions::For::volumes) return methods();
  std::vector<MethodInfo> all = volume_methods();
  for (MethodInfo& method : methods_along_slices()) all.push_back(std::move(method));
  return all;
}

Arguments with_volume_names(Arguments arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--method=nlm" || arguments[i] == "-mnlm") arguments[i] = "--method=nlm3d";
    const bool names_method = i > 0 && (arguments[i - 1] == "--method" || arguments[i - 1] == "-m");
    if (names_method && arguments[i] == "nlm") arguments[i] = "nlm3d";
  }
  return arguments;
}

void MethodOptions::check_one_choice(bool& given) {
  given = true;
  if (method_given_ && quality_given_)
    throw UsageError("--quality chooses the method: it and --method exclude each other");
}

// The best of a single image does not look along a clip, and bm3d does.
void MethodOptions::add_quality(OptionTable& table, For what) {
  struct Quality {
    std::string name;
    std::string method;
    std::string profile;
  };
  const std::string usual(what == For::volumes ? default_volume_method : default_method);
  const Quality best = what == For::images ? Quality{"best", "ridge", ""} : Quality{"best", usual, "high"};
  const std::vector<Quality> all{{"fast", usual, "fast"}, {"normal", usual, ""}, best};
  std::vector<std::string> names;
  std::vector<std::string> meanings;
  for (const Quality& quality : all) {
    names.push_back(quality.name);
    meanings.push_back(fmt::format("{} ({}{})", quality.name, quality.method,
                                   quality.profile.empty() ? "" : " --profile " + quality.profile));
  }
  Option& option = table.add(
      "--quality WHICH", fmt::format("instead of --method: {} (default normal)", fmt::join(meanings, ", ")),
      [this, all, names](const std::string& text) {
        const auto found = std::find_if(all.begin(), all.end(),
                                        [&](const Quality& quality) { return quality.name == text; });
        if (found == all.end())
          throw UsageError(fmt::format("--quality takes one of {}, got '{}'", fmt::join(names, ", "), text));
        words_.method = found->method;
        if (!found->profile.empty()) words_.given["profile"] = found->profile;
        check_one_choice(quality_given_);
      });
  option.choices = std::move(names);
  option.chooses_method = true;
  option.yields = true;  // bilateral has one, too
}

void MethodOptions::add_to(OptionTable& table, For what) {
  const std::string common_group = "Options";
  table.begin_group(common_group);
  const std::vector<MethodInfo> all = methods_for(what);
  std::vector<std::string> names;
  for (const MethodInfo& method : all) names.push_back(method.name);
  Option& choice = table.add(
      "-m,--method NAME", fmt::format("{} (default {})", fmt::join(names, ", "), words_.method),
      [this, names, what](const std::string& text) {
        words_.method = naming_option("method", [&] { return method_info(text).name; });
        if (std::find(names.begin(), names.end(), text) == names.end()) {
          throw UsageError(fmt::format("--method: {} is not for {}; there are: {}", text,
                                       what == For::volumes ? "volumes" : "images (ungrain volume has it)",
                                       fmt::join(names, ", ")));
        }
        check_one_choice(method_given_);
      });
  choice.choices = names;
  choice.chooses_method = true;
  add_quality(table, what);
  table.follow_method(words_.method);
  for (const MethodInfo& method : all) {
    table.begin_group(
        fmt::format("Options of {} (ungrain methods NAME tells another method's)", method.name));
    for (ParamInfo param : method.params) {
      if (what == For::clips && param.name == "radius_t") param.default_text = clip_default(method);
      Option& option =
          table.add(option_name(param.name) + " VALUE", option_help(param),
                    [this, name = param.name](const std::string& text) { words_.given[name] = text; });
      option.method = method.name;
      option.file = param.kind == ParamKind::image;
      option.choices = param.choices;
      if (param.kind == ParamKind::choice && param.fallback != Fallback::none)
        option.choices.emplace_back("auto");
    }
    if (method.presets.empty()) continue;
    table.begin_group(common_group);
    std::vector<std::string> presets;
    std::vector<std::string> helps;
    for (const PresetInfo& preset : method.presets) {
      presets.push_back(preset.name);
      helps.push_back(fmt::format("{} ({})", preset.name, preset.help));
    }
    Option& option = table.add("--preset NAME",
                               fmt::format("values to start from: {} (default none)", fmt::join(helps, ", ")),
                               words_.preset);
    option.method = method.name;
    option.choices = std::move(presets);
  }
}

MethodParams MethodOptions::for_white(double white) const {
  MethodParams params = MethodParams::defaults(words_.method);
  const MethodInfo info = method_info(words_.method);
  const auto is_image = [&](const std::string& name) {
    return std::any_of(info.params.begin(), info.params.end(),
                       [&](const ParamInfo& p) { return p.name == name && p.kind == ParamKind::image; });
  };
  const auto set_given = [&] {
    for (const auto& [name, text] : words_.given) {
      naming_option(name, [&, &name = name, &text = text] {
        if (read_image_ != nullptr && is_image(name) && text != "none") {
          params.set(name, image(name, white).view());
        } else {
          params.set_text(name, text);
        }
      });
    }
  };
  set_given();
  if (!words_.preset.empty()) {
    // A preset may depend on given values, and given values override it.
    naming_option("preset", [&] { params.apply_preset(words_.preset, 255); });
    set_given();
  }
  params.scale_strengths(white / 255);
  return params;
}

std::string MethodOptions::given(const std::string& parameter) const {
  const auto found = words_.given.find(parameter);
  return found == words_.given.end() ? "" : found->second;
}

std::string MethodOptions::take(const std::string& parameter) {
  std::string text = given(parameter);
  words_.given.erase(parameter);
  return text;
}

const Image& MethodOptions::image(const std::string& parameter, double white) const {
  const std::lock_guard lock(mutex_);
  const auto key = std::pair(parameter, white);
  if (const auto found = images_.find(key); found != images_.end()) return found->second;
  try {
    const Image file = read_image_(words_.given.at(parameter));
    const ConstImageView from = file.view();
    ImageSpec spec = from.spec;
    spec.type = PixelType::f32;
    spec.range = 0;
    Image image(spec);
    const Strides& strides = image.view().strides;
    std::vector<float> row(static_cast<std::size_t>(spec.width));
    const auto scale = static_cast<float>(is_in_own_units(from, white) ? 1 : white / 255);
    for (int y = 0; y < spec.height; ++y) {
      for (int channel = 0; channel < spec.channels; ++channel) {
        load_row(from, y, channel, row.data());
        auto* to = static_cast<std::byte*>(image.view().data) + y * strides.y + channel * strides.channel;
        for (int x = 0; x < spec.width; ++x) *reinterpret_cast<float*>(to + x * strides.x) = row[x] * scale;
      }
    }
    return images_.emplace(key, std::move(image)).first->second;
  } catch (const Error& error) {
    throw UsageError(fmt::format("{}: {}", option_name(parameter), error.what()));
  }
}

std::string MethodOptions::images_text() const {
  std::string text;
  for (const ParamInfo& info : method_info(words_.method).params) {
    const auto given = words_.given.find(info.name);
    if (info.kind != ParamKind::image || given == words_.given.end() || given->second == "none") continue;
    const Image& pixels = image(info.name, 255);
    const ConstImageView view = pixels.view();
    const std::string_view bytes(static_cast<const char*>(view.data),
                                 static_cast<std::size_t>(view.strides.y) * view.spec.height);
    text += fmt::format(" {}#{:x}", info.name, std::hash<std::string_view>{}(bytes));
  }
  return text;
}

}  // namespace ungrain::cli
