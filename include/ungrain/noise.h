// Adds noise of a known kind: for tests, for tables, for learning what a method does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ungrain/image.h"
#include "ungrain/parameters.h"

namespace ungrain {

enum class NoiseKind : std::uint8_t {
  gaussian,      // amount: standard deviation, in pixel units
  salt_pepper,   // amount: share of the samples set to black or white, half each
  speckle,       // amount: standard deviation of n in I + I * n
  quantization,  // amount: number of levels from black to white
  poisson,       // amount: photons at white
};

struct Noise {
  NoiseKind kind = NoiseKind::gaussian;
  double amount = 0;
  std::uint64_t seed = 0;
};

// One row a kind; what the command line's options are made from. `amount` is ParamInfo's range and unit.
struct NoiseInfo {
  NoiseKind kind;
  ParamInfo amount;  // its name is the noise's: "salt-pepper"
};
const std::vector<NoiseInfo>& noise_models();
std::string_view name(NoiseKind kind);

// Same seed, same noise: on every platform, for every thread count, and in tiles as in the whole (the views'
// regions say where they lie). Float output is not clipped; integer output is rounded half to even and
// saturated. In place is allowed. `out` may have another type or range than `in` (values are scaled from
// white to white). Alpha is copied.
void add_noise(const ConstImageView& in, const ImageView& out, const Noise& noise);

}  // namespace ungrain
