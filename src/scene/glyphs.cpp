#include "scene/glyphs.h"

#include <array>
#include <cstddef>
#include <utility>

namespace ungrain::scene {
namespace {

// Strokes are separated by blanks; each is a chain of points, a digit for x and a letter for y: 'a' is the
// top of a capital, 'd' of a small letter, 'i' the baseline, 'k' the lowest descender. After '~' the points
// are the control polygon of a quadratic spline, otherwise straight lines join them. A stroke of length 0 is
// a dot.
struct Shape {
  char letter;
  std::string_view strokes;
};
constexpr std::array<Shape, 70> shapes = {{
    {'A', "0i3a6i 1f5f"},
    {'B', "0a0i ~0a3a5a5e3e0e ~0e3e6e6i3i0i"},
    {'C', "~6b5a3a0a0i3i5i6h"},
    {'D', "0a0i ~0a2a6a6i2i0i"},
    {'E', "5a0a0i5i 0e4e"},
    {'F', "5a0a0i 0e4e"},
    {'G', "~6b5a3a0a0i3i6i6g6e 6e4e"},
    {'H', "0a0i 6a6i 0e6e"},
    {'I', "0a0i"},
    {'J', "~4a4d4i2i0i0g"},
    {'K', "0a0i 6a0e 2d6i"},
    {'L', "0a0i5i"},
    {'M', "0i0a3f6a6i"},
    {'N', "0i0a6i6a"},
    {'O', "~3a6a6i0i0a3a"},
    {'P', "0a0i ~0a3a6a6e3e0e"},
    {'Q', "~3a6a6i0i0a3a 4g6i"},
    {'R', "0a0i ~0a3a6a6e3e0e 3e6i"},
    {'S', "~6b5a3a0a0d3e6f6i3i1i0h"},
    {'T', "0a6a 3a3i"},
    {'U', "~0a0e0i6i6e6a"},
    {'V', "0a3i6a"},
    {'W', "0a2i4c6i8a"},
    {'X', "0a6i 6a0i"},
    {'Y', "0a3e6a 3e3i"},
    {'Z', "0a6a0i6i"},
    {'0', "~2a4a4i0i0a2a"},
    {'1', "0c2a2i"},
    {'2', "~0c0a5a5d3f0i 0i5i"},
    {'3', "~0b0a5a5e3e2e ~2e3e5e5i0i0h"},
    {'4', "4i4a0f5f"},
    {'5', "5a1a0d ~0d2d5d5i2i0i"},
    {'6', "~4a0b0i5i5d2d0f"},
    {'7', "0a5a2i"},
    {'8', "~2a5a5e0e0a2a ~2e5e5i0i0e2e"},
    {'9', "~1i5h5a0a0f3f5d"},
    {'a', "4d4i ~4f4d0d0i4i4g"},
    {'b', "0a0i ~0f0d4d4i0i0g"},
    {'c', "~4e4d0d0i4i4h"},
    {'d', "4a4i ~4f4d0d0i4i4g"},
    {'e', "0f4f ~4f4d0d0i3i4h"},
    {'f', "~3a1a1c1i 0d3d"},
    {'g', "~4f4d0d0i4i4g ~4d4h4k2k0k"},
    {'h', "0a0i ~0f0d4d4f4i"},
    {'i', "0d0i 0b0b"},
    {'j', "~1d1h1k0k 1b1b"},
    {'k', "0a0i 4d0g 1f4i"},
    {'l', "0a0i"},
    {'m', "0d0i ~0f0d3d3f3i ~3f3d6d6f6i"},
    {'n', "0d0i ~0f0d4d4f4i"},
    {'o', "~2d4d4i0i0d2d"},
    {'p', "0d0k ~0f0d4d4i0i0g"},
    {'q', "4d4k ~4f4d0d0i4i4g"},
    {'r', "0d0i ~0f0d3d3e"},
    {'s', "~4e3d0d0f4f4i1i0h"},
    {'t', "~1b1f1i3i 0d3d"},
    {'u', "4d4i ~0d0f0i4i4g"},
    {'v', "0d2i4d"},
    {'w', "0d1i3e5i6d"},
    {'x', "0d4i 4d0i"},
    {'y', "0d2i 4d1k"},
    {'z', "0d4d0i4i"},
    {'.', "0i0i"},
    {',', "1i0j"},
    {'-', "0f3f"},
    {':', "0e0e 0i0i"},
    {'/', "0j4a"},
    {'+', "0f4f 2d2h"},
    {'=', "0e4e 0g4g"},
    {'\'', "0a0c"},
}};
constexpr double units_per_cap = 8;
constexpr double letter_gap = 2.1;
constexpr double blank = 3.0;

std::string_view strokes_of(char letter) {
  for (const Shape& shape : shapes) {
    if (shape.letter == letter) return shape.strokes;
  }
  return {};
}

void add_spline(const std::vector<Vec2>& control, std::vector<Segment>& segments) {
  constexpr int steps = 6;  // to each of the parabolas that the spline is made of
  const std::size_t last = control.size() - 1;
  for (std::size_t i = 1; i < last; ++i) {
    const Vec2 start = i == 1 ? control[0] : (control[i - 1] + control[i]) * 0.5;
    const Vec2 end = i + 1 == last ? control[last] : (control[i] + control[i + 1]) * 0.5;
    Vec2 previous = start;
    for (int step = 1; step <= steps; ++step) {
      const double t = static_cast<double>(step) / steps;
      const Vec2 next = start * square(1 - t) + control[i] * (2 * t * (1 - t)) + end * square(t);
      segments.push_back({previous, next});
      previous = next;
    }
  }
}

void add_stroke(std::string_view stroke, std::vector<Segment>& segments) {
  const bool curved = stroke.front() == '~';
  std::vector<Vec2> points;
  for (std::size_t i = curved ? 1 : 0; i + 1 < stroke.size(); i += 2) {
    points.push_back({static_cast<double>(stroke[i] - '0'), static_cast<double>(stroke[i + 1] - 'i')});
  }
  if (curved) return add_spline(points, segments);
  for (std::size_t i = 1; i < points.size(); ++i) segments.push_back({points[i - 1], points[i]});
}

double distance_to(const Segment& segment, Vec2 at) {
  const Vec2 span = segment.to - segment.from;
  const Vec2 offset = at - segment.from;
  const double squared = dot(span, span);
  const double t = squared > 0 ? clamp01(dot(offset, span) / squared) : 0;
  return length(offset - span * t);
}

}  // namespace

TextLine::TextLine(std::string_view text, Vec2 baseline, double cap_height, double weight)
    : half_stroke_(weight * cap_height / 2),
      top_(baseline.y - cap_height),
      bottom_(baseline.y + cap_height * 2 / units_per_cap) {
  const double unit = cap_height / units_per_cap;
  double pen = 0;
  for (const char letter : text) {
    if (letter == ' ') {
      pen += blank;
      continue;
    }
    std::vector<Segment> segments;
    for (std::string_view rest = strokes_of(letter); !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      add_stroke(rest.substr(0, end), segments);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    double right = 0;
    for (Segment& segment : segments) {
      right = std::max({right, segment.from.x, segment.to.x});
      segment.from = baseline + (segment.from + Vec2{pen, 0}) * unit;
      segment.to = baseline + (segment.to + Vec2{pen, 0}) * unit;
    }
    glyphs_.push_back({baseline.x + pen * unit, baseline.x + (pen + right) * unit, std::move(segments)});
    pen += right + letter_gap;
  }
  width_ = std::max(0.0, pen - letter_gap) * unit;
}

double TextLine::ink(Vec2 at, double pixel) const {
  const double margin = half_stroke_ + pixel;
  if (at.y < top_ - margin || at.y > bottom_ + margin) return 0;
  double nearest = margin;
  for (const Glyph& glyph : glyphs_) {
    if (at.x < glyph.left - margin || at.x > glyph.right + margin) continue;
    for (const Segment& segment : glyph.strokes) nearest = std::min(nearest, distance_to(segment, at));
  }
  return strip(nearest, half_stroke_, pixel);
}

}  // namespace ungrain::scene
