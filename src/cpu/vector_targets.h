// Which of Highway's targets sources are compiled for that keep vectors in arrays. Both macros are evaluated
// where they are used, after Highway has defined its names.
#pragma once

// Left out: SSSE3, as in the whole library; targets beyond AVX3_DL, which newer versions of Highway add and
// the sources have no code for; targets of newer versions that differ in nothing that we use, and those that
// this build does without (CMakeLists.txt); SVE, because vectors of unknown length cannot be kept in arrays.
#define UNGRAIN_UNUSED_TARGETS                                                                            \
  (HWY_SSSE3 | (HWY_AVX3_DL - 1) | UNGRAIN_TWIN_TARGETS | UNGRAIN_LEFT_OUT_TARGETS | HWY_SVE | HWY_SVE2 | \
   HWY_SVE_256 | HWY_SVE2_128)

// False for Highway's fallbacks for processors without vectors, for which the methods have other code.
// EMU128, the fallback from gcc 12.3 on, would compile, but takes minutes.
#define UNGRAIN_HAS_VECTORS (HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)
