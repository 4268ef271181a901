#include <algorithm>

#include <fmt/format.h>

#include "core/channel_noise.h"
#include "core/choices.h"
#include "methods/ridge/ridge.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

using P = RidgeParams;

// The values of a profile, chosen by sweeps over pictures outside the test sets: LOG.md has the figures.
struct ProfileValues {
  int passes = 5;
  double start = 1;
  double keep = 0.6;
  int patch = 6;
  int spacing = 6;
  int search = 49;
  int group = 48;
};

// Above this, on the 0-255 scale, larger groups and more passes gain.
constexpr double strong_noise = 30;

std::optional<double> noise_on_255(const P& p, const ImageSpec& spec) {
  if (p.sigma.empty()) return std::nullopt;
  return *std::max_element(p.sigma.begin(), p.sigma.end()) * 255 / spec.white();
}

bool is_white(const NoiseModel::Channel& channel) {
  constexpr double most = 1.1;  // ratio of deviations
  const auto [least, largest] = std::minmax_element(channel.spectrum.begin() + 1, channel.spectrum.end());
  return *largest <= most * *least;
}

// Noise that is not white, as cameras and JPEG leave it, makes patches look alike and does not average out in
// their groups. bm3d, which knows its spectrum, then makes the better start. LOG.md has the figures.
double start_of(const P& p) {
  constexpr double mostly_pilot = 0.1;
  if (p.noise_model == nullptr) return 1;
  const auto& channels = p.noise_model->channels;
  return std::all_of(channels.begin(), channels.end(), is_white) ? 1 : mostly_pilot;
}

std::optional<ProfileValues> profile_values_of(const P& p, const ImageSpec& spec) {
  const std::optional<double> noise = noise_on_255(p, spec);
  if (!noise) return std::nullopt;
  const bool strong = *noise > strong_noise;
  ProfileValues values;
  values.start = start_of(p);
  switch (p.profile) {
    case RidgeProfile::fast:
      values.passes = 3;
      break;
    case RidgeProfile::normal:
      values.group = strong ? 64 : 48;
      break;
    case RidgeProfile::high:
      values.passes = strong ? 12 : 8;
      values.keep = strong ? 0.8 : 0.7;
      values.spacing = 4;
      values.group = strong ? 64 : 48;
      break;
  }
  // From the pilot on there is less to do.
  if (values.start < 0.5) values.passes = p.profile == RidgeProfile::high ? 3 : 2;
  return values;
}

// Patches that look alike have similar noise, the more so the stronger it is, and patches overlap: their
// noise averages less than independent noise would. LOG.md has the figures.
std::optional<double> noise_factor(const P& p, const ImageSpec& spec) {
  const std::optional<double> noise = noise_on_255(p, spec);
  if (!noise) return std::nullopt;
  return 1 + 0.4 * *noise / (*noise + 25);
}

constexpr const char* by_profile = "by profile and sigma";

template <auto member, class Number>
Descriptor by_profile_number(std::optional<Number> P::*to, std::string name, const NumberRange& range,
                             std::string help, std::string rule = by_profile) {
  return describe::derived(
      to, std::move(name), range, std::move(rule),
      +[](const P& p, const ImageSpec& spec) -> std::optional<Number> {
        const std::optional<ProfileValues> values = profile_values_of(p, spec);
        if (!values) return std::nullopt;
        return (*values).*member;
      },
      std::move(help));
}

// A map already gives the noise.
bool allows_model(const P& p, const ImageSpec&) { return p.sigma_map.data == nullptr; }

void check(const P& p, const ImageSpec& spec) {
  if (p.noise_model != nullptr) check_noise_model(P::method, *p.noise_model, p.sigma_map, spec);
  describe::check_squares(p, spec);
  check_sigma_map(P::method, p.sigma_map, spec);
  if (p.spacing && p.patch && *p.spacing > *p.patch) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("ridge: spacing takes at most the side of the patches, {}, got {}", *p.patch,
                            *p.spacing));
  }
}

Cost cost(const P& p, const ImageSpec& spec) {
  const ProfileValues values = profile_values_of(p, spec).value_or(ProfileValues{});
  const double spacing = p.spacing.value_or(values.spacing);
  const double search = p.search.value_or(values.search);
  const double groups = p.passes.value_or(values.passes) / (spacing * spacing);
  const double searches = spec.colour == Colour::rgb ? 1 : spec.colour_channels();
  // bm3d's share is a constant.
  return {.cpu_ns =
              400 * searches + groups * (0.36 * searches * search * search + 12000 * spec.colour_channels()),
          .gpu_ns = 1.3 * searches + groups * 30 * spec.colour_channels()};
}

}  // namespace

const Method& ridge_method() {
  static const Method method = make_method<P>({
      .summary =
          "similar patches combined to the least error, in passes after bm3d: better and slower than bm3d",
      .descriptors =
          {
              describe::choice(&P::profile, "profile",
                               {{"fast", RidgeProfile::fast},
                                {"normal", RidgeProfile::normal},
                                {"high", RidgeProfile::high}},
                               "time for quality"),
              describe::channel_sigma<P>(),
              describe::channel_correlation<P>(),
              describe::sigma_map<P>(),
              by_profile_number<&ProfileValues::passes>(&P::passes, "passes", {.min = 1, .max = 20},
                                                        "how often patches are combined"),
              by_profile_number<&ProfileValues::start>(
                  &P::start, "start", {.min = 0.01, .max = 1},
                  "share of the noise that the passes start with; the rest is removed as bm3d does",
                  "1; 0.1 where the noise is not white"),
              by_profile_number<&ProfileValues::keep>(&P::keep, "keep", {.min = 0, .max = 0.95},
                                                      "share of that noise that passes keep at first"),
              describe::derived(&P::noise_factor, "noise_factor", {.min = 0.1, .max = 10},
                                "1 + 0.4 sigma / (sigma + 25)", noise_factor,
                                "factor on the noise's variance that combinations are made for"),
              by_profile_number<&ProfileValues::patch>(
                  &P::patch, "patch", {.min = 4, .max = 8, .unit = Unit::pixels}, "side of a patch", "6"),
              by_profile_number<&ProfileValues::spacing>(&P::spacing, "spacing",
                                                         {.min = 1, .max = 8, .unit = Unit::pixels},
                                                         "from one reference patch to the next"),
              by_profile_number<&ProfileValues::search>(
                  &P::search, "search", {.min = 1, .max = 49, .unit = Unit::pixels, .odd = true},
                  "side of the window that is searched", "49"),
              by_profile_number<&ProfileValues::group>(&P::group, "group", {.min = 1, .max = 64},
                                                       "patches of a group at most"),
          },
      .check = check,
      .noise_model = +[](P& p) -> std::shared_ptr<const NoiseModel>& { return p.noise_model; },
      .allows_model = allows_model,
      .cost = cost,
      .reference = ridge_reference,
      .cpu = ridge_cpu,
      .cuda = UNGRAIN_CUDA_VERSION(ridge_cuda),
  });
  return method;
}

}  // namespace ungrain
