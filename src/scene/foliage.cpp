#include "scene/foliage.h"

#include <utility>

namespace ungrain::scene {
namespace {

struct Extent {
  double left, right, top, bottom;
};

Extent extent_of(const Piece& piece, double pixel) {
  const Vec2 tip = piece.base + piece.along * piece.length;
  const double margin = std::max(piece.base_half_width, piece.tip_half_width) + pixel;
  return {std::min(piece.base.x, tip.x) - margin, std::max(piece.base.x, tip.x) + margin,
          std::min(piece.base.y, tip.y) - margin, std::max(piece.base.y, tip.y) + margin};
}

// A dash of `rgb` in either direction, so that no two leaves are quite the same green.
Rgb varied(Rgb rgb, Random& random, double amount) {
  const double brightness = 1 + random.between(-amount, amount);
  const double warmth = random.between(-amount, amount) * 0.5;
  return Rgb{rgb.r * (1 + warmth), rgb.g, rgb.b * (1 - warmth)} * brightness;
}

}  // namespace

Foliage::Foliage(const Layout& layout, std::vector<Piece> pieces)
    : layout_(layout), pieces_(std::move(pieces)) {
  constexpr int most_bands = 256;
  rows_per_band_ = (layout.rows + most_bands - 1) / most_bands;
  const int bands = (layout.rows + rows_per_band_ - 1) / rows_per_band_;
  const auto for_bands_of = [&](const Piece& piece, auto call) {
    const Extent extent = extent_of(piece, layout.pixel);
    if (extent.bottom < 0 || extent.top > layout.height) return;
    const int last = std::min(layout.row_at(extent.bottom) / rows_per_band_, bands - 1);
    for (int band = std::min(layout.row_at(extent.top) / rows_per_band_, bands - 1); band <= last; ++band) {
      call(static_cast<std::size_t>(band));
    }
  };
  starts_.assign(static_cast<std::size_t>(bands) + 1, 0);
  for (const Piece& piece : pieces_) for_bands_of(piece, [&](std::size_t band) { ++starts_[band + 1]; });
  for (std::size_t band = 1; band < starts_.size(); ++band) starts_[band] += starts_[band - 1];
  touching_.resize(starts_.back());
  std::vector<std::uint32_t> next(starts_.begin(), starts_.end() - 1);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    for_bands_of(pieces_[i],
                 [&](std::size_t band) { touching_[next[band]++] = static_cast<std::uint32_t>(i); });
  }
}

void Foliage::paint(int y, Row& row) const {
  const auto band = static_cast<std::size_t>(y / rows_per_band_);
  for (std::uint32_t i = starts_[band]; i < starts_[band + 1]; ++i) {
    paint_piece(pieces_[touching_[i]], layout_.row_centre(y), row);
  }
}

void Foliage::paint_piece(const Piece& piece, double y, Row& row) const {
  const double pixel = layout_.pixel;
  const Extent extent = extent_of(piece, pixel);
  if (y < extent.top || y > extent.bottom) return;
  const int last = layout_.column_at(extent.right);
  for (int x = layout_.column_at(extent.left); x < last; ++x) {
    const Vec2 from_base = Vec2{layout_.column_centre(x), y} - piece.base;
    const double along = dot(from_base, piece.along);
    const double across = from_base.y * piece.along.x - from_base.x * piece.along.y;
    const double t = clamp01(along / piece.length);
    const bool leaf = piece.shape == Piece::Shape::leaf;
    const double half_width =
        leaf ? piece.base_half_width * 4 * t * (1 - t) : mix(piece.base_half_width, piece.tip_half_width, t);
    const double end = leaf ? 0 : piece.tip_half_width / 2;  // limbs overlap a little where they join
    const double cover =
        strip(across, half_width, pixel) * strip(along - piece.length / 2, piece.length / 2 + end, pixel);
    if (cover <= 0) continue;
    const double side = across / std::max(half_width, pixel);
    double lightness = 0;
    if (leaf) {
      const double midrib = strip(across, 0.07 * piece.base_half_width, pixel);
      lightness = mix(0.75 - 0.5 * smoothstep(-0.3, 0.3, side), 1.0, 0.6 * midrib);
    } else {
      const double bark = fractal(along * 60 + piece.base.x * 100, across * 260, 3, pixel * 260, 1201);
      lightness = clamp01(0.5 + 0.5 * side + 0.5 * bark);
    }
    blend(row[static_cast<std::size_t>(x)], mix(piece.dark, piece.light, lightness), cover);
  }
}

