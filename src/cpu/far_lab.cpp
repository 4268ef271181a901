#include "cpu/far_lab.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/border.h"

namespace ungrain {
namespace {

// Values up to so many times white are precise enough in float: black beside them moves by 5e-5 of white.
constexpr double most_in_float = 3;

class FarPixels {
 public:
  FarPixels(const StageCall& call, double white, bool wraps)
      : call_(call), rgb_(call.at(1, 0)), limit_(static_cast<float>(most_in_float * white)), wraps_(wraps) {}

  // Marks the rows that have a far value; false where none has.
  bool find_rows() {
    const Rect& held = rgb_.rect;
    is_far_row_.assign(static_cast<std::size_t>(held.height()), 0);
    call_.workers.for_each_quietly(held.height(), [&](std::int64_t row, int) {
      const int y = held.y0 + static_cast<int>(row);
      float largest = 0;
      for_planes_of_images(y, [&](const float* values) {
        for (int i = 0; i < held.width(); ++i) largest = std::max(largest, values[i]);
      });
      is_far_row_[static_cast<std::size_t>(row)] = largest > limit_ ? 1 : 0;
    });
    return std::find(is_far_row_.begin(), is_far_row_.end(), 1) != is_far_row_.end();
  }

  // Sets is_far[x - x0] for the pixels of row y of the output that have a far value in their window.
  bool find_pixels(int y, char* is_far) {
    const Rect& held = rgb_.rect;
    columns_.assign(static_cast<std::size_t>(held.width()), 0);
    bool any = false;
    for (int dy = -call_.reach.y; dy <= call_.reach.y; ++dy) {
      const int row = wraps_ ? border_row(Border::wrap, held, call_.image, y + dy) : y + dy;
      if (row < held.y0 || row >= held.y1 || is_far_row_[static_cast<std::size_t>(row - held.y0)] == 0)
        continue;
      any = true;
      for_planes_of_images(row, [&](const float* values) {
        for (int i = 0; i < held.width(); ++i)
          columns_[static_cast<std::size_t>(i)] |= static_cast<char>(values[i] > limit_);
      });
    }
    if (!any) return false;
    any = false;
    const Rect& area = call_.out.rect;
    std::fill_n(is_far, area.width(), static_cast<char>(0));
    for (int column = held.x0; column < held.x1; ++column) {
      if (columns_[static_cast<std::size_t>(column - held.x0)] == 0) continue;
      for (int dx = -call_.reach.x; dx <= call_.reach.x; ++dx) {
        const int x = wraps_ ? border_index(Border::wrap, column + dx, call_.image.width) : column + dx;
        if (x < area.x0 || x >= area.x1) continue;
        is_far[x - area.x0] = 1;
        any = true;
      }
    }
    return any;
  }

  // What the reference reads for that part of the output: every image of the reach.
  std::vector<ConstPlanes> sources_of(const Rect& part) const {
    std::vector<ConstPlanes> sources;
    const Reach& reach = call_.reach;
    for (int offset = -reach.before; offset <= reach.after; ++offset) {
      const ConstPlanes& image = call_.at(1, offset);
      sources.push_back(image);
      if (wraps_ || image.data == nullptr) continue;
      const Rect& held = image.rect;
      ConstPlanes& source = sources.back();
      source.rect = {std::max(held.x0, part.x0 - reach.x), std::max(held.y0, part.y0 - reach.y),
                     std::min(held.x1, part.x1 + reach.x), std::min(held.y1, part.y1 + reach.y)};
      source.data = &image.at(0, source.rect.x0, source.rect.y0);
    }
    return sources;
  }

 private:
  // Calls visit(values) for row y of every plane of every image that exists. All images hold the same rows.
  template <class Visit>
  void for_planes_of_images(int y, Visit visit) const {
    for (int offset = -call_.reach.before; offset <= call_.reach.after; ++offset) {
      const ConstPlanes& image = call_.at(1, offset);
      if (image.data == nullptr) continue;
      for (int plane = 0; plane < image.count; ++plane) visit(image.row(plane, y));
    }
  }

  const StageCall& call_;
  const ConstPlanes& rgb_;  // of the image that is filtered
  float limit_;
  bool wraps_;
  std::vector<char> is_far_row_;
  std::vector<char> columns_;
};

// Filters the pixels of rows [begin, end) that are marked, in the smallest rectangle around them.
void filter_rows(const StageCall& call, const Stage& exact, FarPixels& pixels, int begin, int end) {
  const Rect& area = call.out.rect;
  const auto width = static_cast<std::size_t>(area.width());
  std::vector<char> is_far(width * static_cast<std::size_t>(end - begin));
  Rect around{area.x1, end, area.x0, begin};
  for (int y = begin; y < end; ++y) {
    char* const row = is_far.data() + width * static_cast<std::size_t>(y - begin);
    if (!pixels.find_pixels(y, row)) continue;
    const auto first = std::find(row, row + width, 1) - row;
    const auto after =
        std::find(std::reverse_iterator(row + width), std::reverse_iterator(row), 1).base() - row;
    around = {std::min(around.x0, area.x0 + static_cast<int>(first)), std::min(around.y0, y),
              std::max(around.x1, area.x0 + static_cast<int>(after)), y + 1};
  }
  if (around.x0 >= around.x1) return;
  const std::ptrdiff_t plane = static_cast<std::ptrdiff_t>(around.width()) * around.height();
  std::vector<float> values(static_cast<std::size_t>(plane * call.out.count));
  const Planes filtered{values.data(), around, around.width(), plane, call.out.count};
  const std::vector<ConstPlanes> sources = pixels.sources_of(around);
  exact.run({{.in = sources, .out = filtered, .image = call.image, .reach = call.reach}, call.workers, {}});
  for (int y = around.y0; y < around.y1; ++y) {
    const char* const row = is_far.data() + width * static_cast<std::size_t>(y - begin);
    for (int x = around.x0; x < around.x1; ++x) {
      if (row[x - area.x0] == 0) continue;
      for (int c = 0; c < call.out.count; ++c) call.out.at(c, x, y) = filtered.at(c, x, y);
    }
  }
}

}  // namespace

void filter_far_pixels(const StageCall& call, const Stage& exact, double white, bool wraps) {
  FarPixels pixels(call, white, wraps);
  if (!pixels.find_rows()) return;
  // Few rows at a time, because the rectangle around far pixels is filtered whole. Where the image wraps, the
  // reference copies all of it each time.
  constexpr int few = 16;
  const Rect& area = call.out.rect;
  const int rows = wraps ? area.height() : few;
  for (int y = area.y0; y < area.y1; y += rows)
    filter_rows(call, exact, pixels, y, std::min(y + rows, area.y1));
}

}  // namespace ungrain
