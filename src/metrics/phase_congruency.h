// Phase congruency after Kovesi ("Image features from phase congruency", 1999), with the parameters of FSIM:
// how well the waves of all scales meet in phase at a pixel, from 0 to 1, whatever their contrast.
#pragma once

#include <vector>

#include "metrics/fft.h"

namespace ungrain {

// Of planes of one size, at least two pixels a side. Not finite anywhere where a plane is not.
class PhaseCongruency {
 public:
  PhaseCongruency(int width, int height);
  Plane of(const Plane& image);

 private:
  void prepare_noise(int orientation);
  void add_orientation(const ComplexPlane& spectrum, int orientation);
  void add_energy(int orientation);
  double noise_threshold(int orientation, const Plane& smallest_scale_power) const;

  PlaneFft fft_;
  // A filter is the product of one of each: at which frequency it is 1, by wavelength and by direction.
  std::vector<Plane> radial_;
  std::vector<Plane> angular_;
  // By orientation: the energy that noise of power 1 in the smallest scale's response adds up to, squared.
  std::vector<double> noise_gain_;

  // By scale, of one orientation: real is the response of the even filter, imaginary of the odd.
  std::vector<ComplexPlane> responses_;
  Plane energy_;     // over the orientations so far, less the noise
  Plane amplitude_;  // over the orientations and scales so far
};

}  // namespace ungrain
