// The far half of the picture: evening sky, mountain ridges, the lake that mirrors them, a lighthouse on its
// rock.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "scene/canvas.h"

namespace ungrain::scene {

// The sky without clouds as it looks `up` units above the horizon: also what glazed things reflect.
Rgb clear_sky(double up);

class Landscape {
 public:
  explicit Landscape(const Layout& layout);
  void paint(int y, Row& row) const;  // every pixel of the row

 private:
  static constexpr std::size_t ridge_count = 4;
  // Crest heights above the horizon, at two places inside each pixel column so that steep flanks are
  // anti-aliased.
  struct Crest {
    std::array<double, 2> heights;
  };

  double crest_at(std::size_t ridge, double x) const;
  Rgb sky(Vec2 at) const;
  Rgb far_view(int column, Vec2 at) const;  // sky and ridges
  Rgb ridge_colour(std::size_t ridge, Vec2 at, double up, double below_crest) const;
  Rgb lake(int column, Vec2 at) const;
  void paint_boat(Vec2 at, Rgb& under) const;

  Layout layout_;
  std::array<std::vector<Crest>, ridge_count> crests_;
};

// The rock, the tower and the keeper's house over what lies behind them. `at` may be a point mirrored in the
// lake.
void paint_lighthouse(const Layout& layout, Vec2 at, Rgb& under);

}  // namespace ungrain::scene
