#include "methods/bm3d/time.h"

namespace ungrain {
namespace {

// Largest differences of patches that still show the same thing. LOG.md has the figures.
constexpr double follow_noisy = 6;  // of the noise's variance: two noisy patches differ by 2
constexpr double motion_gain =
    0.1;                            // that another vector must have: of the noise's deviation, for each pixel
constexpr double noise_margin = 4;  // deviations below black and above white that are told apart

}  // namespace

TimeLayout time_layout(const Bm3dSettings& settings, const ImageSpec& spec) {
  const Extent image{spec.width, spec.height};
  TimeLayout layout;
  std::vector<TimePart> parts;
  if (spec.colour == Colour::ycbcr) {
    layout.matched = {0};
    const Extent chroma{divided_up(spec.width, spec.chroma.x), divided_up(spec.height, spec.chroma.y)};
    if (spec.chroma == Subsampling{}) {
      parts = {{0, 0, 3, {}, image}};
    } else {
      parts = {{0, 0, 1, {}, image}, {0, 1, 2, spec.chroma, chroma}};
    }
  } else if (settings.opponent) {
    layout.matched = {0};
    parts = {{0, 0, 3, {}, image}};
  } else {
    for (int plane = 0; plane < spec.colour_channels(); ++plane) {
      layout.matched.push_back(plane);
      parts.push_back({plane, plane, 1, {}, image});
    }
  }
  for (const TimePart& part : parts) {
    bool goes_on = false;  // the plane before this one has noise and belongs to the same part
    for (int plane = part.first_plane; plane < part.first_plane + part.planes; ++plane) {
      const bool noisy = settings.sigma[plane] > 0;
      if (!noisy) {
        layout.copied.push_back({plane, part.step.y});
      } else if (goes_on) {
        ++layout.parts.back().planes;
      } else {
        layout.parts.push_back({part.unit, plane, 1, part.step, part.extent});
      }
      goes_on = noisy;
    }
  }
  return layout;
}

void copy_planes(const StageCall& call, const TimeLayout& layout) {
  for (const TimeLayout::Copied& copied : layout.copied) {
    for (int y = call.out.rect.y0; y < call.out.rect.y1; ++y) {
      if (y % copied.rows_between != 0) continue;
      const float* from = &call.at(0, 0).at(copied.plane, call.out.rect.x0, y);
      std::copy(from, from + call.out.rect.width(), call.out.row(copied.plane, y));
    }
  }
}

MatchPixels match_pixels(const Bm3dSettings& settings, const ImageSpec& spec, int plane) {
  const double white = spec.white() * (settings.opponent ? std::sqrt(3.0) : 1);
  const double margin = noise_margin * settings.sigma[plane];
  // Much finer than the noise is useless.
  const double step = std::max((white + 2 * margin) / match_pixel_most, settings.sigma[plane] / 32);
  return {static_cast<float>(1 / step), static_cast<float>(margin / step + 0.5)};
}

int motion_penalty(const Bm3dSettings& settings, const ImageSpec& spec, int plane) {
  const double per_pixel =
      motion_gain * settings.sigma[plane] * match_pixels(settings, spec, plane).inverse_step;
  return static_cast<int>(std::lround(per_pixel * motion_block * motion_block));
}

TimeStep time_step(const Bm3dSettings& settings, const ImageSpec& spec, int index, int matched_plane) {
  const Bm3dStep& from = index == 0 ? settings.first : settings.second;
  TimeStep step;
  step.index = index;
  step.radius = settings.radius_t;
  step.spacing = from.spacing;
  step.search = from.search;
  step.group = std::min(from.group, most_time_patches / 2);
  const double inverse_step = match_pixels(settings, spec, matched_plane).inverse_step;
  const auto limit = [&](double mean_square) {
    return static_cast<std::uint32_t>(
        std::min(mean_square * inverse_step * inverse_step * time_patch * time_patch, 4e9));
  };
  const double sigma = settings.sigma[matched_plane];
  step.match_limit = limit(from.max_distance);
  step.follow_limit = index == 0 ? limit(std::min(follow_noisy * sigma * sigma, 1e30)) : step.match_limit;
  return step;
}

std::vector<std::vector<float>> time_transforms(int radius) {
  std::vector<std::vector<float>> all(static_cast<std::size_t>(2 * radius + 2));
  for (int n = 1; n <= 2 * radius + 1; ++n) {
    for (int f = 0; f < n; ++f) {
      for (int i = 0; i < n; ++i) {
        const double norm = std::sqrt((f == 0 ? 1.0 : 2.0) / n);
        all[n].push_back(static_cast<float>(norm * std::cos(std::acos(-1.0) * (2 * i + 1) * f / (2 * n))));
      }
    }
  }
  return all;
}

Pipeline time_pipeline(const Bm3dSettings& settings, const ImageSpec& spec, const TimeStages& stages) {
  const TimeLayout layout = time_layout(settings, spec);
  const int planes = spec.colour_channels();
  const int units = static_cast<int>(layout.matched.size());
  Pipeline pipeline{.slow_border = Border::shrink};
  const auto add = [&](Stage stage, const char* name, Reach reach, int made, Element element,
                       std::vector<int> reads) {
    stage.name = name;
    stage.reach = reach;
    stage.planes = made;
    stage.element = element;
    stage.reads = std::move(reads);
    pipeline.stages.push_back(std::move(stage));
    return static_cast<int>(pipeline.stages.size());
  };
  const auto step_reach = [&](int index) {
    const int radius = settings.radius_t;
    int reach = 0;
    for (const TimePart& part : layout.parts) {
      reach = std::max(reach, time_reach(time_step(settings, spec, index, layout.matched[part.unit])) +
                                  2 * time_patch * std::max(part.step.x, part.step.y));
    }
    reach = divided_up(reach, 4) * 4;  // whole rows of chroma
    return Reach{.x = reach, .y = reach, .before = radius, .after = radius};
  };
  const int noisy = settings.opponent ? add(stages.colour, "colour", {}, planes, Element::f32, {0}) : 0;
  int pilot = 0;
  if (settings.pilot != nullptr) {
    pilot = add(stages.pilot, "pilot", {}, planes, Element::f32, {0});
    if (settings.opponent) pilot = add(stages.colour, "colour", {}, planes, Element::f32, {pilot});
  }
  // A row of a coarse level needs up to three rows behind its own; four are whole rows of chroma.
  const int match = add(stages.match, "match", {.x = 4, .y = 4}, match_planes * units, Element::u16,
                        {settings.pilot != nullptr ? pilot : noisy});
  const int motion =
      add(stages.motion, "motion", {.x = motion_reach, .y = motion_reach, .before = 1, .after = 1}, units,
          Element::u16, {match});
  if (settings.pilot != nullptr) {
    add(stages.steps[1], "wiener", step_reach(1), planes, Element::f32, {noisy, match, motion, pilot});
    return pipeline;
  }
  const int basic =
      add(stages.steps[0], "threshold", step_reach(0), planes, Element::f32, {noisy, match, motion});
  if (settings.steps == 1) return pipeline;
  const int again = add(stages.match_again, "match again", {}, match_planes * units, Element::u16, {basic});
  add(stages.steps[1], "wiener", step_reach(1), planes, Element::f32, {noisy, again, motion, basic});
  return pipeline;
}

}  // namespace ungrain
