// Median on the CPU: tiles with their borders in a core's cache, on the samples themselves if the engine
// offers them, else on float planes. Small windows use networks of minima and maxima over whole rows, large
// ones counting.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/border.h"
#include "core/convert_simd.h"
#include "core/sample_types.h"
#include "core/samples.h"
#include "cpu/tiles.h"
#include "methods/median/kernels.h"
#include "methods/median/median.h"
#include "methods/median/network.h"
#include "methods/median/ranks.h"

namespace ungrain {
namespace {

// Up to this radius a network is faster than counting (Xeon, Sapphire Rapids).
template <class T>
constexpr int largest_network = std::is_same_v<T, std::uint8_t> ? 6 : 16;

float select_median(float* values, std::size_t count) {
  float* const middle = values + count / 2;
  std::nth_element(values, middle, values + count);
  if (count % 2 == 1) return *middle;
  const float below = *std::max_element(values, middle);
  return static_cast<float>((static_cast<double>(below) + *middle) / 2);
}

std::size_t window_pixels(int radius) { return static_cast<std::size_t>(2 * radius + 1) * (2 * radius + 1); }

// A network's tile: its width and the layout of its rows.
template <class T>
struct NetworkTile {
  NetworkTile(int radius, int channels) {
    // The rows that a network works on at a time fill most of a core's first-level cache.
    constexpr int cache = 40 << 10;
    const int values = radius <= 2 ? pair_rows_beside : median_network(radius).values;
    const int bytes = std::clamp(cache / values / 64 * 64, 256, 2048);
    width = std::max(8, bytes / static_cast<int>(sizeof(T)) / channels - 2 * radius);
    height = 32;
    pitch = (width + 2 * radius) * channels + median_slack / static_cast<std::ptrdiff_t>(sizeof(T));
    rows_of_image = height + 2 * radius;
    rows_beside = values;
  }
  std::size_t scratch_floats() const {
    return static_cast<std::size_t>(pitch) * (rows_of_image + rows_beside) * sizeof(T) / sizeof(float) + 16;
  }

  int width;
  int height;
  std::ptrdiff_t pitch;  // samples
  int rows_of_image;
  int rows_beside;
};

template <class T>
std::size_t scratch_floats(int radius, int channels) {
  const std::size_t selection = window_pixels(radius) * (static_cast<std::size_t>(channels) + 1);
  if (radius <= largest_network<T>) {
    return std::max(selection, NetworkTile<T>(radius, channels).scratch_floats());
  }
  const auto values = static_cast<std::size_t>((rank_tile_width + 2 * radius) * channels + median_slack) *
                      static_cast<std::size_t>(rank_tile_height(radius) + 2 * radius);
  return std::max(selection,
                  2 * values * sizeof(T) / sizeof(float) + 32 + LargeMedian<T>::scratch_floats(radius));
}

// One image, or one plane of it.
template <class T>
class Median {
 public:
  Median(const MedianParams& params, const SampleRows<const T>& in, const SampleRows<T>& out,
         const Extent& image, std::atomic<bool>* saw_nonfinite = nullptr)
      : params_(params),
        radius_(params.radius),
        in_(in),
        out_(out),
        image_(image),
        saw_nonfinite_(saw_nonfinite) {}

  template <class ScratchOf>
  void run(Workers& workers, ScratchOf scratch_of) const {
    constexpr int few = 2;  // pixels: too few for a tile
    if (static_cast<std::int64_t>(image_.width) * image_.height <= few) {
      select_few(reinterpret_cast<T*>(scratch_of(0)));
      finish(out_.rect, scratch_of(0));
      return;
    }
    if (radius_ <= largest_network<T>) {
      const NetworkTile<T> shape(radius_, in_.channels);
      for_tiles(workers, out_.rect, shape.width, shape.height, [&](const Rect& tile, int worker) {
        filter_by_network(shape, tile, reinterpret_cast<T*>(scratch_of(worker)));
        if (saw_nonfinite_ == nullptr || !*saw_nonfinite_) finish(tile, scratch_of(worker));
      });
    } else {
      for_tiles(workers, out_.rect, rank_tile_width, rank_tile_height(radius_),
                [&](const Rect& tile, int worker) {
                  filter_by_counting(tile, scratch_of(worker));
                  if (saw_nonfinite_ == nullptr || !*saw_nonfinite_) finish(tile, scratch_of(worker));
                });
    }
  }

