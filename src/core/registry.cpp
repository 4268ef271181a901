#include "core/registry.h"

#include <array>

#include <fmt/format.h>

#include "core/nearest.h"
#include "ungrain/error.h"
#include "ungrain/volume.h"

// The one list of methods: each name is a folder of src/methods/ that defines `const Method&
// <name>_method()`.
#define UNGRAIN_METHODS(METHOD) \
  METHOD(box)                   \
  METHOD(gaussian)              \
  METHOD(median)                \
  METHOD(bilateral)             \
  METHOD(adaptive_bilateral)    \
  METHOD(nlm)                   \
  METHOD(nlm_bilateral)         \
  METHOD(bm3d)                  \
  METHOD(ridge)

// Those that filter volumes as solids.
#define UNGRAIN_VOLUME_METHODS(METHOD) \
  METHOD(bm4d)                         \
  METHOD(nlm3d)

namespace ungrain {

#define DECLARE(name) const Method& name##_method();
UNGRAIN_METHODS(DECLARE)
UNGRAIN_VOLUME_METHODS(DECLARE)
#undef DECLARE

#define ENTRY(name) &name##_method(),
std::span<const Method* const> all_methods() {
  static const std::array list{UNGRAIN_METHODS(ENTRY)};
  return list;
}

std::span<const Method* const> all_volume_methods() {
  static const std::array list{UNGRAIN_VOLUME_METHODS(ENTRY)};
  return list;
}
#undef ENTRY

const Method& find_method(std::string_view name) {
  std::vector<std::string> names;
  for (const auto list : {all_methods(), all_volume_methods()}) {
    for (const Method* method : list) {
      if (method->name == name) return *method;
      names.push_back(method->name);
    }
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no method '{}'{}", name, did_you_mean(name, names)));
}

namespace {

std::vector<MethodInfo> infos_of(std::span<const Method* const> methods) {
  std::vector<MethodInfo> list;
  for (const Method* method : methods) list.push_back(info_of(*method));
  return list;
}

}  // namespace

std::vector<MethodInfo> methods() { return infos_of(all_methods()); }
std::vector<MethodInfo> volume_methods() { return infos_of(all_volume_methods()); }

std::vector<MethodInfo> methods_along_slices() {
  std::vector<MethodInfo> list;
  for (const Method* method : all_methods()) {
    if (!method->depth.empty()) list.push_back(info_of(*method));
  }
  return list;
}

bool looks_along_slices(std::string_view method) {
  const auto methods = all_methods();
  return std::any_of(methods.begin(), methods.end(),
                     [&](const Method* each) { return each->name == method && !each->depth.empty(); });
}

MethodInfo method_info(std::string_view method) { return info_of(find_method(method)); }

}  // namespace ungrain
