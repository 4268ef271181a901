// Sums of the estimates of patches on a CPU. References are taken tile by tile, and each tile has sums of its
// own. A batch of tiles runs at a time, in reading order; then their sums are added to those of the rows, in
// the order of tiles. The image's coordinates place the tiles, independent of the band, so that every sum has
// one order. Only rows with incomplete estimates are kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/method.h"
#include "core/planes.h"

namespace ungrain {

// Reference patches along an axis: every spacing-th, the first and the last.
struct ReferenceAxis {
  int last = 0;
  int spacing = 1;
  int lead = 0;  // how far the grid is moved towards 0, less than the spacing

  int count() const { return (last + lead + spacing - 1) / spacing + 1; }
  int position(int index) const { return std::clamp(index * spacing - lead, 0, last); }
  // The first reference at or after a position; count() if there is none.
  int index_from(int from) const {
    if (from <= 0) return 0;
    return from > last ? count() : (from + lead + spacing - 1) / spacing;
  }
  // The first reference after a position before the last one, which is closer to the previous one than the
  // spacing.
  int index_after(int position) const { return position >= last ? count() : (position + lead) / spacing + 1; }
};

class TileSums {
 public:
  // Sizes that all tiles have.
  struct Shape {
    int references = 0;  // along each axis
    int reach = 0;       // of a group around its reference
    int side = 0;        // pixels that its patches touch, along each axis
    int pitch = 0;
    std::size_t plane = 0;  // floats
  };

  // References [begin, end) along an axis.
  struct Range {
    int begin = 0;
    int end = 0;
    int count() const { return end - begin; }
  };

  struct Tile {
    Range xs;
    Range ys;
    int left = 0;  // of the pixels that its patches touch; may lie beyond the image
    int top = 0;
    float* sums = nullptr;  // to be filled: weighted values and weights of part 0, then of part 1 …
  };

  struct Patches {
    int side = 8;
    int spacing = 1;  // of references
    int reach = 0;    // of a group: its patches lie at most so many pixels from its reference along each axis
    int lead_x = 0;   // ReferenceAxis::lead
    int lead_y = 0;
  };

  // Each part has weights of its own, and `sharing` planes of values that share them: its planes of the
  // output follow each other.
  TileSums(const Extent& image, const Patches& patches, int parts, int sharing = 1)
      : parts_(parts),
        sharing_(sharing),
        patch_(patches.side),
        across_{image.width - patches.side, patches.spacing, patches.lead_x},
        down_{image.height - patches.side, patches.spacing, patches.lead_y} {
    const int spacing = patches.spacing;
    const int reach = patches.reach;
    constexpr int tile_side = 72;        // pixels between tiles, about
    constexpr int tiles_in_flight = 48;  // at least, so that threads seldom wait for each other
    shape_.reach = reach;
    shape_.references = 6 * std::max(1, static_cast<int>(std::lround(tile_side / 6.0 / spacing)));
    shape_.side = (shape_.references - 1) * spacing + 2 * reach + patch_;
    shape_.pitch = up_to(16, shape_.side + 8);
    if (shape_.pitch % 64 == 0) shape_.pitch += 16;  // avoids rows of a patch in the same cache set
    shape_.plane = static_cast<std::size_t>(shape_.pitch) * shape_.side;

    const int tiles_across = (across_.count() + shape_.references - 1) / shape_.references;
    const int tiles_down = (down_.count() + shape_.references - 1) / shape_.references;
    // Whole rows of tiles, or equal parts of a row.
    rows_at_once_ = std::min(tiles_down, (tiles_in_flight + tiles_across - 1) / tiles_across);
    const int parts_of_row = std::max(1, tiles_across / tiles_in_flight);
    at_once_ = (rows_at_once_ * tiles_across + parts_of_row - 1) / parts_of_row;
    kept_ = shape_.side + (rows_at_once_ - 1) * shape_.references * spacing;
    row_ = static_cast<std::size_t>(up_to(16, image.width));
  }

  const Shape& shape() const { return shape_; }
  const ReferenceAxis& across() const { return across_; }
  const ReferenceAxis& down() const { return down_; }
  std::size_t tile_floats() const { return static_cast<std::size_t>(arrays()) * shape_.plane; }
  float* values_of(const Tile& tile, int part, int plane = 0) const {
    return tile.sums + (part * (sharing_ + 1) + plane) * shape_.plane;
  }
  float* weights_of(const Tile& tile, int part) const { return values_of(tile, part, sharing_); }

  // Floats that run() shares between its workers.
  std::size_t shared() const {
    return at_once_ * tile_floats() + static_cast<std::size_t>(arrays()) * kept_ * row_ + 32;
  }

