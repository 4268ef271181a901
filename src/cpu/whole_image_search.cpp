// The search of the whole image: the weight of each pair of pixels is computed once and used for both. The
// image is divided into tiles; an item of work is one tile and one row of shifts, and adds to the tile's own
// pixels and to those they are shifted to. These sums are float and the item's own. Groups of items are
// computed at once, then added to the image's totals, in double and in the items' order: the same bits for
// any band and thread count. The image's size alone decides the tiles.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "cpu/patch_search_kernel.h"
#include "cpu/scratch.h"

namespace ungrain {
namespace {

constexpr int widest_tile = 176;
constexpr int tile_height = 64;
constexpr int strip_height = 16;   // rows over which all shifts of a row are taken, one after the other
constexpr int items_a_worker = 4;  // in a group
constexpr int rows_at_once = 8;    // of the totals
static_assert(tile_height % strip_height == 0 && strip_height % 2 == 0);
static_assert(widest_tile <= widest_weights && tile_height <= highest_weights);

// Tile by tile, row of shifts by row of shifts: shifts that lead down, or right in the same row.
class Items {
 public:
  struct Item {
    Rect tile;
    int dy = 0;

    Rect shifted(const Extent& image) const { return {0, tile.y0 + dy, image.width, tile.y1 + dy}; }
  };

  explicit Items(const Extent& image)
      : image_(image), across_((image.width + widest_tile - 1) / widest_tile) {
    tile_width_ = std::min(widest_tile, up_to_vectors((image.width + across_ - 1) / across_));
    across_ = (image.width + tile_width_ - 1) / tile_width_;
    for (int y = 0; y < image.height; y += tile_height) count_ += in_row(y);
  }

  int tile_width() const { return tile_width_; }
  std::int64_t count() const { return count_; }

  Item operator[](std::int64_t index) const {
    int y = 0;
    for (; index >= in_row(y); y += tile_height) index -= in_row(y);
    const int shifts = image_.height - y;
    const int x = static_cast<int>(index / shifts) * tile_width_;
    return {.tile = {x, y, std::min(x + tile_width_, image_.width), std::min(y + tile_height, image_.height)},
            .dy = static_cast<int>(index % shifts)};
  }

 private:
  std::int64_t in_row(int y) const { return static_cast<std::int64_t>(across_) * (image_.height - y); }

  Extent image_;
  int across_;
  int tile_width_ = 0;
  std::int64_t count_ = 0;
};

// The sums of an item: of the tile's pixels and of those they are shifted to.
struct ItemSums {
  Planes forth;
  Planes back;
};

// The layout of the memory.
struct Layout {
  Layout(const SearchKernel& kernel, const Extent& extent)
      : image(extent),
        reach(kernel.reach),
        channels(kernel.channels),
        planes(PatchSums::values + kernel.channels),
        pixels_pitch(up_to_vectors(image.width + 2 * reach) + longest_vector),
        pixels_plane(static_cast<std::ptrdiff_t>(pixels_pitch) * (image.height + 2 * (reach + rows_around))),
        forth_pitch(Items(image).tile_width() + longest_vector),
        back_pitch(up_to_vectors(image.width) + back_before + 2 * longest_vector),
        shares_pitch(up_to_vectors(widest_tile)) {}

  // A worker's.
  std::size_t own_floats() const {
    return up_to_vectors(static_cast<int>(patch_shifts_floats())) + longest_vector +
           static_cast<std::size_t>(most_shifts_at_once * shares_pitch) + items_a_worker * item_floats();
  }
  // Of all workers.
  std::size_t shared_floats() const {
    return longest_vector + static_cast<std::size_t>(channels * pixels_plane + SearchPlanes::behind) + 2 +
           (2 * sums_planes() + 1) * plane();
  }
  std::size_t item_floats() const {
    return static_cast<std::size_t>(planes) * tile_height *
           static_cast<std::size_t>(forth_pitch + back_pitch);
  }
  std::size_t plane() const { return static_cast<std::size_t>(image.width) * image.height; }
  std::size_t sums_planes() const { return static_cast<std::size_t>(1 + channels); }

  ItemSums sums_in(float* memory, const Items::Item& item) const {
    const auto forth_plane = static_cast<std::ptrdiff_t>(forth_pitch) * tile_height;
    const auto back_plane = static_cast<std::ptrdiff_t>(back_pitch) * tile_height;
    float* back = memory + planes * forth_plane + back_before;
    return {.forth = {memory, item.tile, forth_pitch, forth_plane, planes},
            .back = {back, item.shifted(image), back_pitch, back_plane, planes}};
  }

  static constexpr int back_before = longest_vector;

