// The pilot that a caller gives instead of bm3d's first step (Bm3dParams::pilot).
#pragma once

#include <memory>

#include "core/planes.h"
#include "methods/bm3d/settings.h"
#include "ungrain/sequence.h"

namespace ungrain {

class PilotRows {
 public:
  PilotRows(const Bm3dSettings& settings, const ImageSpec& spec) : pilot_(settings.pilot), spec_(spec) {}
  // Rows of an image of the pilot as floats, into planes that lie in the host's memory.
  void read(int slice, const Planes& out) const;

 private:
  std::shared_ptr<SliceReader> pilot_;
  ImageSpec spec_;
};

}  // namespace ungrain
