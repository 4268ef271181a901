// The noise of magnitude MRI: its parameters, how much of it a volume has, and a simulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "ungrain/export.h"

UNGRAIN_API_BEGIN
namespace ungrain {

// A sample is the root of the sum of the squares of 2 * coils Gaussian numbers: the real and the imaginary
// part of each receive coil, all with the deviation `sigma` and independent. The root of the sum of the
// squares of their means is the true signal nu. One coil, or coils that were combined with their phases
// (SENSE): the Rician distribution. Root of the sum of squares of several coils: the noncentral chi
// distribution.
struct Rician {
  static constexpr int most_coils = 128;

  double sigma = 0;  // of each Gaussian number, in pixel units
  int coils = 1;     // 1 to most_coils
  friend bool operator==(const Rician&, const Rician&) = default;
};

// Throws Error(invalid_argument) unless sigma is finite and above 0 and the coils are in range.
void validate(const Rician& noise);

struct RicianEstimate {
  enum class Source : std::uint8_t {
    none,        // too little to measure: sigma is 0
    background,  // areas of noise without signal
    object,      // fine detail of areas with signal
  };
  double sigma = 0;
  Source source = Source::none;
  // What either source says; 0 where it says nothing.
  double background_sigma = 0;
  double object_sigma = 0;
  std::int64_t background_blocks = 0;  // of 10 x 10 samples, half overlapping
  std::int64_t object_blocks = 0;
};
std::string_view name(RicianEstimate::Source source);

// Measures sigma in the slices of a volume, given the number of coils. Each slice is looked at by itself: the
// memory needed does not grow with their number, and the result has the same bits in any order of the slices.
// Samples of exactly 0 are taken for masked and left out. So are infinite, NaN and negative ones.
class RicianEstimator {
 public:
  explicit RicianEstimator(int coils);
  ~RicianEstimator();
  RicianEstimator(RicianEstimator&&) noexcept;
  RicianEstimator& operator=(RicianEstimator&&) noexcept;

  void add_slice(const float* samples, int width, int height, std::ptrdiff_t stride);  // stride: in samples
  RicianEstimate finish() const;                                                       // of the slices so far

 private:
  struct UNGRAIN_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

// The same of a volume whose slices lie one behind the other without padding.
RicianEstimate estimate_rician(const float* volume, int width, int height, int depth, int coils);

// Draws magnitudes around the true signal `in`. The same seed gives the same bits on every platform; each
// slice of a volume has draws of its own. Both planes have the same stride, in samples. In place is allowed.
void add_rician(const float* in, float* out, int width, int height, std::ptrdiff_t stride,
                const Rician& noise, std::uint64_t seed, int slice = 0);

}  // namespace ungrain
UNGRAIN_API_END
