#include "scene/card.h"

namespace ungrain::scene {
namespace {

constexpr double page_width = 1.42;
constexpr double stand_overhang = 0.012;  // in scene units
constexpr Rgb evening_light = {0.97, 0.91, 0.83};
constexpr Rgb paper = hex(0xF2ECDF);
constexpr Rgb ink = hex(0x23242B);

struct Box {
  double left, right, top, bottom;
};

double cover_of(const Box& box, Vec2 at, Vec2 pixel) {
  return strip(at.x - (box.left + box.right) / 2, (box.right - box.left) / 2, pixel.x) *
         strip(at.y - (box.top + box.bottom) / 2, (box.bottom - box.top) / 2, pixel.y);
}

// --- Siemens star ---

constexpr Vec2 star_centre = {1.152, 0.290};
constexpr double star_radius = 0.190;
constexpr double star_ring = 0.203;
constexpr int star_spokes = 36;

void print_star(Vec2 at, Vec2 pixel_size, Rgb& page) {
  const double pixel = std::max(pixel_size.x, pixel_size.y);
  const Vec2 from_centre = at - star_centre;
  const double radius = length(from_centre);
  if (radius > star_ring + 0.01 + pixel) return;
  const double turns = angle_in_turns(from_centre.x, from_centre.y) + 1;
  // Spokes a pixel covers along its circle; averaging over them is what greys the middle out.
  const double spokes = pixel / (2 * pi * std::max(radius, pixel)) * star_spokes;
  const double dark = line_wave(turns * star_spokes, 0.5, spokes);
  blend(page, ink, dark * inside(radius - star_radius, pixel));
  blend(page, ink, strip(radius - star_ring, 0.0025, pixel));
}

// --- Gratings ---

constexpr Box gratings = {0.075, 0.90, 0.550, 0.675};

void print_gratings(Vec2 at, Vec2 pixel, Rgb& page) {
  // Lines a page height; each about 1.3 times as fine as the one before, upright and level in turn.
  constexpr std::array<double, 8> frequencies = {28, 37, 49, 65, 86, 114, 151, 200};
  const double step = (gratings.right - gratings.left) / frequencies.size();
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double left = gratings.left + step * static_cast<double>(i);
    const double middle = (gratings.top + gratings.bottom) / 2;
    const double right = left + step - 0.012;
    const double upright = line_wave((at.x - left) * frequencies[i], 0.5, pixel.x * frequencies[i]);
    const double level = line_wave((at.y - middle) * frequencies[i], 0.5, pixel.y * frequencies[i]);
    blend(page, ink, upright * cover_of({left, right, gratings.top, middle - 0.004}, at, pixel));
    blend(page, ink, level * cover_of({left, right, middle + 0.004, gratings.bottom}, at, pixel));
  }
}

// A fan of lines that close up from left to right.
void print_wedge(Vec2 at, Vec2 pixel, Rgb& page) {
  constexpr Box wedge = {0.955, 1.355, 0.550, 0.675};
  const double across = clamp01((at.x - wedge.left) / (wedge.right - wedge.left));
  const double half_height = mix((wedge.bottom - wedge.top) / 2, 0.014, across);
  const double middle = (wedge.top + wedge.bottom) / 2;
  constexpr int lines = 6;
  const double frequency = (lines - 0.5) / (2 * half_height);
  const double dark = line_wave((at.y - middle + half_height) * frequency, 0.5, pixel.y * frequency);
  blend(page, ink,
        dark * cover_of({wedge.left, wedge.right, middle - half_height, middle + half_height}, at, pixel));
}

// --- Patches ---

constexpr std::array<std::array<Rgb, 9>, 2> patches = {{
    {hex(0x8A5A44), hex(0xD39A80), hex(0x5B7FA6), hex(0x56703F), hex(0xE07B2E), hex(0xB8393F), hex(0xE8C53A),
     hex(0x7E4C8C), hex(0x2F8F93)},
    {hex(0xE2E2DF), hex(0xC8C8C6), hex(0xADADAC), hex(0x929291), hex(0x757575), hex(0x5A5A5A), hex(0x424242),
     hex(0x2C2C2D), hex(0x1A1A1B)},
}};

void print_patches(Vec2 at, Vec2 pixel, Rgb& page) {
  constexpr Box area = {0.075, 1.355, 0.710, 0.935};
  constexpr double gap = 0.012;
  constexpr double step_x = (area.right - area.left + gap) / 9;
  constexpr double step_y = (area.bottom - area.top + gap) / 2;
  const int column = std::clamp(floor_int((at.x - area.left + gap / 2) / step_x), 0, 8);
  const int row = std::clamp(floor_int((at.y - area.top + gap / 2) / step_y), 0, 1);
  const double left = area.left + column * step_x;
  const double top = area.top + row * step_y;
  const Rgb colour = patches[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
  blend(page, colour, cover_of({left, left + step_x - gap, top, top + step_y - gap}, at, pixel));
}

void print_frame(Vec2 at, Vec2 pixel, Rgb& page) {
  const auto line = [&](double inset, double thickness) {
    const Box outer = {inset, page_width - inset, inset, 1 - inset};
    const double in = inset + thickness;
    const Box inner = {in, page_width - in, in, 1 - in};
    blend(page, ink, cover_of(outer, at, pixel) - cover_of(inner, at, pixel));
  };
  line(0.022, 0.007);
  line(0.036, 0.0025);
}

}  // namespace

TestCard::TestCard(const Layout& layout) : layout_(layout) {
  // Turned a little: the left edge is nearer, so it is taller and stands lower.
  const double half = layout.card_width / 2;
  low_left_ = layout.card + Vec2{-half, 0.006};
  low_right_ = layout.card + Vec2{half, -0.008};
  left_height_ = layout.card_width / page_width * 1.025;
  right_height_ = layout.card_width / page_width * 0.965;
  // Set in a block: each line is as large as lets it fill the column.
  constexpr double left = 0.075;
  constexpr double column = 0.845;
  const auto set = [&](const char* text, double baseline, double weight) {
    const double width_at_1 = TextLine(text, {}, 1, weight).width();
    lines_.emplace_back(text, Vec2{left, baseline}, column / width_at_1, weight);
  };
  set("UNGRAIN", 0.230, 0.17);
  set("Keep the edge, lose the grain.", 0.320, 0.14);
  set("A quick brown fox jumps over 26 dogs", 0.391, 0.15);
  set("while every photon that was not counted", 0.452, 0.15);
  set("stays behind as noise: f/5.6, 1/30 s, ISO 3200", 0.508, 0.16);
}

Vec2 TestCard::page_at(Vec2 screen) const {
  // The card's upright edges are upright on the screen; along it, depth makes the scale change from left to
  // right.
  const double t = (screen.x - low_left_.x) / (low_right_.x - low_left_.x);
  const double bottom = mix(low_left_.y, low_right_.y, t);
  const double height = mix(left_height_, right_height_, t);
  const double along = t * right_height_ / height * 0.5 + t * 0.5;
  return {along * page_width, 1 - (bottom - screen.y) / height};
}

Rgb TestCard::print(const Spot& spot) const {
  const Vec2 at = spot.at;
  const Vec2 pixel = spot.pixel;
  const double fibre = fractal(at.x * 45, at.y * 45, 3, pixel.y * 45, 1801);
  Rgb page = paper * (0.97 + 0.035 * fibre);
  print_frame(at, pixel, page);
  print_star(at, pixel, page);
  print_gratings(at, pixel, page);
  print_wedge(at, pixel, page);
  print_patches(at, pixel, page);
  for (const TextLine& line : lines_) blend(page, ink, line.ink(at, std::max(pixel.x, pixel.y)));
  return page;
}

void TestCard::paint_stand(Vec2 screen, Rgb& under) const {
  // A bar of wood with a slot that holds the card; its top catches the light.
  const double t = (screen.x - low_left_.x) / (low_right_.x - low_left_.x);
  const double down = screen.y - mix(low_left_.y, low_right_.y, t);
  const double left = low_left_.x - stand_overhang;
  const double right = low_right_.x + stand_overhang;
  const double across = strip(screen.x - (left + right) / 2, (right - left) / 2, layout_.pixel);
  const double grain = fractal(screen.x * 14, screen.y * 190, 4, layout_.pixel * 190, 1901);
  const Rgb wood = mix(hex(0x5A3822), hex(0xB98556), clamp01(0.45 + 0.5 * grain));
  blend(under, wood * Rgb{1.35, 1.15, 0.95}, across * strip(down - 0.001, 0.005, layout_.pixel));
  blend(under, wood * Rgb{0.66, 0.56, 0.54}, across * strip(down - 0.014, 0.008, layout_.pixel));
}

void TestCard::paint(int y, Row& row) const {
  const double pixel = layout_.pixel;
  const double at_y = layout_.row_centre(y);
  if (at_y < layout_.card.y - left_height_ - 0.02 - pixel || at_y > layout_.card.y + 0.03 + pixel) return;
  const int last = layout_.column_at(low_right_.x + 0.02 + pixel);
  for (int x = layout_.column_at(low_left_.x - 0.02 - pixel); x < last; ++x) {
    const Vec2 screen = {layout_.column_centre(x), at_y};
    Rgb& under = row[static_cast<std::size_t>(x)];
    const Vec2 at = page_at(screen);
    const Vec2 right = page_at(screen + Vec2{pixel, 0});
    const Vec2 below = page_at(screen + Vec2{0, pixel});
    const Spot spot = {at, {std::abs(right.x - at.x), std::abs(below.y - at.y)}};
    const double cover = cover_of({0, page_width, 0, 1}, spot.at, spot.pixel);
    // The card's thickness shows at its left edge.
    const double thickness = cover_of({-0.008, page_width, 0.0, 1.004}, spot.at, spot.pixel);
    blend(under, hex(0xFFF4DE), thickness);
    if (cover > 0) blend(under, print(spot) * evening_light, cover);
    paint_stand(screen, under);
  }
}

}  // namespace ungrain::scene
