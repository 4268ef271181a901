#include "cpu/simd.h"

#include <hwy/highway.h>

#include <fmt/format.h>

#include "ungrain/error.h"

namespace ungrain {
namespace {

// One bit for each set, better ones lower.
std::vector<std::int64_t> targets_here() {
  std::vector<std::int64_t> list;
  const std::int64_t here = hwy::SupportedTargets() & HWY_TARGETS;
  for (std::int64_t bit = 1; bit != 0 && bit <= here; bit <<= 1) {
    if ((here & bit) != 0) list.push_back(bit);
  }
  return list;
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const std::int64_t target : targets_here()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void use_simd_target(std::string_view name) {
  if (name.empty()) {
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return;
  }
  for (const std::int64_t target : targets_here()) {
    if (name != hwy::TargetName(target)) continue;
    hwy::GetChosenTarget().Update(target);
    return;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("no vector instructions '{}' here", name));
}

}  // namespace ungrain
