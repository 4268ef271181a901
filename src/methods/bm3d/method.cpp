#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "core/channel_noise.h"
#include "core/choices.h"
#include "core/descriptor.h"
#include "methods/bm3d/bm3d.h"
#include "methods/bm3d/scales.h"
#include "methods/bm3d/time.h"
#include "noise/noise_model.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

using P = Bm3dParams;

// The values of a profile, strengths on the 0-255 scale. Ours were chosen by a sweep over pictures outside
// the test sets: LOG.md has the figures.
struct ProfileValues {
  PatchTransform transform = PatchTransform::bior15;
  PatchTransform wiener_transform = PatchTransform::dct;
  int patch = 8;
  int wiener_patch = 8;
  int spacing = 3;
  int wiener_spacing = 3;
  int search = 39;
  int wiener_search = 39;
  int group = 16;
  int wiener_group = 32;
  double max_distance = unbounded;
  double wiener_max_distance = unbounded;
  double lambda = 2.7;
};

// Above this noise larger groups gain more than more similar patches do.
constexpr double very_strong_noise = 60;

ProfileValues profile_values_of(Bm3dProfile profile, double noise) {
  ProfileValues ours{.wiener_max_distance = 600};
  if (noise > very_strong_noise) {
    ours.group = 32;
    ours.lambda = 2.8;
  }
  switch (profile) {
    case Bm3dProfile::fast:
      ours.spacing = ours.wiener_spacing = 5;
      ours.search = ours.wiener_search = 25;
      return ours;
    case Bm3dProfile::normal:
      return ours;
    case Bm3dProfile::high:
      ours.spacing = 1;
      return ours;
    case Bm3dProfile::dabov2007:
      if (noise <= strong_noise) return {.max_distance = 2500, .wiener_max_distance = 400};
      return {.transform = PatchTransform::dct,
              .patch = 12,
              .wiener_patch = 11,
              .spacing = 4,
              .wiener_spacing = 6,
              .max_distance = 5000,
              .wiener_max_distance = 3500,
              .lambda = 2.8};
    case Bm3dProfile::matlab:
      if (noise <= strong_noise) return {.max_distance = 3000, .wiener_max_distance = 400};
      return {.wiener_patch = 11,
              .spacing = 4,
              .wiener_spacing = 6,
              .group = 32,
              .max_distance = 25000,
              .wiener_max_distance = 3500,
              .lambda = 2.8};
  }
  return {};
}

// Over time groups have few patches of each image, and references may lie farther apart.
ProfileValues profile_values_over_time(Bm3dProfile profile, int radius_t) {
  ProfileValues ours{.spacing = 4,
                     .wiener_spacing = 4,
                     .search = 11,
                     .wiener_search = 11,
                     .group = 32,
                     .wiener_group = 8,
                     .wiener_max_distance = 500,
                     .lambda = 3.1};
  if (profile == Bm3dProfile::fast) {
    ours.spacing = ours.wiener_spacing = 6;
    ours.search = ours.wiener_search = 7;
    ours.group = 12;
    ours.wiener_group = 6;
  } else if (profile == Bm3dProfile::high) {
    ours.spacing = 3;
    ours.wiener_spacing = 2;
    ours.search = ours.wiener_search = 19;
    ours.group = 64;
  }
  if (radius_t == 0) {
    ours.search = ours.wiener_search = 19;
    ours.group = ours.wiener_group = 16;
    ours.lambda = 2.7;
  }
  return ours;
}

// Nothing while the noise is unknown.
std::optional<ProfileValues> profile_values_of(const P& p, const ImageSpec& spec) {
  if (p.sigma.empty()) return std::nullopt;
  if (is_over_time(p, spec)) return profile_values_over_time(p.profile, p.radius_t);
  return profile_values_of(p.profile, *std::max_element(p.sigma.begin(), p.sigma.end()) * 255 / spec.white());
}

constexpr const char* by_profile = "by profile and sigma";