// --- The tree ---

namespace {

class TreeGrower {
 public:
  explicit TreeGrower(const Layout& layout)
      : size_(std::min(layout.height, 1.35)),
        crown_{layout.tree.x + 0.05 * size_, layout.tree.y - 0.40 * size_},
        sun_(layout.sun) {}

  void grow(Vec2 base, double angle, double length, double half_width, int level) {
    constexpr int twig_level = 8;
    const double tip_width = half_width * (level == 0 ? 0.72 : 0.66);
    // Each limb bends in the middle, so that no branch is a straight rod.
    const double bend = random_.between(-0.16, 0.16);
    const Vec2 middle = base + direction(angle - bend) * (length / 2);
    const Vec2 tip = middle + direction(angle + bend) * (length / 2);
    add_limb(base, middle, half_width, (half_width + tip_width) / 2);
    add_limb(middle, tip, (half_width + tip_width) / 2, tip_width);
    if (level >= twig_level - 4) add_leaves(base, tip, level - (twig_level - 5));
    if (level == twig_level) return;
    const double spread = random_.between(0.36, 0.56);
    const double lean = random_.between(-0.12, 0.12);
    // Limbs reach for the light: the flatter they lie, the more they turn up.
    const double upright = 0.10 * (angle + pi / 2);
    grow(tip, angle - spread + lean - upright, length * random_.between(0.72, 0.86), tip_width, level + 1);
    grow(tip, angle + spread + lean - upright, length * random_.between(0.72, 0.86), tip_width, level + 1);
  }

  double size() const { return size_; }

  std::vector<Piece> take() {
    std::vector<Piece> all = std::move(back_leaves_);
    all.insert(all.end(), limbs_.begin(), limbs_.end());
    all.insert(all.end(), front_leaves_.begin(), front_leaves_.end());
    return all;
  }

 private:
  void add_limb(Vec2 from, Vec2 to, double from_half_width, double to_half_width) {
    const Vec2 step = to - from;
    const double span = length(step);
    limbs_.push_back({Piece::Shape::limb, from, step * (1 / span), span, from_half_width, to_half_width,
                      hex(0x8A5F45), hex(0x1F1714)});
  }

  void add_leaves(Vec2 from, Vec2 to, int count) {
    for (int i = 0; i < count * 9; ++i) {
      // One draw a statement: the compiler may order those within an expression as it likes.
      const double along = random_.next();
      const Vec2 scatter = {random_.between(-1, 1), random_.between(-1, 1)};
      const Vec2 at = from + (to - from) * along + scatter * (0.016 * size_);
      const double leaf_length = random_.between(0.008, 0.0155) * size_;
      // Leaves hang outwards; those towards the sun and at the crown's edge glow.
      const Vec2 outwards = at - crown_;
      const Vec2 to_sun = sun_ - crown_;
      const double sunny = dot(outwards, to_sun) / (length(to_sun) * 0.30 * size_);
      // Clumps of leaves stand out from the crown and shade their neighbours; between them the sky shows.
      const double clump = noise(at.x * 17 / size_, at.y * 17 / size_, 1117) +
                           0.5 * noise(at.x * 36 / size_, at.y * 36 / size_, 1123);
      const double lift = clump - noise((at.x - 0.012) * 17 / size_, (at.y + 0.006) * 17 / size_, 1117);
      const double glow =
          clamp01(0.34 + 0.34 * sunny + 0.35 * clump + 0.35 * lift + random_.between(-0.22, 0.22));
      if (clump < random_.between(-0.75, -0.25)) continue;
      const bool front = random_.next() < 0.55;
      const Rgb shade = mix(hex(0x16261A), hex(0x4F5F22), glow) * (front ? 1.0 : 0.55);
      const Rgb light = mix(hex(0x2F4A26), hex(0xD9B44A), glow) * (front ? 1.0 : 0.55);
      auto& leaves = front ? front_leaves_ : back_leaves_;
      leaves.push_back({Piece::Shape::leaf, at, direction(random_.between(-0.4, pi + 0.4)), leaf_length,
                        leaf_length * random_.between(0.17, 0.25), 0, varied(light, random_, 0.2),
                        varied(shade, random_, 0.2)});
    }
  }

