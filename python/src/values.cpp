#include "values.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "arrays.h"
#include "errors.h"
#include "ungrain/error.h"
#include "ungrain/methods/bm3d.h"
#include "ungrain/methods/bm4d.h"
#include "ungrain/volume.h"

namespace nb = nanobind;

namespace ungrain::python {
namespace {

const MethodInfo& cached_info(const std::string& method) {
  static const std::vector<MethodInfo> all = [] {
    std::vector<MethodInfo> list = methods();
    for (MethodInfo& info : volume_methods()) list.push_back(std::move(info));
    return list;
  }();
  for (const MethodInfo& info : all) {
    if (info.name == method) return info;
  }
  method_info(method);  // throws, with the nearest name
  throw Error(ErrorCode::internal, "a method that is not listed");
}

// Python's keywords cannot be arguments: lambda is written lambda_.
std::string python_name(const std::string& name) {
  const bool reserved = nb::cast<bool>(nb::module_::import_("keyword").attr("iskeyword")(name));
  return reserved ? name + "_" : name;
}
std::string library_name(const std::string& name) {
  const std::string bare = name.substr(0, name.size() - (name.ends_with('_') ? 1 : 0));
  return python_name(bare) == name ? bare : name;
}

const ParamInfo& descriptor(const MethodInfo& method, const std::string& name) {
  for (const ParamInfo& info : method.params) {
    if (info.name == name) return info;
  }
  std::string known;
  for (const ParamInfo& info : method.params) known += (known.empty() ? "" : ", ") + python_name(info.name);
  throw InvalidType(method.name + " has no parameter '" + name + "'; it has " + known);
}

bool is_number(nb::handle value) {
  return PyNumber_Check(value.ptr()) != 0 && !nb::isinstance<nb::str>(value);
}

double number(nb::handle value, const std::string& parameter) {
  const double result = PyFloat_AsDouble(value.ptr());
  if (result == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw InvalidType(parameter + " takes a number, got " + shown(value));
  }
  return result;
}

// Arrays without an axis have no length: they are numbers.
bool is_list(nb::handle value) {
  if (PyDict_Check(value.ptr()) != 0 || PyBytes_Check(value.ptr()) != 0) return false;
  const bool sized = PyObject_Size(value.ptr()) >= 0;
  PyErr_Clear();
  return sized;
}

ParamValue image_value(nb::handle value, std::vector<nb::object>& held) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object array = numpy.attr("ascontiguousarray")(value, numpy.attr("float32"));
  const InputImages image = input_images(array, {}, "sigma_map");
  held.push_back(std::move(array));
  return image.first;
}

ParamValue value_of(const ParamInfo& info, nb::handle value, std::vector<nb::object>& held) {
  if (value.is_none()) return std::monostate{};
  if (nb::isinstance<nb::str>(value)) {
    auto word = nb::cast<std::string>(value);
    if (word == "auto" && info.fallback != Fallback::none) return std::monostate{};
    if (!info.named.empty() && word == info.named) return info.named_value;
    return word;
  }
  if (info.kind == ParamKind::image) return image_value(value, held);
  if (info.kind == ParamKind::choice && nb::isinstance<nb::bool_>(value))
    return std::string(value.is(Py_True) ? "on" : "off");
  // One-element arrays are also numbers; a list of strengths must not become one.
  if (is_list(value)) {
    std::vector<double> list;
    for (const nb::handle element : nb::iter(value)) list.push_back(number(element, info.name));
    return list;
  }
  if (is_number(value)) return number(value, info.name);
  return shown(value);  // refused later, with the parameter's name
}

ParamValue read_value(const ParamInfo& info, nb::handle value, std::vector<nb::object>& held) {
  try {
    return value_of(info, value, held);
  } catch (const nb::python_error& error) {  // raised by the value itself, or by NumPy about it
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError) &&
        !error.matches(PyExc_OverflowError))
      throw;
  }
  const bool image = info.kind == ParamKind::image;
  throw InvalidType(info.name + " takes " + (image ? "an array of numbers" : "a number") + ", got " +
                    shown(value));
}

nb::object to_python(const ParamInfo& info, const ParamValue& value) {
  if (const double* number = std::get_if<double>(&value)) {
    if (!info.named.empty() && *number == info.named_value) return nb::cast(info.named);
    if (info.kind == ParamKind::integer) return nb::cast(static_cast<long long>(*number));
    return nb::cast(*number);
  }
  if (const auto* word = std::get_if<std::string>(&value)) return nb::cast(*word);
  if (const auto* list = std::get_if<std::vector<double>>(&value)) return nb::cast(*list);
  if (const auto* view = std::get_if<ConstImageView>(&value); view != nullptr && view->data != nullptr)
    return nb::cast("image");
  return nb::none();
}

