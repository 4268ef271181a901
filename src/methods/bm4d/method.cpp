#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "core/channel_noise.h"
#include "core/choices.h"
#include "core/descriptor.h"
#include "methods/bm4d/bm4d.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

using P = Bm4dParams;

// The values of a profile, chosen by sweeps over volumes outside the tests: LOG.md has the figures.
struct ProfileValues {
  int cube = 4;
  int wiener_cube = 5;
  int stride = 3;
  int wiener_stride = 3;
  int search = 11;
  int wiener_search = 11;
  int group = 32;
  int wiener_group = 16;
  double lambda = 2.8;
};

ProfileValues values_of(Bm4dProfile profile) {
  ProfileValues values;
  switch (profile) {
    case Bm4dProfile::fast:
      values.wiener_cube = 4;
      values.search = values.wiener_search = 7;
      values.group = 16;
      break;
    case Bm4dProfile::normal:
      break;
    case Bm4dProfile::high:
      values.stride = values.wiener_stride = 2;
      break;
  }
  return values;
}

template <auto member, class Number>
Descriptor by_profile(std::optional<Number> P::*to, std::string name, const NumberRange& range,
                      std::string help) {
  return describe::derived(
      to, std::move(name), range, "by profile",
      +[](const P& p, const ImageSpec&) -> std::optional<Number> { return values_of(p.profile).*member; },
      std::move(help));
}

// Step 2's value follows step 1's if only that was given.
template <auto member, class Number>
Descriptor with_follower(std::optional<Number> P::*to, std::optional<Number> P::*follower, std::string name,
                         const NumberRange& range, std::string help) {
  Descriptor d = by_profile<member>(to, std::move(name), range, std::move(help));
  d.derive = [to, follower, fill = d.derive](void* params, const ImageSpec& spec) {
    auto* p = static_cast<P*>(params);
    if (p->*to && !(p->*follower)) p->*follower = p->*to;
    fill(params, spec);
  };
  return d;
}

Descriptor sigma() {
  Descriptor d =
      describe::per_channel(&P::sigma, "sigma", {.min = 0, .unit = Unit::intensity}, Fallback::automatic,
                            "the noise's standard deviation; 0 returns the input");
  d.info.default_text = "auto (measured)";
  d.needed = [](const void* params) { return static_cast<const P*>(params)->sigma_map.data == nullptr; };
  d.derive = [](void* params, const ImageSpec&) {
    auto* p = static_cast<P*>(params);
    if (p->sigma.empty() && p->sigma_map.data != nullptr) p->sigma = levels_of(p->sigma_map);
  };
  return d;
}

constexpr NumberRange cubes{.min = 4, .max = largest_cube, .unit = Unit::pixels};
constexpr NumberRange strides{.min = 1, .max = largest_cube, .unit = Unit::pixels};
constexpr NumberRange searches{.min = 1, .max = largest_cube_search, .unit = Unit::pixels, .odd = true};
constexpr NumberRange groups{.min = 1, .max = most_cubes};

void check_step(const std::optional<int>& stride, const std::optional<int>& cube, const char* parameter,
                const ImageSpec& spec) {
  if (!cube) return;
  const auto fail = [](const std::string& what) {
    throw Error(ErrorCode::invalid_argument, "bm4d: " + what);
  };
  if (stride && *stride > *cube)
    fail(fmt::format("{} takes at most the side of the cubes, {}, got {}", parameter, *cube, *stride));
  const SolidExtent extent = solid_extent(spec);
  if (std::min({extent.width, extent.height, extent.depth}) < *cube) {
    fail(fmt::format("a volume of {} x {} x {} has no cube of {} voxels a side; bm3d filters slices",
                     extent.width, extent.height, extent.depth, *cube));
  }
}

void check_map(const ConstImageView& map, const ImageSpec& spec) {
  if (map.data == nullptr) return;
  const SolidExtent extent = solid_extent(spec);
  ImageSpec whole = spec;  // of which this may be a part
  whole.width = extent.width * extent.height;
  whole.slice = {.width = extent.width, .height = extent.height};
  check_sigma_map(P::method, map, whole);
}

void check_correlation(const std::vector<double>& correlation) {
  constexpr std::size_t offsets = 2 * P::largest_correlated_offset + 1;
  constexpr std::size_t expected = offsets * offsets * offsets;
  if (correlation.empty()) return;
  const auto fail = [](const std::string& what) {
    throw Error(ErrorCode::invalid_argument, "bm4d: correlation takes " + what);
  };
  if (correlation.size() != expected)
    fail(fmt::format("{} x {} x {} numbers, got {}", offsets, offsets, offsets, correlation.size()));
  if (std::abs(correlation[expected / 2] - 1) > 1e-3)
    fail(fmt::format("1 in its middle, got {:g}", correlation[expected / 2]));
  for (std::size_t i = 0; i < expected; ++i) {
    // Written so that NaN is refused.
    if (!(std::abs(correlation[i]) <= 1.01))
      fail(fmt::format("numbers from -1 to 1, got {:g}", correlation[i]));
  }
}

