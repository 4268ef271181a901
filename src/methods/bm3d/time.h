// bm3d over time: what its versions share. README.md, "Over time", has the definition.
//
// Stages: luminance and colour differences of rgb ("colour"); the pixels that are compared ("match"), of 12
// bits, with two coarser levels; block motion ("motion", src/motion/); step 1 ("threshold"); the pixels of
// its result that are compared; step 2 ("wiener"). With a pilot: that ("pilot") and its colours, the pixels
// that are compared and motion, all of the pilot, and step 2.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/host_device.h"
#include "core/method.h"
#include "methods/bm3d/settings.h"
#include "motion/motion.h"

namespace ungrain {

Pipeline bm3d_time_reference(const Bm3dSettings& settings, const ImageSpec& spec);
Pipeline bm3d_time_cpu(const Bm3dSettings& settings, const ImageSpec& spec);
Pipeline bm3d_time_cuda(const Bm3dSettings& settings, const ImageSpec& spec);

constexpr int time_patch = 8;
constexpr int most_time_matches = 16;   // patches of one image in a group
constexpr int most_time_patches = 128;  // in a group
constexpr int most_time_radius = 8;
constexpr int most_time_images = 2 * most_time_radius + 1;

// Planes whose groups are found together.
struct TimePart {
  int unit = 0;         // the matched plane's number among those that are matched
  int first_plane = 0;  // that it filters
  int planes = 1;
  Subsampling step = {};  // of the matched plane's pixels, for one of these planes
  Extent extent = {};     // of these planes
};

// How time_step() and the stages divide the planes: `matched` has the planes that are matched. Planes without
// noise are `copied`, their rows `rows_between` apart, and in no part.
struct TimeLayout {
  struct Copied {
    int plane = 0;
    int rows_between = 1;
  };
  std::vector<int> matched;
  std::vector<TimePart> parts;
  std::vector<Copied> copied;
};
TimeLayout time_layout(const Bm3dSettings& settings, const ImageSpec& spec);
// A step's planes that are copied, on the CPU.
void copy_planes(const StageCall& call, const TimeLayout& layout);

// Pixels to 12 bits: value * inverse_step + offset, clamped, without its fraction.
struct MatchPixels {
  float inverse_step = 1;
  float offset = 0;

  UNGRAIN_HOST_DEVICE std::uint16_t operator()(float value) const {
    const float scaled = value * inverse_step + offset;
    const float most = match_pixel_most;
    return static_cast<std::uint16_t>(scaled >= most ? most : scaled > 0 ? scaled : 0.0F);
  }
};
MatchPixels match_pixels(const Bm3dSettings& settings, const ImageSpec& spec, int plane);

// What another vector than the first must gain, over a block (src/motion/).
int motion_penalty(const Bm3dSettings& settings, const ImageSpec& spec, int plane);

// One step, in the units of match pixels.
struct TimeStep {
  int index = 0;  // 0 or 1
  int radius = 0;
  int spacing = 4;
  int search = 11;
  int group = 32;  // patches that a group should have
  // Largest sum of squared differences of two patches: of images that follow each other in step 1, or with
  // the reference in step 2; and of a match with its reference.
  std::uint32_t follow_limit = 0;
  std::uint32_t match_limit = 0;
};
TimeStep time_step(const Bm3dSettings& settings, const ImageSpec& spec, int index, int matched_plane);

// How many patches of one image a group of `images` images takes: three quarters of the group at least.
UNGRAIN_HOST_DEVICE constexpr int matches_for(int group, int images) {
  int count = 1;
  while (count < most_time_matches && 4 * count * images < 3 * group) count *= 2;
  return count;
}

// Pixels around a pixel that a step depends on, of the matched plane.
constexpr int time_reach(const TimeStep& step) {
  return step.radius * (largest_motion + 1) + 2 * (step.search / 2) + 2 * time_patch + motion_block;
}

// From a patch of a part's plane to the matched plane's patch with the same middle, and back.
UNGRAIN_HOST_DEVICE constexpr int matched_position(int position, int step, int last) {
  const int at = (position + time_patch / 2) * step - time_patch / 2;
  return at < last ? at : last;
}
UNGRAIN_HOST_DEVICE constexpr int plane_position(int matched, int step, int last) {
  const int at = (matched + time_patch / 2 + step / 2) / step - time_patch / 2;
  return at < 0 ? 0 : at < last ? at : last;
}
// How far a part's patches lie from the reference, in its own pixels.
constexpr int part_reach(int search, int step) { return (search / 2 + step - 1) / step + (step > 1 ? 1 : 0); }

// Orthonormal cosine transforms along time: row f of the matrix of size n at [n][f * n].
std::vector<std::vector<float>> time_transforms(int radius);

// The pipeline of stages, with each version's own functions.
struct TimeStages {
  Stage pilot;   // reads the pilot, where there is one
  Stage colour;  // used for rgb alone
  Stage match;
  Stage motion;
  Stage steps[2];
  Stage match_again;
};
Pipeline time_pipeline(const Bm3dSettings& settings, const ImageSpec& spec, const TimeStages& stages);

}  // namespace ungrain
