#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ungrain/image.h"
#include "ungrain/noise_model.h"
#include "ungrain/sequence.h"

namespace ungrain {

// Gives unset parameters below their values, together with the noise's level.
enum class Bm3dProfile : std::uint8_t {
  fast,
  normal,
  high,
  dabov2007,  // the article's numbers
  matlab,     // the numbers of the program that its authors released
};

// Transform of a patch.
enum class PatchTransform : std::uint8_t {
  dct,
  bior15,    // biorthogonal 1.5 wavelets, each level on the low-low quadrant of the one before
  hadamard,  // Walsh-Hadamard
  dft,
};

// Transform along a group of patches.
enum class GroupTransform : std::uint8_t { haar, hadamard, dct, dft };

enum class Bm3dColour : std::uint8_t {
  opponent,     // an rgb image's luminance finds the groups for luminance and both colour differences
  per_channel,  // each channel by itself; always for multi images
};

// Block matching and 3-D filtering: similar patches are stacked into a group. A 3-D transform of the group
// turns what the patches have in common into a few large coefficients; small coefficients are taken for
// noise. The first step sets them to 0. The second (wiener) finds the groups again in the first step's
// result, and shrinks every coefficient according to the share of it that this result takes for signal.
//
// Of a sequence, radius_t images before and after take part: patches are followed along their motion, a group
// has the same patches of several images, and a third transform runs along time.
//
// Unset numbers follow the profile and the noise; unset numbers of the second step follow the first step's
// where those are given.
struct Bm3dParams {
  static constexpr std::string_view method = "bm3d";
  Bm3dProfile profile = Bm3dProfile::normal;
  // The noise's standard deviation, pixel units: one number, or one for each colour channel; 0 returns the
  // input. Empty: measured.
  std::vector<double> sigma = {};
  // How much the noise of an rgb image's channels has in common, from 0 (independent) to 1 (the same). Unset:
  // measured where sigma is, 0 where that is given.
  std::optional<double> correlation = {};
  // Instead of sigma: the standard deviation at every pixel, in the pixel units of the filtered image. As
  // large as that image, with one channel or one for each of its colour channels. Must outlive the Denoiser.
  ConstImageView sigma_map = {};
  // Instead of sigma: the noise by level and frequency, of the channels that are filtered. Patches of 8 x 8
  // with `dct` in both steps. No name on the command line yet.
  std::shared_ptr<const NoiseModel> noise_model = {};
  // 2: filters at half the size first, which removes noise coarser than a patch. Needs a noise model. Unset:
  // 2 where the model says that the noise is coarse, as in camera and JPEG images; else 1.
  std::optional<int> scales = {};
  int steps = 2;
  // Instead of the first step: an estimate of the clean images, in which the second step finds its groups and
  // what of them is signal. Image k of it belongs to image k of the sequence (image 0 to a single image) and
  // has its spec; what is not finite counts as 0. Its read_rows() is called in any order, by one thread at a
  // time unless there are several Denoisers; has() and starts_scene() are not called. Filters as over time,
  // with patches of 8 x 8. No name on the command line.
  std::shared_ptr<SliceReader> pilot = {};
  int radius_t = 0;  // images of a sequence before and after each that take part, up to 8
  Bm3dColour colour = Bm3dColour::opponent;
  std::optional<PatchTransform> transform = {};
  std::optional<PatchTransform> wiener_transform = {};
  std::optional<GroupTransform> group_transform = {};
  bool kaiser = true;                       // patches' edges weigh less (a Kaiser window, beta 2)
  std::optional<int> patch = {};            // pixels: side of a patch
  std::optional<int> wiener_patch = {};     // the second step's, like every wiener_ name
  std::optional<int> spacing = {};          // pixels from one reference patch to the next
  std::optional<int> wiener_spacing = {};   //
  std::optional<int> search = {};           // pixels: side of the window that is searched, odd
  std::optional<int> wiener_search = {};    //
  std::optional<int> group = {};            // patches at most
  std::optional<int> wiener_group = {};     //
  std::optional<double> max_distance = {};  // of patches in a group: mean squared difference, pixel units²
  std::optional<double> wiener_max_distance = {};
  std::optional<double> lambda = {};  // coefficients up to lambda sigma are taken for noise
};

}  // namespace ungrain