template <auto>
constexpr bool is_distance = false;
template <>
constexpr bool is_distance<&ProfileValues::max_distance> = true;
template <>
constexpr bool is_distance<&ProfileValues::wiener_max_distance> = true;

// A value of the profile.
template <auto member, class Number>
Descriptor by_profile_number(std::optional<Number> P::*to, std::string name, const NumberRange& range,
                             std::string help) {
  return describe::derived(
      to, std::move(name), range, by_profile,
      +[](const P& p, const ImageSpec& spec) -> std::optional<Number> {
        const std::optional<ProfileValues> numbers = profile_values_of(p, spec);
        if (!numbers) return std::nullopt;
        Number value = (*numbers).*member;
        if constexpr (is_distance<member>) value *= std::pow(spec.white() / 255, 2);
        return value;
      },
      std::move(help));
}

// Step 1's value, and step 2's, which follows step 1's if only that was given.
template <auto member, class Number>
Descriptor with_follower(std::optional<Number> P::*to, std::optional<Number> P::*follower, std::string name,
                         const NumberRange& range, std::string help) {
  Descriptor d = by_profile_number<member>(to, std::move(name), range, std::move(help));
  d.derive = [to, follower, fill = d.derive](void* params, const ImageSpec& spec) {
    auto* p = static_cast<P*>(params);
    if (p->*to && !(p->*follower)) p->*follower = p->*to;
    fill(params, spec);
  };
  return d;
}

bool is_power_of_two(int side) { return std::has_single_bit(static_cast<unsigned>(side)); }

template <auto member>
Descriptor patch_transform(std::optional<PatchTransform> P::*to, std::string name, std::string help) {
  return describe::derived_choice(
      to, std::move(name),
      {{"dct", PatchTransform::dct},
       {"bior1.5", PatchTransform::bior15},
       {"hadamard", PatchTransform::hadamard},
       {"dft", PatchTransform::dft}},
      member == &ProfileValues::transform
          ? "bior1.5; dct where patch is not a power of two or dabov2007 says so"
          : "dct",
      +[](const P& p, const ImageSpec& spec) -> std::optional<PatchTransform> {
        const std::optional<ProfileValues> numbers = profile_values_of(p, spec);
        if (!numbers) return std::nullopt;
        if (p.noise_model != nullptr) return PatchTransform::dct;
        if (member == &ProfileValues::transform && p.patch && !is_power_of_two(*p.patch))
          return PatchTransform::dct;
        return (*numbers).*member;
      },
      std::move(help));
}

constexpr NumberRange patch_sides{.min = 1, .max = 32, .unit = Unit::pixels};
constexpr NumberRange spacings{.min = 1, .max = 32, .unit = Unit::pixels};
constexpr NumberRange search_sides{.min = 1, .max = 127, .unit = Unit::pixels, .odd = true};
constexpr NumberRange group_sizes{.min = 1, .max = 128};
constexpr NumberRange distances{.min = 0, .unit = Unit::intensity_squared};

void check_transform(PatchTransform transform, int patch, const char* parameter) {
  const bool halves = transform == PatchTransform::bior15 || transform == PatchTransform::hadamard;
  if (!halves || is_power_of_two(patch)) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("bm3d: bior1.5 and hadamard take a {} of 1, 2, 4, 8, 16 or 32, got {}", parameter, patch));
}

// A spacing wider than a patch leaves pixels that no patch covers.
void check_spacing(const std::optional<int>& spacing, const std::optional<int>& patch,
                   const char* parameter) {
  if (!spacing || !patch || *spacing <= *patch) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("bm3d: {} takes at most the side of the patches, {}, got {}", parameter, *patch, *spacing));
}

bool has_opponent_planes(const P& p, const ImageSpec& spec) {
  return spec.colour != Colour::rgb || p.colour == Bm3dColour::opponent;
}

