#include "scene/scene.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <vector>

#include "scene/canvas.h"
#include "scene/card.h"
#include "scene/foliage.h"
#include "scene/landscape.h"
#include "scene/still_life.h"
#include "ungrain/convert.h"
#include "ungrain/error.h"

namespace ungrain {

using namespace scene;

struct Scene::Plants {
  explicit Plants(const Layout& layout)
      : flock(birds(layout)),
        tree(grow_tree(layout)),
        grass(grow_bank_grass(layout)),
        ferns(grow_vase_ferns(vase_mouth(layout))) {}

  std::vector<Piece> flock;
  std::vector<Piece> tree;
  std::vector<Piece> grass;
  std::vector<Piece> ferns;
};

// The painters, from the farthest to the nearest.
struct Scene::Parts {
  Parts(const Layout& where, const Plants& plants)
      : layout(where),
        flock(layout, plants.flock),
        tree(layout, plants.tree),
        grass(layout, plants.grass),
        ferns(layout, plants.ferns) {}

  void paint(int y, Row& row) const {
    landscape.paint(y, row);
    flock.paint(y, row);
    paint_bank(layout, y, row);
    tree.paint(y, row);
    grass.paint(y, row);
    table.paint(y, row);
    card.paint(y, row);
    paint_vase(layout, y, row);
    ferns.paint(y, row);
    paint_orange(layout, y, row);
  }

  Layout layout;
  Landscape landscape{layout};
  Foliage flock;
  Foliage tree;
  Foliage grass;
  Table table{layout};
  TestCard card{layout};
  Foliage ferns;
};

namespace {

// From linear light to a display value in 0..1. Highlights bend towards white instead of clipping.
double display_value(double light) {
  constexpr double knee = 0.72;
  const double positive = std::max(light, 0.0);
  const double over = (positive - knee) / (1 - knee);
  return std::sqrt(over <= 0 ? positive : knee + (1 - knee) * over / (1 + over));
}

double luma(const std::array<std::vector<double>, 3>& rgb, std::size_t x) {
  return 0.299 * rgb[0][x] + 0.587 * rgb[1][x] + 0.114 * rgb[2][x];
}

}  // namespace

Scene::Scene(int width, int height) {
  validate({.width = width, .height = height});
  const Layout layout(width, height);
  plants_ = std::make_shared<const Plants>(layout);
  parts_ = std::make_unique<const Parts>(layout, *plants_);
}
Scene::Scene(const Scene& other, const Moment& moment)
    : plants_(other.plants_),
      parts_(std::make_unique<const Parts>(
          Layout(other.parts_->layout.columns, other.parts_->layout.rows, moment), *plants_)) {}
Scene::~Scene() = default;
Scene::Scene(Scene&&) noexcept = default;
Scene& Scene::operator=(Scene&&) noexcept = default;

void Scene::render_rows(int first, const ImageView& rows) const {
  const Layout& layout = parts_->layout;
  validate(rows.spec);
  if (rows.spec.width != layout.columns || first < 0 || rows.spec.height > layout.rows - first) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("rows {} to {} of width {} are not in a scene of {} x {} pixels", first,
                            first + rows.spec.height, rows.spec.width, layout.columns, layout.rows));
  }
  const auto width = static_cast<std::size_t>(layout.columns);
  Row row(width);
  std::array<std::vector<double>, 3> rgb = {std::vector<double>(width), std::vector<double>(width),
                                            std::vector<double>(width)};
  std::vector<double> gray(width);
  const std::vector<double> opaque(width, 1.0);
  const int colours = rows.spec.colour_channels();
  for (int y = 0; y < rows.spec.height; ++y) {
    parts_->paint(first + y, row);
    for (std::size_t x = 0; x < width; ++x) {
      rgb[0][x] = display_value(row[x].r);
      rgb[1][x] = display_value(row[x].g);
      rgb[2][x] = display_value(row[x].b);
      gray[x] = luma(rgb, x);
    }
    for (int channel = 0; channel < colours; ++channel) {
      const std::vector<double>& values = colours == 1 ? gray : rgb[static_cast<std::size_t>(channel) % 3];
      store_row(rows, y, channel, values.data(), rows.spec.white());
    }
    if (rows.spec.alpha) store_row(rows, y, colours, opaque.data(), rows.spec.white());
  }
}

Image render_scene(const ImageSpec& spec) {
  Image image(spec);
  Scene(spec.width, spec.height).render_rows(0, image.view());
  return image;
}

}  // namespace ungrain
