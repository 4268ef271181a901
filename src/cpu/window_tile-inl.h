// Windows over a tile, for each instruction set: included like Highway's own -inl.h files. A vector holds
// pixels of one row; every tap of the window is loaded from its place in the tile. A pixel's sums are taken
// in the order of the taps, at any position in a vector.
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "cpu/exp2-inl.h"
#include "cpu/window_tile.h"

#if defined(UNGRAIN_CPU_WINDOW_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef UNGRAIN_CPU_WINDOW_TILE_INL_H_
#undef UNGRAIN_CPU_WINDOW_TILE_INL_H_
#else
#define UNGRAIN_CPU_WINDOW_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ungrain::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct ValueRange {
  float least;
  float most;
};

// Scales a plane of a tile; returns the range of its values.
inline ValueRange ScalePlane(float scale, int columns, int rows, int pitch, float* plane) {
  const hn::ScalableTag<float> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  const auto bound = hn::Set(d, WindowTile::largest_value);
  auto least = hn::Set(d, plane[0] * scale);
  auto most = least;
  for (int y = 0; y < rows; ++y, plane += pitch) {
    const auto scaled = [&](int x) HWY_ATTR {
      const auto v = hn::Mul(hn::LoadU(d, plane + x), factor);
      return hn::Max(hn::Min(v, bound), hn::Neg(bound));
    };
    int x = 0;
    for (; x + lanes <= columns; x += lanes) {
      const auto v = scaled(x);
      hn::StoreU(v, d, plane + x);
      least = hn::Min(least, v);
      most = hn::Max(most, v);
    }
    if (x == columns) continue;
    // Lanes behind the row are ignored.
    const auto v = hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(columns - x)), scaled(x), least);
    hn::StoreU(v, d, plane + x);
    least = hn::Min(least, v);
    most = hn::Max(most, v);
  }
  return {hn::GetLane(hn::MinOfLanes(d, least)), hn::GetLane(hn::MaxOfLanes(d, most))};
}

// Scales all planes; returns the factor up to which their squared differences keep exponents in the range of
// Exp2InRange.
inline float ScaleTile(const WindowTile& kernel, const Rect& tile, float* memory) {
  const Rect area = kernel.with_border(tile);
  constexpr float lowest = -125;
  float squares = 0;
  float sum = 0;
  for (int c = 0; c < kernel.channels; ++c) {
    const auto scale_plane = [&](int image) {
      float* const plane = memory + (image * kernel.channels + c) * kernel.plane;
      return ScalePlane(kernel.scale, area.width(), area.height(), kernel.pitch, plane);
    };
    ValueRange range = scale_plane(0);
    for (int image = 1; image < kernel.images; ++image) {
      const ValueRange more = scale_plane(image);
      range = {std::min(range.least, more.least), std::max(range.most, more.most)};
    }
    const float difference = range.most - range.least;
    squares += difference * difference;
    sum += difference;
  }
  const float largest = kernel.distance == ColourDistance::city_block ? sum * sum : squares;
  return (kernel.lowest_tap - lowest) / largest;
}

// The row of a tile that a method computes, one vector after the other.
struct WindowRow {
  const WindowTile& kernel;
  const float* centre;
  int width;
  float* changes;
  float room;  // factor of squared differences whose exponents are not too low for a float
};

// Calls visit(values of the tap, exponent of its distance) for the pixels from x on.
template <class D, class Visit>
HWY_INLINE void ForTaps(D d, const WindowRow& row, int x, Visit visit) {
  const TileTap* const end = row.kernel.taps.data() + row.kernel.taps.size();
  for (const TileTap* tap = row.kernel.taps.data(); tap != end; ++tap) {
    visit(row.centre + x + tap->offset, hn::Set(d, tap->log2_weight));
  }
}

