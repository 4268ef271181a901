// The resolved settings of ridge's backends: every value set, nothing optional.
#pragma once

#include <vector>

#include "core/method.h"
#include "groups/match_scale.h"
#include "noise/plane_noise.h"
#include "ungrain/image.h"
#include "ungrain/methods/ridge.h"

namespace ungrain {

struct RidgeSettings {
  int passes = 5;
  double start = 1;               // share of the noise that the passes start with
  double keep = 0.6;              // tau0
  double noise_factor = 1;        // factor on the noise's variance
  int patch = 6;                  // side
  int spacing = 6;                // from one reference patch to the next
  int search = 49;                // side of the window of candidate positions, odd, centred on the reference
  int group = 48;                 // patches at most
  std::vector<double> sigma;      // of each plane, pixel units, after the opponent transform for colour
  bool opponent = false;          // three planes, matched on the first; otherwise every plane by itself
  std::vector<PlaneNoise> model;  // instead of sigma where it is not empty: one for each plane
  ConstImageView sigma_map;       // instead of sigma where it has data; sigma is then the root mean square
  double white = 1;               // of the planes
  ImageSpec spec;

  int planes() const { return spec.colour_channels(); }
  // Whether a plane's groups are searched in it, not in the first.
  bool finds_groups(int plane) const { return plane == 0 || !opponent; }
};

// Of resolved parameters: every optional has a value.
RidgeSettings ridge_settings(const RidgeParams& params, const ImageSpec& spec);

// Whether the output is the input.
bool is_identity(const RidgeSettings& settings);

// The share of the noise that the result of a pass (from 0) keeps, tau.
inline double kept_by(const RidgeSettings& settings, int pass) {
  return settings.start * settings.keep * (1 - (pass + 1.0) / settings.passes);
}

// Below this the share of noise that a group is found to have counts as this.
inline constexpr double least_left = 0.05;

// The grid of reference patches moves from pass to pass, so that a wide one serves: by so much to the right
// and down.
struct GridShift {
  int x = 0;
  int y = 0;
};
inline GridShift grid_shift(const RidgeSettings& settings, int pass) {
  return {2 * (pass + 1) % settings.spacing, (pass + 1) % settings.spacing};
}

// Patches are compared as the 8 x 8 integers around them: more pixels tell patches better from noise. Pixels
// beyond the image are its mirror's.
inline constexpr int compared_side = 8;
inline int compared_margin(const RidgeSettings& settings) { return (compared_side - settings.patch) / 2; }

// The integers of a plane. Of windows with pixels beyond their ends, those of match_scale_beyond() around the
// mean of the reference.
MatchScale match_scale(const RidgeSettings& settings, int plane);
MatchScale match_scale_beyond(const RidgeSettings& settings, int plane);

// The variance of a pixel's noise in a group, of a model, where the group's mean in the matched plane of the
// guide is `level`.
double variance_at(const RidgeSettings& settings, int plane, double level);

// The noise that combinations are made for is at least this share of the largest of the pixels' energies in a
// group, its mean subtracted: float can tell no less. That is details of a thousandth of the contrast.
inline constexpr double least_noise_of_energy = 2e-6;

// A patch's noise counts at least this share of its group's mean: where a map has zeros, weights stay finite.
inline constexpr double least_noise_share = 0.05;
// The factor on the weights of a group whose noise has the variance `group`, in a plane with `plane` on
// average. Bounded, for regions without noise.
inline double weight_by_noise(double plane, double group) {
  constexpr double most = 1024;
  return group * most > plane ? plane / group : most;
}

// The rows (or columns) around a pixel that its value depends on in one pass: the references of its patches,
// those references' windows, and the pixels around these that are compared.
inline int ridge_reach(const RidgeSettings& settings) {
  return 2 * (settings.search / 2) + settings.patch - 1 + compared_side - settings.patch;
}

// The plane of a result in which a plane's guide lies, and its partly denoised image. The first result holds
// the pilot, and the noisy image with the pilot mixed in.
constexpr int guide_plane(int plane) { return 2 * plane; }
constexpr int partly_plane(int plane) { return 2 * plane + 1; }

// That partly denoised image, and the noisy one again.
template <class T>
T mixed(const RidgeSettings& settings, T noisy, T pilot) {
  const T start = static_cast<T>(settings.start);
  return start == 1 ? noisy : start * noisy + (1 - start) * pilot;
}
template <class T>
T unmixed(const RidgeSettings& settings, T partly, T pilot) {
  return settings.start == 1 ? partly : pilot + (partly - pilot) / static_cast<T>(settings.start);
}

// How a backend computes the passes.
struct RidgePasses {
  // in: the image, the pilot; out: both as the passes read them, guide_plane() and partly_plane().
  Stage start;
  // in: the first result, and that of the pass before. The last makes the image.
  std::function<Stage(int pass)> pass;
};

// bm3d's stages for a backend.
Pipeline ridge_pilot(const RidgeParams& params, const ImageSpec& spec, Device::Kind device);
// The pilot's stages, then the passes.
Pipeline ridge_pipeline(Pipeline pilot, const RidgeSettings& settings, const RidgePasses& passes);

}  // namespace ungrain