// ---- noise models: {"channels": [{"levels": [...], "deviations": [...], "spectrum": [64 numbers]}, ...]},
// and "correlation": [...] where it is known

std::vector<double> numbers_of(const nb::dict& channel, const char* key) {
  if (!channel.contains(key)) throw InvalidType(std::string("noise_model: a channel has no '") + key + "'");
  std::vector<double> list;
  try {
    for (const nb::handle element : nb::iter(channel[key])) list.push_back(number(element, "noise_model"));
  } catch (const nb::python_error&) {
    throw InvalidType(std::string("noise_model: ") + key + " takes a list of numbers");
  }
  return list;
}

std::shared_ptr<const NoiseModel> read_model(nb::handle value) {
  if (value.is_none()) return nullptr;
  const bool converts = nb::hasattr(value, "to_dict");
  const nb::object object = converts ? nb::object(value.attr("to_dict")()) : nb::borrow(value);
  if (!nb::isinstance<nb::dict>(object)) {
    throw InvalidType("noise_model takes a NoiseModel or its dict, got " + shown(value));
  }
  const auto dict = nb::cast<nb::dict>(object);
  if (!dict.contains("channels")) throw InvalidType("noise_model has no 'channels'");
  NoiseModel model;
  for (const nb::handle element : nb::iter(dict["channels"])) {
    if (!nb::isinstance<nb::dict>(element)) throw InvalidType("noise_model: a channel takes a dict");
    const auto from = nb::cast<nb::dict>(element);
    NoiseModel::Channel channel{numbers_of(from, "levels"), numbers_of(from, "deviations"), {}};
    const std::vector<double> spectrum = numbers_of(from, "spectrum");
    if (spectrum.size() != channel.spectrum.size()) {
      throw Error(ErrorCode::invalid_argument,
                  "noise_model: a spectrum has 64 numbers, got " + std::to_string(spectrum.size()));
    }
    std::copy(spectrum.begin(), spectrum.end(), channel.spectrum.begin());
    if (from.contains("correlation")) channel.correlation = numbers_of(from, "correlation");
    model.channels.push_back(std::move(channel));
  }
  validate(model);
  return std::make_shared<const NoiseModel>(std::move(model));
}

Clipping read_clipping(nb::handle value) {
  if (!nb::isinstance<nb::str>(value)) throw InvalidType("clipping takes a string, got " + shown(value));
  const auto text = nb::cast<std::string>(value);
  if (text == "auto") return Clipping::measured;
  if (text == "undo") return Clipping::everywhere;
  if (text == "keep") return Clipping::keep;
  throw Error(ErrorCode::invalid_argument, "clipping takes one of auto, undo, keep, got '" + text + "'");
}

int coils_of(nb::handle value) {
  const double coils = number(value, "coils");
  if (!(coils >= 1 && coils <= Rician::most_coils) || coils != std::floor(coils)) {
    throw Error(ErrorCode::invalid_argument, "coils takes a whole number from 1 to " +
                                                 std::to_string(Rician::most_coils) + ", got " +
                                                 shown(value));
  }
  return static_cast<int>(coils);
}

// bm3d's estimate of the clean image, an array of its shape and type.
class PilotImage : public SliceReader {
 public:
  explicit PilotImage(const ConstImageView& image) : image_(image) {}

  bool has(int slice) override { return slice == 0; }
  void read_rows(int, int first, const ImageView& rows) override {
    const ImageSpec& spec = rows.spec;
    if (spec.type != image_.spec.type || spec.width != image_.spec.width ||
        spec.channels != image_.spec.channels || first + spec.height > image_.spec.height)
      throw Error(ErrorCode::invalid_argument, "pilot has another shape or type than the image");
    const auto bytes = static_cast<std::size_t>(bytes_per_sample(spec.type));
    for (int y = 0; y < spec.height; ++y) {
      for (int x = 0; x < spec.width; ++x) {
        for (int c = 0; c < spec.channels; ++c) {
          const Strides& from = image_.strides;
          std::memcpy(static_cast<std::byte*>(rows.data) + y * rows.strides.y + x * rows.strides.x +
                          c * rows.strides.channel,
                      static_cast<const std::byte*>(image_.data) + (first + y) * from.y + x * from.x +
                          c * from.channel,
                      bytes);
        }
      }
    }
  }

 private:
  ConstImageView image_;
};

void set_pilot(HeldParams& read, nb::handle value) {
  if (read.params.method() != Bm3dParams::method) throw InvalidType("pilot is for bm3d");
  const InputImages image = input_images(value, {}, "pilot");
  auto params = read.params.as<Bm3dParams>();
  params.pilot = std::make_shared<PilotImage>(image.first);
  read.params = std::move(params);
  read.held.push_back(nb::borrow(value));
}

