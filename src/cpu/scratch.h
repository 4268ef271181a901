// Doubles in a worker's scratch memory, which is floats.
#pragma once

#include <cstddef>
#include <memory>

namespace ungrain {

// The first address in `memory` that is aligned for doubles; two floats more than they need must be there.
inline double* doubles_in(float* memory) {
  void* place = memory;
  std::size_t room = 2 * sizeof(double);
  return static_cast<double*>(std::align(alignof(double), sizeof(double), place, room));
}

}  // namespace ungrain