  Random random_{20};
  double size_;
  Vec2 crown_;
  Vec2 sun_;
  std::vector<Piece> back_leaves_;
  std::vector<Piece> limbs_;
  std::vector<Piece> front_leaves_;
};

// --- Ferns ---

class FernGrower {
 public:
  explicit FernGrower(std::uint64_t seed) : random_(seed) {}

  // A frond: an arching stem, pinnae along both sides, leaflets along both sides of each pinna.
  void grow(Vec2 base, double angle, double span, double droop, double lightness) {
    constexpr int joints = 36;
    Vec2 at = base;
    double heading = angle;
    for (int joint = 0; joint < joints; ++joint) {
      const double t = (joint + 0.5) / joints;
      const Vec2 next = at + direction(heading) * (span / joints);
      add(Piece::Shape::limb, at, next, 0.0030 * (1.1 - t), lightness);
      if (t > 0.16) {
        const double reach = span * 0.27 * smoothstep(0.05, 0.35, t) * (1.03 - t);
        for (const double side : {-1.0, 1.0}) grow_pinna(next, heading + side * 1.12, reach, side, lightness);
      }
      at = next;
      heading += droop / joints * (0.4 + 1.2 * t);
    }
  }

  std::vector<Piece> take() { return std::move(pieces_); }

 private:
  void grow_pinna(Vec2 base, double angle, double reach, double side, double lightness) {
    const int leaflets = std::max(3, static_cast<int>(reach / 0.0052));
    Vec2 at = base;
    double heading = angle;
    for (int i = 0; i < leaflets; ++i) {
      const double t = (i + 0.5) / leaflets;
      const Vec2 next = at + direction(heading) * (reach / leaflets);
      add(Piece::Shape::limb, at, next, 0.0011 * (1.1 - t), lightness);
      const double size = (0.0034 + reach * 0.15) * (1.12 - 0.85 * t);
      for (const double turn : {-0.95, 0.95}) {
        add(Piece::Shape::leaf, at, at + direction(heading + turn) * size, size * 0.33, lightness);
      }
      at = next;
      heading -= side * 0.35 / leaflets;
    }
  }

  void add(Piece::Shape shape, Vec2 from, Vec2 to, double half_width, double lightness) {
    const Vec2 step = to - from;
    const double span = length(step);
    const Rgb light = mix(hex(0x3C6A35), hex(0xB7C45C), lightness);
    const Rgb dark = mix(hex(0x14301F), hex(0x4E7430), lightness);
    pieces_.push_back({shape, from, step * (1 / span), span, half_width, half_width * 0.9,
                       varied(light, random_, 0.15), varied(dark, random_, 0.15)});
  }

  Random random_;
  std::vector<Piece> pieces_;
};

}  // namespace

std::vector<Piece> grow_tree(const Layout& layout) {
  TreeGrower grower(layout);
  grower.grow(layout.tree, -pi / 2 + 0.10, 0.145 * grower.size(), 0.024 * grower.size(), 0);
  return grower.take();
}

std::vector<Piece> birds(const Layout& layout) {
  std::vector<Piece> flock;
  Random random(41);
  const Vec2 leader = {layout.sun.x + 0.10, layout.horizon - 0.30};
  for (int i = 0; i < 9; ++i) {
    // A loose V, each bird with wings that bend at the wrist.
    const int rank = (i + 1) / 2;
    const double side = (i & 1) != 0 ? 1.0 : -0.55;
    const Vec2 body = leader + Vec2{rank * 0.022 * side + random.between(-0.004, 0.004),
                                    rank * 0.011 + random.between(-0.003, 0.003)};
    const double wing = random.between(0.0070, 0.0095);
    const double beat = random.between(-0.25, 0.65);
    for (const double way : {-1.0, 1.0}) {
      const Vec2 inner = {way * portable::cos(beat), -portable::sin(beat)};
      const Vec2 outer = {way * portable::cos(beat - 0.6), -portable::sin(beat - 0.6)};
      const Rgb dark = hex(0x2C2A3C);
      flock.push_back({Piece::Shape::limb, body, inner, wing * 0.5, 0.0011, 0.0010, dark, dark});
      flock.push_back(
          {Piece::Shape::limb, body + inner * (wing * 0.5), outer, wing * 0.6, 0.0010, 0.0003, dark, dark});
    }
  }
  return flock;
}