// Noise models hold coefficients of the 8 x 8 cosine transform.
bool has_model_patches(const P& p) {
  const bool eight = p.patch.value_or(8) == 8 && p.wiener_patch.value_or(8) == 8;
  return eight && p.transform.value_or(PatchTransform::dct) == PatchTransform::dct &&
         p.wiener_transform.value_or(PatchTransform::dct) == PatchTransform::dct;
}

// Profiles of other programs keep their transforms, and a map already gives the noise.
bool allows_model(const P& p, const ImageSpec& spec) {
  const bool ours = p.profile != Bm3dProfile::dabov2007 && p.profile != Bm3dProfile::matlab;
  return ours && p.sigma_map.data == nullptr && has_opponent_planes(p, spec) && has_model_patches(p);
}

void check_model(const P& p, const ImageSpec& spec) {
  const auto fail = [](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, "bm3d: noise_model " + why);
  };
  check_noise_model(P::method, *p.noise_model, p.sigma_map, spec);
  if (!has_opponent_planes(p, spec)) fail("is for colour = opponent");
  if (!has_model_patches(p)) fail("is for patches of 8 with transform dct");
}

// Over time there is one kind of patches, transforms and noise.
void check_over_time(const P& p, const ImageSpec& spec) {
  const char* const what = spec.colour == Colour::ycbcr ? "of ycbcr images"
                           : p.pilot != nullptr         ? "with a pilot"
                                                        : "with radius_t above 0";
  const auto only = [&](bool fits, const char* parameter, const char* values) {
    if (fits) return;
    throw Error(ErrorCode::invalid_argument, fmt::format("bm3d: {} {} takes {}", parameter, what, values));
  };
  const auto known = [](const std::optional<PatchTransform>& transform) {
    return !transform || *transform == PatchTransform::dct || *transform == PatchTransform::bior15;
  };
  only(p.patch.value_or(8) == 8, "patch", "8");
  only(p.wiener_patch.value_or(8) == 8, "wiener_patch", "8");
  only(known(p.transform), "transform", "dct and bior1.5");
  only(known(p.wiener_transform), "wiener_transform", "dct and bior1.5");
  only(p.group_transform.value_or(GroupTransform::haar) == GroupTransform::haar, "group_transform", "haar");
  only(p.scales.value_or(1) == 1, "scales", "1");
  if (p.sigma_map.data != nullptr)
    throw Error(ErrorCode::invalid_argument, fmt::format("bm3d: there is no sigma_map {}", what));
}

void check_pilot(const P& p, const ImageSpec& spec) {
  if (p.steps == 1)
    throw Error(ErrorCode::invalid_argument, "bm3d: a pilot is for the second step, steps is 1");
  if (!time_takes(spec))
    throw Error(ErrorCode::invalid_argument, "bm3d: a pilot is for images of at least 8 x 8 pixels");
}

void check(const P& p, const ImageSpec& spec) {
  describe::check_squares(p, spec);
  if (p.pilot != nullptr) check_pilot(p, spec);
  if (is_over_time(p, spec)) check_over_time(p, spec);
  if (p.transform && p.patch) check_transform(*p.transform, *p.patch, "patch");
  if (p.wiener_transform && p.wiener_patch)
    check_transform(*p.wiener_transform, *p.wiener_patch, "wiener_patch");
  check_spacing(p.spacing, p.patch, "spacing");
  if (p.steps > 1) check_spacing(p.wiener_spacing, p.wiener_patch, "wiener_spacing");
  check_sigma_map(P::method, p.sigma_map, spec);
  if (p.noise_model != nullptr) check_model(p, spec);
  const bool known = p.noise_model != nullptr || !p.sigma.empty() || p.sigma_map.data != nullptr;
  if (p.scales.value_or(1) > 1 && known && p.noise_model == nullptr)
    throw Error(ErrorCode::invalid_argument,
                "bm3d: scales of 2 need a noise model, sigma alone is for one scale");
}