void check(const P& p, const ImageSpec& spec) {
  if (!spec.is_volume()) throw Error(ErrorCode::unsupported, "bm4d is for volumes, this is an image");
  describe::check_squares(p, spec);
  check_map(p.sigma_map, spec);
  check_correlation(p.correlation);
  check_step(p.stride, p.cube, "stride", spec);
  if (p.steps > 1) check_step(p.wiener_stride, p.wiener_cube, "wiener_stride", spec);
}

Cost cost(const P& p, const ImageSpec& spec) {
  const ProfileValues values = values_of(p.profile);
  const auto cubed = [](double side) { return side * side * side; };
  double compared = 0;  // voxels, and those that are filtered, for each voxel of the volume
  double filtered = 0;
  const auto add_step = [&](int stride, int search, int cube, int group, int transforms) {
    const double voxels = cubed(cube) / cubed(stride);
    compared += voxels * cubed(search);
    filtered += voxels * group * transforms;
  };
  add_step(p.stride.value_or(values.stride), p.search.value_or(values.search), p.cube.value_or(values.cube),
           p.group.value_or(values.group), 2);
  if (p.steps > 1) {
    add_step(p.wiener_stride.value_or(values.wiener_stride), p.wiener_search.value_or(values.wiener_search),
             p.wiener_cube.value_or(values.wiener_cube), p.wiener_group.value_or(values.wiener_group), 3);
  }
  const double channels = spec.colour_channels();
  return {.cpu_ns = channels * (0.08 * compared + filtered),
          .gpu_ns = channels * (1.5e-4 * compared + 1e-3 * filtered)};
}

}  // namespace

Pipeline bm4d_stages(const Bm4dSettings& settings) {
  const int channels = settings.spec.colour_channels();
  const auto stage = [&](const char* name, const Bm4dStep& step) {
    // Along x: how far voxels of a slice matter, for those who cut slices into parts. Rows are whole ones.
    return Stage{.name = name,
                 .reach = {.x = step.reach(step.radius), .y = step.reach(step.radius_z)},
                 .planes = channels};
  };
  Pipeline pipeline;
  pipeline.stages.push_back(stage("threshold", settings.threshold));
  if (settings.steps > 1) {
    pipeline.stages.push_back(stage("wiener", settings.wiener));
    pipeline.stages.back().reads = {0, 1};
  }
  return pipeline;
}

const Method& bm4d_method() {
  static const Method method =
      make_method<P>(
          {
              .summary =
                  "block matching and 4-D filtering of volumes: cubes that look alike are denoised together",
              .descriptors =
                  {
                      describe::choice(&P::profile, "profile",
                                       {{"fast", Bm4dProfile::fast},
                                        {"normal", Bm4dProfile::normal},
                                        {"high", Bm4dProfile::high}},
                                       "time for quality"),
                      sigma(),
                      describe::sigma_map<P>(),
                      describe::number(&P::steps, "steps", {.min = 1, .max = 2},
                                       "1: thresholding only; 2: with the Wiener step"),
                      with_follower<&ProfileValues::cube>(&P::cube, &P::wiener_cube, "cube", cubes,
                                                          "side of a cube, 4 or 5"),
                      by_profile<&ProfileValues::wiener_cube>(&P::wiener_cube, "wiener_cube", cubes,
                                                              "the same in step 2"),
                      with_follower<&ProfileValues::stride>(&P::stride, &P::wiener_stride, "stride", strides,
                                                            "from one reference cube to the next"),
                      by_profile<&ProfileValues::wiener_stride>(&P::wiener_stride, "wiener_stride", strides,
                                                                "the same in step 2"),
                      with_follower<&ProfileValues::search>(&P::search, &P::wiener_search, "search", searches,
                                                            "side of the box that is searched"),
                      by_profile<&ProfileValues::wiener_search>(&P::wiener_search, "wiener_search", searches,
                                                                "the same in step 2"),
                      describe::derived(
                          &P::search_z, "search_z", searches, "search / aspect, odd",
                          +[](const P& p, const ImageSpec&) -> std::optional<int> {
                            return describe::odd_side_along_z(p.search.value(), p.aspect,
                                                              largest_cube_search);
                          },
                          "the same along z, in both steps"),
                      describe::aspect(&P::aspect),
                      with_follower<&ProfileValues::group>(
                          &P::group,
                          &P::wiener_group, "group",
                          groups, "cubes of a group at most; a power of two is used"),
                      by_profile<&ProfileValues::wiener_group>(&P::wiener_group, "wiener_group",
                                                               groups, "the same in step 2"),
                      by_profile<&ProfileValues::lambda>(&P::lambda, "lambda", {.min = 0, .max = 100},
                                                         "step 1's threshold, in deviations of the noise"),
                  },
              .check = check,
              .cost = cost,
              .depth = {{"aspect", ""}},
              .reference = bm4d_reference,
              .cpu = bm4d_cpu,
              .cuda = UNGRAIN_CUDA_VERSION(bm4d_cuda),
          });
  return method;
}

}  // namespace ungrain
