#include "io/module_loader.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "io/failure.h"
#include "platform/processes.h"
#include "ungrain/version.h"

namespace ungrain::io {
namespace {

namespace fs = std::filesystem;

// Relative to the program, so that an installation can be moved. A build has the first folder; an
// installation may have its libraries elsewhere, for example in lib/x86_64-linux-gnu.
fs::path find_module(const std::string& file) {
  std::error_code error;
  const fs::path program = platform::program_file().parent_path();
  fs::path found;
  for (const char* folder : {"../lib/ungrain", UNGRAIN_MODULE_FOLDER}) {
    found = (program / folder / file).lexically_normal();
    if (fs::exists(found, error)) break;
  }
  return found;
}

}  // namespace

LoadedModule load_module(const char* name, const char* entry_name) {
  const fs::path path = find_module(std::string(name) + platform::library_ending);
  const auto failed = [&](std::string_view why) {
    const std::string repeated = path.string() + ": ";  // how the loader's messages begin
    if (why.starts_with(repeated)) why.remove_prefix(repeated.size());
    return LoadedModule{nullptr,
                        fmt::format("the module {} cannot be loaded: {}", path.string(), one_line(why))};
  };
  std::error_code error;
  if (!fs::exists(path, error)) return failed("there is no such file");
  // The module itself is linked to be bound at once, so that one of another build fails here and not in the
  // middle of a file.
  std::string why_not;
  void* module = platform::load_library(path, why_not);
  if (module == nullptr) return failed(why_not);
  using Entry = const ModuleVersion* (*)();
  const auto entry = reinterpret_cast<Entry>(platform::find_symbol(module, entry_name, why_not));
  if (entry == nullptr) return failed(why_not);
  const ModuleVersion* functions = entry();
  if (functions->version != std::string_view(UNGRAIN_VERSION)) {
    return failed(
        fmt::format("it belongs to version {}, the program is {}", functions->version, UNGRAIN_VERSION));
  }
  return {functions, {}};
}

}  // namespace ungrain::io