  // Makes the means of all estimates. filter(tile, worker) fills a tile's sums; done(y) follows when a row of
  // `out` is complete; around(work) calls work(), which adds and divides some rows.
  template <class Filter, class Done, class Around>
  void run(Workers& workers, const Planes& out, float* shared, const Filter& filter, const Done& done_row,
           const Around& around) const {
    shared = aligned(shared);
    const Rect& area = out.rect;
    // References whose groups reach the output.
    const Range columns = reaching(across_, area.x0, area.x1);
    const Range rows = reaching(down_, area.y0, area.y1);
    const int side = shape_.references;
    const Range tile_columns{columns.begin / side, (columns.end - 1) / side + 1};
    const Range tile_rows{rows.begin / side, (rows.end - 1) / side + 1};
    const int across = tile_columns.count();
    const int tiles = across * tile_rows.count();
    const auto column_of = [&](int tile) { return tile_columns.begin + tile % across; };
    const auto row_of = [&](int tile) { return tile_rows.begin + tile / across; };
    int done = area.y0;     // first row that is not divided yet
    int started = area.y0;  // first row without sums
    for (int begin = 0, end = 0; begin < tiles; begin = end) {
      end = std::min({tiles, begin + at_once_, (begin / across + rows_at_once_) * across});
      workers.for_each(end - begin, [&](std::int64_t item, int worker) {
        const int tile = begin + static_cast<int>(item);
        const int tx = column_of(tile);
        const int ty = row_of(tile);
        filter(Tile{{std::max(columns.begin, tx * side), std::min(columns.end, (tx + 1) * side)},
                    {std::max(rows.begin, ty * side), std::min(rows.end, (ty + 1) * side)},
                    first_column(tx),
                    first_row(ty),
                    sums_of_tile(shared, tile - begin)},
               worker);
      });
      const int touched = std::clamp(first_row(row_of(end - 1)) + shape_.side, started, area.y1);
      const int complete = end == tiles ? area.y1 : std::clamp(first_row(row_of(end)), done, area.y1);
      for_rows(workers, {done, touched}, around, [&](const Range& some) {
        for (int y = std::max(some.begin, started); y < some.end; ++y) clear_row(shared, y);
        // Rows of a tile lie side by side: one after the other they are read without waiting for each.
        for (int tile = begin; tile < end; ++tile) {
          const int left = first_column(column_of(tile));
          const int top = first_row(row_of(tile));
          for (int y = some.begin; y < some.end; ++y) add_row(shared, out, tile - begin, left, y - top, y);
        }
        for (int y = some.begin; y < std::min(some.end, complete); ++y) {
          divide_row(shared, out, y);
          done_row(y);
        }
      });
      done = complete;
      started = touched;
    }
  }

  static float* aligned(float* memory) {
    constexpr std::uintptr_t line = 64;
    const std::uintptr_t beyond = reinterpret_cast<std::uintptr_t>(memory) % line;
    return memory + (beyond == 0 ? 0 : (line - beyond) / sizeof(float));
  }

 private:
  int arrays() const { return parts_ * (sharing_ + 1); }

  static constexpr int up_to(int step, int n) { return (n + step - 1) / step * step; }

  Range reaching(const ReferenceAxis& axis, int begin, int end) const {
    return {axis.index_from(begin - (patch_ - 1) - shape_.reach), axis.index_after(end - 1 + shape_.reach)};
  }

  int first_row(int ty) const { return down_.position(ty * shape_.references) - shape_.reach; }
  int first_column(int tx) const { return across_.position(tx * shape_.references) - shape_.reach; }

  // Shared memory: the tiles' sums, then those of rows.
  float* sums_of_tile(float* shared, int place) const {
    return shared + static_cast<std::size_t>(place) * tile_floats();
  }
  float* sums_of_row(float* shared, int part, int y) const {
    return shared + at_once_ * tile_floats() +
           (sharing_ + 1) * row_ * (static_cast<std::size_t>(part) * kept_ + y % kept_);
  }

  // Calls body(range) for all rows, some at a time.
  template <class Around, class Body>
  void for_rows(Workers& workers, const Range& rows, const Around& around, const Body& body) const {
    if (rows.begin >= rows.end) return;
    constexpr int at_once = 8;
    workers.for_each((rows.end - rows.begin + at_once - 1) / at_once, [&](std::int64_t item, int) {
      around([&] {
        const int begin = rows.begin + static_cast<int>(item) * at_once;
        body(Range{begin, std::min(rows.end, begin + at_once)});
      });
    });
  }

  void clear_row(float* shared, int y) const {
    for (int part = 0; part < parts_; ++part)
      std::fill_n(sums_of_row(shared, part, y), (sharing_ + 1) * row_, 0.0F);
  }

  // Adds a tile's row to the output's sums.
  void add_row(float* shared, const Planes& out, int place, int left, int row, int y) const {
    if (row < 0 || row >= shape_.side) return;
    const int begin = std::max(left, out.rect.x0);
    const int count = std::min(left + shape_.side, out.rect.x1) - begin;
    for (int part = 0; part < parts_; ++part) {
      for (int plane = 0; plane <= sharing_; ++plane) {
        const float* more = sums_of_tile(shared, place) + (part * (sharing_ + 1) + plane) * shape_.plane +
                            row * shape_.pitch + (begin - left);
        float* sums = sums_of_row(shared, part, y) + plane * row_ + (begin - out.rect.x0);
        for (int x = 0; x < count; ++x) sums[x] += more[x];
      }
    }
  }

  void divide_row(float* shared, const Planes& out, int y) const {
    for (int part = 0; part < parts_; ++part) {
      const float* values = sums_of_row(shared, part, y);
      const float* weights = values + sharing_ * row_;
      for (int plane = 0; plane < sharing_; ++plane, values += row_) {
        float* to = out.row(part * sharing_ + plane, y);
        for (int x = 0; x < out.rect.width(); ++x) to[x] = values[x] / weights[x];
      }
    }
  }

  int parts_;
  int sharing_;
  int patch_;
  ReferenceAxis across_;
  ReferenceAxis down_;
  Shape shape_;
  int at_once_ = 1;       // tiles in a batch
  int rows_at_once_ = 1;  // rows of tiles in a batch
  int kept_ = 1;          // rows with sums
  std::size_t row_ = 0;   // floats
};

}  // namespace ungrain
