// Plants: thousands of small leaves, twigs and blades, sorted into bands of rows so that a row meets only its
// own.
#pragma once

#include <cstdint>
#include <vector>

#include "scene/canvas.h"

namespace ungrain::scene {

// A straight piece of a plant from `base` along the unit vector `along`.
struct Piece {
  enum class Shape : std::uint8_t { leaf, limb };
  Shape shape = Shape::leaf;
  Vec2 base;
  Vec2 along;
  double length = 0;
  double base_half_width = 0;  // of a leaf: at its widest
  double tip_half_width = 0;   // of a limb
  Rgb light;                   // the side to the left of `along`
  Rgb dark;
};

class Foliage {
 public:
  Foliage(const Layout& layout, std::vector<Piece> pieces);  // painted in the order given
  void paint(int y, Row& row) const;

 private:
  void paint_piece(const Piece& piece, double y, Row& row) const;

  Layout layout_;
  std::vector<Piece> pieces_;
  // Indices of the pieces that touch each band of rows: those of band b are touching_[starts_[b]] to
  // touching_[starts_[b + 1]].
  int rows_per_band_ = 1;
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint32_t> touching_;
};

std::vector<Piece> grow_tree(const Layout& layout);
std::vector<Piece> grow_bank_grass(const Layout& layout);  // along the bank on which the tree stands
std::vector<Piece> grow_vase_ferns(Vec2 mouth);

std::vector<Piece> birds(const Layout& layout);

// Height of the bank's edge at x.
double bank_edge(const Layout& layout, double x);
// The bank itself, under its grass.
void paint_bank(const Layout& layout, int y, Row& row);

}  // namespace ungrain::scene
