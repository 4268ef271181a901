// Large medians of a tile. 8-bit samples are their own ranks. Others get one of 256 ranks, between limits
// taken from the tile. The median's rank leaves few candidates, which are scanned in order. The median is
// exact for any choice of limits.
#include "methods/median/ranks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "core/scratch.h"

namespace ungrain {
namespace {

constexpr int ranks = 256;

std::size_t values_of(int radius) {
  return static_cast<std::size_t>(rank_tile_width + 2 * radius) *
         static_cast<std::size_t>(rank_tile_height(radius) + 2 * radius);
}

std::size_t tile_pixels(int radius) {
  return static_cast<std::size_t>(rank_tile_width) * static_cast<std::size_t>(rank_tile_height(radius));
}

// An estimate of the tile's medians: the median of some ranks of each part.
int middle_of_medians(const RankTile& tile) {
  constexpr int parts = 3;  // a side
  constexpr int samples = 7;
  const int wide = tile.width + 2 * tile.radius;
  const int high = tile.height + 2 * tile.radius;
  int low = ranks;
  int most = 0;
  for (int part = 0; part < parts * parts; ++part) {
    std::uint8_t some[samples * samples];
    for (int i = 0; i < samples * samples; ++i) {
      const int x = (part % parts * samples + i % samples) * (wide - 1) / (parts * samples - 1);
      const int y = (part / parts * samples + i / samples) * (high - 1) / (parts * samples - 1);
      some[i] = tile.ranks[y * tile.ranks_stride + x];
    }
    std::nth_element(some, some + samples * samples / 2, some + samples * samples);
    low = std::min<int>(low, some[samples * samples / 2]);
    most = std::max<int>(most, some[samples * samples / 2]);
  }
  return (low + most) / 2;
}

// Counts thresholds around the estimated medians, and further ones as long as some median may lie there.
// tile.median becomes the medians' ranks.
void find_medians(const RankTile& tile) {
  std::fill_n(tile.median, tile_pixels(tile.radius), std::uint16_t{0});
  if (tile.below != nullptr) std::fill_n(tile.below, tile_pixels(tile.radius), std::uint16_t{0});
  const int step = thresholds_at_once();
  int first = std::clamp(middle_of_medians(tile) - step / 2, 1, std::max(1, ranks - step));
  int end = first + step;
  ReachedThresholds reached = count_thresholds(tile, first);
  for (bool lower = reached.none; lower && first > 1;) {
    first -= step;
    lower = count_thresholds(tile, first).none;
  }
  for (bool higher = reached.all; higher && end < ranks; end += step) {
    higher = count_thresholds(tile, end).all;
  }
  const auto reached_by_all = static_cast<std::uint16_t>(std::max(1, first) - 1);
  for (std::size_t i = 0; i < tile_pixels(tile.radius); ++i) {
    tile.median[i] = static_cast<std::uint16_t>(tile.median[i] + reached_by_all);
  }
}

std::uint16_t next_after(std::uint16_t value) { return value == 0xffff ? value : value + 1; }
float next_after(float value) { return std::nextafter(value, std::numeric_limits<float>::infinity()); }

// Limits that divide the tile's values into at most 256 classes of about equal size. Frequent values have
// their own class.
template <class T>
class Classes {
 public:
  Classes(const T* values, std::ptrdiff_t stride, int width, int height) {
    const auto count = static_cast<std::int64_t>(width) * height;
    for (int i = 0; i < ranks - 1; ++i) {
      const std::int64_t at = count * (2 * i + 1) / (2 * (ranks - 1));
      limits_[i] = values[at / width * stride + at % width];
    }
    std::sort(limits_, limits_ + ranks - 1);
    for (int i = 1; i < ranks - 1; ++i) {  // still sorted: the rest of a run follows its second value
      if (limits_[i] == limits_[i - 1] || limits_[i] < limits_[i - 1]) limits_[i] = next_after(limits_[i]);
    }
    count_ = static_cast<int>(std::unique(limits_, limits_ + ranks - 1) - limits_);
  }

  // How many limits are not above the value: eight bisections, without a branch.
  int of(T value) const {
    int rank = 0;
    for (int step = ranks / 2; step > 0; step /= 2) {
      rank += rank + step <= count_ && limits_[rank + step - 1] <= value ? step : 0;
    }
    return rank;
  }

