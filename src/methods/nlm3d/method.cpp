#include <algorithm>
#include <cmath>
#include <string>

#include "core/choices.h"
#include "core/descriptor.h"
#include "methods/nlm3d/nlm3d.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

using P = NlmVolumeParams;

// The rules below were fitted to phantoms and to a part of a brain template: LOG.md has the figures.

// The stronger the noise, the more smoothing tells structure from it.
std::optional<double> prefilter(const P& p, const ImageSpec& spec) {
  const std::optional<double> noise = describe::noise_on_255(p, spec);
  return noise ? std::min(0.085 + *noise / 230, 0.25) : 0;
}

// Noise alone gives distances of 2 noise², which are subtracted. The rest has a deviation that falls with the
// number of averaged differences and with the prefilter; h² is proportional to it.
std::optional<double> strength(const P& p, const ImageSpec& spec) {
  if (!p.sigma) return std::nullopt;
  const double smoothed = p.prefilter.value();
  // Of a volume that is not smoothed more of the distances is noise.
  double factor = 1.8 + 0.8 * std::min(smoothed / 0.1, 1.0);
  // And where patches are large, more of them is structure.
  const double voxels = p.patch * p.patch * p.patch_z.value();
  factor *= std::pow(std::max(voxels / 27, 1.0), 0.22);
  return factor * *p.sigma *
         distance_deviation(p.patch, p.patch_z.value(), smoothed,
                            prefilter_along_z(smoothed, p.aspect, spec.height));
}

constexpr NumberRange searches{.min = 1, .max = largest_volume_search, .unit = Unit::pixels, .odd = true};
constexpr NumberRange patches{.min = 1, .max = largest_volume_patch, .unit = Unit::pixels, .odd = true};

void check(const P& /*params*/, const ImageSpec& spec) {
  if (!spec.is_volume()) throw Error(ErrorCode::unsupported, "nlm3d is for volumes, this is an image");
}

Cost cost(const P& p, const ImageSpec& spec) {
  const double along_z = p.search_z.value_or(p.search);
  const double weights = p.search * p.search * along_z * spec.colour_channels();
  return {.cpu_ns = 0.7 * weights, .gpu_ns = 0.001 * weights};
}

}  // namespace

Pipeline nlm3d_stages(const NlmVolumeSettings& settings, bool makes_copy) {
  const int channels = settings.spec.colour_channels();
  Pipeline pipeline;
  // Along x: how far voxels of a slice matter, for those who cut slices into parts. Rows are whole ones.
  if (makes_copy) {
    pipeline.stages.push_back(
        {.name = "prefilter", .reach = {.x = 1, .y = settings.prefilter_z > 0 ? 1 : 0}, .planes = channels});
  }
  Stage search{.name = "search",
               .reach = {.x = settings.radius + settings.around, .y = settings.radius_z + settings.around_z},
               .planes = channels};
  if (makes_copy) search.reads = {0, 1};
  pipeline.stages.push_back(std::move(search));
  return pipeline;
}

const Method& nlm3d_method() {
  static const Method
      method =
          make_method<P>(
              {
                  .summary = "non-local means of volumes: averages voxels whose surroundings look alike",
                  .descriptors =
                      {
                          describe::number(&P::search, "search", searches,
                                           "side of the box that is searched"),
                          describe::derived(
                              &P::search_z, "search_z", searches, "search / aspect, odd",
                              +[](const P& p, const ImageSpec&) -> std::optional<int> {
                                return describe::odd_side_along_z(p.search, p.aspect, largest_volume_search);
                              },
                              "the same along z"),
                          describe::number(&P::patch, "patch", patches,
                                           "side of the patches that are compared"),
                          describe::derived(
                              &P::patch_z, "patch_z", patches, "patch / aspect, odd",
                              +[](const P& p, const ImageSpec&) -> std::optional<int> {
                                return describe::odd_side_along_z(p.patch, p.aspect, largest_volume_patch);
                              },
                              "the same along z"),
                          describe::aspect(&P::aspect),
                          describe::derived(
                              &P::prefilter, "prefilter", {.min = 0, .max = largest_prefilter},
                              "0.085 + sigma / 230, 0.25 at most; 0 where sigma is not known", prefilter,
                              "share of each neighbour in the copy that is compared; 0: no copy"),
                          describe::noise_level(
                              &P::sigma, +[](const P& p) { return !p.h; },
                              "the noise's standard deviation, taken off the differences; 0, or h alone: "
                              "not"),
                          describe::derived(&P::h, "h", {.min = 0, .unit = Unit::intensity},
                                            "in proportion to sigma: see its README", strength,
                                            "how different patches may be and still count; 0 returns the "
                                            "input"),
                          describe::choice(&P::self,
                                           "self", {{"max", SelfWeight::max}, {"one", SelfWeight::one}},
                                           "a voxel's weight for itself: the largest of the others', or 1"),
                      },
                  .check = check,
                  .cost = cost,
                  .depth = {{"aspect", ""}},
                  .reference = nlm3d_reference,
                  .cpu = nlm3d_cpu,
                  .cuda = UNGRAIN_CUDA_VERSION(nlm3d_cuda),
              });
  return method;
}

}  // namespace ungrain