 private:
  // Copies the tile with its border; false if a sample is not finite.
  bool load(const Rect& tile, T* to, std::ptrdiff_t pitch) const {
    const Rect all{tile.x0 - radius_, tile.y0 - radius_, tile.x1 + radius_, tile.y1 + radius_};
    gather(in_, image_, params_.border, all, to, pitch);
    return is_finite(to, pitch, static_cast<std::ptrdiff_t>(all.width()) * in_.channels, all.height());
  }

  bool is_finite(const T* values, std::ptrdiff_t pitch, std::ptrdiff_t width, int height) const {
    if constexpr (std::is_same_v<T, float>) {
      if (saw_nonfinite_ == nullptr) return true;
      for (int row = 0; row < height; ++row) {
        if (all_finite(values + row * pitch, width)) continue;
        *saw_nonfinite_ = true;
        return false;
      }
    }
    return true;
  }

  // Whether vectors can read the tile's surroundings in place: it needs no border, and more of the image
  // follows.
  bool readable_in_place(const Rect& tile) const {
    return tile.x0 >= radius_ && tile.x1 + radius_ <= image_.width && tile.y0 >= radius_ &&
           tile.y1 + radius_ < in_.rect.y1 &&
           in_.row_stride * static_cast<std::ptrdiff_t>(sizeof(T)) >= median_slack;
  }

  void filter_by_network(const NetworkTile<T>& shape, const Rect& tile, T* memory) const {
    const std::ptrdiff_t width = static_cast<std::ptrdiff_t>(tile.width()) * in_.channels;
    const T* rows = memory;
    std::ptrdiff_t pitch = shape.pitch;
    if (radius_ <= 2 && readable_in_place(tile)) {
      rows = in_.pixel(tile.x0 - radius_, tile.y0 - radius_);
      pitch = in_.row_stride;
    } else if (!load(tile, memory, pitch)) {
      return;
    }
    T* const beside = memory + shape.pitch * shape.rows_of_image;
    const int last = tile.height() + 2 * radius_ - 1;
    const auto image_row = [&](int row) { return rows + pitch * std::min(row, last); };
    if (radius_ <= 2) {
      for (int row = 0; row < tile.height(); row += 2) {
        RowPair<T> pair{{}, {}, width, in_.channels, beside, shape.pitch};
        for (int i = 0; i < 2 * radius_ + 2; ++i) pair.rows[i] = image_row(row + i);
        for (const int own : {radius_, radius_ + 1}) {
          if (!is_finite(pair.rows[own] + radius_ * in_.channels, 0, width, 1)) return;
        }
        for (int i = 0; i < 2 && row + i < tile.height(); ++i)
          pair.out[i] = out_.pixel(tile.x0, tile.y0 + row + i);
        radius_ == 1 ? medians_of_9(pair) : medians_of_25(pair);
      }
      return;
    }
    const MedianNetwork& network = median_network(radius_);
    std::vector<T*> values(static_cast<std::size_t>(network.values));
    for (int i = network.inputs; i < network.values; ++i) {
      values[static_cast<std::size_t>(i)] = beside + shape.pitch * (i - network.inputs);
    }
    for (int row = 0; row < tile.height(); row += network.rows) {
      for (int i = 0; i < network.inputs; ++i) {
        values[static_cast<std::size_t>(i)] = memory + shape.pitch * std::min(row + i, last);
      }
      run_network(network, values.data(), width, in_.channels);
      for (int i = 0; i < network.rows && row + i < tile.height(); ++i) {
        std::memcpy(out_.pixel(tile.x0, tile.y0 + row + i),
                    values[network.outputs[static_cast<std::size_t>(i)]],
                    static_cast<std::size_t>(width) * sizeof(T));
      }
    }
  }