 private:
  T limits_[ranks] = {};
  int count_ = 0;
};

// A value's place in the tile with its border.
template <class T>
struct Candidate {
  T value;
  std::uint16_t x;
  std::uint16_t y;
};

// A worker's memory.
template <class T>
struct Memory {
  Memory(int radius, float* scratch) {
    ScratchPieces pieces(scratch);
    room = pieces.take<std::uint8_t>(RankTile::room_bytes(radius));
    median = pieces.take<std::uint16_t>(tile_pixels(radius) + median_slack);
    if constexpr (!std::is_same_v<T, std::uint8_t>) {
      below = pieces.take<std::uint16_t>(tile_pixels(radius) + median_slack);
      rank_of = pieces.take<std::uint8_t>(values_of(radius) + median_slack);
      candidates = pieces.take<Candidate<T>>(values_of(radius));
    }
    floats = pieces.floats();
  }

  std::uint8_t* room = nullptr;
  std::uint16_t* median = nullptr;
  // For samples that are not their own ranks.
  std::uint16_t* below = nullptr;
  std::uint8_t* rank_of = nullptr;
  Candidate<T>* candidates = nullptr;
  std::size_t floats = 0;
};

}  // namespace

template <class T>
LargeMedian<T>::LargeMedian(int radius) : radius_(radius) {}

template <class T>
std::size_t LargeMedian<T>::scratch_floats(int radius) {
  return Memory<T>(radius, nullptr).floats + 16;
}

template <class T>
void LargeMedian<T>::filter(const T* values, std::ptrdiff_t stride, int width, int height, T* out,
                            std::ptrdiff_t out_stride, int out_step, float* scratch) const {
  const Memory<T> memory(radius_, scratch);
  RankTile tile{};
  tile.width = width;
  tile.height = height;
  tile.radius = radius_;
  tile.room = memory.room;
  tile.median = memory.median;
  const auto median_at = [&](int x, int y) { return tile.median[y * rank_tile_width + x]; };

  if constexpr (std::is_same_v<T, std::uint8_t>) {
    tile.ranks = values;
    tile.ranks_stride = stride;
    find_medians(tile);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        out[y * out_stride + x * out_step] = static_cast<T>(median_at(x, y));
      }
    }
  } else {
    const int wide = width + 2 * radius_;
    const int high = height + 2 * radius_;
    tile.below = memory.below;
    std::uint8_t* const rank_of = memory.rank_of;
    Candidate<T>* const candidates = memory.candidates;
    tile.ranks = rank_of;
    tile.ranks_stride = wide;

    const Classes<T> classes(values, stride, wide, high);
    int begins[ranks + 1] = {};  // of each rank's candidates
    for (int y = 0; y < high; ++y) {
      for (int x = 0; x < wide; ++x) {
        const int rank = classes.of(values[y * stride + x]);
        rank_of[y * wide + x] = static_cast<std::uint8_t>(rank);
        ++begins[rank + 1];
      }
    }
    find_medians(tile);

    std::partial_sum(begins, begins + ranks + 1, begins);
    bool wanted[ranks] = {};
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) wanted[median_at(x, y)] = true;
    }
    int next[ranks];
    std::copy_n(begins, ranks, next);
    for (int y = 0; y < high; ++y) {
      for (int x = 0; x < wide; ++x) {
        const int rank = rank_of[y * wide + x];
        if (!wanted[rank]) continue;
        candidates[next[rank]++] = {values[y * stride + x], static_cast<std::uint16_t>(x),
                                    static_cast<std::uint16_t>(y)};
      }
    }
    bool alike[ranks] = {};
    for (int rank = 0; rank < ranks; ++rank) {
      if (!wanted[rank]) continue;
      std::sort(candidates + begins[rank], candidates + begins[rank + 1],
                [](const Candidate<T>& a, const Candidate<T>& b) { return a.value < b.value; });
      alike[rank] = candidates[begins[rank]].value == candidates[begins[rank + 1] - 1].value;
    }
    const int half = (2 * radius_ + 1) * (2 * radius_ + 1) / 2;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        // Counts the window's candidates until half of its values are passed.
        const Candidate<T>* candidate = candidates + begins[median_at(x, y)];
        if (alike[median_at(x, y)]) {
          out[y * out_stride + x * out_step] = candidate->value;
          continue;
        }
        int left = half - tile.below[y * rank_tile_width + x];
        while (true) {
          const bool inside = static_cast<unsigned>(candidate->x - x) <= 2U * radius_ &&
                              static_cast<unsigned>(candidate->y - y) <= 2U * radius_;
          left -= inside ? 1 : 0;
          if (left < 0) break;
          ++candidate;
        }
        out[y * out_stride + x * out_step] = candidate->value;
      }
    }
  }
}

template class LargeMedian<std::uint8_t>;
template class LargeMedian<std::uint16_t>;
template class LargeMedian<float>;

}  // namespace ungrain