  Extent image;
  int reach;
  int channels;
  int planes;
  int pixels_pitch;
  std::ptrdiff_t pixels_plane;
  int forth_pitch;
  int back_pitch;
  int shares_pitch;
};

class WholeImageSearch {
 public:
  WholeImageSearch(const SearchKernel& kernel, const StageCall& call, int first_channel)
      : kernel_(kernel),
        call_(call),
        first_(first_channel),
        layout_(kernel, call.image),
        items_(call.image),
        band_(call.out.rect) {
    float* memory = aligned(call.shared.data());
    const int r = kernel.reach;
    pixels_ = gather_scaled(kernel, call.in[0], call.image, first_channel,
                            {-r, -r, call.image.width + r, call.image.height + r},
                            {memory, layout_.pixels_pitch, layout_.pixels_plane});
    memory += layout_.channels * layout_.pixels_plane + SearchPlanes::behind;
    totals_ = doubles_in(memory);
    largest_ = reinterpret_cast<float*>(totals_ + layout_.sums_planes() * layout_.plane());
  }

  void filter() {
    for_rows([this](int y) { clear_totals(y); });
    for (int worker = 0; worker < call_.workers.count(); ++worker) {
      prepare_patch_shifts(aligned(call_.scratch_of(worker)));
    }
    const std::int64_t group = static_cast<std::int64_t>(items_a_worker) * call_.workers.count();
    for (std::int64_t begin = 0; begin < items_.count(); begin += group) {
      const std::int64_t end = std::min(begin + group, items_.count());
      call_.workers.for_each_of(begin, end, items_.count(), [&](std::int64_t index, int worker) {
        if (matters(items_[index])) compute(items_[index], sums_of(index, begin), call_.scratch_of(worker));
      });
      for_rows([&](int y) {
        for (std::int64_t index = begin; index < end; ++index)
          add_to_totals(items_[index], sums_of(index, begin), y);
      });
    }
    for_rows([this](int y) { finish(y); });
  }

 private:
  static float* aligned(float* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory) / sizeof(float);
    return memory + (longest_vector - address % longest_vector) % longest_vector;
  }

  // Calls body(y) for each row of the band.
  template <class Body>
  void for_rows(Body body) {
    const int pieces = (band_.height() + rows_at_once - 1) / rows_at_once;
    call_.workers.for_each_quietly(pieces, [&](std::int64_t piece, int) {
      const int begin = band_.y0 + static_cast<int>(piece) * rows_at_once;
      for (int y = begin; y < std::min(begin + rows_at_once, band_.y1); ++y) body(y);
    });
  }

  bool in_band(int y0, int y1) const { return y0 < band_.y1 && y1 > band_.y0; }
  bool matters(const Items::Item& item) const {
    return in_band(item.tile.y0, item.tile.y1) || in_band(item.tile.y0 + item.dy, item.tile.y1 + item.dy);
  }

  // In the workers' memory, items_a_worker of them in each.
  ItemSums sums_of(std::int64_t index, std::int64_t group) const {
    const auto place = static_cast<int>(index - group);
    float* memory = after_shares(call_.scratch_of(place / items_a_worker));
    return layout_.sums_in(memory + static_cast<std::size_t>(place % items_a_worker) * layout_.item_floats(),
                           items_[index]);
  }
  float* shares_in(float* memory) const {
    return aligned(memory) + up_to_vectors(static_cast<int>(patch_shifts_floats()));
  }
  float* after_shares(float* memory) const {
    return shares_in(memory) + static_cast<std::ptrdiff_t>(most_shifts_at_once) * layout_.shares_pitch;
  }

  // The first and last rows of [y0, y1) that add to the band, themselves or shifted down by dy.
  std::pair<int, int> rows_that_matter(int y0, int y1, int dy) const {
    int first = y1;
    int last = y0;
    for (const int down : {0, dy}) {
      const int begin = std::max(y0, band_.y0 - down);
      const int end = std::min(y1, band_.y1 - down);
      if (begin >= end) continue;
      first = std::min(first, begin);
      last = std::max(last, end);
    }
    return {first, last};
  }

  void compute(const Items::Item& item, const ItemSums& sums, float* memory) const {
    std::fill_n(sums.forth.data, layout_.item_floats(), 0.0F);
    const auto [tile, dy] = item;
    const int last_row = std::min(tile.y1, call_.image.height - dy);
    const int last_shift = call_.image.width - 1 - tile.x0;
    for (int y = tile.y0; y < last_row; y += strip_height) {
      const auto [begin, end] = rows_that_matter(y, std::min(y + strip_height, last_row), dy);
      if (begin >= end) continue;
      int count = 0;
      for (int dx = dy == 0 ? 1 : 1 - tile.x1; dx <= last_shift; dx += count) {
        const int left = last_shift + 1 - dx;
        count = left < most_shifts_at_once ? std::min(left, shifts_at_once) : most_shifts_at_once;
        const Rect area{std::max(tile.x0, -(dx + count - 1)), begin,
                        std::min(tile.x1, call_.image.width - dx), end};
        if (area.width() > 0) add_shifts(area, dx, dy, count, sums, memory);
      }
    }
  }

