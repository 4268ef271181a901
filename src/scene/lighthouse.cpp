#include "scene/landscape.h"

namespace ungrain::scene {
namespace {

constexpr Rgb evening_sun = {1.25, 0.98, 0.72};
constexpr Rgb sky_fill = {0.34, 0.38, 0.52};

// Light on a wall that faces `turn`: -1 towards the sun at the left, 1 away from it.
Rgb wall_light(double turn) { return mix(evening_sun, sky_fill, smoothstep(-0.75, 0.80, turn)); }

struct Painter {
  Vec2 at;  // from the foot of the tower, y up
  double pixel;
  Rgb& under;

  void rectangle(double left, double right, double bottom, double top, Rgb colour) const {
    const double across = strip(at.x - (left + right) / 2, (right - left) / 2, pixel);
    const double along = strip(at.y - (bottom + top) / 2, (top - bottom) / 2, pixel);
    blend(under, colour, across * along);
  }
};

void paint_rock(const Painter& paint, double waterline) {
  const double x = paint.at.x;
  const double up = paint.at.y - waterline;
  if (std::abs(x) > 0.24) return;
  const double shape = 1 - square((x - 0.015) / 0.205);
  const double crest =
      0.040 * shape + 0.020 * fractal(x * 16, 0.5, 6, paint.pixel * 16, 907) * smoothstep(-0.1, 0.5, shape);
  const double cover = inside(up - crest, paint.pixel * 1.3) * inside(-up, paint.pixel);
  if (cover <= 0) return;
  const double relief = ridged(x * 26, up * 40, 5, paint.pixel * 40, 919);
  const double slope = relief - ridged((x - 0.004) * 26, (up + 0.002) * 40, 5, paint.pixel * 40, 919);
  Rgb colour = mix(hex(0x39383F), hex(0xB58B74), clamp01(0.38 + 4.5 * slope));
  const double grass =
      smoothstep(0.012, 0.003, crest - up + 0.010 * (relief - 0.4)) * smoothstep(0.01, 0.03, crest);
  blend(colour, mix(hex(0x37462A), hex(0x9A8F4B), clamp01(0.4 + 4 * slope)), 0.85 * grass);
  const double wet = smoothstep(0.010, 0.0, up);
  blend(colour, hex(0x1D2227), 0.65 * wet);
  blend(paint.under, colour, cover);
}

// Courses of bricks, each brick of its own shade; the joints dissolve where the pixels get coarser than they.
Rgb brick(double x, double y, double pixel) {
  constexpr double course = 0.0052;
  constexpr double brick_width = 0.0118;
  const double row = y / course;
  const int row_index = floor_int(row);
  const double along = x / brick_width + 0.5 * (row_index & 1);
  const double bed_joint = line_wave(row + 0.09, 0.18, pixel / course);
  const double head_joint = line_wave(along + 0.045, 0.09, pixel / brick_width);
  const double joint = 1 - (1 - bed_joint) * (1 - head_joint);
  const double shade = mix(0.5, hash01(floor_int(along), row_index, 33), resolved(1 / course, pixel));
  return mix(mix(hex(0x8E4A3A), hex(0xC07A58), shade), hex(0xC9B59E), 0.75 * joint);
}

void paint_window(const Painter& paint, double x, double y, double half_width, double half_height) {
  paint.rectangle(x - half_width - 0.0022, x + half_width + 0.0022, y - half_height - 0.0022,
                  y + half_height + 0.0022, hex(0xEFE3D2));
  const double warm = clamp01((paint.at.y - y) / half_height * 0.5 + 0.5);
  paint.rectangle(x - half_width, x + half_width, y - half_height, y + half_height,
                  mix(hex(0xFFE08A), hex(0xE88A3C), warm));
  paint.rectangle(x - 0.0006, x + 0.0006, y - half_height, y + half_height, hex(0x5A4636));
  paint.rectangle(x - half_width, x + half_width, y - 0.0006, y + 0.0006, hex(0x5A4636));
}

void paint_house(const Painter& paint) {
  constexpr double left = 0.030;
  constexpr double right = 0.135;
  constexpr double eaves = 0.046;
  constexpr double roof_ridge = 0.082;
  const double x = paint.at.x;
  const double y = paint.at.y;
  if (x < left - 0.02 || x > right + 0.02 || y < -0.03 || y > 0.11) return;

  paint.rectangle(0.108, 0.120, 0.05, 0.096, brick(x, y, paint.pixel) * wall_light(0.1));
  paint.rectangle(0.1065, 0.1215, 0.094, 0.098, hex(0x6E5A50));

  // The gable wall at the left takes the sun; the long wall is in the shade.
  const double gable_right = 0.062;
  const double gable_top =
      mix(roof_ridge, eaves, std::abs(x - (left + gable_right) / 2) / ((gable_right - left) / 2));
  const double gable = inside(y - gable_top, paint.pixel * 1.8) * inside(-0.03 - y, paint.pixel) *
                       strip(x - (left + gable_right) / 2, (gable_right - left) / 2, paint.pixel);
  blend(paint.under, brick(x, y, paint.pixel) * wall_light(-0.7), gable);
  paint.rectangle(gable_right, right, -0.03, eaves, brick(x * 0.9, y, paint.pixel) * wall_light(0.25));

  // The roof over the long wall: rows of tiles, leaning with the gable.
  const double lean = (y - eaves) / (roof_ridge - eaves) * 0.016;
  const double roof_x = x + lean;
  const double tiles = line_wave((y - eaves) / 0.0048, 0.24, paint.pixel / 0.0048);
  const double tile_joint =
      line_wave(roof_x / 0.0060 + 0.5 * (floor_int((y - eaves) / 0.0048) & 1), 0.18, paint.pixel / 0.0060);
  const Rgb slate = mix(hex(0x8C5348), hex(0x3B2A33), clamp01(0.75 * tiles + 0.35 * tile_joint)) * 0.9;
  const double roof_left = gable_right - 0.002;
  const double roof =
      strip(y - (eaves + roof_ridge - 0.003) / 2, (roof_ridge - eaves + 0.003) / 2, paint.pixel) *
      strip(roof_x - (roof_left + right + 0.005) / 2, (right + 0.005 - roof_left) / 2, paint.pixel);
  blend(paint.under, slate, roof);
  // Bargeboards along the gable.
  const double board = std::abs(y - gable_top - 0.0012) / 1.9;
  blend(paint.under, hex(0xF3E4D0),
        strip(board, 0.0016, paint.pixel) * strip(x - 0.046, 0.0185, paint.pixel));

  paint_window(paint, 0.046, 0.026, 0.0060, 0.0090);
  paint_window(paint, 0.082, 0.022, 0.0055, 0.0085);
  paint_window(paint, 0.116, 0.022, 0.0055, 0.0085);
  paint.rectangle(0.0945, 0.1035, -0.03, 0.030, hex(0x2F4A4A));
  paint.rectangle(0.0965, 0.1015, 0.014, 0.026, hex(0xE8A24E));
}

void paint_tower(const Painter& paint) {
  constexpr double gallery = 0.235;
  const double x = paint.at.x;
  const double y = paint.at.y;
  if (std::abs(x) > 0.05 || y < -0.03 || y > 0.34) return;

  // Concave taper, white with red bands whose edges curve as the wall is round.
  const double half_width = 0.0205 + 0.0145 * square(1 - clamp01(y / gallery));
  const double turn = x / half_width;
  const double bulge = 0.004 * std::sqrt(std::max(0.0, 1 - square(turn)));
  const double band = line_wave((y + bulge) / 0.094 + 0.50, 0.5, paint.pixel / 0.094);
  const double plaster = 1 + 0.10 * fractal(x * 90, y * 40, 4, paint.pixel * 90, 61);
  const Rgb wall = mix(hex(0xF6EEE2), hex(0xB5342E), band) * plaster;
  const double cover =
      strip(x, half_width, paint.pixel) * inside(y - gallery, paint.pixel) * inside(-0.04 - y, paint.pixel);
  blend(paint.under, wall * wall_light(turn), cover);
  for (const double level : {0.060, 0.118, 0.176}) {
    paint.rectangle(0.002, 0.0090, level - 0.001, level + 0.0135, hex(0xE7D8C4));
    paint.rectangle(0.0030, 0.0080, level, level + 0.0125, hex(0x2A3038));
    paint.rectangle(0.0030, 0.0080, level + 0.0058, level + 0.0066, hex(0xE7D8C4));
  }
  paint.rectangle(-0.0075, 0.0045, -0.03, 0.021, hex(0x6B3A28));

  // Gallery with its railing, lantern room, dome.
  const double round = clamp01(0.5 + x / 0.06);
  paint.rectangle(-0.030, 0.030, gallery, gallery + 0.005, mix(hex(0xC9A58A), hex(0x3E3F4C), round));
  const double posts = line_wave(x / 0.0060 + 0.10, 0.20, paint.pixel / 0.0060);
  const Rgb iron = mix(hex(0x8A6E60), hex(0x23262E), round);
  const double rail = strip(y - gallery - 0.0185, 0.0009, paint.pixel) +
                      strip(y - gallery - 0.0120, 0.0006, paint.pixel) +
                      posts * strip(y - gallery - 0.0118, 0.0068, paint.pixel);

  const Vec2 lamp = {0, gallery + 0.024};
  const double lamp_distance = length({x - lamp.x, (y - lamp.y) * 0.9});
  paint.rectangle(-0.0150, 0.0150, gallery + 0.005, gallery + 0.044,
                  mix(hex(0xFFF6D0), hex(0xD98A3E), smoothstep(0.0, 0.026, lamp_distance)));
  const double bars = line_wave((x + 0.0150) / 0.0075 + 0.06, 0.12, paint.pixel / 0.0075);
  blend(paint.under, hex(0x2B2A30),
        bars * strip(x, 0.0156, paint.pixel) * strip(y - gallery - 0.0245, 0.0195, paint.pixel));
  blend(paint.under, iron, clamp01(rail) * strip(x, 0.030, paint.pixel));
  const double dome_y = gallery + 0.044;
  const double dome = std::max(length({x, (y - dome_y) * 0.95}) - 0.0180, dome_y - y);
  blend(paint.under, mix(hex(0xE0604A), hex(0x5A1E26), clamp01(0.5 + x / 0.03)), inside(dome, paint.pixel));
  paint.rectangle(-0.0008, 0.0008, dome_y + 0.017, dome_y + 0.034, hex(0x3A2C30));
  blend(paint.under, hex(0xC9803E), inside(length({x, y - dome_y - 0.021}) - 0.0030, paint.pixel));
}

// The lamp's halo and its two beams, which fade with distance.
void paint_light(const Painter& paint) {
  const Vec2 from_lamp = {paint.at.x, paint.at.y - 0.259};
  const double distance = length(from_lamp);
  const double halo = 0.55 / (1 + square(distance / 0.020)) + 0.16 / (1 + square(distance / 0.075));
  const double off_axis = from_lamp.y - 0.10 * from_lamp.x;
  const double spread = 0.005 + 0.055 * std::abs(from_lamp.x);
  const double beam = 0.34 / (1 + square(square(off_axis / spread))) / (1 + square(distance / 0.33)) *
                      smoothstep(0.012, 0.05, distance);
  paint.under = paint.under + Rgb{1.0, 0.80, 0.45} * (halo + beam * smoothstep(0.85, 0.3, distance));
}

}  // namespace

void paint_lighthouse(const Layout& layout, Vec2 at, Rgb& under) {
  const Painter paint{{at.x - layout.lighthouse.x, layout.lighthouse.y - at.y}, layout.pixel, under};
  if (std::abs(paint.at.x) > 0.9 || paint.at.y > 0.5) return;
  paint_light(paint);
  paint_tower(paint);
  paint_house(paint);
  paint_rock(paint, layout.lighthouse.y - layout.waterline);
}

}  // namespace ungrain::scene
