// A tile's rows are filtered along x as they come, into a core's cache, and from there along y. Sums are
// float; a pixel's have one order whatever the tile: along x and for weights it is the same for every pixel,
// for boxes along y it is laid out from the image's top.
#include "cpu/separable.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/border.h"
#include "core/convert_simd.h"
#include "core/sample_types.h"
#include "core/samples.h"
#include "cpu/separable_kernels.h"
#include "cpu/tiles.h"

namespace ungrain {
namespace {

// What to do, and how it lies in memory.
struct Separable {
  Separable(const std::vector<double>& weights, bool all_alike, Border rule)
      : radius(static_cast<int>(weights.size()) - 1), border(rule), is_box(all_alike) {
    double sum = 0;
    for (int k = -radius; k <= radius; ++k) sum += weights[static_cast<std::size_t>(k < 0 ? -k : k)];
    for (const double weight : weights) {
      normalised.push_back(weight / sum);
      half.push_back(static_cast<float>(weight / sum));
    }
  }

  int length() const { return 2 * radius + 1; }

  // What to multiply by where only some of the weights around position i lie inside [0, n).
  float missing(int i, int n) const {
    if (i >= radius && i + radius < n) return 1;
    double inside = 0;
    for (int k = std::max(-radius, -i); k <= std::min(radius, n - 1 - i); ++k) {
      inside += normalised[static_cast<std::size_t>(k < 0 ? -k : k)];
    }
    return static_cast<float>(1 / inside);
  }

  // What a row is multiplied by at last.
  float row_factor(int y, int height) const { return border == Border::shrink ? missing(y, height) : 1.0F; }

  // Boxes of a few pixels are quicker as weights.
  bool slides() const { return is_box && radius > 3; }

  // A row of a tile is about 4 KiB. Tiles are higher than what they share with their neighbours, so that
  // little is computed twice, but not so high that they need megabytes.
  int tile_width(int channels) const { return std::max((radius <= 128 ? 1024 : 256) / channels, 64); }
  int tile_height() const { return std::clamp(4 * radius, 64, 1024); }
  // An odd number of cache lines: the rows of a column spread over the cache.
  std::ptrdiff_t pitch(int channels) const {
    constexpr std::ptrdiff_t line = 16;
    return ((tile_width(channels) * channels + separable_slack) / line | 1) * line;
  }
  std::ptrdiff_t line_floats(int channels) const {
    return static_cast<std::ptrdiff_t>(tile_width(channels) + 2 * radius) * channels + separable_slack;
  }
  // The tile's rows, two lines with their borders, three without.
  std::size_t scratch_floats(int channels) const {
    return static_cast<std::size_t>(pitch(channels) * (tile_height() + 2 * radius + 3) +
                                    2 * line_floats(channels));
  }

  int radius;
  Border border;
  bool is_box;
  std::vector<double> normalised;
  std::vector<float> half;
};

template <class T>
constexpr PixelType type_of = std::is_same_v<T, std::uint8_t>    ? PixelType::u8
                              : std::is_same_v<T, std::uint16_t> ? PixelType::u16
                                                                 : PixelType::f32;

// A shrinking window's weights add up to less at the edges: multiplies a tile's row by what is missing.
void mend_edges(const Separable& how, const Rect& tile, int image_width, int channels, float* values) {
  const auto mend = [&](int x) {
    const float factor = how.missing(x, image_width);
    for (int c = 0; c < channels; ++c) values[(x - tile.x0) * channels + c] *= factor;
  };
  const int left_end = std::min(tile.x1, how.radius);
  for (int x = tile.x0; x < left_end; ++x) mend(x);
  for (int x = std::max({tile.x0, left_end, image_width - how.radius}); x < tile.x1; ++x) mend(x);
}

template <class T>
class TileFilter {
 public:
  TileFilter(const Separable& how, const SampleRows<const T>& in, const SampleRows<T>& out,
             const Extent& image, const Rect& tile, float* memory, std::atomic<bool>* saw_nonfinite)
      : how_(how),
        in_(in),
        out_(out),
        image_(image),
        tile_(tile),
        channels_(in.channels),
        radius_(how.radius),
        count_(static_cast<std::ptrdiff_t>(tile.width()) * in.channels),
        pitch_(how.pitch(in.channels)),
        first_row_(tile.y0 - how.radius),
        saw_nonfinite_(saw_nonfinite) {
    line_ = memory;
    samples_ = reinterpret_cast<T*>(line_ + how.line_floats(channels_));
    result_ = line_ + 2 * how.line_floats(channels_);
    running_ = result_ + pitch_;
    older_ = running_ + pitch_;
    rows_ = older_ + pitch_;
  }

