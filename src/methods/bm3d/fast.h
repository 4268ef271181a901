// The fast version on a CPU.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/method.h"
#include "methods/bm3d/settings.h"

namespace ungrain {

// Whether bm3d_fast() supports the settings.
bool bm3d_fast_takes(const Bm3dSettings& settings, const ImageSpec& spec);

// The parts of a run's time.
enum class Bm3dPart : std::uint8_t {
  copies,    // pixels into a tile's memory
  integers,  // for matching, and patches' energies
  matching,
  columns,  // transformed once for all patches
  groups,   // transformed, shrunk, transformed back and added to columns
  sums,     // from columns and patches' weights to pixels
  division,
};
constexpr int bm3d_parts = 7;

// Processor time in ns, summed over all threads.
struct Bm3dTimes {
  std::atomic<std::int64_t> ns[2][bm3d_parts] = {};  // by step

  std::int64_t of(int step, Bm3dPart part) const { return ns[step][static_cast<int>(part)]; }
};

// `times`, for benchmarks: every run of the pipeline adds to it; it must outlive the pipeline.
Pipeline bm3d_fast(const Bm3dSettings& settings, const ImageSpec& spec, Bm3dTimes* times = nullptr);

}  // namespace ungrain
