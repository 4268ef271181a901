#include "zarr_volume.h"

#include <algorithm>
#include <array>
#include <thread>

#include <fmt/format.h>

#include "arguments.h"
#include "cluster.h"
#include "cluster_options.h"
#include "files.h"

namespace ungrain::cli {
namespace {

constexpr std::string_view extension = ".zarr";

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// NAME.ungrain.zarr, or NAME.ungrain.ome.zarr.
std::string result_beside(const std::string& input) {
  std::string name = input;
  std::string ending;
  for (const std::string_view part : {extension, std::string_view(".ome")}) {
    if (!name.ends_with(part)) continue;
    name.resize(name.size() - part.size());
    ending.insert(0, part);
  }
  return fmt::format("{}.ungrain{}", name, ending.empty() ? extension : ending);
}

std::string output_for(const std::string& input, const std::string& output) {
  if (output.empty()) return result_beside(input);
  if (is_zarr(output) || output.ends_with(extension)) return output;
  std::error_code error;
  if (fs::is_directory(output, error)) return (fs::path(output) / fs::path(input).filename()).string();
  throw UsageError(fmt::format(
      "{}: of a Zarr array the result is one, too: give --output a name that ends in .zarr", output));
}

bool means_the_same(const Option& option) {
  constexpr std::array<std::string_view, 8> names{"--method",  "--quality",  "--device",    "--range",
                                                  "--spacing", "--channels", "--nonfinite", "--quiet"};
  return !option.method.empty() || std::find(names.begin(), names.end(), option.names.back()) != names.end();
}

// Threads become workers of one thread each, which share the memory.
Arguments words_for_cluster(const OptionTable& table, const Settings& settings) {
  const std::string input = without_slash(settings.inputs.front());
  Arguments words{"--volume"};
  const int threads = settings.options.threads > 0
                          ? settings.options.threads
                          : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  for (const auto& [option, text] : table.given()) {
    const std::string& name = option->names.back();
    if (means_the_same(*option)) {
      words.push_back(option->flag() ? name : fmt::format("{}={}", name, text));
    } else if (name == "--memory") {
      words.push_back(
          fmt::format("--memory={}", std::max<std::size_t>(1, settings.options.memory / threads)));
    } else if (name != "--output" && name != "--threads" && name != "--resume") {
      throw UsageError(fmt::format("{} is not for Zarr arrays{}", name,
                                   name == "--axis" ? "; ungrain cluster --volume has one" : ""));
    }
  }
  words.push_back(fmt::format("--workers={}", threads));
  words.insert(words.end(), {"--", input, output_for(input, settings.output)});
  return words;
}

}  // namespace

bool is_zarr(const std::string& path) {
  const std::string name = without_slash(path);
  if (name.find("://") != std::string::npos) return name.ends_with(extension);
  std::error_code error;
  if (!fs::is_directory(name, error)) return false;
  if (name.ends_with(extension)) return true;
  constexpr std::array<const char*, 3> metadata{"zarr.json", ".zgroup", ".zarray"};
  return std::any_of(metadata.begin(), metadata.end(),
                     [&](const char* file) { return fs::exists(fs::path(name) / file, error); });
}

void denoise_zarr_volume(const OptionTable& table, const Settings& settings) {
  if (settings.inputs.size() > 1)
    throw UsageError(fmt::format("{} inputs: Zarr arrays are taken one at a time", settings.inputs.size()));
  const std::string options = cluster_options(words_for_cluster(table, settings), parse);
  become_python("Zarr", options);
}

}  // namespace ungrain::cli
