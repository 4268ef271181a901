// Where the time of bm3d goes, and the least that each part of it has to do.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "methods/bm3d/fast.h"
#include "ungrain/methods/bm3d.h"

namespace ungrain::bench {

class Trial;

// For a pixel of the image: operations as in cases.h, and bytes that are read or written.
struct PartWork {
  double operations = 0;
  double bytes = 0;
};
PartWork bm3d_work(const Bm3dParams& params, int channels, int step, Bm3dPart part);

// What the machine can do at most, a nanosecond. A part's memory is a tile's, which the caches hold.
struct PartRates {
  double multiply_adds = 1;
  double copy_bytes = 1;
};
constexpr std::size_t tile_copy_bytes = std::size_t{1} << 20U;

// The processor's nanoseconds for a pixel, and those that the part's work would take at the ceilings' rates;
// 0: it has none to speak of.
struct PartTime {
  std::string step;
  std::string part;
  double ns = 0;
  double fma = 0;
  double copy = 0;
};

// Of a case of bm3d on one thread: the fastest of five runs, which was disturbed least. The last one is what
// lies outside of all parts: conversions, and the engine.
std::vector<PartTime> measure_parts(Trial& trial, const PartRates& rates);

}  // namespace ungrain::bench
