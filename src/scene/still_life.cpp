#include "scene/still_life.h"

#include "scene/landscape.h"

namespace ungrain::scene {
namespace {

constexpr Rgb key_light = {1.28, 1.08, 0.84};
constexpr Rgb fill_light = {0.36, 0.40, 0.52};
constexpr Vec3 to_key = {-0.6227, 0.5826, 0.5223};  // of length 1

// --- The vase's outline ---

constexpr double vase_height = 0.205;
constexpr double view_tilt = 0.30;  // a circle on the table is seen as an ellipse of this ratio

// Radii from foot to lip, at even steps.
constexpr std::array<double, 10> vase_radii = {0.040, 0.047, 0.069, 0.084, 0.087,
                                               0.077, 0.057, 0.038, 0.033, 0.044};

struct Outline {
  double radius;
  double slope;  // of the radius against the height
};

Outline vase_outline(double up) {
  constexpr int last = static_cast<int>(vase_radii.size()) - 1;
  const double position = clamp01(up / vase_height) * last;
  const int i = std::min(floor_int(position), last - 1);
  const double t = position - i;
  const auto at = [&](int k) { return vase_radii[static_cast<std::size_t>(std::clamp(k, 0, last))]; };
  // Catmull-Rom, so the outline is smooth and passes through the radii.
  const double p0 = at(i - 1);
  const double p1 = at(i);
  const double p2 = at(i + 1);
  const double p3 = at(i + 2);
  const double a = (p3 - p0) / 2 + 1.5 * (p1 - p2);
  const double b = p0 - 2.5 * p1 + 2 * p2 - p3 / 2;
  const double c = (p2 - p0) / 2;
  return {p1 + t * (c + t * (b + t * a)), (c + t * (2 * b + t * 3 * a)) * last / vase_height};
}

// --- Light ---

// What a polished surface mirrors: the sky, the horizon, the table, and a bright window behind the viewer.
Rgb surroundings(Vec3 towards, double blur) {
  const Rgb above = clear_sky(std::max(towards.y, 0.0) * 0.8) * 0.9;
  const Rgb below = mix(hex(0x5A2F2A), hex(0x2A2430), clamp01(-towards.y * 1.5));
  Rgb colour = mix(below, above, smoothstep(-0.05 - blur, 0.05 + blur, towards.y));
  const double pane = inside(std::abs(towards.x + 0.50) - 0.17, 0.02 + blur) *
                      inside(std::abs(towards.y - 0.52) - 0.24, 0.02 + blur);
  const double frame =
      clamp01(strip(towards.x + 0.50, 0.014, 0.012 + blur) + strip(towards.y - 0.52, 0.014, 0.012 + blur));
  return mix(colour, {9.0, 7.8, 6.2}, pane * (1 - frame) * smoothstep(0.1, 0.3, towards.z + 0.6));
}

double fresnel(double facing) {
  const double glance = 1 - clamp01(facing);
  return 0.045 + 0.955 * square(square(glance)) * glance;
}

Rgb lit(Rgb surface, Vec3 normal) {
  const double key = std::max(0.0, 0.12 + 0.88 * dot(normal, to_key));
  const double sky = 0.55 + 0.45 * normal.y;
  const double bounce = std::max(0.0, -normal.y) * 0.30;
  return surface * (key_light * key + fill_light * sky + Rgb{0.5, 0.22, 0.16} * bounce);
}

Vec3 mirrored(Vec3 normal) {  // the direction that an eye straight ahead sees in a mirror
  constexpr Vec3 to_eye = {0, 0, 1};
  return normal * (2 * normal.z) - to_eye;
}

// --- Shadows ---

// A soft shadow that starts at `foot` and runs along `run`, widening and paling on its way. Distances across
// the table are stretched, as the table is seen at an angle.
double cast_shadow(Vec2 at, Vec2 foot, Vec2 run, double radius, double darkness) {
  constexpr double stretch = 1 / view_tilt * 0.75;
  const Vec2 p = {at.x - foot.x, (at.y - foot.y) * stretch};
  const Vec2 d = {run.x, run.y * stretch};
  const double t = clamp01(dot(p, d) / dot(d, d));
  const double distance = length(p - d * t) - radius * (1 - 0.25 * t);
  const double soft = 0.012 + 0.035 * t;
  return 1 - darkness * (1 - 0.45 * t) * smoothstep(soft, -soft, distance);
}

// The darkening close around whatever touches the table.
double contact_shadow(Vec2 at, Vec2 foot, double radius, double darkness) {
  const double distance = length({at.x - foot.x, (at.y - foot.y) / view_tilt}) - radius;
  return 1 - darkness * smoothstep(0.045, -0.01, distance);
}

// --- The cloth's pattern ---

constexpr double yarns_per_unit = 150;

// The sett: stripes of so many yarns, repeated, the same both ways.
struct Stripe {
  int yarns;
  Rgb colour;
};
constexpr Rgb red = hex(0x9E2B2A);
constexpr Rgb navy = hex(0x1F2D4D);
constexpr Rgb cream = hex(0xEBDCBD);
constexpr Rgb green = hex(0x2F5A43);
constexpr Rgb ochre = hex(0xD0983A);
constexpr std::array<Stripe, 10> sett = {{{14, red},
                                          {2, ochre},
                                          {6, red},
                                          {10, navy},
                                          {2, cream},
                                          {4, navy},
                                          {2, cream},
                                          {10, navy},
                                          {6, green},
                                          {4, red}}};

class StripePattern {
 public:
  constexpr StripePattern() {
    Rgb sum{};
    std::size_t yarn = 0;
    for (const Stripe& stripe : sett) {
      for (int i = 0; i < stripe.yarns; ++i) {
        colours_[yarn] = stripe.colour;
        sums_[yarn++] = sum;
        sum = sum + stripe.colour;
      }
    }
    sums_[yarn] = sum;
  }