  void filter() {
    if (how_.slides()) {
      for (int y = first_row_; y < tile_.y1 + radius_; ++y) {
        filter_along_row(y);
        add_to_box(y);
        if (y - radius_ >= tile_.y0) {
          const float factor = how_.half[0] * how_.row_factor(y - radius_, image_.height);
          samples_from(type_of<T>, result_, count_, factor, out_.pixel(tile_.x0, y - radius_));
        }
      }
      return;
    }
    constexpr int few_rows = 2;  // they stay in a core's first cache as they are
    if (radius_ <= few_rows) {
      for (int y = first_row_; y < tile_.y1 + radius_; ++y) {
        filter_along_row(y);
        if (y - radius_ >= tile_.y0) weigh_down(y - radius_, 0, count_);
      }
      return;
    }
    for (int y = first_row_; y < tile_.y1 + radius_; ++y) filter_along_row(y);
    // Down strips whose rows stay in a core's first cache.
    constexpr std::ptrdiff_t strip = 64;
    for (std::ptrdiff_t x = 0; x < count_; x += strip) {
      for (int y = tile_.y0; y < tile_.y1; ++y) weigh_down(y, x, std::min(strip, count_ - x));
    }
  }

 private:
  // Part of an output row, from the sample `first` on.
  void weigh_down(int y, std::ptrdiff_t first, std::ptrdiff_t count) {
    weighted_sum(row(y) + first, pitch_, how_.half.data(), radius_, count, how_.row_factor(y, image_.height),
                 out_.pixel(tile_.x0, y) + first);
  }

  float* row(int y) const { return rows_ + (y - tile_.y0 + radius_) * pitch_; }

  // Image row y, which may be beyond the edge, along x.
  void filter_along_row(int y) {
    const bool there = how_.border == Border::wrap || border_index(how_.border, y, image_.height) != no_pixel;
    if (!there) {
      std::fill_n(row(y), count_, 0.0F);
      return;
    }
    const float* line = load_line(border_row(how_.border, in_.rect, image_, y));
    if (how_.slides()) {
      box_along_line(line_, channels_, how_.length(), how_.half[0], count_, row(y));
    } else {
      weighted_sum(line + radius_ * channels_, channels_, how_.half.data(), radius_, count_, 1.0F, row(y));
    }
    if (how_.border == Border::shrink) mend_edges(how_, tile_, image_.width, channels_, row(y));
  }

  // The tile's part of an image row with its border: copied, unless it is only read and lies there as it is.
  const float* load_line(int y) {
    const Rect want{tile_.x0 - radius_, y, tile_.x1 + radius_, y + 1};
    const std::ptrdiff_t samples = count_ + 2 * radius_ * channels_;
    const bool inside = want.x0 >= 0 && want.x1 <= image_.width;
    if constexpr (std::is_same_v<T, float>) {
      const bool as_it_is = inside && !how_.slides();
      if (!as_it_is) gather(in_, image_, how_.border, want, line_, 0);
      const float* line = as_it_is ? in_.pixel(want.x0, y) : line_;
      if (saw_nonfinite_ != nullptr && !all_finite(line, samples)) *saw_nonfinite_ = true;
      return line;
    } else {
      if (!inside) gather(in_, image_, how_.border, want, samples_, 0);
      floats_from(type_of<T>, inside ? in_.pixel(want.x0, y) : samples_, samples, line_);
      return line_;
    }
  }

  // Boxes along y. The image's rows are parted into blocks of the window's length: a window is the end of one
  // block, summed from below, and the beginning of the next, summed from above. A block's rows become sums
  // from below as soon as its last row is there. Long sums are taken in two levels, so that they stay
  // accurate.
  static constexpr int most_in_a_sum = 64;

  int block_of(int y) const {
    return y >= 0 ? y / how_.length() : -((how_.length() - 1 - y) / how_.length());
  }
  int block_begin(int y) const { return block_of(y) * how_.length(); }

  // Adds what was summed to what was summed before it.
  void carry(float* before, const float* sum, bool is_first) const {
    if (is_first) {
      std::memcpy(before, sum, static_cast<std::size_t>(count_) * sizeof(float));
    } else {
      add_rows(before, sum, count_, before);
    }
  }

  // Leaves the sum of the window that ends with row y in result_, if all of it is there. Of a block whose
  // beginning is not, no window needs the sum from above.
  void add_to_box(int y) {
    const int begin = block_begin(y);
    const int window_begin = y - 2 * radius_;
    if (begin >= first_row_) {
      const int place = y - begin;
      const bool restarts = place % most_in_a_sum == 0;
      if (restarts && place > 0) carry(older_, running_, place == most_in_a_sum);
      const bool two_levels = place >= most_in_a_sum;
      const bool whole_block = window_begin == begin;
      const float* behind = whole_block || window_begin < first_row_ ? nullptr : row(window_begin);
      slide_box(row(y), two_levels ? older_ : behind, restarts, count_, running_, result_);
      if (two_levels && behind != nullptr) add_rows(result_, behind, count_, result_);
    }
    if (y - begin == how_.length() - 1) sum_from_below(std::max(begin + 1, first_row_), y);
  }