  void filter_by_counting(const Rect& tile, float* scratch) const {
    const int wide = tile.width() + 2 * radius_;
    const int high = tile.height() + 2 * radius_;
    const int channels = in_.channels;
    const std::ptrdiff_t pitch = static_cast<std::ptrdiff_t>(wide) * channels + median_slack;
    T* const values = reinterpret_cast<T*>(scratch);
    T* channel_values = values;
    const std::size_t lines = static_cast<std::size_t>(pitch) * high * sizeof(T) / 64 + 1;  // cache lines
    float* rest = scratch + lines * 16;
    if (!load(tile, values, pitch)) return;
    if (channels > 1) {
      channel_values = reinterpret_cast<T*>(rest);
      rest += lines * 16;
    }
    const LargeMedian<T> median(radius_);
    for (int channel = 0; channel < channels; ++channel) {
      if (channels > 1) {
        for (int y = 0; y < high; ++y) {
          const T* from = values + y * pitch + channel;
          T* to = channel_values + y * pitch;
          for (int x = 0; x < wide; ++x) to[x] = from[static_cast<std::ptrdiff_t>(x) * channels];
        }
      }
      median.filter(channel_values, pitch, tile.width(), tile.height(),
                    out_.pixel(tile.x0, tile.y0) + channel, out_.row_stride, channels, rest);
    }
  }

  void select_few(T* memory) const {
    const int side = 2 * radius_ + 1;
    const auto count = static_cast<std::ptrdiff_t>(window_pixels(radius_));
    T* const window = memory + count * in_.channels;
    for (int y = out_.rect.y0; y < out_.rect.y1; ++y) {
      for (int x = out_.rect.x0; x < out_.rect.x1; ++x) {
        if (!load({x, y, x + 1, y + 1}, memory, static_cast<std::ptrdiff_t>(side) * in_.channels)) return;
        for (int channel = 0; channel < in_.channels; ++channel) {
          for (std::ptrdiff_t i = 0; i < count; ++i) window[i] = memory[i * in_.channels + channel];
          std::nth_element(window, window + count / 2, window + count);
          out_.pixel(x, y)[channel] = window[count / 2];
        }
      }
    }
  }

  void finish(const Rect& tile, float* scratch) const {
    if (std::is_same_v<T, float> && radius_ > 2) {
      for (int y = tile.y0; y < tile.y1; ++y) {
        // Makes zeros positive: their sign must not depend on the order of exchanges.
        T* row = out_.pixel(tile.x0, y);
        for (int i = 0; i < tile.width() * out_.channels; ++i) row[i] = static_cast<T>(row[i] + T{});
      }
    }
    shrink(tile, scratch);
  }

  // Near the edge of a shrinking window: selects among the existing pixels, one by one.
  void shrink(const Rect& tile, float* window) const {
    if (params_.border != Border::shrink) return;
    const auto at_edge = [&](int position, int size) {
      return position < radius_ || position >= size - radius_;
    };
    for (int y = tile.y0; y < tile.y1; ++y) {
      const bool all = at_edge(y, image_.height);
      for (int x = tile.x0; x < tile.x1; ++x) {
        if (!all && !at_edge(x, image_.width)) {
          x = std::min(tile.x1, image_.width - radius_) - 1;
          continue;
        }
        for (int channel = 0; channel < in_.channels; ++channel) select(x, y, channel, window);
      }
    }
  }

  void select(int x, int y, int channel, float* window) const {
    float* end = window;
    for (int wy = std::max(0, y - radius_); wy <= std::min(image_.height - 1, y + radius_); ++wy) {
      for (int wx = std::max(0, x - radius_); wx <= std::min(image_.width - 1, x + radius_); ++wx) {
        *end++ = static_cast<float>(in_.pixel(wx, wy)[channel]);
      }
    }
    const float median = select_median(window, static_cast<std::size_t>(end - window));
    // A median between two integers is rounded to even, as when float planes are stored.
    out_.pixel(x, y)[channel] = static_cast<T>(std::is_same_v<T, float> ? median : std::nearbyint(median));
  }