// [002]'s prototype: the first step alone, Fourier transforms, groups of any size.
void paper_002(P& p, double white) {
  p.steps = 1;
  p.transform = PatchTransform::dft;
  p.group_transform = GroupTransform::dft;
  p.kaiser = false;
  p.patch = 8;
  p.spacing = 3;
  p.search = 39;
  p.group = 16;
  p.max_distance = 2500 * std::pow(white / 255, 2);
  p.lambda = 2.7;
}

// LOG.md has what more frames bring.
int clip_radius_t(const P& p) {
  if (p.profile == Bm3dProfile::fast) return 2;
  return p.profile == Bm3dProfile::high ? 6 : 4;
}

// Over time a group's patches are most of the work: their search, their paths and their transforms.
Cost cost_over_time(const Bm3dParams& p, const ImageSpec& spec) {
  const ProfileValues values = profile_values_over_time(p.profile, p.radius_t);
  const auto references = [](int spacing) { return 1.0 / (static_cast<double>(spacing) * spacing); };
  const int images = 2 * p.radius_t + 1;
  const auto patches = [&](int group) { return images * matches_for(group, images); };
  const double planes =
      spec.colour == Colour::ycbcr ? 1 + 2.0 / (spec.chroma.x * spec.chroma.y) : spec.colour_channels();
  const double first =
      references(p.spacing.value_or(values.spacing)) * patches(p.group.value_or(values.group));
  const double second = p.steps > 1 ? 2 * references(p.wiener_spacing.value_or(values.wiener_spacing)) *
                                          patches(p.wiener_group.value_or(values.wiener_group))
                                    : 0;
  return {.cpu_ns = (1 + planes) * 100 * (first + second), .gpu_ns = (1 + planes) * 0.3 * (first + second)};
}

Cost cost(const Bm3dParams& p, const ImageSpec& spec) {
  if (is_over_time(p, spec)) return cost_over_time(p, spec);
  // A reference patch every `spacing` pixels: its search, and the filtering of its group.
  const ProfileValues values = profile_values_of(p.profile, 0);
  const auto references = [](int spacing) { return 1.0 / (static_cast<double>(spacing) * spacing); };
  const int search = p.search.value_or(values.search);
  const int wiener_search = p.wiener_search.value_or(values.wiener_search);
  const double first = references(p.spacing.value_or(values.spacing));
  const double second = p.steps > 1 ? references(p.wiener_spacing.value_or(values.wiener_spacing)) : 0;
  const bool opponent = p.colour == Bm3dColour::opponent && spec.colour == Colour::rgb;
  const double searches = opponent ? 1 : spec.colour_channels();
  const double groups = opponent ? 2.2 : spec.colour_channels();
  return {.cpu_ns = 0.36 * searches * (first * search * search + second * wiener_search * wiener_search) +
                    2150 * groups * (first + second),
          .gpu_ns = 5.4 * groups * (first + second)};
}

}  // namespace

