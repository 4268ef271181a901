// The printed test card on the table: title, small print, a Siemens star, gratings of rising frequency and
// flat patches.
#pragma once

#include <array>
#include <vector>

#include "scene/canvas.h"
#include "scene/glyphs.h"

namespace ungrain::scene {

class TestCard {
 public:
  explicit TestCard(const Layout& layout);
  void paint(int y, Row& row) const;

 private:
  // A point of the printed page and the distance between neighbouring pixels there, in page units: the page
  // is 1 high.
  struct Spot {
    Vec2 at;
    Vec2 pixel;
  };
  Vec2 page_at(Vec2 screen) const;
  Rgb print(const Spot& spot) const;
  void paint_stand(Vec2 screen, Rgb& under) const;

  Layout layout_;
  Vec2 low_left_;
  Vec2 low_right_;
  double left_height_;
  double right_height_;
  std::vector<TextLine> lines_;
};

}  // namespace ungrain::scene