  MedianParams params_;
  int radius_;
  SampleRows<const T> in_;
  SampleRows<T> out_;
  Extent image_;
  std::atomic<bool>* saw_nonfinite_;  // null: no check
};

template <class T>
void filter_samples(const MedianParams& params, const DirectCall& call) {
  constexpr std::ptrdiff_t sample = sizeof(T);
  const SampleRows<const T> in{static_cast<const T*>(call.in.data), call.in_rect, call.in.strides.y / sample,
                               call.in.spec.channels};
  const SampleRows<T> out{static_cast<T*>(call.out.data), call.out_rect, call.out.strides.y / sample,
                          call.out.spec.channels};
  const Median<T> filter(params, in, out, call.image, &call.saw_nonfinite);
  filter.run(call.workers, [&](int worker) { return call.scratch_of(worker); });
}

Direct direct_median(const MedianParams& params, const ImageSpec& spec) {
  return with_sample_type(spec.type, [&]<class T>(T) -> Direct {
    if constexpr (std::is_same_v<T, Half>) {
      return {};
    } else {
      // Planar channels are filtered one by one.
      return {std::max(scratch_floats<T>(params.radius, 1), scratch_floats<T>(params.radius, spec.channels)),
              [params](const DirectCall& call) { filter_samples<T>(params, call); }};
    }
  });
}

// ---- over several images of a sequence

// Windows of up to so many values have networks; in larger ones the middle is selected pixel by pixel.
constexpr int most_network_values = 33 * 33;

// The images around one of a sequence that take part; no data: all zeros.
std::vector<ConstPlanes> images_around(const StageCall& call, Border border) {
  std::vector<ConstPlanes> images;
  for (int offset = -call.reach.before; offset <= call.reach.after; ++offset) {
    const ConstPlanes& image = call.at(0, offset);
    if (image.data != nullptr || border != Border::shrink) images.push_back(image);
  }
  return images;
}

// A tile's shape and memory: its rows of one image after the other, then the network's values.
struct ImagesTile {
  ImagesTile(int radius, int images) {
    has_network = images % 2 == 1 && side(radius) * side(radius) * images <= most_network_values;
    constexpr int cache = 40 << 10;
    const int values = has_network ? median_network(radius, images).values : 1;
    const int bytes = std::clamp(cache / values / 64 * 64, 256, 2048);
    width = std::max(8, bytes / static_cast<int>(sizeof(float)) - 2 * radius);
    pitch = width + 2 * radius + median_slack / static_cast<std::ptrdiff_t>(sizeof(float));
    rows_of_image = height + 2 * radius;
    rows_beside = values;
  }
  static int side(int radius) { return 2 * radius + 1; }
  std::size_t scratch_floats(int radius, int images) const {
    return static_cast<std::size_t>(pitch) * static_cast<std::size_t>(images * rows_of_image + rows_beside) +
           window_pixels(radius) * static_cast<std::size_t>(images);
  }

  static constexpr int height = 32;
  bool has_network;
  int width;
  std::ptrdiff_t pitch;
  int rows_of_image;
  int rows_beside;
};

class MedianOfImages {
 public:
  MedianOfImages(const MedianParams& params, const StageCall& call)
      : params_(params),
        call_(call),
        images_(images_around(call, params.border)),
        shape_(params.radius, count()) {}

  void run() const {
    for_tiles(call_.workers, call_.out.rect, shape_.width, ImagesTile::height,
              [&](const Rect& tile, int worker) {
                for (int plane = 0; plane < call_.out.count; ++plane)
                  filter(tile, plane, call_.scratch_of(worker));
              });
  }

 private:
  int count() const { return static_cast<int>(images_.size()); }

  void filter(const Rect& tile, int plane, float* memory) const {
    const int r = params_.radius;
    const Rect all{tile.x0 - r, tile.y0 - r, tile.x1 + r, tile.y1 + r};
    for (int image = 0; image < count(); ++image) {
      const ConstPlanes& from = images_[static_cast<std::size_t>(image)];
      float* const to = memory + image * shape_.rows_of_image * shape_.pitch;
      if (from.data == nullptr) {
        std::fill_n(to, shape_.rows_of_image * shape_.pitch, 0.0F);
      } else {
        gather(from, plane, call_.image, params_.border, all, to, shape_.pitch);
      }
    }
    if (shape_.has_network) filter_by_network(tile, plane, memory);
    select_rest(tile, plane, memory);
    for (int y = tile.y0; y < tile.y1; ++y) {
      // Makes zeros positive: their sign must not depend on the order of exchanges.
      float* const row = &call_.out.at(plane, tile.x0, y);
      for (int x = 0; x < tile.width(); ++x) row[x] += 0.0F;
    }
  }