void set_correlation(HeldParams& read, nb::handle value) {
  auto params = read.params.as<Bm4dParams>();
  params.correlation.clear();
  if (!value.is_none() && !nb::try_cast(value, params.correlation))
    throw InvalidType("correlation takes numbers, got " + shown(value));
  read.params = std::move(params);
}

// Reads a parameter that all methods share; false where the name is another.
bool read_noise(NoiseHandling& noise, const std::string& name, nb::handle value) {
  const auto flag = [&] { return nb::cast<bool>(nb::bool_(nb::borrow(value))); };
  const auto rician = [&]() -> Rician& {
    if (!noise.rician) noise.rician.emplace();
    return *noise.rician;
  };
  if (name == "noise_model") {
    noise.model = read_model(value);
  } else if (name == "strength") {
    noise.strength = number(value, name);
  } else if (name == "luminance") {
    noise.luminance = number(value, name);
  } else if (name == "chroma") {
    noise.chroma = number(value, name);
  } else if (name == "keep_grain") {
    noise.keep_grain = number(value, name);
  } else if (name == "applied_strength") {
    noise.applied_strength = number(value, name);
  } else if (name == "clipping") {
    noise.clipping = read_clipping(value);
  } else if (name == "cut_model") {
    noise.cut_model = read_model(value);
  } else if (name == "rician_sigma") {
    rician().sigma = number(value, name);
  } else if (name == "coils") {
    rician().coils = coils_of(value);
  } else if (name == "cut_at_black") {
    noise.cut_at_black = flag();
  } else if (name == "cut_at_white") {
    noise.cut_at_white = flag();
  } else {
    return false;
  }
  return true;
}

// Only values that differ from the default: most calls have none.
void add_noise_values(const NoiseHandling& noise, nb::dict& dict) {
  const NoiseHandling plain;
  if (noise.model != nullptr) dict["noise_model"] = to_dict(*noise.model);
  if (noise.rician) {
    dict["rician_sigma"] = noise.rician->sigma;
    dict["coils"] = noise.rician->coils;
  }
  if (noise.strength != plain.strength) dict["strength"] = noise.strength;
  if (noise.luminance != plain.luminance) dict["luminance"] = noise.luminance;
  if (noise.chroma != plain.chroma) dict["chroma"] = noise.chroma;
  if (noise.keep_grain != plain.keep_grain) dict["keep_grain"] = noise.keep_grain;
  if (noise.applied_strength != plain.applied_strength) dict["applied_strength"] = noise.applied_strength;
  if (noise.cut_at_black) dict["cut_at_black"] = true;
  if (noise.cut_at_white) dict["cut_at_white"] = true;
  if (noise.cut_model != nullptr) dict["cut_model"] = to_dict(*noise.cut_model);
  if (noise.clipping == Clipping::keep) dict["clipping"] = "keep";
}

const char* name_of(ParamKind kind) {
  switch (kind) {
    case ParamKind::real:
      return "real";
    case ParamKind::integer:
      return "integer";
    case ParamKind::choice:
      return "choice";
    case ParamKind::per_channel:
      return "per_channel";
    case ParamKind::image:
      return "image";
  }
  return "?";
}

const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::none:
      return "";
    case Unit::pixels:
      return "pixels";
    case Unit::intensity:
      return "pixel values";
    case Unit::intensity_squared:
      return "pixel values squared";
    case Unit::delta_e:
      return "delta E";
    case Unit::delta_e_squared:
      return "delta E squared";
  }
  return "?";
}

}  // namespace

std::string shown(nb::handle value) {
  return nb::cast<std::string>(nb::module_::import_("ungrain._errors").attr("shown")(value));
}

HeldParams read_params(const std::string& method, nb::handle preset, const nb::dict& given, double white) {
  const MethodInfo& info = cached_info(method);
  HeldParams read{MethodParams::defaults(method), {}};
  NoiseHandling noise;
  // A preset may depend on given values, and given values override it.
  const auto set_given = [&] {
    for (const auto& [key, value] : given) {
      const std::string name = library_name(nb::cast<std::string>(key));
      if (read_noise(noise, name, value)) continue;
      if (name == "pilot") {
        set_pilot(read, value);
        continue;
      }
      if (name == "correlation" && read.params.method() == Bm4dParams::method) {
        set_correlation(read, value);
        continue;
      }
      read.params.set(name, read_value(descriptor(info, name), value, read.held));
    }
  };
  set_given();
  if (!preset.is_none()) {
    if (!nb::isinstance<nb::str>(preset)) throw InvalidType("preset takes a string, got " + shown(preset));
    read.params.apply_preset(nb::cast<std::string>(preset), white);
    set_given();
  }
  read.params.set_noise(std::move(noise));
  return read;
}

void follow_aspect(MethodParams& params, const nb::dict& given, double aspect) {
  follow_voxels(params, aspect, [&](const std::string& name) {
    return given.contains(name.c_str()) && !nb::object(given[name.c_str()]).is_none();
  });
}

