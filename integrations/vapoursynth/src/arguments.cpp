#include "arguments.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "ungrain/error.h"
#include "ungrain/methods.h"

namespace ungrain::vapoursynth {
namespace {

constexpr std::string_view frames_around = "radius_t";

// ---- names

// "nlm-bilateral" becomes "NLMBilateral": a part without vowels is an abbreviation.
std::string function_name(const std::string& method) {
  std::string name;
  std::istringstream parts(method);
  for (std::string part; std::getline(parts, part, '-');) {
    const bool is_word = part.find_first_of("aeiou") != std::string::npos;
    for (std::size_t i = 0; i < part.size(); ++i) {
      name +=
          i == 0 || !is_word ? static_cast<char>(std::toupper(static_cast<unsigned char>(part[i]))) : part[i];
    }
  }
  return name;
}

bool has_param(const MethodInfo& method, std::string_view name) {
  return std::any_of(method.params.begin(), method.params.end(),
                     [name](const ParamInfo& param) { return param.name == name; });
}

// As other plug-ins call it, the number of frames before and after is the radius, unless that is the
// window's.
std::string argument_name(const MethodInfo& method, const ParamInfo& param) {
  return param.name == frames_around && !has_param(method, "radius") ? "radius" : param.name;
}

// ---- arguments of every function

struct CommonArgument {
  const char* name;
  const char* type;
  const char* help;
  const char* otherwise;  // the default
  int least = 0;          // of whole numbers
  int most = 0;
};
constexpr int most_memory = 1 << 24;  // MiB: 16 TiB
constexpr CommonArgument common_arguments[] = {
    {"preset", "data", "values to start from, under one name", "none"},
    {"strength", "float", "factor of the noise's deviation, 0 to 10", "1"},
    {"luminance", "float", "the same for luma alone", "1"},
    {"chroma", "float", "the same for chroma alone", "1"},
    {"keep_grain", "float", "the share of what was removed that is put back, 0 to 1", "0"},
    {"find_cuts", "int", "1: scenes are looked for where no frame property tells them", "1", 0, 1},
    {"device", "data", "auto, cpu, cuda, cuda:1 or reference", "auto"},
    {"threads", "int", "0: one for each processor", "0", 0, max_threads},
    {"num_streams", "int", "frames worked on at once", "1, or 2 where no other frames take part", 1, 64},
    {"memory", "int", "MiB for working buffers", "half of what is free", 1, most_memory},
};

const CommonArgument& common_argument(std::string_view name) {
  return *std::find_if(std::begin(common_arguments), std::end(common_arguments),
                       [name](const CommonArgument& argument) { return argument.name == name; });
}

std::string range_of(const CommonArgument& argument) {
  return "a whole number from " + std::to_string(argument.least) + " to " + std::to_string(argument.most);
}

const char* type_of(const ParamInfo& param) {
  switch (param.kind) {
    case ParamKind::real:
      return "float";
    case ParamKind::integer:
      return "int";
    case ParamKind::per_channel:
      return "float[]";
    default:
      return "data";
  }
}

const char* scale_of(const ParamInfo& param) {
  switch (param.unit) {
    case Unit::intensity:
      return ", on the 0-255 scale";
    case Unit::intensity_squared:
      return ", on the 0-255 scale squared";
    case Unit::pixels:
      return ", pixels";
    default:
      return "";
  }
}

// ---- values

class Given {
 public:
  Given(const VSMap& map, const VSAPI& api) : map_(map), api_(api) {}

  bool has(const std::string& name) const { return count(name) > 0; }
  int count(const std::string& name) const { return std::max(0, api_.mapNumElements(&map_, name.c_str())); }
  double number(const std::string& name, int index = 0) const {
    return api_.mapGetFloat(&map_, name.c_str(), index, nullptr);
  }
  double whole(const std::string& name) const {
    return static_cast<double>(api_.mapGetInt(&map_, name.c_str(), 0, nullptr));
  }
  std::string text(const std::string& name) const {
    return {api_.mapGetData(&map_, name.c_str(), 0, nullptr),
            static_cast<std::size_t>(api_.mapGetDataSize(&map_, name.c_str(), 0, nullptr))};
  }
  int common(const std::string& name, int otherwise) const {
    if (!has(name)) return otherwise;
    const CommonArgument& argument = common_argument(name);
    const double value = whole(name);
    if (value < argument.least || value > argument.most) {
      std::ostringstream what;
      what << name << " takes " << range_of(argument) << ", got " << value;
      throw Error(ErrorCode::invalid_argument, what.str());
    }
    return static_cast<int>(value);
  }

  void set(MethodParams& params, const std::string& name, const ParamInfo& param) const {
    switch (param.kind) {
      case ParamKind::real:
        params.set(param.name, number(name));
        break;
      case ParamKind::integer:
        params.set(param.name, whole(name));
        break;
      case ParamKind::per_channel: {
        std::vector<double> values;
        for (int i = 0; i < count(name); ++i) values.push_back(number(name, i));
        params.set(param.name, values);
        break;
      }
      default:
        params.set_text(param.name, text(name));
    }
  }