  Rgb yarn(int index) const { return colours_[static_cast<std::size_t>(wrapped(index))]; }
  // The mean colour over `width` yarns around `position`.
  Rgb mean(double position, double width) const {
    const Rgb difference = sum_to(position + width / 2) + sum_to(position - width / 2) * -1.0;
    return difference * (1 / width);
  }

 private:
  static constexpr int period = 60;
  static int wrapped(int index) { return ((index % period) + period) % period; }
  Rgb sum_to(double position) const {
    const int whole = floor_int(position);
    const int rest = wrapped(whole);
    const int repeats = (whole - rest) / period;
    const auto at = static_cast<std::size_t>(rest);
    return sums_[period] * repeats + sums_[at] + colours_[at] * (position - whole);
  }

  std::array<Rgb, period> colours_{};
  std::array<Rgb, period + 1> sums_{};
};

constexpr StripePattern stripes;

// One sample of a 2/2 twill: each yarn passes over two and under two, each row shifted by one, which makes
// the diagonal.
Rgb weave(double u, double v, double detail, double pixel) {
  const int column = floor_int(u);
  const int row = floor_int(v);
  const bool warp_on_top = ((column + row) & 3) < 2;
  const Rgb colour = warp_on_top ? stripes.yarn(column) : stripes.yarn(row);
  const double across = (warp_on_top ? u - column : v - row) * 2 - 1;
  const double along = warp_on_top ? v : u;
  // How far the yarn has come up out of the cloth: it dives at either end of its float of two.
  const int shift = warp_on_top ? column : row;
  const double in_float = fraction((along + shift) / 4 + (warp_on_top ? 0.0 : 0.5)) * 2;
  const double rise = clamp01(4 * in_float * (1 - in_float));
  const double round = 1 - 0.75 * square(across);
  const double twist = fraction(along * 1.3 + across * 0.45 + hash01(shift, warp_on_top, 5));
  const double ply = 1 - 0.22 * smoothstep(0.65, 1.0, std::abs(twist * 2 - 1)) * resolved(2.5, pixel);
  const double shade = (0.50 + 0.62 * rise) * round * ply;
  return colour * mix(0.78, shade, detail);
}

}  // namespace

// --- Table and cloth ---

Table::Table(const Layout& layout)
    : layout_(layout),
      vanishing_(layout.horizon - 0.20 * layout.height),
      cosine_(portable::cos(0.30)),
      sine_(portable::sin(0.30)) {}

Table::Spot Table::spot(Vec2 at) const {
  const double near = layout_.height - vanishing_;
  const double here = at.y - vanishing_;
  const double away = near / here;  // 1 at the lower edge of the picture
  constexpr double foreshortening = 1.45;
  const double steepness = foreshortening * away * away;
  return {{(at.x - layout_.width / 2) * away, -foreshortening * near * away},
          {layout_.pixel * away, layout_.pixel * steepness}};
}

Vec2 Table::cloth_axes(Vec2 on_table) const {
  return {on_table.x * cosine_ + on_table.y * sine_, on_table.y * cosine_ - on_table.x * sine_};
}

Rgb Table::wood(const Spot& spot) const {
  // Boards run from left to right; each has its own grain: long fibres with rings that wander.
  constexpr double board_width = 0.115;
  const double across = spot.at.y / board_width;
  const int board = floor_int(across);
  const double grain_pixel = std::max(spot.pixel.x, spot.pixel.y);
  const double wander = fractal(spot.at.x * 1.6 + 17 * board, spot.at.y * 9, 3, grain_pixel * 9, 1409);
  const double rings = fraction((spot.at.y * 26 + 2.2 * wander));
  const double ring = (rings < 0.8 ? rings / 0.8 : (1 - rings) / 0.2) * resolved(26, grain_pixel) +
                      0.5 * (1 - resolved(26, grain_pixel));
  const double fibre = fractal(spot.at.x * 9 + 31 * board, spot.at.y * 210, 4, spot.pixel.y * 210, 1423);
  const double tone = clamp01(0.35 + 0.30 * ring + 0.38 * fibre + 0.22 * (hash01(board, 3, 9) - 0.5));
  const double gap = line_wave(across + 0.02, 0.04, spot.pixel.y / board_width);
  return mix(hex(0x4A2C1C), hex(0xB5794A), tone) * (1 - 0.8 * gap);
}

Rgb Table::cloth(Vec2 screen, const Spot& at) const {
  const double pixel = std::max(at.pixel.x, at.pixel.y) * yarns_per_unit;
  const Vec2 centre = cloth_axes(at.at) * yarns_per_unit;
  const Rgb blended =
      (stripes.mean(centre.x, std::max(pixel, 1.0)) + stripes.mean(centre.y, std::max(pixel, 1.0))) * 0.39;
  const double woven = 1 - smoothstep(0.75, 1.6, pixel);
  if (woven <= 0) return blended;
  // Yarn edges run at an angle to the pixels: a fixed 4 x 4 grid of samples smooths them.
  constexpr int samples = 4;
  const double detail = 1 - smoothstep(0.45, 1.1, pixel);
  Rgb sum{};
  for (int sy = 0; sy < samples; ++sy) {
    for (int sx = 0; sx < samples; ++sx) {
      const Vec2 offset = Vec2{(sx + 0.5) / samples - 0.5, (sy + 0.5) / samples - 0.5} * layout_.pixel;
      const Vec2 yarn = cloth_axes(spot(screen + offset).at) * yarns_per_unit;
      sum = sum + weave(yarn.x, yarn.y, detail, pixel);
    }
  }
  return mix(blended, sum * (1.0 / (samples * samples)), woven);
}

double Table::light(Vec2 screen) const {
  const Vec2 card_left = {layout_.card.x - layout_.card_width / 2, layout_.card.y};
  double light = cast_shadow(screen, layout_.vase, {0.34, 0.010}, 0.074, 0.95);
  light *= contact_shadow(screen, layout_.vase, 0.046, 0.60);
  light *= cast_shadow(screen, layout_.orange + Vec2{0.0, 0.002}, {0.095, 0.024}, 0.038, 0.92);
  light *= contact_shadow(screen, layout_.orange, 0.022, 0.65);
  light *=
      cast_shadow(screen, card_left + Vec2{0.03, 0.004}, {layout_.card_width + 0.03, 0.006}, 0.075, 0.70);
  return light;
}

void Table::paint(int y, Row& row) const {
  const double pixel = layout_.pixel;
  const double at_y = layout_.row_centre(y);
  const double cover = inside(layout_.table - at_y, pixel);
  if (cover <= 0) return;
  for (int x = 0; x < layout_.columns; ++x) {
    const Vec2 screen = {layout_.column_centre(x), std::max(at_y, layout_.table)};
    const Spot here = spot(screen);
    const Vec2 axes = cloth_axes(here.at);
    const Vec2 corner = cloth_axes(spot({0.30 * layout_.width - 0.12, layout_.table + 0.045}).at);
    const double cloth_pixel = std::max(here.pixel.x, here.pixel.y);
    const double from_edge = std::min(corner.y + 0.55 * layout_.height - axes.y, axes.x - corner.x + 0.40);

    Rgb colour{};
    const double on_cloth = inside(-from_edge, cloth_pixel);
    // The cloth's thickness throws a thin shadow on the wood.
    if (on_cloth < 1) colour = wood(here) * (1 - 0.55 * smoothstep(-0.022, 0.0, from_edge));
    if (on_cloth > 0) {
      // Folds left from ironing, and slack: light and dark flanks.
      const double slack = fractal(here.at.x * 2.3 + 5, here.at.y * 2.0, 3, cloth_pixel * 2, 1511);
      const double flank =
          slack - fractal(here.at.x * 2.3 + 5.10, here.at.y * 2.0 + 0.05, 3, cloth_pixel * 2, 1511);
      const double hem = strip(from_edge - 0.020, 0.0022, cloth_pixel);
      const Rgb fabric = cloth(screen, here) * ((1.05 + 1.5 * flank) * (1 - 0.35 * hem));
      blend(colour, fabric, on_cloth);
    }
    const double open = light(screen);
    const double evening = 1.05 - 0.30 * clamp01(screen.x / layout_.width);
    const Rgb illumination = key_light * (0.88 * open * evening) + fill_light * (0.24 + 0.43 * open);
    const double sheen = 0.05 * smoothstep(0.10, 0.0, screen.y - layout_.table) * (1 - on_cloth);
    // The far edge is rounded and catches the sky.
    const double rim = smoothstep(0.005, 0.0, screen.y - layout_.table);
    colour = colour * (illumination * (1 + 0.9 * rim)) + Rgb{1.0, 0.75, 0.5} * (sheen + 0.04 * rim);
    blend(row[static_cast<std::size_t>(x)], colour, cover);
  }
}

// --- The vase ---

Vec2 vase_mouth(const Layout& layout) { return {layout.vase.x, layout.vase.y - vase_height + 0.006}; }

namespace {

// Celadon with cobalt painting: rings, and a belt of petals around the belly.
Rgb vase_paint(double turn, double facing, double up, double pixel) {
  const double cloudy = fractal(turn * 5, up * 22, 4, pixel * 22, 1607);
  Rgb colour = mix(hex(0x5FA39B), hex(0xA9D2BE), clamp01(0.5 + 0.9 * cloudy));
  const Rgb cobalt = hex(0x1C3578);
  double painted = 0;
  for (const double ring : {0.022, 0.030, 0.068, 0.126, 0.134, 0.170}) {
    painted = std::max(painted, strip(up - ring, ring == 0.068 || ring == 0.126 ? 0.0018 : 0.0009, pixel));
  }
  // Towards the outline the wall turns away, and a pixel covers more of its girth.
  const double wide_pixel = pixel / std::max(facing, 0.12);
  constexpr int petals = 20;
  const double around = turn * petals;
  const double middle = std::abs(fraction(around) - 0.5) * 2;  // 0 at a petal's middle, 1 between petals
  const double petal_width = 0.085 * 2 * pi / petals / 2;      // half of one, on the surface
  // Each petal's edge is half an ellipse; its implicit function over its gradient is nearly the distance.
  constexpr double petal_height = 0.026;
  const Vec2 scaled = {middle * 1.02, std::max(0.0, up - 0.095) / petal_height};
  const double level = length(scaled);
  const double gradient = length({scaled.x / petal_width, scaled.y / petal_height}) / std::max(level, 0.1);
  const double from_petal = (level - 1) / std::max(gradient, 1.0);
  painted = std::max(painted, strip(from_petal, 0.0010, mix(pixel, wide_pixel, clamp01(scaled.x))));
  painted = std::max(painted, strip(middle * petal_width, 0.0008, wide_pixel) * inside(up - 0.112, pixel) *
                                  inside(0.074 - up, pixel));
  painted = std::max(painted, inside(length({middle * petal_width, up - 0.084}) - 0.0042, wide_pixel));
  const double wash = inside(from_petal, 0.006) * inside(0.070 - up, 0.004);
  blend(colour, hex(0x6C9FC4), 0.45 * wash);
  blend(colour, cobalt, 0.88 * painted);
  return mix(colour, hex(0xC98A4A), smoothstep(0.196, 0.204, up) * 0.8);
}

}  // namespace

void paint_vase(const Layout& layout, int y, Row& row) {
  const double pixel = layout.pixel;
  const double up = layout.vase.y - layout.row_centre(y);
  const double foot_depth = vase_radii.front() * view_tilt;
  const double lip_depth = vase_radii.back() * view_tilt;
  if (up < -foot_depth - pixel || up > vase_height + lip_depth + pixel) return;
  const int last = layout.column_at(layout.vase.x + 0.10);
  for (int x = layout.column_at(layout.vase.x - 0.10); x < last; ++x) {
    Rgb& under = row[static_cast<std::size_t>(x)];
    const double side = layout.column_centre(x) - layout.vase.x;

    // The mouth: an ellipse behind the near rim, dark inside.
    const double lip = vase_radii.back();
    const double mouth = (length({side, (up - vase_height) / view_tilt}) - lip) * 0.6;
    blend(under, mix(hex(0x2B3A36), hex(0xC9B08A), smoothstep(-0.004, 0.0, mouth)), inside(mouth, pixel));

    // The wall seen at this pixel is its near side, which tilts down by the depth of the circle it lies on.
    const Outline silhouette = vase_outline(up);
    const double towards_eye = std::sqrt(std::max(0.0, square(silhouette.radius) - square(side)));
    const double height = std::max(0.0, up + view_tilt * towards_eye);
    const double foot = std::sqrt(std::max(0.0, square(vase_radii.front()) - square(side))) * view_tilt;
    const double rim = std::sqrt(std::max(0.0, square(lip) - square(side))) * view_tilt;
    const double edge = (std::abs(side) - silhouette.radius) / std::sqrt(1 + square(silhouette.slope));
    const double cover =
        inside(edge, pixel) * inside(-up - foot, pixel) * inside(up - vase_height + rim, pixel);
    if (cover <= 0) continue;

    const double across = std::clamp(side / silhouette.radius, -1.0, 1.0);
    const double facing = std::sqrt(std::max(0.0, 1 - square(across)));
    const Vec3 normal = normalised({across, -vase_outline(height).slope, facing});
    const double turn = angle_in_turns(facing, across);
    const Rgb glaze = lit(vase_paint(turn, facing, height, pixel), normal);
    const double reflection = 0.9 * fresnel(normal.z) + 0.02;
    const Rgb gloss = surroundings(mirrored(normal), 2.5 * pixel / 0.1);
    const double nearness =
        smoothstep(0.0, 0.035, height);  // dim towards the foot, where the table hides the sky
    blend(under, glaze * (0.55 + 0.45 * nearness) + gloss * reflection * (0.4 + 0.6 * nearness), cover);
  }
}

// --- The orange ---

void paint_orange(const Layout& layout, int y, Row& row) {
  constexpr double radius = 0.043;
  const Vec2 centre = layout.orange - Vec2{0, radius - 0.010};
  const double pixel = layout.pixel;
  const double up = (centre.y - layout.row_centre(y)) / radius;
  if (std::abs(up) > 1.1 + pixel / radius) return;
  const int last = layout.column_at(centre.x + 1.1 * radius + pixel);
  for (int x = layout.column_at(centre.x - 1.1 * radius - pixel); x < last; ++x) {
    const double side = (layout.column_centre(x) - centre.x) / radius;
    const double distance = length({side, up});
    const double cover = inside((distance - 1) * radius, pixel);
    if (cover <= 0) continue;
    const double facing = std::sqrt(std::max(0.0, 1 - square(std::min(distance, 1.0))));
    // Pores: dimples that tilt the normal.
    const double u = side * (1.3 - 0.3 * facing) * 15;
    const double v = up * (1.3 - 0.3 * facing) * 15;
    const double pore_pixel = pixel / radius * 15;
    const double here = fractal(u, v, 2, pore_pixel, 1709);
    const Vec2 dimple = {fractal(u + 0.2, v, 2, pore_pixel, 1709) - here,
                         fractal(u, v + 0.2, 2, pore_pixel, 1709) - here};
    const Vec3 normal = normalised({side - 0.45 * dimple.x, up - 0.45 * dimple.y, facing + 0.05});
    const Rgb peel = mix(hex(0xE8862A), hex(0xF2A93B),
                         clamp01(0.5 + 0.8 * fractal(side * 2, up * 2, 3, pixel / radius * 2, 1721)));
    Rgb colour = lit(peel, normal);
    const Vec3 reflected = mirrored(normal);
    const double gleam = std::max(0.0, dot(reflected, to_key));
    colour = colour + key_light * (0.35 * square(square(square(square(gleam)))));
    colour = colour * (0.62 + 0.38 * smoothstep(-1.0, -0.35, up));
    // The stalk's star.
    const double stalk = length({side + 0.18, (up - 0.72) * 1.7});
    blend(colour, hex(0x4E5A2A), 0.9 * inside((stalk - 0.10) * radius, pixel));
    blend(row[static_cast<std::size_t>(x)], colour, cover);
  }
}

}  // namespace ungrain::scene