double noise_level(const MethodParams& params) {
  for (const ParamInfo& info : cached_info(std::string(params.method())).params) {
    if (info.name != "sigma" || info.unit != Unit::intensity) continue;
    const ParamValue value = params.get(info.name);
    if (const double* number = std::get_if<double>(&value)) return *number;
    if (const auto* list = std::get_if<std::vector<double>>(&value); list != nullptr && !list->empty())
      return *std::max_element(list->begin(), list->end());
  }
  return 0;
}

nb::dict to_dict(const MethodParams& params) {
  nb::dict dict;
  for (const ParamInfo& info : cached_info(std::string(params.method())).params)
    dict[python_name(info.name).c_str()] = to_python(info, params.get(info.name));
  if (params.method() == Bm4dParams::method && !params.as<Bm4dParams>().correlation.empty())
    dict["correlation"] = params.as<Bm4dParams>().correlation;
  add_noise_values(params.noise(), dict);
  return dict;
}

nb::dict to_dict(const NoiseModel& model) {
  nb::list channels;
  for (const NoiseModel::Channel& channel : model.channels) {
    nb::dict dict;
    dict["levels"] = channel.levels;
    dict["deviations"] = channel.deviations;
    dict["spectrum"] = std::vector<double>(channel.spectrum.begin(), channel.spectrum.end());
    if (!channel.correlation.empty()) dict["correlation"] = channel.correlation;
    channels.append(dict);
  }
  nb::dict dict;
  dict["channels"] = channels;
  return dict;
}

nb::dict to_dict(const NoiseModelEstimate& estimate) {
  nb::dict dict;
  dict["model"] = to_dict(estimate.model);
  dict["finding"] = std::string(name(estimate.finding));
  dict["sigma"] = estimate.white.sigma;
  dict["deviations"] = estimate.deviations;
  dict["limited_by_colour"] = estimate.limited_by_colour;
  dict["limited_by_iso"] = estimate.limited_by_iso;
  return dict;
}

nb::dict to_dict(const RicianEstimate& estimate) {
  nb::dict dict;
  dict["sigma"] = estimate.sigma;
  dict["source"] = std::string(name(estimate.source));
  dict["background_sigma"] = estimate.background_sigma;
  dict["object_sigma"] = estimate.object_sigma;
  return dict;
}

nb::dict to_dict(const Report& report) {
  nb::dict stages;
  for (const StageTime& stage : report.stages) stages[stage.name.c_str()] = stage.ms;
  nb::dict strengths;
  for (const Strength& strength : report.strengths)
    strengths[strength.name.c_str()] = nb::make_tuple(strength.value, strength.on_255);
  nb::dict dict;
  dict["device"] = name(report.device);
  if (!report.choice.empty()) dict["device_choice"] = report.choice;
  dict["threads"] = report.threads;
  dict["bands"] = report.bands;
  dict["ms"] = report.ms;
  dict["stages_ms"] = stages;
  dict["buffer_bytes"] = report.buffer_bytes;
  dict["nonfinite_pixels"] = report.nonfinite_pixels;
  dict["strengths"] = strengths;
  return dict;
}

nb::dict to_dict(const MethodInfo& method) {
  const MethodParams defaults = MethodParams::defaults(method.name);
  nb::list params;
  for (const ParamInfo& info : method.params) {
    nb::dict dict;
    dict["name"] = python_name(info.name);
    dict["help"] = info.help;
    dict["kind"] = name_of(info.kind);
    dict["unit"] = name_of(info.unit);
    dict["min"] = info.min;
    dict["max"] = info.max;
    dict["odd"] = info.odd;
    dict["choices"] = info.choices;
    dict["named"] = info.named;
    dict["auto"] = info.fallback != Fallback::none;
    dict["default"] = to_python(info, defaults.get(info.name));
    dict["default_text"] = info.default_text;
    params.append(dict);
  }
  nb::list presets;
  for (const PresetInfo& preset : method.presets) presets.append(nb::make_tuple(preset.name, preset.help));
  nb::list backends;
  for (const auto& [there, backend] :
       {std::pair{method.has_reference, "reference"}, {method.has_cpu, "cpu"}, {method.has_cuda, "cuda"}}) {
    if (there) backends.append(backend);
  }
  nb::dict dict;
  dict["name"] = method.name;
  dict["summary"] = method.summary;
  dict["params"] = params;
  dict["presets"] = presets;
  dict["backends"] = backends;
  return dict;
}

nb::dict to_dict(const DeviceInfo& info) {
  nb::dict dict;
  dict["name"] = name(info.device);
  dict["description"] = info.description;
  dict["usable"] = info.usable;
  dict["reason"] = info.reason;
  return dict;
}

}  // namespace ungrain::python
