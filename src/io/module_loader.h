// Parts of the program that are loaded when a file needs them: modules with libraries that take long to load.
#pragma once

#include <string>

namespace ungrain::io {

// The first member of every module's table of functions.
struct ModuleVersion {
  const char* version;  // of ungrain: a module of another version is refused
};

struct LoadedModule {
  const ModuleVersion* functions = nullptr;
  std::string why_not = {};  // where functions is null
};

// Loads lib/ungrain/<name>.so and calls `entry`, which returns the module's table.
LoadedModule load_module(const char* name, const char* entry);

}  // namespace ungrain::io
