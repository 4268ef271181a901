// The resolved settings of bm3d's backends: every value set, nothing optional.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "core/opponent.h"
#include "noise/plane_noise.h"
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

struct Bm3dSettings {
  int steps = 2;
  int radius_t = 0;
  bool over_time = false;                   // methods/bm3d/time.h: of sequences and of ycbcr
  std::shared_ptr<SliceReader> pilot = {};  // instead of step 1
  Bm3dStep first, second;
  std::vector<double> sigma;      // per plane, pixel units, after the opponent transform for colour
  bool opponent = false;          // three planes, matched on the first; otherwise every plane by itself
  ConstImageView sigma_map;       // instead of sigma where it has data
  std::vector<PlaneNoise> model;  // instead of sigma where it is not empty: one for each plane
};

// Whether the covariances of some plane's noise are known.
bool is_correlated(const Bm3dSettings& settings);

// Correction of distances in the noisy image for noise that patches share. Noise adds 2 (R(0) - R(D)) to the
// mean squared difference of patches D apart, so patches with the same noise look more similar than they are.
// The correction, matching_factor times 2 R(D) in squared pixel units of the plane, is added to the mean
// squared difference of patches (dx, dy) apart. 0 in step 2.
double distance_correction(const Bm3dSettings& settings, int step, int plane, int dx, int dy);
// The least correction, 0 or less.
double least_correction(const Bm3dSettings& settings, int step, int plane);

// Whether bm3d over time takes the image: every plane has room for a patch.
inline bool time_takes(const ImageSpec& spec) {
  constexpr int least = 7;  // pixels besides one
  return (spec.width - 1) / spec.chroma.x >= least && (spec.height - 1) / spec.chroma.y >= least;
}

// Whether the settings are those of bm3d over time. Ycbcr too, because there luma's groups serve chroma; and
// with a pilot.
inline bool is_over_time(const Bm3dParams& params, const ImageSpec& spec) {
  return (params.radius_t > 0 || spec.colour == Colour::ycbcr || params.pilot != nullptr) && time_takes(spec);
}

// Of resolved parameters: every optional has a value.
Bm3dSettings bm3d_settings(const Bm3dParams& params, const ImageSpec& spec);

// Above this (on the 0-255 scale) the article and its authors' program use other values.
inline constexpr double strong_noise = 40;

// Whether the output is the input.
bool is_identity(const Bm3dSettings& settings);

// The weight of a group whose noise varies: the reciprocal of the variance left in it, at least that of one
// coefficient. In units of the plane's mean variance, so that for uniform noise it is 1 / (coefficients kept,
// at least 1). Bounded, because it is summed in fixed point.
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

// The rows (or columns) around a pixel that its value depends on in a step (0 or 1): the references of its
// patches, and those references' groups.
inline int bm3d_reach(const Bm3dSettings& settings, int step) {
  return 2 * group_reach(settings, step) + (step == 0 ? settings.first : settings.second).patch - 1;
}

}  // namespace ungrain
