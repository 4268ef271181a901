// The numbers that bm3d's backends work with: every choice made, nothing optional.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "core/opponent.h"
#include "noise/correlation.h"
#include "ungrain/image.h"
#include "ungrain/methods/bm3d.h"
#include "ungrain/noise_model.h"

namespace ungrain {

struct Bm3dStep {
  int patch = 8;    // side k
  int spacing = 3;  // from one reference patch to the next, p
  int search = 39;  // side of the window of candidate positions, n, odd, centred on the reference
  int group = 16;   // patches at most, N
  // tau: mean squared difference per pixel, in pixel units² of the plane that is matched; infinity: no limit
  double max_distance = std::numeric_limits<double>::infinity();
  double strength = 2.7;  // step 1: lambda3D; step 2: factor on sigma in the Wiener shrinkage
  PatchTransform transform = PatchTransform::dct;
  GroupTransform along = GroupTransform::haar;
  bool kaiser = true;
  // lambda2D: above 0, patches are compared by their 2-D coefficients, those up to lambda2D sigma set to 0
  double prefilter = 0;
};

// The noise of one plane by the level of a group and by the coefficient of its patches.
struct PlaneNoise {
  std::vector<double> levels;     // of the matched plane, ascending
  std::vector<double> variances;  // at these
  NoiseModel::Spectrum shares{};  // of each coefficient: its variance over that
  double strength = 1;            // factor on the deviation for thresholds and shrinkage, kappa
  // Where it is known what neighbouring pixels' noise has in common; else null. Then a group's coefficients
  // have the variances that follow from where its patches lie: see share_of(). Shares are 1 on average.
  std::shared_ptr<const PatchCovariances> covariances = {};

  double variance(double level) const;
};
// What the share of a group's coefficient is at least: noise that patches have in common cancels in their
// differences, and shares are divided by.
inline constexpr double least_share = 1e-4;
double mean_share(const PlaneNoise& noise);
double least_variance(const PlaneNoise& noise);  // of any coefficient at any level

struct Bm3dSettings {
  int steps = 2;
  Bm3dStep first, second;
  std::vector<double> sigma;      // per plane, pixel units, after the opponent transform for colour
  bool opponent = false;          // three planes, matched on the first; otherwise every plane by itself
  ConstImageView sigma_map;       // instead of sigma where it has data
  std::vector<PlaneNoise> model;  // instead of sigma where it is not empty: one for each plane
};

// Whether it is known of some plane what neighbouring pixels' noise has in common.
bool is_correlated(const Bm3dSettings& settings);

// What the noise does to distances in the noisy image where patches have some of it in common. Noise adds
// 2 (R(0) - R(D)) to the mean squared difference of patches that lie D apart, so that patches whose noise is
// the same look more alike than they are. Added to the mean squared difference of patches (dx, dy) apart,
// this makes up for it: matching_factor times 2 R(D), squared pixel units of the plane. 0 in step 2.
double distance_correction(const Bm3dSettings& settings, int step, int plane, int dx, int dy);
// The least of all corrections, 0 or less.
double least_correction(const Bm3dSettings& settings, int step, int plane);

// Of resolved parameters: every optional has a value.
Bm3dSettings bm3d_settings(const Bm3dParams& params, const ImageSpec& spec);

// Above this (on the 0-255 scale) the article and its authors' program have other numbers.
inline constexpr double strong_noise = 40;

// Nothing to do: the output is the input.
bool is_identity(const Bm3dSettings& settings);

// The weight of a group whose noise varies: the reciprocal of the variance that is left in it, which is that
// of one coefficient at least. In units of the plane's mean variance, so that for the same noise everywhere
// it is 1 / (coefficients kept, at least 1); bounded, because it is summed in fixed point.
inline double weight_of_varying(double left, double one, double mean) {
  constexpr double most = 1024;
  const double variance = left > one ? left : one;
  return variance * most > mean ? mean / variance : most;
}

// Positions of reference patches along an axis of `length` pixels: 0, p, 2p … and the last that fits.
inline bool is_reference(int position, int length, int patch, int spacing) {
  const int last = length > patch ? length - patch : 0;
  return position == last || (position >= 0 && position < last && position % spacing == 0);
}

// An axis shorter than a patch is continued symmetrically until one fits.
inline int padded_length(int length, int patch) { return length > patch ? length : patch; }

// How far the patches of a group lie from the reference, along each axis.
inline int group_reach(const Bm3dSettings& settings, int step) {
  return (step == 0 ? settings.first : settings.second).search / 2;
}

// The rows (or columns) around a pixel that decide its value in a step (0 or 1): its patches' references, and
// those references' groups.
inline int bm3d_reach(const Bm3dSettings& settings, int step) {
  return 2 * group_reach(settings, step) + (step == 0 ? settings.first : settings.second).patch - 1;
}

}  // namespace ungrain