  // row(y) = the sum of the rows y to last, for y from first on.
  void sum_from_below(int first, int last) {
    float* const sum = line_;  // free between rows
    float* const before = line_ + pitch_;
    for (int y = last; y >= first; --y) {
      const int place = last - y;
      const bool restarts = place % most_in_a_sum == 0;
      if (restarts && place > 0) carry(before, sum, place == most_in_a_sum);
      slide_box(row(y), place >= most_in_a_sum ? before : nullptr, restarts, count_, sum, row(y));
    }
  }

  const Separable& how_;
  SampleRows<const T> in_;
  SampleRows<T> out_;
  Extent image_;
  Rect tile_;
  int channels_;
  int radius_;
  std::ptrdiff_t count_;  // floats of a row
  std::ptrdiff_t pitch_;
  int first_row_;
  std::atomic<bool>* saw_nonfinite_;  // null: there is nothing to be seen
  float* line_;
  T* samples_;
  float* result_;
  float* running_;
  float* older_;
  float* rows_;
};

// A box of integers: its columns' sums slide down the image's own rows, exactly, and only then go along x.
template <class T>
class IntegerBox {
 public:
  using Sum = std::conditional_t<std::is_same_v<T, std::uint8_t>, std::uint16_t, std::uint32_t>;

  // Whether the sums of a column fit.
  static bool takes(int radius) { return !std::is_same_v<T, std::uint8_t> || radius < 128; }

  IntegerBox(const Separable& how, const SampleRows<const T>& in, const SampleRows<T>& out,
             const Extent& image, const Rect& tile, float* memory)
      : how_(how),
        in_(in),
        out_(out),
        image_(image),
        tile_(tile),
        channels_(in.channels),
        radius_(how.radius),
        left_(std::max(0, tile.x0 - radius_)),
        columns_(std::min(image.width, tile.x1 + radius_) - left_),
        line_(memory),
        sums_(reinterpret_cast<Sum*>(memory + how.line_floats(channels_))),
        result_(memory + 2 * how.line_floats(channels_)) {}

  void filter() {
    float* const inside = line_ + static_cast<std::ptrdiff_t>(left_ - (tile_.x0 - radius_)) * channels_;
    const std::ptrdiff_t columns = static_cast<std::ptrdiff_t>(columns_) * channels_;
    std::fill_n(sums_, columns, Sum{});
    for (int y = tile_.y0 - radius_; y < tile_.y0 + radius_; ++y) {
      slide_sums(samples_of(y), nullptr, columns, sums_, inside);
    }
    const std::ptrdiff_t count = static_cast<std::ptrdiff_t>(tile_.width()) * channels_;
    for (int y = tile_.y0; y < tile_.y1; ++y) {
      slide_sums(samples_of(y + radius_), y == tile_.y0 ? nullptr : samples_of(y - radius_ - 1), columns,
                 sums_, inside);
      extend(line_);
      box_along_line(line_, channels_, how_.length(), how_.half[0], count, result_);
      if (how_.border == Border::shrink) mend_edges(how_, tile_, image_.width, channels_, result_);
      samples_from(type_of<T>, result_, count, how_.half[0] * how_.row_factor(y, image_.height),
                   out_.pixel(tile_.x0, y));
    }
  }

  // Small windows of 8 bits in 16 bits all the way.
  bool is_short() const {
    return std::is_same_v<T, std::uint8_t> && radius_ <= 7 && how_.border != Border::shrink;
  }

  void filter_short() {
    if constexpr (std::is_same_v<T, std::uint8_t>) {
      auto* const line = reinterpret_cast<std::uint16_t*>(line_);
      std::uint16_t* const inside =
          line + static_cast<std::ptrdiff_t>(left_ - (tile_.x0 - radius_)) * channels_;
      const std::ptrdiff_t columns = static_cast<std::ptrdiff_t>(columns_) * channels_;
      const ShortDivision division(how_.length() * how_.length());
      std::fill_n(inside, columns, std::uint16_t{0});
      for (int y = tile_.y0 - radius_; y < tile_.y0 + radius_; ++y) {
        slide_sums(samples_of(y), nullptr, columns, inside);
      }
      for (int y = tile_.y0; y < tile_.y1; ++y) {
        slide_sums(samples_of(y + radius_), y == tile_.y0 ? nullptr : samples_of(y - radius_ - 1), columns,
                   inside);
        extend(line);
        short_box_along_line(line, channels_, how_.length(), division,
                             static_cast<std::ptrdiff_t>(tile_.width()) * channels_, out_.pixel(tile_.x0, y));
      }
    }
  }