std::vector<Piece> grow_vase_ferns(Vec2 mouth) {
  FernGrower grower(8);
  // Those at the back first and darker.
  grower.grow(mouth, -1.95, 0.24, -0.9, 0.10);
  grower.grow(mouth, -1.25, 0.25, 0.8, 0.15);
  grower.grow(mouth, -1.62, 0.27, 0.35, 0.25);
  grower.grow(mouth, -2.45, 0.21, -1.2, 0.45);
  grower.grow(mouth, -0.75, 0.21, 1.3, 0.60);
  grower.grow(mouth, -1.05, 0.17, 1.5, 0.85);
  grower.grow(mouth, -2.10, 0.16, -1.6, 0.70);
  return grower.take();
}

// --- The bank ---

double bank_edge(const Layout& layout, double x) {
  const double reach = 0.46 + 0.10 * (layout.width - 1);
  const double rise = square(clamp01(1 - x / reach)) * 0.085;
  return layout.table + 0.012 - rise - 0.008 * fractal(x * 9, 2.5, 3, layout.pixel * 9, 1301);
}

void paint_bank(const Layout& layout, int y, Row& row) {
  const double at_y = layout.row_centre(y);
  if (at_y < layout.table - 0.12 || at_y > layout.table + 0.03) return;
  for (int x = 0; x < layout.columns; ++x) {
    const double at_x = layout.column_centre(x);
    const double below = at_y - bank_edge(layout, at_x);
    const double cover = inside(-below, layout.pixel);
    if (cover <= 0) continue;
    const double soil = fractal(at_x * 30, at_y * 60, 5, layout.pixel * 60, 1313);
    const Rgb colour = mix(hex(0x1C2A18), hex(0x56602C), clamp01(0.4 + 1.2 * soil - 4 * below));
    blend(row[static_cast<std::size_t>(x)], colour, cover);
  }
}

std::vector<Piece> grow_bank_grass(const Layout& layout) {
  std::vector<Piece> grass;
  Random random(77);
  const double reach = 0.50 + 0.10 * (layout.width - 1);
  const int tufts = static_cast<int>(1500 * reach);
  for (int i = 0; i < tufts; ++i) {
    // Roots further down the bank come later, so nearer blades cover farther ones.
    const double depth = static_cast<double>(i) / tufts;
    const double x = random.between(-0.02, reach);
    const Vec2 root = {x, bank_edge(layout, std::max(x, 0.0)) + depth * 0.07};
    const double tall = random.between(0.018, 0.050) * (1 - 0.55 * clamp01(x / reach));
    const double glow = clamp01(random.between(0.0, 0.75) - 0.3 * depth + 0.35 * x / reach);
    const Rgb light = mix(hex(0x33482A), hex(0xC9A94F), glow);
    grass.push_back({Piece::Shape::leaf, root, direction(-pi / 2 + random.between(-0.55, 0.55)), tall,
                     tall * random.between(0.03, 0.06), 0, varied(light, random, 0.2),
                     varied(light * 0.35, random, 0.2)});
  }
  FernGrower ferns(5);
  const double fern_x = layout.tree.x + 0.05;
  for (const double turn : {-0.9, 0.8, -0.35, 0.3, 1.25}) {
    const Vec2 root = {fern_x, bank_edge(layout, fern_x) + 0.035};
    ferns.grow(root, -pi / 2 + turn * 0.8, 0.13, turn, 0.25 + 0.15 * (turn + 1));
  }
  const std::vector<Piece> fronds = ferns.take();
  grass.insert(grass.end(), fronds.begin(), fronds.end());
  return grass;
}

}  // namespace ungrain::scene
