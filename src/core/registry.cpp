#include "core/registry.h"

#include <array>

#include <fmt/format.h>

#include "core/nearest.h"
#include "ungrain/error.h"

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

namespace ungrain {

#define DECLARE(name) const Method& name##_method();
UNGRAIN_METHODS(DECLARE)
#undef DECLARE

std::span<const Method* const> all_methods() {
#define ENTRY(name) &name##_method(),
  static const std::array list{UNGRAIN_METHODS(ENTRY)};
#undef ENTRY
  return list;
}

const Method& find_method(std::string_view name) {
  std::vector<std::string> names;
  for (const Method* method : all_methods()) {
    if (method->name == name) return *method;
    names.push_back(method->name);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no method '{}'{}", name, did_you_mean(name, names)));
}

std::vector<MethodInfo> methods() {
  std::vector<MethodInfo> list;
  for (const Method* method : all_methods()) list.push_back(info_of(*method));
  return list;
}

MethodInfo method_info(std::string_view method) { return info_of(find_method(method)); }

}  // namespace ungrain