 private:
  // The part of an image row that the tile needs; null where there is none.
  const T* samples_of(int y) const {
    const int row = border_index(how_.border, y, image_.height);
    return row == no_pixel ? nullptr : in_.pixel(left_, row);
  }

  // The columns beyond the edges have the sums of the columns that stand there.
  template <class Number>
  void extend(Number* line) const {
    const auto fill = [&](int x) {
      const int column = border_index(how_.border, x, image_.width);
      Number* to = line + static_cast<std::ptrdiff_t>(x - (tile_.x0 - radius_)) * channels_;
      const Number* from = line + static_cast<std::ptrdiff_t>(column - (tile_.x0 - radius_)) * channels_;
      for (int c = 0; c < channels_; ++c) to[c] = column == no_pixel ? Number{} : from[c];
    };
    for (int x = tile_.x0 - radius_; x < left_; ++x) fill(x);
    for (int x = left_ + columns_; x < tile_.x1 + radius_; ++x) fill(x);
  }

  const Separable& how_;
  SampleRows<const T> in_;
  SampleRows<T> out_;
  Extent image_;
  Rect tile_;
  int channels_;
  int radius_;
  int left_;  // the first image column that is summed
  int columns_;
  float* line_;
  Sum* sums_;
  float* result_;
};

template <class T, class ScratchOf>
void run(const Separable& how, const SampleRows<const T>& in, const SampleRows<T>& out, const Extent& image,
         Workers& workers, ScratchOf scratch_of, std::atomic<bool>* saw_nonfinite) {
  for_tiles(workers, out.rect, how.tile_width(in.channels), how.tile_height(),
            [&](const Rect& tile, int worker) {
              if constexpr (!std::is_same_v<T, float>) {
                if (how.is_box && IntegerBox<T>::takes(how.radius)) {
                  IntegerBox<T> box(how, in, out, image, tile, scratch_of(worker));
                  box.is_short() ? box.filter_short() : box.filter();
                  return;
                }
              }
              TileFilter<T>(how, in, out, image, tile, scratch_of(worker), saw_nonfinite).filter();
            });
}

template <class T>
Direct direct_version(const Separable& how, int channels) {
  const auto run_samples = [how](const DirectCall& call) {
    constexpr std::ptrdiff_t sample = sizeof(T);
    run(
        how,
        SampleRows<const T>{static_cast<const T*>(call.in.data), call.in_rect, call.in.strides.y / sample,
                            call.in.spec.channels},
        SampleRows<T>{static_cast<T*>(call.out.data), call.out_rect, call.out.strides.y / sample,
                      call.out.spec.channels},
        call.image, call.workers, [&](int worker) { return call.scratch_of(worker); }, &call.saw_nonfinite);
  };
  return {std::max(how.scratch_floats(1), how.scratch_floats(channels)), run_samples};
}

Direct direct_version(const Separable& how, const ImageSpec& spec) {
  return with_sample_type(spec.type, [&]<class T>(T) -> Direct {
    if constexpr (std::is_same_v<T, Half>) {
      return {};
    } else {
      return direct_version<T>(how, spec.channels);
    }
  });
}

Pipeline separable_pipeline(const Separable& how, const char* name, const ImageSpec& spec) {
  const auto run_planes = [how](const StageCall& call) {
    for (int plane = 0; plane < call.out.count; ++plane) {
      run(
          how, rows_of_plane(call.in[0], plane), rows_of_plane(call.out, plane), call.image, call.workers,
          [&](int worker) { return call.scratch_of(worker); }, nullptr);
    }
  };
  return {.stages = {{.name = name,
                      .reach = {.x = how.radius, .y = how.radius},
                      .planes = spec.colour_channels(),
                      .scratch = how.scratch_floats(1),
                      .run = run_planes}},
          .wraps = how.border == Border::wrap,
          .direct = how.border == Border::wrap ? Direct{} : direct_version(how, spec)};
}

}  // namespace

Pipeline weighted_mean(const std::vector<double>& half, Border border, const ImageSpec& spec) {
  return separable_pipeline(Separable(half, false, border), "weighted mean", spec);
}

Pipeline box_mean(int radius, Border border, const ImageSpec& spec) {
  const std::vector<double> half(static_cast<std::size_t>(radius) + 1, 1.0);
  return separable_pipeline(Separable(half, true, border), "mean", spec);
}

}  // namespace ungrain