  void filter_by_network(const Rect& tile, int plane, float* memory) const {
    const MedianNetwork& network = median_network(params_.radius, count());
    const int rows_each = network.inputs / count();
    const int last = tile.height() + 2 * params_.radius - 1;
    float* const beside = memory + shape_.pitch * count() * shape_.rows_of_image;
    std::vector<float*> values(static_cast<std::size_t>(network.values));
    for (int i = network.inputs; i < network.values; ++i) {
      values[static_cast<std::size_t>(i)] = beside + shape_.pitch * (i - network.inputs);
    }
    for (int row = 0; row < tile.height(); row += network.rows) {
      for (int i = 0; i < network.inputs; ++i) {
        const int at = i / rows_each * shape_.rows_of_image + std::min(row + i % rows_each, last);
        values[static_cast<std::size_t>(i)] = memory + shape_.pitch * at;
      }
      run_network(network, values.data(), tile.width(), 1);
      for (int i = 0; i < network.rows && row + i < tile.height(); ++i) {
        std::copy_n(values[network.outputs[static_cast<std::size_t>(i)]], tile.width(),
                    &call_.out.at(plane, tile.x0, tile.y0 + row + i));
      }
    }
  }

  // Pixels whose window has no network: all, or under a shrinking border those near the edge.
  void select_rest(const Rect& tile, int plane, float* memory) const {
    const int r = params_.radius;
    const bool shrinks = params_.border == Border::shrink;
    if (shape_.has_network && !shrinks) return;
    const auto at_edge = [&](int position, int size) { return position < r || position >= size - r; };
    for (int y = tile.y0; y < tile.y1; ++y) {
      for (int x = tile.x0; x < tile.x1; ++x) {
        const bool done =
            shape_.has_network && !at_edge(y, call_.image.height) && !at_edge(x, call_.image.width);
        if (!done) call_.out.at(plane, x, y) = select(tile, x, y, memory);
      }
    }
  }

  float select(const Rect& tile, int x, int y, float* memory) const {
    const int r = params_.radius;
    Rect window{x - r, y - r, x + r + 1, y + r + 1};
    if (params_.border == Border::shrink) {
      window = {std::max(window.x0, 0), std::max(window.y0, 0), std::min(window.x1, call_.image.width),
                std::min(window.y1, call_.image.height)};
    }
    float* const values = memory + shape_.pitch * (count() * shape_.rows_of_image + shape_.rows_beside);
    float* end = values;
    for (int image = 0; image < count(); ++image) {
      for (int wy = window.y0; wy < window.y1; ++wy) {
        const int row = image * shape_.rows_of_image + wy - (tile.y0 - r);
        const float* const from = memory + shape_.pitch * row + (window.x0 - (tile.x0 - r));
        end = std::copy_n(from, window.width(), end);
      }
    }
    return select_median(values, static_cast<std::size_t>(end - values));
  }

  const MedianParams& params_;
  const StageCall& call_;
  std::vector<ConstPlanes> images_;
  ImagesTile shape_;
};

Pipeline median_of_images(const MedianParams& params, const ImageSpec& spec) {
  std::size_t scratch = 0;
  for (int images = 1; images <= 2 * params.radius_t + 1; ++images) {
    scratch = std::max(scratch, ImagesTile(params.radius, images).scratch_floats(params.radius, images));
  }
  return {.stages = {{.name = "median",
                      .reach = {.x = params.radius,
                                .y = params.radius,
                                .before = params.radius_t,
                                .after = params.radius_t},
                      .planes = spec.colour_channels(),
                      .scratch = scratch,
                      .run = [params](const StageCall& call) { MedianOfImages(params, call).run(); }}},
          .wraps = params.border == Border::wrap,
          .slow_border = params.border};
}

}  // namespace

Pipeline median_cpu(const MedianParams& params, const ImageSpec& spec) {
  if (params.radius_t > 0) return median_of_images(params, spec);
  if (params.radius == 0) return {};
  const auto run = [params](const StageCall& call) {
    for (int plane = 0; plane < call.out.count; ++plane) {
      Median<float>(params, rows_of_plane(call.in[0], plane), rows_of_plane(call.out, plane), call.image)
          .run(call.workers, [&](int worker) { return call.scratch_of(worker); });
    }
  };
  return {.stages = {{.name = "median",
                      .reach = {.x = params.radius, .y = params.radius},
                      .planes = spec.colour_channels(),
                      .scratch = scratch_floats<float>(params.radius, 1),
                      .run = run}},
          .wraps = params.border == Border::wrap,
          .direct = params.border == Border::wrap ? Direct{} : direct_median(params, spec)};
}

}  // namespace ungrain
