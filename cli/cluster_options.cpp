#include "cluster_options.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "method_options.h"
#include "option_values.h"

namespace ungrain::cli {
namespace {

constexpr const char* no_value = "null";

// Values in JSON. Their messages begin with an option's name and a colon.

std::string text_value(const std::string&, const std::string& text) { return json_string(text); }

std::string flag_value(const std::string&, const std::string&) { return "true"; }

template <std::uint64_t least>
std::string whole_from(const std::string& option, const std::string& text) {
  const std::optional<std::uint64_t> value = read_number<std::uint64_t>(text);
  if (value && *value >= least) return fmt::format("{}", *value);
  throw UsageError(fmt::format("{} takes a whole number from {} up, got '{}'", option, least, text));
}

std::string bytes_value(const std::string& option, const std::string& text) {
  return fmt::format("{}", parse_bytes(option, text));
}

std::string white_value(const std::string& option, const std::string& text) {
  return fmt::format("{:#}", parse_range(text, option));
}

// "8787", ":8787" or "HOST:8787"
std::string address_value(const std::string& option, const std::string& text) {
  const std::size_t port = text.rfind(':') + 1;
  if (!read_number<std::uint16_t>(text.substr(port)))
    throw UsageError(
        fmt::format("{} takes an address such as 127.0.0.1:8787 or 8787, got '{}'", option, text));
  return json_string((port > 1 ? text.substr(0, port) : "127.0.0.1:") + text.substr(port));
}

std::string spacing_value(const std::string& option, const std::string& text) {
  return fmt::format("[{}]", fmt::join(parse_spacing(option, text), ","));
}

std::string axis_value(const std::string& option, const std::string& text) {
  if (const std::optional<int> axis = read_number<int>(text)) return fmt::format("{}", *axis);
  throw UsageError(fmt::format("{} takes whole numbers such as 0 or 0,1, got '{}'", option, text));
}

std::string axes_value(const std::string& option, const std::string& text) {
  const std::size_t comma = text.find(',');
  const std::string first = axis_value(option, text.substr(0, comma));
  if (comma == std::string::npos) return fmt::format("[{}]", first);
  return fmt::format("[{},{}", first, axes_value(option, text.substr(comma + 1)).substr(1));
}

// The other values by their names in Python.
using Values = std::map<std::string, std::string>;

void add_own_options(OptionTable& table, Values& values, bool volumes) {
  using ToJson = std::string (*)(const std::string& option, const std::string& text);
  const auto add = [&](std::string_view spelling, const char* unset, ToJson to_json,
                       const char* help) -> Option& {
    Option& option = table.add(spelling, help, SetText());
    const std::string name = option.names.back();
    std::string key = option.positional() ? name : name.substr(2);
    std::replace(key.begin(), key.end(), '-', '_');
    values[key] = unset;
    option.set = [&values, key, name, to_json](const std::string& text) {
      values[key] = to_json(name + ":", text);
    };
    return option;
  };
  add("input", "", text_value,
      "a Zarr array, an OME-Zarr image, or a TIFF file or stack ('frames/*.tif', needs tifffile)")
      .file = true;
  add("output", "", text_value,
      "a Zarr array, or of an OME-Zarr image one, too; taken up where it is there already")
      .file = true;
  add("--volume", "false", flag_value, "filter volumes as solids, by the methods of ungrain volume");
  add("--spacing X,Y,Z", no_value, spacing_value,
      "sizes of a voxel, with --volume (default: as OME-Zarr says, or 1,1,1)");
  add("--scheduler ADDRESS", no_value, text_value,
      "of a Dask scheduler: tcp://host:8786, tls://host:8786 (default: none)");
  add("--workers N", no_value, whole_from<1>,
      "instead of a scheduler: processes of this machine, from 1 up (default: one for each processor)");
  add("--worker-memory BYTES", "0", bytes_value, "limit for each of --workers: 2G (default: as Dask has it)");
  add("--dashboard ADDRESS", no_value, address_value,
      "where the dashboard of --workers listens, [HOST:]PORT; port 0: any that is free (default: "
      "127.0.0.1:0, for this machine only)");
  add("--block N", volumes ? "256" : "4096", whole_from<1>,
      "rows and columns of a task, of volumes slices, too, about, from 1 up (default 4096, of volumes 256)");
  add("--chunk N", no_value, whole_from<1>, "the same of the output's chunks (default: the input's)");
  add("--axis A,B", no_value, axes_value,
      "axes along which images or volumes are stacked (default: as OME-Zarr says, or none)");
  add("--channel-axis A", no_value, axis_value,
      "where the channels are (default: last; OME-Zarr and volumes: none)");
  add("--channels KIND", "\"auto\"", text_value, "what the channels are: {} (default auto)")
      .only({"auto", "gray", "gray-alpha", "rgb", "rgba", "multi"});
  add("--range WHITE", no_value, white_value,
      "white level in pixel values, above 0 (default: the type's, 1 for floats)");
  add("--device NAME", "\"auto\"", text_value,
      "auto (a GPU for each worker, where there are), cpu, cuda (default auto)")
      .choices = {"auto", "cpu", "cuda"};
  add("--nonfinite RULE", "\"fill\"", text_value, "what becomes of NaN and infinity: {} (default fill)")
      .only({"fill", "keep", "error"});
  add("--threads N", "1", whole_from<0>, "for each block; 0: one for each processor (default 1)");
  add("--memory BYTES", "0", bytes_value,
      "for the working buffers of each block (default: half of what is free)");
  add("--overwrite", "false", flag_value,
      "begin anew; an array that is there is kept, hidden beside the new one, until that is complete");
  add("-q,--quiet", "false", flag_value, "no progress");
}

void check(const Values& values) {
  for (const char* place : {"input", "output"}) {
    if (values.at(place).empty()) throw UsageError(fmt::format("an argument is required: {}", place));
  }
  if (values.at("spacing") != no_value && values.at("volume") == "false")
    throw UsageError("--spacing is for --volume");
  if (values.at("scheduler") == no_value) return;
  if (values.at("workers") != no_value) throw UsageError("--scheduler and --workers exclude each other");
  if (values.at("dashboard") != no_value)
    throw UsageError("--dashboard is for --workers; a scheduler has its own");
}

std::string json_object(const Values& values) {
  std::vector<std::string> members;
  for (const auto& [name, value] : values) members.push_back(fmt::format("\"{}\":{}", name, value));
  return fmt::format("{{{}}}", fmt::join(members, ","));
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string json;
  for (const char c : text) {
    const bool plain = static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
    json += plain ? std::string(1, c) : fmt::format("\\u{:04x}", static_cast<int>(c));
  }
  return '"' + json + '"';
}

std::string cluster_options(const Arguments& words, const ReadWords& read) {
  const bool volumes = std::find(words.begin(), words.end(), "--volume") != words.end();
  OptionTable table(
      "A Zarr array, an OME-Zarr image or a TIFF stack from one store to another on a Dask cluster. A run\n"
      "that is started again takes up where the last one stopped. Strengths are on the 0-255 scale.\n"
      "Exit status: 0 done, 1 a part failed (the others are done), 2 wrong usage.\n",
      "ungrain cluster");
  table.refuse_with("no option");
  Values values;
  MethodOptions method(nullptr, {.method = std::string(volumes ? default_volume_method : default_method)});
  add_own_options(table, values, volumes);
  method.add_to(table, volumes ? MethodOptions::For::volumes : MethodOptions::For::images);
  if (!read(table, volumes ? with_volume_names(words) : words)) return "";
  check(values);
  method.read();  // a wrong value ends the run before anything is opened
  const auto& [name, preset, given] = method.words();
  Values parameters;
  for (const auto& [parameter, text] : given) parameters[parameter] = json_string(text);
  values["method"] = json_string(name);
  values["preset"] = preset.empty() ? no_value : json_string(preset);
  values["words"] = json_object(parameters);
  return json_object(values);
}

}  // namespace ungrain::cli