 private:
  const VSMap& map_;
  const VSAPI& api_;
};

RunArguments read_run(const Given& given) {
  RunArguments run;
  if (given.has("device")) run.options.device = parse_device(given.text("device"));
  run.options.threads = given.common("threads", 0);
  run.options.memory = static_cast<std::size_t>(given.common("memory", 0)) << 20;
  run.num_streams = given.common("num_streams", 0);
  run.find_cuts = given.common("find_cuts", 1) == 1;
  return run;
}

}  // namespace

Function::Function(MethodInfo method) : method_(std::move(method)), name_(function_name(method_.name)) {
  for (const ParamInfo& param : method_.params) {
    // A map of the noise would have to change from frame to frame.
    if (param.kind != ParamKind::image) arguments_.push_back({argument_name(method_, param), param});
  }
  // Those that are given most come first: they may be given without their names.
  const auto rank = [](const Argument& argument) {
    if (argument.param.name == "sigma") return 0;
    return argument.name == "radius" ? 1 : 2;
  };
  std::stable_sort(arguments_.begin(), arguments_.end(),
                   [&](const Argument& a, const Argument& b) { return rank(a) < rank(b); });
}

bool Function::takes_pilot() const { return method_.name == Bm3dParams::method; }

std::string Function::signature() const {
  std::string text = "clip:vnode;";
  for (const Argument& argument : arguments_) text += argument.name + ':' + type_of(argument.param) + ":opt;";
  if (takes_pilot()) text += "ref:vnode:opt;";
  for (const CommonArgument& argument : common_arguments) {
    text += std::string(argument.name) + ':' + argument.type + ":opt;";
  }
  return text;
}

std::string Function::help() const {
  std::ostringstream text;
  text << name_ << ": " << method_.summary << "\n  clip: Gray, YUV or RGB, 8 to 16 bits or float\n";
  for (const Argument& argument : arguments_) {
    const ParamInfo& param = argument.param;
    const std::string otherwise = param.name == frames_around
                                      ? std::to_string(MethodParams::defaults(method_.name).clip_radius_t())
                                      : param.default_text;
    text << "  " << argument.name << ": " << param.help << " (" << what_it_takes(param) << scale_of(param)
         << "; default " << otherwise << ")\n";
  }
  if (takes_pilot()) {
    text << "  ref: an estimate of the clean clip, instead of the first step's (a clip like clip; default "
            "none)\n";
  }
  for (const CommonArgument& argument : common_arguments) {
    text << "  " << argument.name << ": " << argument.help << " (";
    if (argument.most > 0) text << range_of(argument) << "; ";
    text << "default " << argument.otherwise << ")\n";
  }
  for (const PresetInfo& preset : method_.presets) {
    text << "  preset=\"" << preset.name << "\": " << preset.help << '\n';
  }
  return text.str();
}

FunctionArguments Function::read(const VSMap& in, const VSAPI& api, const ImageSpec& spec) const {
  const Given given(in, api);
  MethodParams params = MethodParams::defaults(method_.name);
  const auto set_given = [&] {
    for (const Argument& argument : arguments_) {
      if (given.has(argument.name)) given.set(params, argument.name, argument.param);
    }
  };
  set_given();
  if (given.has("preset")) {  // it may depend on given values, which override it
    params.apply_preset(given.text("preset"), 255);
    set_given();
  }
  if (const int frames = params.clip_radius_t(); frames > 0) {
    const auto radius = std::find_if(arguments_.begin(), arguments_.end(), [](const Argument& argument) {
      return argument.param.name == frames_around;
    });
    if (!given.has(radius->name) && !given.has("preset")) {
      params.set(frames_around, static_cast<double>(frames));
    }
  }
  params.scale_strengths(spec.white() / 255);

  NoiseHandling noise = params.noise();
  for (const auto& [name, value] : {std::pair("strength", &noise.strength),
                                    {"luminance", &noise.luminance},
                                    {"chroma", &noise.chroma},
                                    {"keep_grain", &noise.keep_grain}}) {
    if (given.has(name)) *value = given.number(name);
  }
  params.set_noise(noise);
  return {std::move(params), read_run(given)};
}

std::string Function::message(const std::string& what) const {
  std::string text = what;
  if (const std::string prefix = method_.name + ": "; text.starts_with(prefix)) text.erase(0, prefix.size());
  const auto rename = [&text](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  };
  for (const Argument& argument : arguments_) {
    if (argument.name != argument.param.name) rename(argument.param.name, argument.name);
  }
  if (takes_pilot()) rename("a pilot", "ref");
  return name_ + ": " + text;
}

}  // namespace ungrain::vapoursynth
