// A small stroke font: capitals, lower case, digits and some punctuation.
#pragma once

#include <string_view>
#include <vector>

#include "scene/canvas.h"

namespace ungrain::scene {

struct Segment {
  Vec2 from;
  Vec2 to;
};

// One line of text ready to paint; lengths are in the units of the page.
class TextLine {
 public:
  // `baseline` is where the text starts; `cap_height` the height of a capital; `weight` the stroke's width /
  // cap height.
  TextLine(std::string_view text, Vec2 baseline, double cap_height, double weight);

  double width() const { return width_; }
  // How much ink the pixel at `at` takes, 0 to 1.
  double ink(Vec2 at, double pixel) const;

 private:
  struct Glyph {
    double left;
    double right;
    std::vector<Segment> strokes;
  };
  double half_stroke_;
  double top_;
  double bottom_;
  double width_ = 0;
  std::vector<Glyph> glyphs_;
};

}  // namespace ungrain::scene
