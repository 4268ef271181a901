#include "scene/landscape.h"

namespace ungrain::scene {
namespace {

struct RidgeLook {
  double base;  // height above the horizon that the crest swings around
  double amplitude;
  double frequency;
  Rgb lit;
  Rgb shaded;
  Rgb mist;  // what the foot of the ridge dissolves into
};

// Far to near; the last one is wooded.
constexpr std::array<RidgeLook, 4> ridges = {{
    {0.055, 0.200, 1.9, hex(0xD8A9A0), hex(0x7C83A6), hex(0xF0BE9A)},
    {0.035, 0.130, 2.7, hex(0xA58490), hex(0x5A6688), hex(0xD8A694)},
    {0.018, 0.085, 3.9, hex(0x6B6A70), hex(0x3B4C66), hex(0xA58A8C)},
    {0.008, 0.040, 5.0, hex(0x4A5544), hex(0x1E3034), hex(0x5F6668)},
}};
constexpr Rgb snow_lit = hex(0xFFE3CC);
constexpr Rgb snow_shaded = hex(0xA9AECB);

// Pines of the wooded ridge: spikes of random height, one a cell.
double pine_height(double x, double pixel) {
  constexpr double spacing = 0.0075;
  const double blurred = smoothstep(0.6, 1.5, pixel / spacing);  // too small to be seen singly
  double tallest = 0;
  const int cell = floor_int(x / spacing);
  for (int c = cell - 1; c <= cell + 1; ++c) {
    const double centre = (c + 0.1 + 0.8 * hash01(c, 0, 71)) * spacing;
    const double height =
        (0.009 + 0.017 * square(hash01(c, 1, 71))) * (1 + 0.6 * noise(centre * 11, 0.5, 73));
    const double half_width = 0.30 * height;
    const double from_tip = std::abs(x - centre) / half_width * height;
    // Tiers of branches: the outline steps in and out on the way down.
    const double tier = 0.0022 * fraction(from_tip / 0.0045);
    tallest = std::max(tallest, height - from_tip - tier);
  }
  return mix(tallest, 0.010, blurred);
}

}  // namespace

Rgb clear_sky(double up) {
  constexpr double spacing = 0.075;
  constexpr std::array<Rgb, 10> stops = {{hex(0xFFD798), hex(0xFBC18C), hex(0xE6A893), hex(0xC99AA2),
                                          hex(0xA08FB0), hex(0x7683B0), hex(0x5670A4), hex(0x415C92),
                                          hex(0x324C80), hex(0x263F70)}};
  constexpr int last = static_cast<int>(stops.size()) - 1;
  const double position = std::clamp(up / spacing, 0.0, static_cast<double>(last));
  const int i = std::min(floor_int(position), last - 1);
  const double t = position - i;
  const auto stop = [&](int k) { return stops[static_cast<std::size_t>(std::clamp(k, 0, last))]; };
  // Catmull-Rom: straight lines between the stops would show as bands.
  const double t2 = t * t;
  const double t3 = t2 * t;
  return stop(i - 1) * (-0.5 * t + t2 - 0.5 * t3) + stop(i) * (1 - 2.5 * t2 + 1.5 * t3) +
         stop(i + 1) * (0.5 * t + 2 * t2 - 1.5 * t3) + stop(i + 2) * (-0.5 * t2 + 0.5 * t3);
}

Landscape::Landscape(const Layout& layout) : layout_(layout) {
  for (std::size_t ridge = 0; ridge < ridge_count; ++ridge) {
    crests_[ridge].resize(static_cast<std::size_t>(layout.columns));
    for (int x = 0; x < layout.columns; ++x) {
      const double centre = layout.column_centre(x);
      crests_[ridge][static_cast<std::size_t>(x)] = {
          {crest_at(ridge, centre - layout.pixel / 4), crest_at(ridge, centre + layout.pixel / 4)}};
    }
  }
}

double Landscape::crest_at(std::size_t ridge, double x) const {
  const RidgeLook& look = ridges[ridge];
  const double from_sun = x - layout_.sun.x;
  const auto seed = static_cast<std::uint32_t>(11 + 20 * ridge);
  const double swing = ridged(from_sun * look.frequency + 3.7, 0.35 + 7.0 * static_cast<double>(ridge), 9,
                              look.frequency * layout_.pixel, seed);
  // The ridges part around the sun, which sets in the gap.
  const double gap = 1 - 0.80 * smoothstep(0.34, 0.04, std::abs(from_sun));
  double height = look.base * mix(0.4, 1.0, gap) + look.amplitude * (swing - 0.25) * gap;
  if (ridge + 1 == ridge_count) height += pine_height(x, layout_.pixel);
  return std::max(height, 0.004);
}

Rgb Landscape::sky(Vec2 at) const {
  const double up = layout_.horizon - at.y;
  Rgb colour = clear_sky(up / std::sqrt(layout_.height));

  const Vec2 from_sun = at - layout_.sun;
  const double sun_distance = length({from_sun.x, from_sun.y * 1.25});
  const double glow = 1 / (1 + square(sun_distance / 0.16));
  colour = colour + Rgb{0.60, 0.30, 0.10} * (glow * 0.75);

  // Clouds lie on a plane overhead, so they shrink and flatten towards the horizon.
  const double range = 0.16 / (std::max(up, 0.0) + 0.10);
  const double cloud_x = (at.x - 0.5 * layout_.width) * range * 3.1 + 40 + layout_.clouds;
  const double cloud_y = range * 5.2;
  const double footprint = layout_.pixel * range * std::max(3.1, 5.2 / (std::max(up, 0.0) + 0.10));
  const double drift = fractal(cloud_x * 0.6, cloud_y * 0.6, 2, footprint, 501);
  const double body =
      fractal(cloud_x * 0.8 + 0.9 * drift, cloud_y * 1.3 + 0.5 * drift, 7, footprint * 0.9, 523);
  // Lit from below and from the sun's side: the difference to the cloud a little that way.
  const double towards_sun =
      fractal(cloud_x * 0.8 + 0.9 * drift - 0.10 * std::clamp(from_sun.x / 0.3, -1.0, 1.0),
              cloud_y * 1.3 + 0.5 * drift + 0.16, 4, footprint * 0.9, 523);
  const double cover = smoothstep(-0.10, 0.24, body + 0.16 * drift) * smoothstep(0.0, 0.10, up);
  const double lit = clamp01(0.45 + 2.0 * (body - towards_sun));
  const double warmth = 1 / (1 + square(sun_distance / 0.45));
  const Rgb bright = mix(hex(0xE6B9B4), hex(0xFFC48A), warmth);
  const Rgb dark = mix(hex(0x56618A), hex(0xB0718A), warmth);
  blend(colour, mix(dark, bright, lit), 0.82 * cover);

  const double disc = inside(length(from_sun) - 0.026, std::max(layout_.pixel, 0.002));
  blend(colour, mix(Rgb{1.30, 1.12, 0.78}, {1.10, 0.78, 0.40}, clamp01(0.5 + from_sun.y / 0.05)),
        disc * (1 - 0.5 * cover));
  return colour;
}

Rgb Landscape::ridge_colour(std::size_t ridge, Vec2 at, double up, double below_crest) const {
  const RidgeLook& look = ridges[ridge];
  const auto seed = static_cast<std::uint32_t>(300 + 20 * ridge);
  const bool wooded = ridge + 1 == ridge_count;
  const double frequency = wooded ? 42 : 15 * look.frequency / ridges[0].frequency;
  const double pixel = layout_.pixel * frequency;
  const double x = (at.x - layout_.sun.x) * frequency;
  const double y = below_crest * frequency * (wooded ? 0.6 : 0.8);
  // Slopes that face the sun are lit: the rise of the rock over a small step towards it.
  const double step = -0.12 * std::clamp((at.x - layout_.sun.x) / 0.12, -1.0, 1.0);
  const double relief = ridged(x, y, 6, pixel, seed);
  const double slope = relief - ridged(x + step, y + 0.05, 6, pixel, seed);
  const double lit = clamp01(0.36 + 5.5 * slope);
  Rgb colour = mix(look.shaded, look.lit, lit);
  if (ridge == 0) {
    const double snow = smoothstep(0.085, 0.125, up + 0.10 * (relief - 0.3));
    blend(colour, mix(snow_shaded, snow_lit, lit), 0.9 * snow);
  }
  if (wooded) colour = colour * (0.75 + 0.6 * relief);
  const double mist = smoothstep(0.075, 0.0, up) * (wooded ? 0.25 : 0.85);
  return mix(colour, look.mist, mist);
}

Rgb Landscape::far_view(int column, Vec2 at) const {
  const double up = layout_.horizon - at.y;
  // Nearest first: the ridge that covers the pixel whole hides all behind it.
  std::array<double, ridge_count> coverage{};
  std::size_t first = 0;
  for (std::size_t ridge = ridge_count; ridge-- > 0;) {
    const auto& heights = crests_[ridge][static_cast<std::size_t>(column)].heights;
    coverage[ridge] = (inside(up - heights[0], layout_.pixel) + inside(up - heights[1], layout_.pixel)) / 2;
    if (coverage[ridge] >= 1) {
      first = ridge;
      break;
    }
  }
  Rgb colour = coverage[first] >= 1 ? Rgb{} : sky(at);
  for (std::size_t ridge = first; ridge < ridge_count; ++ridge) {
    if (coverage[ridge] <= 0) continue;
    const auto& heights = crests_[ridge][static_cast<std::size_t>(column)].heights;
    const double below_crest = (heights[0] + heights[1]) / 2 - up;
    blend(colour, ridge_colour(ridge, at, up, below_crest), coverage[ridge]);
  }
  // The sun floods what stands before it.
  const Vec2 from_sun = at - layout_.sun;
  const double flare = 1 / (1 + square(length(from_sun) / 0.07));
  return colour + Rgb{0.50, 0.26, 0.09} * (0.5 * flare);
}

Rgb Landscape::lake(int column, Vec2 at) const {
  const double down = at.y - layout_.horizon;
  // Ripples lie on the water's plane: `away` is the distance to the viewer's eye, in eye heights.
  const double away = 1 / (down + 0.012);
  const double ripple_x = (at.x - layout_.width / 2) * away * 1.6;
  const double ripple_y = away * 7.0;
  const double footprint = layout_.pixel * std::max(1.6 * away, 7.0 * away * away * 0.7);
  const double swell = fractal(ripple_x, ripple_y, 5, footprint, 811);
  const double gust = fractal(at.x * 1.7, down * 14, 3, layout_.pixel * 14, 829);

  const double sway = swell * (0.004 + down * (0.34 + 0.25 * gust));
  // Too fine to be seen far out, the ripples still let the mirror image waver.
  const double waver =
      fractal(at.x * 9, down * 150, 3, layout_.pixel * 150, 839) * 0.010 * smoothstep(0.0, 0.04, down);
  const Vec2 mirrored = {at.x, layout_.horizon - down * 0.92 + sway + waver};
  Rgb colour = far_view(column, {at.x, std::min(mirrored.y, layout_.horizon - 0.002)});
  paint_lighthouse(layout_, {at.x + 0.25 * sway, 2 * layout_.waterline - at.y + sway + waver * 0.6}, colour);

  // The nearer the water, the more one looks into it rather than at its mirror.
  const double depth = smoothstep(0.0, 0.30, down);
  blend(colour, hex(0x17343F), 0.16 + 0.40 * depth + 0.22 * clamp01(swell + 0.1) * depth);

  // Glitter under the sun: facets that happen to throw it at the eye.
  const double path = (at.x - layout_.sun.x) / (0.035 + 0.30 * down);
  const double facet = smoothstep(0.02, 0.30, swell + 0.10);
  colour = colour + Rgb{1.0, 0.62, 0.28} * (0.85 * facet / (1 + square(path) * (1 + square(path))));

  const double shore_haze = smoothstep(0.020, 0.0, down);
  return mix(colour, hex(0xF0BE98), 0.28 * shore_haze);
}

void Landscape::paint_boat(Vec2 at, Rgb& under) const {
  const Vec2 foot = {layout_.sun.x + 0.065 + layout_.boat, layout_.horizon + 0.030};
  const double size = 0.052;
  const Vec2 p = (at - foot) * (1 / size);
  const double pixel = layout_.pixel / size;
  if (std::abs(p.x) > 0.8 || std::abs(p.y) > 1.4) return;
  // The mirror image first, wavering and dim.
  const bool mirrored = p.y > 0.12;
  const double waver = mirrored ? 0.06 * noise(p.x * 2, p.y * 9, 77) : 0;
  const Vec2 q = mirrored ? Vec2{p.x + waver, 0.24 - p.y} : p;
  const double strength = mirrored ? 0.45 : 1.0;
  const auto triangle = [&](Vec2 a, Vec2 b, Vec2 c) {
    const auto side = [&](Vec2 from, Vec2 to) {
      const Vec2 edge = to - from;
      return ((q.x - from.x) * edge.y - (q.y - from.y) * edge.x) / length(edge);
    };
    return inside(std::max({side(a, b), side(b, c), side(c, a)}), pixel);
  };
  const Rgb sail = mix(hex(0xFFF1DA), hex(0xC99C94), clamp01(0.5 + q.x * 1.4));
  blend(under, sail, strength * triangle({0.04, -1.25}, {0.56, -0.12}, {0.04, -0.12}));
  blend(under, hex(0xF4D2B4), strength * triangle({-0.02, -1.10}, {-0.02, -0.12}, {-0.48, -0.12}));
  const double hull =
      std::max({-0.06 - q.y, q.y - 0.12, std::abs(q.x) - 0.62 + 1.1 * std::max(q.y + 0.06, 0.0)});
  blend(under, hex(0x4A2B2B), strength * inside(hull, pixel));
}

void Landscape::paint(int y, Row& row) const {
  const double at_y = layout_.row_centre(y);
  for (int x = 0; x < layout_.columns; ++x) {
    const Vec2 at = {layout_.column_centre(x), at_y};
    Rgb& colour = row[static_cast<std::size_t>(x)];
    colour = at.y < layout_.horizon ? far_view(x, at) : lake(x, at);
    paint_boat(at, colour);
    if (at.y < layout_.waterline + layout_.pixel) paint_lighthouse(layout_, at, colour);
  }
}

}  // namespace ungrain::scene