// 2^x; `Bounded` where x may be below -126.
template <int Degree, bool Bounded, class D>
HWY_INLINE hn::Vec<D> WindowWeight(D d, hn::Vec<D> exponent) {
  if constexpr (Bounded) {
    return Exp2Bounded<Degree>(d, exponent);
  } else {
    return Exp2InRange<Degree>(d, exponent);
  }
}

// Steps of one channel; they do nothing where there are fewer channels. Vectors of unknown length cannot lie
// in arrays.
template <int Channel, int Channels, class D>
HWY_INLINE hn::Vec<D> LoadChannel(D d, const float* pixel, std::ptrdiff_t plane) {
  if constexpr (Channel < Channels) {
    return hn::LoadU(d, pixel + Channel * plane);
  } else {
    return hn::Zero(d);
  }
}
template <int Channel, int Channels, class D>
HWY_INLINE hn::Vec<D> Difference(D d, const float* pixel, std::ptrdiff_t plane, hn::Vec<D> centre) {
  if constexpr (Channel < Channels) {
    return hn::Sub(hn::LoadU(d, pixel + Channel * plane), centre);
  } else {
    return centre;
  }
}
template <int Channel, int Channels, class V>
HWY_INLINE V AddProduct(V a, V b, V sum) {
  if constexpr (Channel < Channels) {
    return hn::MulAdd(a, b, sum);
  } else {
    return sum;
  }
}
template <int Channel, int Channels, class V>
HWY_INLINE V AddAbsolute(V a, V sum) {
  if constexpr (Channel < Channels) {
    return hn::Add(sum, hn::Abs(a));
  } else {
    return sum;
  }
}
template <int Channel, int Channels, class V>
HWY_INLINE V SubtractProduct(V a, V b, V sum) {
  if constexpr (Channel < Channels) {
    return hn::NegMulAdd(a, b, sum);
  } else {
    return sum;
  }
}
// Converts a mean of scaled differences to a change of the pixel.
template <int Channel, int Channels, class D>
HWY_INLINE void StoreChange(D d, hn::Vec<D> sum, hn::Vec<D> per_weight, const WindowRow& row, int x) {
  if constexpr (Channel < Channels) {
    hn::StoreU(hn::Mul(sum, per_weight), d, row.changes + Channel * WindowTile::width + x);
  }
}

// out = in + change for the pixels of a row.
inline void StoreRow(const StageCall& call, const Rect& tile, int y, int first_channel,
                     const WindowRow& row) {
  const hn::ScalableTag<float> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const ConstPlanes& own = call.at(0, 0);
  // Under wrap an early pass also computes rows beyond the edge.
  const int row_in = border_row(row.kernel.border, own.rect, call.image, y);
  for (int c = 0; c < row.kernel.channels; ++c) {
    const float* change = row.changes + c * WindowTile::width;
    const float* in = own.row(first_channel + c, row_in) + (tile.x0 - own.rect.x0);
    float* out = call.out.row(first_channel + c, y) + (tile.x0 - call.out.rect.x0);
    int x = 0;
    for (; x + lanes <= row.width; x += lanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, in + x), hn::LoadU(d, change + x)), d, out + x);
    }
    for (; x < row.width; ++x) out[x] = in[x] + change[x];
  }
}

// One tile from the input to the output: filter_row(row) writes the changes of a row.
template <class FilterRow>
inline void FilterWindowTile(const WindowTile& kernel, const StageCall& call, const Rect& tile,
                             int first_channel, float* memory, FilterRow filter_row) {
  kernel.load(call, tile, first_channel, memory);
  const float room = ScaleTile(kernel, tile, memory);
  const bool excludes = kernel.exclude_outside(call.image, tile, memory);
  for (int y = tile.y0; y < tile.y1; ++y) {
    const WindowRow row{.kernel = kernel,
                        .centre = kernel.row(memory, tile, y),
                        .width = tile.width(),
                        .changes = kernel.changes(memory),
                        .room = excludes ? 0 : room};
    filter_row(row);
    StoreRow(call, tile, y, first_channel, row);
  }
}

}  // namespace ungrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once for each set of instructions
