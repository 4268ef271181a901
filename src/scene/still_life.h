// The near half of the picture: a wooden table, a plaid cloth with visible yarns, a glazed vase and an
// orange.
#pragma once

#include <array>
#include <cstddef>

#include "scene/canvas.h"

namespace ungrain::scene {

// Where the vase opens: the ferns grow from here.
Vec2 vase_mouth(const Layout& layout);

class Table {
 public:
  explicit Table(const Layout& layout);
  void paint(int y, Row& row) const;

 private:
  // A point of the table top seen from above, and how far apart neighbouring pixels are there.
  struct Spot {
    Vec2 at;
    Vec2 pixel;
  };
  Spot spot(Vec2 at) const;
  Vec2 cloth_axes(Vec2 on_table) const;
  Rgb wood(const Spot& spot) const;
  Rgb cloth(Vec2 screen, const Spot& spot) const;
  double light(Vec2 screen) const;  // 1 in the open, less in the shadows of what stands on the table

  Layout layout_;
  double vanishing_;  // height of the line at which the table top would vanish
  double cosine_;     // of the angle at which the cloth lies
  double sine_;
};

void paint_vase(const Layout& layout, int y, Row& row);
void paint_orange(const Layout& layout, int y, Row& row);

}  // namespace ungrain::scene