  void add_shifts(const Rect& area, int dx, int dy, int count, const ItemSums& sums, float* memory) const {
    const bool shrinks = kernel_.border == Border::shrink && leaves_image(area, dx, dy, count);
    PatchShifts group{.count = count, .use = WeightUse::both};
    for (int s = 0; s < count; ++s) {
      PatchShift& shift = group.shift[s];
      shift.dx = dx + s;
      shift.dy = dy;
      shift.exponent = kernel_.exponent_of_shift(shift.dx, dy);
      shift.weights = area;
      shift.counted = both_inside(call_.image, shift.dx, dy);
      shift.compared = shrinks ? shift.counted : everywhere;
      if (!shrinks) continue;
      float* shares = shares_in(memory) + static_cast<std::ptrdiff_t>(s) * layout_.shares_pitch;
      find_inverse_shares(kernel_, shift, shares, layout_.shares_pitch);
      shift.inverse_shares = shares;
    }
    add_patch_shifts(kernel_, pixels_, pixels_, group, area, sums.forth, aligned(memory), sums.back);
  }

  // Whether patches of these pixels, or of those they are shifted to, extend beyond the image.
  bool leaves_image(const Rect& area, int dx, int dy, int count) const {
    const int r = kernel_.reach;
    const Rect image{0, 0, call_.image.width, call_.image.height};
    const Rect all{area.x0 + std::min(dx, 0) - r, area.y0 - r, area.x1 + std::max(dx + count - 1, 0) + r,
                   area.y1 + dy + r};
    return !image.contains(all);
  }

  double* total_row(int sum, int y) const {
    return totals_ + static_cast<std::size_t>(sum) * layout_.plane() +
           static_cast<std::size_t>(y) * static_cast<std::size_t>(call_.image.width);
  }
  float* largest_row(int y) const {
    return largest_ + static_cast<std::size_t>(y) * static_cast<std::size_t>(call_.image.width);
  }

  void clear_totals(int y) const {
    for (int sum = 0; sum <= kernel_.channels; ++sum) std::fill_n(total_row(sum, y), call_.image.width, 0.0);
    std::fill_n(largest_row(y), call_.image.width, 0.0F);
  }

  void add_to_totals(const Items::Item& item, const ItemSums& sums, int y) const {
    if (!matters(item)) return;
    for (const Planes* part : {&sums.forth, &sums.back}) {
      if (y >= part->rect.y0 && y < part->rect.y1) add_row_to_totals(*part, y);
    }
  }

  void add_row_to_totals(const Planes& sums, int y) const {
    const int x0 = sums.rect.x0;
    const int width = sums.rect.width();
    add_row(sums.row(PatchSums::weights, y), width, total_row(0, y) + x0);
    for (int c = 0; c < kernel_.channels; ++c) {
      add_row(sums.row(PatchSums::values + c, y), width, total_row(1 + c, y) + x0);
    }
    if (!kernel_.largest) return;
    const float* found = sums.row(PatchSums::largest, y);
    float* largest = largest_row(y) + x0;
    for (int x = 0; x < width; ++x) largest[x] = std::max(largest[x], found[x]);
  }

  static void add_row(const float* sums, int width, double* totals) {
    for (int x = 0; x < width; ++x) totals[x] += static_cast<double>(sums[x]);
  }

  void finish(int y) const {
    const double from_unit = 1 / kernel_.to_unit;
    const double* weights = total_row(0, y);
    const float* largest = largest_row(y);
    for (int c = 0; c < kernel_.channels; ++c) {
      const float* centre = &pixels_.at(c, 0, y);
      const double* sums = total_row(1 + c, y);
      float* out = &call_.out.at(first_ + c, band_.x0, y);
      for (int x = band_.x0; x < band_.x1; ++x) {
        const double self = kernel_.self_weight(largest[x]);
        out[x - band_.x0] =
            static_cast<float>((sums[x] + self * centre[x]) / (weights[x] + self) * from_unit);
      }
    }
  }

  const SearchKernel& kernel_;
  const StageCall& call_;
  int first_;
  Layout layout_;
  Items items_;
  Rect band_;
  ConstPlanes pixels_;        // the image and its halo, scaled
  double* totals_ = nullptr;  // weights, then each channel's weighted values
  float* largest_ = nullptr;  // weight of each pixel
};

}  // namespace

Stage whole_image_search_cpu(std::string name, const SearchKernel& kernel, const ImageSpec& spec) {
  const Layout layout(kernel, {spec.width, spec.height});
  return {.name = std::move(name),
          .scratch = layout.own_floats(),
          .shared = layout.shared_floats(),
          .run = [kernel](const StageCall& call) {
            for (int first = 0; first < call.out.count; first += kernel.channels) {
              WholeImageSearch(kernel, call, first).filter();
            }
          }};
}

}  // namespace ungrain