const Method& bm3d_method() {
  static const Method method = make_method<P>({
      .summary = "block matching and 3-D filtering: patches that look alike are denoised together",
      .descriptors =
          {
              describe::choice(&P::profile, "profile",
                               {{"fast", Bm3dProfile::fast},
                                {"normal", Bm3dProfile::normal},
                                {"high", Bm3dProfile::high},
                                {"dabov2007", Bm3dProfile::dabov2007},
                                {"matlab", Bm3dProfile::matlab}},
                               "time for quality; or the article's numbers, or its authors' program's"),
              describe::channel_sigma<P>(),
              describe::channel_correlation<P>(
                  +[](const P& p) { return p.colour == Bm3dColour::opponent; }),
              describe::sigma_map<P>(),
              describe::derived(
                  &P::scales, "scales", {.min = 1, .max = 2}, "2 where the noise is coarse, as cameras leave it; else 1",
                  +[](const P& p, const ImageSpec& spec) -> std::optional<int> {
                    return p.noise_model != nullptr && !is_over_time(p, spec) ? bm3d_scales(*p.noise_model, spec) : 1;
                  },
                  "2: filtered at half the size first, which removes coarse noise"),
              describe::number(&P::steps, "steps", {.min = 1, .max = 2}, "1: thresholding only; 2: Wiener filtering after it"),
              describe::number(&P::radius_t, "radius_t", {.min = 0, .max = most_time_radius},
                               "images before and after each that take part, in a sequence"),
              describe::choice(&P::colour, "colour",
                               {{"opponent", Bm3dColour::opponent}, {"per-channel", Bm3dColour::per_channel}},
                               "rgb: luminance and two colour differences with luminance's groups, or each channel by itself"),
              patch_transform<&ProfileValues::transform>(&P::transform, "transform", "within a patch"),
              patch_transform<&ProfileValues::wiener_transform>(&P::wiener_transform, "wiener_transform",
                                                          "the second step's"),
              describe::derived_choice(
                  &P::group_transform, "group_transform",
                  {{"haar", GroupTransform::haar},
                   {"hadamard", GroupTransform::hadamard},
                   {"dct", GroupTransform::dct},
                   {"dft", GroupTransform::dft}},
                  "haar", +[](const P&, const ImageSpec&) -> std::optional<GroupTransform> { return GroupTransform::haar; },
                  "along a group of patches"),
              describe::choice(&P::kaiser, "kaiser", {{"on", true}, {"off", false}},
                               "a Kaiser window: patches' edges weigh less"),
              with_follower<&ProfileValues::patch>(&P::patch, &P::wiener_patch, "patch", patch_sides, "side of a patch"),
              by_profile_number<&ProfileValues::wiener_patch>(&P::wiener_patch, "wiener_patch", patch_sides,
                                                        "the second step's; patch where that is given"),
              with_follower<&ProfileValues::spacing>(&P::spacing, &P::wiener_spacing, "spacing", spacings,
                                               "from one reference patch to the next"),
              by_profile_number<&ProfileValues::wiener_spacing>(&P::wiener_spacing, "wiener_spacing", spacings,
                                                          "the second step's; spacing where that is given"),
              with_follower<&ProfileValues::search>(&P::search, &P::wiener_search, "search", search_sides,
                                              "side of the window that is searched"),
              by_profile_number<&ProfileValues::wiener_search>(&P::wiener_search, "wiener_search", search_sides,
                                                         "the second step's; search where that is given"),
              with_follower<&ProfileValues::group>(&P::group, &P::wiener_group, "group", group_sizes,
                                             "patches of a group at most"),
              by_profile_number<&ProfileValues::wiener_group>(&P::wiener_group, "wiener_group", group_sizes,
                                                        "the second step's; group where that is given"),
              by_profile_number<&ProfileValues::max_distance>(&P::max_distance, "max_distance", distances,
                                                        "largest mean squared difference within a group"),
              by_profile_number<&ProfileValues::wiener_max_distance>(&P::wiener_max_distance, "wiener_max_distance", distances,
                                                               "the second step's"),
              by_profile_number<&ProfileValues::lambda>(&P::lambda, "lambda", {.min = 0, .max = 100},
                                                  "coefficients up to lambda sigma are taken for noise"),
          },
      .check = check,
      .presets = {{{"paper-002", "[002]'s prototype: the first step with Fourier transforms, groups of up to 16"},
                   paper_002}},
      .noise_model = +[](P& p) -> std::shared_ptr<const NoiseModel>& { return p.noise_model; },
      .allows_model = allows_model,
      .cost = cost,
      .clip_radius_t = clip_radius_t,
      .takes_ycbcr = time_takes,
      .reference = bm3d_reference,
      .cpu = bm3d_cpu,
      .cuda = UNGRAIN_CUDA_VERSION(bm3d_cuda),
  });
  return method;
}

}  // namespace ungrain
