#include "cpu/simd.h"

#include <atomic>

#include <hwy/highway.h>

#include <fmt/format.h>

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

#include "platform/machine.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

// One bit for each instruction set, better ones lower.
std::vector<std::int64_t> targets_here() {
  std::vector<std::int64_t> list;
  // Highway reports NEON only with AES instructions, but its NEON code runs without them.
  const std::int64_t here = (hwy::SupportedTargets() | HWY_STATIC_TARGET) & HWY_TARGETS;
  for (std::int64_t bit = 1; bit != 0 && bit <= here; bit <<= 1) {
    if ((here & bit) != 0) list.push_back(bit);
  }
  return list;
}

// Instructions that Highway's sets leave out because many processors lack them.
#if HWY_ARCH_X86
struct ByteDots {
  bool of_avx2 = false;
  bool of_avx3 = false;

  ByteDots() {
    constexpr unsigned avx_vnni = 1U << 4;
    constexpr unsigned avx512_vnni = 1U << 11;
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    of_avx3 = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ecx & avx512_vnni) != 0;
    of_avx2 = __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & avx_vnni) != 0;
  }
  bool of(std::int64_t target) const { return target == HWY_AVX2 ? of_avx2 : of_avx3; }
};
#else
struct ByteDots {
  static bool of(std::int64_t /*target*/) { return platform::arm_has_byte_dots(); }
};
#endif

// An extension of an instruction set, for bm3d and ridge; other filters use the set itself.
struct Variant {
  std::string_view name;
  std::int64_t targets;  // Highway's; the best one that a source was compiled for is used
  bool here;
};

std::vector<Variant> variants_here() {
  const std::int64_t supported = hwy::SupportedTargets();
  const auto has = [&](std::int64_t target) { return (supported & target) != 0; };
#if HWY_ARCH_X86
  std::vector<Variant> list = {{"AVX3_DL", HWY_AVX3_DL | HWY_AVX3, has(HWY_AVX3_DL)},
                               {"AVX3_VNNI", HWY_AVX3, has(HWY_AVX3) && ByteDots().of(HWY_AVX3)},
                               {"AVX2_VNNI", HWY_AVX2, has(HWY_AVX2) && ByteDots().of(HWY_AVX2)}};
#else
  std::vector<Variant> list = {{"NEON_DOT", HWY_NEON, has(HWY_NEON) && ByteDots::of(HWY_NEON)}};
#endif
  std::erase_if(list, [](const Variant& variant) { return !variant.here; });
  return list;
}

std::atomic<bool> byte_dots_allowed{true};

}  // namespace

bool byte_dots_in_use(std::int64_t target) {
  static const ByteDots there;
  return there.of(target) && byte_dots_allowed.load(std::memory_order_relaxed);
}

std::vector<std::string> simd_variants() {
  std::vector<std::string> names;
  for (const Variant& variant : variants_here()) names.emplace_back(variant.name);
  return names;
}

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const std::int64_t target : targets_here()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void use_simd_target(std::string_view name) {
  if (name.empty()) {
    byte_dots_allowed = true;
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return;
  }
  for (const Variant& variant : variants_here()) {
    if (name != variant.name) continue;
    byte_dots_allowed = true;
    hwy::GetChosenTarget().Update(variant.targets);
    return;
  }
  for (const std::int64_t target : targets_here()) {
    if (name != hwy::TargetName(target)) continue;
    byte_dots_allowed = false;
    hwy::GetChosenTarget().Update(target);
    return;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("no vector instructions '{}' here", name));
}

}  // namespace ungrain
