// BM3D with any settings, in float on all threads, for settings that the fast version does not support and as
// its yardstick. Tiles of reference patches, each with a copy of the pixels around it; estimates are summed
// in fixed point, so that the order of tiles does not matter.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/border.h"
#include "core/convert.h"
#include "core/scratch.h"
#include "methods/bm3d/bm3d.h"
#include "methods/bm3d/general_simd.h"
#include "methods/bm3d/transforms.h"

namespace ungrain {
namespace {

// Estimates are summed as multiples of 2^-32 of the range times a weight of at most 1 (1024 where the noise
// varies), clamped at 2^48: a pixel has fewer than 2^14 of them in any profile, and there is room for values
// of hundreds of times white.
constexpr float fixed_one = 0x1p32F;
constexpr float fixed_most = 0x1p48F;

struct Sizes {
  int reach = 0;     // of a group around its reference
  int tile = 0;      // pixels, of reference positions
  int area = 0;      // pixels, side of what a tile reads
  int area_row = 0;  // the same with room for whole vectors
  int patch_pixels = 0;
  int group = 0;
};

Sizes sizes_of(const Bm3dSettings& settings, int index) {
  const Bm3dStep& step = index == 0 ? settings.first : settings.second;
  Sizes s;
  s.reach = group_reach(settings, index);
  s.tile = std::max(48, s.reach);
  s.area = s.tile + 2 * s.reach + step.patch;
  s.area_row = s.area + distance_overrun;
  s.patch_pixels = step.patch * step.patch;
  s.group = step.group;
  return s;
}

// Shared by all tiles of a step. Value is float, or complex if a transform is.
template <class Value>
class Transforms {
 public:
  Transforms(const Bm3dStep& step, bool variances, bool covariances) : side_(step.patch), along_(step.along) {
    for (const TransformPair& level : patch_transform(step.transform, step.patch))
      levels_.push_back({both_ways(level.forward), both_ways(level.inverse), level.forward.side});
    const bool any_size = along_ == GroupTransform::dct || along_ == GroupTransform::dft;
    for (int size = 1; size <= step.group; size = any_size ? size + 1 : 2 * size) {
      const TransformPair pair = group_transform(along_, size);
      if (any_size) groups_[size] = {table(pair.forward), table(pair.inverse), size};
      for (const std::complex<double>& value : pair.forward.values)
        group_squares_[size].push_back(static_cast<float>(std::norm(value)));
      if (covariances) make_rows(pair.forward);
    }
    if (variances) make_squares();
  }

  // `count` patches, one after the other.
  void forward_patches(Value* patches, int count) const {
    for (const Level& level : levels_) apply(level.forward, level.side, patches, count);
  }
  void inverse_patches(Value* patches, int count) const {
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
      apply(level->inverse, level->side, patches, count);
  }

  // Coefficients [patch][y][x]; `spare` has room for as many.
  void forward_group(Value* group, int size, Value* spare) const { along(group, size, spare, false); }
  void inverse_group(Value* group, int size, Value* spare) const { along(group, size, spare, true); }

  // Turns variances of pixels into those of coefficients.
  void variances(float* group, int size, float* spare) const {
    const int count = side_ * side_;
    for (int n = 0; n < size; ++n) {
      for (int c = 0; c < count; ++c) {
        float sum = 0;
        for (int i = 0; i < count; ++i) sum += squares_[c * count + i] * group[n * count + i];
        spare[n * count + c] = sum;
      }
    }
    across(group_squares_.at(size), size, spare, group);
  }

  // Adds `common`, the covariances of patches m and n, to the group's variances.
  void add_common(int size, int m, int n, const NoiseModel::Spectrum& common, float* variances) const {
    const std::vector<std::complex<float>>& rows = group_rows_.at(size);
    for (int f = 0; f < size; ++f) {
      const float weight = std::real(rows[f * size + m] * std::conj(rows[f * size + n])) * (m == n ? 1 : 2);
      if (weight == 0) continue;
      for (std::size_t c = 0; c < common.size(); ++c)
        variances[f * common.size() + c] += weight * static_cast<float>(common[c]);
    }
  }

 private:
  struct Level {
    std::vector<Value> forward;
    std::vector<Value> inverse;
    int side = 0;
  };

  static std::vector<Value> table(const TransformMatrix& matrix) {
    std::vector<Value> values;
    for (const std::complex<double>& value : matrix.values) {
      if constexpr (std::is_same_v<Value, float>) {
        values.push_back(static_cast<float>(value.real()));
      } else {
        values.emplace_back(static_cast<float>(value.real()), static_cast<float>(value.imag()));
      }
    }
    return values;
  }

  // The matrix, then its transpose.
  static std::vector<Value> both_ways(const TransformMatrix& matrix) {
    std::vector<Value> values = table(matrix);
    for (int column = 0; column < matrix.side; ++column) {
      for (int row = 0; row < matrix.side; ++row) values.push_back(values[row * matrix.side + column]);
    }
    return values;
  }

  void make_rows(const TransformMatrix& forward) {
    std::vector<std::complex<float>>& rows = group_rows_[forward.side];
    for (const std::complex<double>& value : forward.values)
      rows.emplace_back(static_cast<float>(value.real()), static_cast<float>(value.imag()));
  }

  void make_squares() {
    const int count = side_ * side_;
    squares_.resize(static_cast<std::size_t>(count) * count);
    std::vector<Value> impulse(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      std::fill(impulse.begin(), impulse.end(), Value{});
      impulse[i] = 1;
      forward_patches(impulse.data(), 1);
      for (int c = 0; c < count; ++c) squares_[c * count + i] = std::norm(impulse[c]);
    }
  }

  void apply(const std::vector<Value>& matrix, int n, Value* patches, int count) const {
    if constexpr (std::is_same_v<Value, float>) {
      if (n == 8 && side_ == 8) return transform_8x8(matrix.data(), patches, count);
    }
    for (int p = 0; p < count; ++p) apply_to_corner(matrix, n, patches + p * side_ * side_);
  }

  // Down the columns of the first n x n coefficients, then along their rows.
  void apply_to_corner(const std::vector<Value>& matrix, int n, Value* patch) const {
    Value columns[32 * 32];
    for (int f = 0; f < n; ++f) {
      for (int x = 0; x < n; ++x) {
        Value sum{};
        for (int y = 0; y < n; ++y) sum += matrix[f * n + y] * patch[y * side_ + x];
        columns[f * n + x] = sum;
      }
    }
    for (int y = 0; y < n; ++y) {
      for (int f = 0; f < n; ++f) {
        Value sum{};
        for (int x = 0; x < n; ++x) sum += columns[y * n + x] * matrix[f * n + x];
        patch[y * side_ + f] = sum;
      }
    }
  }

  void along(Value* group, int size, Value* spare, bool back) const {
    if (size == 1) return;
    const auto pair = [&](Value* a, Value* b) {
      const float scale = static_cast<float>(std::sqrt(0.5));
      for (int c = 0; c < side_ * side_; ++c) {
        const Value sum = a[c] + b[c];
        b[c] = (a[c] - b[c]) * scale;
        a[c] = sum * scale;
      }
    };
    const int count = side_ * side_;
    if (along_ == GroupTransform::haar) {
      // In place, so the coefficients have another order than in the definition.
      for (int step = back ? size / 2 : 1; step > 0 && step < size; step = back ? step / 2 : step * 2) {
        for (int n = 0; n < size; n += 2 * step) pair(group + n * count, group + (n + step) * count);
      }
    } else if (along_ == GroupTransform::hadamard) {
      for (int step = 1; step < size; step *= 2) {
        for (int n = 0; n < size; ++n) {
          if ((n & step) == 0) pair(group + n * count, group + (n + step) * count);
        }
      }
    } else {
      const Level& level = groups_.at(size);
      across(back ? level.inverse : level.forward, size, group, spare);
      std::copy_n(spare, size * count, group);
    }
  }

  template <class T>
  void across(const std::vector<T>& matrix, int size, const T* from, T* to) const {
    const int count = side_ * side_;
    for (int f = 0; f < size; ++f) {
      for (int c = 0; c < count; ++c) to[f * count + c] = matrix[f * size] * from[c];
      for (int n = 1; n < size; ++n) {
        for (int c = 0; c < count; ++c) to[f * count + c] += matrix[f * size + n] * from[n * count + c];
      }
    }
  }

  int side_;
  GroupTransform along_;
  std::vector<Level> levels_;
  std::map<int, Level> groups_;
  std::map<int, std::vector<float>> group_squares_;  // for haar in the definition's order
  std::map<int, std::vector<std::complex<float>>> group_rows_;
  std::vector<float> squares_;
};

// Groups of patches near a reference. Everything is in the coordinates of a tile's area.
class Matcher {
 public:
  Matcher(const Bm3dSettings& settings, int index, const Sizes& sizes)
      : settings_(settings),
        index_(index),
        step_(index == 0 ? settings.first : settings.second),
        sizes_(sizes) {
    const Bm3dStep& step = step_;
    for (int y = 0; y < step.patch; ++y) {
      for (int x = 0; x < step.patch; ++x) pixels_.push_back(y * sizes.area_row + x);
    }
    for (int c = 0; c < sizes.patch_pixels; ++c) coefficients_.push_back(c * sizes.area * sizes.area_row);
    if (corrects()) make_corrections();
  }

  struct Candidate {
    std::uint64_t key = 0;  // distance, then place in reading order
    int x() const { return static_cast<int>(key & 0xffffU); }
    int y() const { return static_cast<int>((key >> 16U) & 0xffffU); }
    float distance() const { return std::bit_cast<float>(static_cast<std::uint32_t>(key >> 32U)); }
    friend bool operator<(const Candidate& a, const Candidate& b) { return a.key < b.key; }
  };
  static Candidate candidate(float distance, int x, int y) {
    return {(static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(distance)) << 32U) |
            (static_cast<std::uint64_t>(y) << 16U) | static_cast<std::uint64_t>(x)};
  }

  // Capacity that `nearest` needs for candidates.
  static std::size_t room(int count) { return static_cast<std::size_t>(4 * count + 1); }

  // The patches at [x0, x1] x [y0, y1] in order of distance, the reference first. Returns how many. `source`
  // holds pixels, or planes of coefficients if the step compares those.
  int nearest(const float* source, int plane, int x, int y, const Rect& places, Candidate* found) const {
    const int count = step_.group;
    found[0] = candidate(0, x, y);
    if (count == 1) return 1;
    const std::vector<int>& parts = step_.prefilter > 0 ? coefficients_ : pixels_;
    float reference[32 * 32];
    for (std::size_t i = 0; i < parts.size(); ++i) reference[i] = source[parts[i] + y * sizes_.area_row + x];
    Candidate* others = found + 1;
    const int wanted = count - 1;
    const int most = 4 * count;
    int held = 0;
    auto bound = static_cast<float>((step_.max_distance - lowest(plane)) * sizes_.patch_pixels);
    float sums[127 + distance_overrun];
    for (int cy = places.y0; cy <= places.y1; ++cy) {
      const int candidates = places.x1 - places.x0 + 1;
      patch_distances(reference, parts.data(), static_cast<int>(parts.size()),
                      source + cy * sizes_.area_row + places.x0, candidates, sums);
      if (corrects()) correct(plane, places.x0 - x, cy - y, candidates, sums);
      for (int c = 0; c < candidates; ++c) {
        const int cx = places.x0 + c;
        if (sums[c] <= bound && !(cy == y && cx == x)) others[held++] = candidate(sums[c], cx, cy);
        if (held >= most) {
          std::nth_element(others, others + wanted - 1, others + held);
          held = wanted;
          bound = others[wanted - 1].distance();
        }
      }
    }
    const int kept = std::min(held, wanted);
    std::partial_sort(others, others + kept, others + held);
    return 1 + kept;
  }

 private:
  bool corrects() const { return index_ == 0 && is_correlated(settings_); }
  double lowest(int plane) const { return corrects() ? lowest_[static_cast<std::size_t>(plane)] : 0; }

  // Corrections relative to the least, so that no distance is below 0.
  void make_corrections() {
    const int reach = step_.search / 2;
    for (int plane = 0; plane < static_cast<int>(settings_.model.size()); ++plane) {
      lowest_.push_back(least_correction(settings_, index_, plane));
      for (int dy = -reach; dy <= reach; ++dy) {
        for (int dx = -reach; dx <= reach; ++dx) {
          const double correction = distance_correction(settings_, index_, plane, dx, dy) - lowest_.back();
          corrections_.push_back(static_cast<float>(correction * sizes_.patch_pixels));
        }
      }
    }
  }

  void correct(int plane, int dx, int dy, int candidates, float* sums) const {
    const int side = step_.search;
    const float* by = corrections_.data() + (plane * side + dy + side / 2) * side + dx + side / 2;
    for (int c = 0; c < candidates; ++c) sums[c] += by[c];
  }

  const Bm3dSettings& settings_;
  int index_;
  const Bm3dStep& step_;
  const Sizes& sizes_;
  std::vector<int> pixels_;
  std::vector<int> coefficients_;
  std::vector<double> lowest_;      // by plane
  std::vector<float> corrections_;  // [plane][dy][dx], of sums
};

// The sums of a call's pixels: for each plane values, then weights.
class SharedSums {
 public:
  explicit SharedSums(const StageCall& call)
      : rect_(call.out.rect),
        planes_(static_cast<std::size_t>(call.out.count)),
        sums_(reinterpret_cast<std::int64_t*>(call.shared.data())) {
    std::fill_n(sums_, 2 * planes_ * pixels(), 0);
  }

  std::int64_t* values(int plane, int y) const { return sums_ + 2 * plane * pixels() + row(y); }
  std::int64_t* weights(int plane, int y) const { return sums_ + (2 * plane + 1) * pixels() + row(y); }

 private:
  std::size_t pixels() const { return static_cast<std::size_t>(rect_.width()) * rect_.height(); }
  std::size_t row(int y) const { return static_cast<std::size_t>(y - rect_.y0) * rect_.width(); }

  Rect rect_;
  std::size_t planes_;
  std::int64_t* sums_;
};

template <class Value>
class Step {
 public:
  Step(const Bm3dSettings& settings, const ImageSpec& spec, int index)
      : settings_(settings),
        index_(index),
        step_(index == 0 ? settings_.first : settings_.second),
        sizes_(sizes_of(settings_, index)),
        planes_(spec.colour_channels()),
        white_(static_cast<float>(spec.white())),
        varies_(settings.sigma_map.data != nullptr),
        correlated_(is_correlated(settings)),
        transforms_(step_, varies_, correlated_),
        matcher_(settings_, index_, sizes_) {
    const std::vector<double> line = patch_window(step_.patch, step_.kaiser);
    for (int y = 0; y < step_.patch; ++y) {
      for (int x = 0; x < step_.patch; ++x) window_.push_back(static_cast<float>(line[y] * line[x]));
    }
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  std::size_t scratch() const { return Memory(*this, nullptr).floats; }
  // A value and a weight of 64 bits for each plane.
  std::size_t shared() const { return 4 * static_cast<std::size_t>(planes_); }

  void run(const StageCall& call) const {
    const SharedSums sums(call);
    const Rect& out = call.out.rect;
    const Rect references{std::max(0, out.x0 - sizes_.reach - step_.patch + 1),
                          std::max(0, out.y0 - sizes_.reach - step_.patch + 1),
                          std::min(last(call.image.width), out.x1 - 1 + sizes_.reach) + 1,
                          std::min(last(call.image.height), out.y1 - 1 + sizes_.reach) + 1};
    const int across = (references.width() + sizes_.tile - 1) / sizes_.tile;
    const int down = (references.height() + sizes_.tile - 1) / sizes_.tile;
    call.workers.for_each(static_cast<std::int64_t>(across) * down, [&](std::int64_t item, int worker) {
      const int x = references.x0 + static_cast<int>(item % across) * sizes_.tile;
      const int y = references.y0 + static_cast<int>(item / across) * sizes_.tile;
      Memory memory(*this, call.scratch_of(worker));
      run_tile(call,
               {x, y, std::min(references.x1, x + sizes_.tile), std::min(references.y1, y + sizes_.tile)},
               memory, sums);
    });
    finish(call, sums);
  }

 private:
  using Candidate = Matcher::Candidate;

  // A worker's memory.
  struct Memory {
    Memory(const Step& step, float* memory) {
      const Sizes& s = step.sizes_;
      const auto area = static_cast<std::size_t>(s.area) * s.area_row;
      const auto planes = static_cast<std::size_t>(step.planes_);
      const auto group = static_cast<std::size_t>(s.group) * s.patch_pixels;
      ScratchPieces pieces(memory);
      const auto place = [&]<class T>(T*& pointer, std::size_t count) { pointer = pieces.take<T>(count); };
      place(noisy, planes * area);
      place(basic, step.index_ == 1 ? planes * area : 0);
      place(variance, step.varies_ ? planes * area : 0);
      place(compared, step.step_.prefilter > 0 ? area * s.patch_pixels : 0);
      place(values, planes * area);
      place(weights, planes * area);
      place(coefficients, group);
      place(pilot, group);
      place(spare, group);
      place(variances, step.varies_ || step.correlated_ ? 2 * group : 0);
      place(found, Matcher::room(s.group));
      floats = pieces.floats();
    }

    float* noisy = nullptr;
    float* basic = nullptr;
    float* variance = nullptr;
    float* compared = nullptr;
    std::int64_t* values = nullptr;
    std::int64_t* weights = nullptr;
    Value* coefficients = nullptr;
    Value* pilot = nullptr;
    Value* spare = nullptr;
    float* variances = nullptr;
    Candidate* found = nullptr;
    std::size_t floats = 0;
  };

  int last(int length) const { return padded_length(length, step_.patch) - step_.patch; }
  std::size_t area_pixels() const { return static_cast<std::size_t>(sizes_.area) * sizes_.area_row; }

  void copy_area(const ConstPlanes& planes, const Extent& image, const Rect& area, float* to) const {
    for (int plane = 0; plane < planes.count; ++plane)
      gather(planes, plane, image, Border::symmetric, area, to + plane * area_pixels(), sizes_.area_row);
  }

  void copy_variances(const Extent& image, const Rect& area, float* to) const {
    const ConstImageView& map = settings_.sigma_map;
    std::vector<float> row(static_cast<std::size_t>(image.width));
    for (int y = area.y0; y < area.y1; ++y) {
      for (int plane = 0; plane < planes_; ++plane)
        std::fill_n(to + plane * area_pixels() + (y - area.y0) * sizes_.area_row, area.width(), 0.0F);
      for (int c = 0; c < planes_; ++c) {
        load_row(map, border_index(Border::symmetric, y, image.height), map.spec.channels == 1 ? 0 : c,
                 row.data());
        for (int plane = 0; plane < planes_; ++plane) {
          const double share = settings_.opponent ? opponent_matrix[plane][c] : plane == c ? 1 : 0;
          float* line = to + plane * area_pixels() + (y - area.y0) * sizes_.area_row;
          for (int x = area.x0; x < area.x1; ++x) {
            const float sigma = row[border_index(Border::symmetric, x, image.width)];
            line[x - area.x0] += static_cast<float>(share * share) * sigma * sigma;
          }
        }
      }
    }
  }

  // Thresholded coefficients of the patches at all places of the area, one plane a coefficient.
  void make_compared(const Memory& memory, int plane, const Rect& area) const {
    if constexpr (std::is_same_v<Value, float>) {
      const float* source = memory.noisy + plane * area_pixels();
      const auto limit = static_cast<float>(step_.prefilter * settings_.sigma[plane]);
      for (int y = 0; y + step_.patch <= area.height(); ++y) {
        for (int x = 0; x + step_.patch <= area.width(); ++x) {
          copy_patch(source, x, y, memory.spare);
          transforms_.forward_patches(memory.spare, 1);
          for (int c = 0; c < sizes_.patch_pixels; ++c) {
            const float value = memory.spare[c];
            memory.compared[c * area_pixels() + y * sizes_.area_row + x] =
                std::abs(value) > limit ? value : 0;
          }
        }
      }
    }
  }

  template <class T>
  void copy_patch(const float* source, int x, int y, T* to) const {
    for (int dy = 0; dy < step_.patch; ++dy) {
      const float* row = source + (y + dy) * sizes_.area_row + x;
      for (int dx = 0; dx < step_.patch; ++dx) to[dy * step_.patch + dx] = row[dx];
    }
  }

  void run_tile(const StageCall& call, const Rect& tile, const Memory& memory, const SharedSums& sums) const {
    const Extent& image = call.image;
    const Rect area{std::max(0, tile.x0 - sizes_.reach), std::max(0, tile.y0 - sizes_.reach),
                    std::min(last(image.width), tile.x1 - 1 + sizes_.reach) + step_.patch,
                    std::min(last(image.height), tile.y1 - 1 + sizes_.reach) + step_.patch};
    copy_area(call.in[0], image, area, memory.noisy);
    if (index_ == 1) copy_area(call.in[1], image, area, memory.basic);
    if (varies_) copy_variances(image, area, memory.variance);
    std::fill_n(memory.values, planes_ * area_pixels(), 0);
    std::fill_n(memory.weights, planes_ * area_pixels(), 0);
    for (int plane = 0; plane < planes_; ++plane) {
      if (settings_.opponent && plane > 0) break;
      if (step_.prefilter > 0) make_compared(memory, plane, area);
      for (int y = tile.y0; y < tile.y1; ++y) {
        if (!is_reference(y, image.height, step_.patch, step_.spacing)) continue;
        for (int x = tile.x0; x < tile.x1; ++x) {
          if (!is_reference(x, image.width, step_.patch, step_.spacing)) continue;
          const int size = find_group(memory, plane, x - area.x0, y - area.y0, area);
          const int end = settings_.opponent ? planes_ : plane + 1;
          const double level = settings_.model.empty() ? 0 : group_level(memory, plane, size);
          for (int filtered = plane; filtered < end; ++filtered) filter(memory, filtered, size, level);
        }
      }
    }
    add_to(sums, call.out.rect, area, memory);
  }

  int find_group(const Memory& memory, int plane, int x, int y, const Rect& area) const {
    const Rect places{std::max(0, x - sizes_.reach), std::max(0, y - sizes_.reach),
                      std::min(area.width() - step_.patch, x + sizes_.reach),
                      std::min(area.height() - step_.patch, y + sizes_.reach)};
    const float* pixels = (index_ == 0 ? memory.noisy : memory.basic) + plane * area_pixels();
    const int size =
        matcher_.nearest(step_.prefilter > 0 ? memory.compared : pixels, plane, x, y, places, memory.found);
    const bool any = step_.along == GroupTransform::dct || step_.along == GroupTransform::dft;
    return any ? size : static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  }

  void load_group(const float* source, const Candidate* found, int size, Value* to, Value* spare) const {
    for (int n = 0; n < size; ++n)
      copy_patch(source, found[n].x(), found[n].y(), to + n * sizes_.patch_pixels);
    transforms_.forward_patches(to, size);
    transforms_.forward_group(to, size, spare);
  }

  // The mean of a group's patches in the plane in which it was found.
  double group_level(const Memory& memory, int plane, int size) const {
    const float* source = (index_ == 0 ? memory.noisy : memory.basic) + plane * area_pixels();
    double sum = 0;
    for (int n = 0; n < size; ++n) {
      for (int y = 0; y < step_.patch; ++y) {
        const float* row = source + (memory.found[n].y() + y) * sizes_.area_row + memory.found[n].x();
        for (int x = 0; x < step_.patch; ++x) sum += row[x];
      }
    }
    return sum / (size * sizes_.patch_pixels);
  }

  void filter(const Memory& memory, int plane, int size, double level) const {
    const int count = size * sizes_.patch_pixels;
    load_group(memory.noisy + plane * area_pixels(), memory.found, size, memory.coefficients, memory.spare);
    if (index_ == 1)
      load_group(memory.basic + plane * area_pixels(), memory.found, size, memory.pilot, memory.spare);
    const auto sigma = static_cast<float>(settings_.sigma[plane]);
    float weight = 0;
    if (!settings_.model.empty()) {
      weight = shrink_by_model(memory, plane, size, level);
    } else if (varies_) {
      weight = shrink_varying(memory, plane, size);
    } else if (index_ == 0) {
      weight = threshold(memory.coefficients, count, static_cast<float>(step_.strength) * sigma);
    } else {
      weight = shrink(memory.coefficients, memory.pilot, count, static_cast<float>(step_.strength) * sigma);
    }
    transforms_.inverse_group(memory.coefficients, size, memory.spare);
    transforms_.inverse_patches(memory.coefficients, size);
    add(memory, plane, size, weight);
  }

  static float threshold(Value* coefficients, int count, float limit) {
    int kept = 0;
    for (int i = 0; i < count; ++i) {
      const bool keep = std::norm(coefficients[i]) > limit * limit;
      kept += keep ? 1 : 0;
      coefficients[i] = keep ? coefficients[i] : Value{};
    }
    return 1.0F / static_cast<float>(std::max(kept, 1));
  }

  static float shrink(Value* coefficients, const Value* pilot, int count, float sigma) {
    float squares = 0;
    for (int i = 0; i < count; ++i) {
      const float signal = std::norm(pilot[i]);
      const float both = signal + sigma * sigma;
      const float factor = both > 0 ? signal / both : 1.0F;
      coefficients[i] *= factor;
      squares += factor * factor;
    }
    return 1 / std::max(squares, 1.0F);
  }

  float shrink_varying(const Memory& memory, int plane, int size) const {
    const int count = size * sizes_.patch_pixels;
    float* variances = memory.variances;
    for (int n = 0; n < size; ++n)
      copy_patch(memory.variance + plane * area_pixels(), memory.found[n].x(), memory.found[n].y(),
                 variances + n * sizes_.patch_pixels);
    transforms_.variances(variances, size,
                          variances + static_cast<std::ptrdiff_t>(sizes_.group) * sizes_.patch_pixels);
    const auto strength = static_cast<float>(step_.strength * step_.strength);
    double left = 0;
    double all = 0;
    for (int n = 0; n < size; ++n) {
      const int from = variance_row(n, size) * sizes_.patch_pixels;
      for (int c = 0; c < sizes_.patch_pixels; ++c) {
        const int i = n * sizes_.patch_pixels + c;
        const float variance = variances[from + c];
        float factor = 1;
        if (index_ == 0) {
          factor = std::norm(memory.coefficients[i]) > strength * variance ? 1.0F : 0.0F;
        } else {
          const float signal = std::norm(memory.pilot[i]);
          const float both = signal + strength * variance;
          factor = both > 0 ? signal / both : 1.0F;
        }
        memory.coefficients[i] *= factor;
        left += static_cast<double>(factor) * factor * variance;
        all += variance;
      }
    }
    return static_cast<float>(weight_of_varying(left, all / count, std::pow(settings_.sigma[plane], 2)));
  }

  float shrink_by_model(const Memory& memory, int plane, int size, double level) const {
    const PlaneNoise& noise = settings_.model[static_cast<std::size_t>(plane)];
    const double at_level = noise.variance(level);
    const auto strength = static_cast<float>(std::pow(step_.strength * noise.strength, 2));
    if (noise.covariances) find_shares(memory, *noise.covariances, size);
    float of_level[64];
    for (int c = 0; c < 64; ++c) of_level[c] = static_cast<float>(noise.shares[c]);
    double left = 0;
    double all = 0;
    for (int n = 0; n < size; ++n) {
      const float* shares = noise.covariances ? memory.variances + variance_row(n, size) * 64 : of_level;
      for (int c = 0; c < 64; ++c) {
        const int i = n * 64 + c;
        const float variance = static_cast<float>(at_level) * shares[c];
        float factor = 1;
        if (index_ == 0) {
          const bool keep = std::norm(memory.coefficients[i]) > strength * variance || i == 0;
          factor = keep ? 1.0F : 0.0F;
        } else {
          const float signal = std::norm(memory.pilot[i]);
          const float both = signal + strength * variance;
          factor = both > 0 ? signal / both : 1.0F;
        }
        memory.coefficients[i] *= factor;
        left += static_cast<double>(factor) * factor * variance;
        all += variance;
      }
    }
    return static_cast<float>(
        weight_of_varying(left, all / (64 * size), std::pow(settings_.sigma[plane], 2)));
  }

  // The shares of a group's coefficients if patches share noise, in `variances`.
  void find_shares(const Memory& memory, const PatchCovariances& covariances, int size) const {
    std::fill_n(memory.variances, size * 64, 0.0F);
    for (int m = 0; m < size; ++m) {
      for (int n = 0; n <= m; ++n) {
        const int dx = memory.found[m].x() - memory.found[n].x();
        const int dy = memory.found[m].y() - memory.found[n].y();
        if (covariances.within(dx, dy))
          transforms_.add_common(size, m, n, covariances.at(dx, dy), memory.variances);
      }
    }
    for (int i = 0; i < size * 64; ++i)
      memory.variances[i] = std::max(memory.variances[i], static_cast<float>(least_share));
  }

  // The row of the definition's transform at place n: haar is computed in place.
  int variance_row(int n, int size) const {
    if (step_.along != GroupTransform::haar || n == 0) return n;
    const int step = n & -n;  // differences of stretches of `step` patches lie at their second half's start
    return size / (2 * step) + n / (2 * step);
  }

  void add(const Memory& memory, int plane, int size, float weight) const {
    const int k = step_.patch;
    std::int64_t fixed_weights[32 * 32];
    float factors[32 * 32];
    for (int i = 0; i < sizes_.patch_pixels; ++i) {
      factors[i] = weight * window_[i] * fixed_one;
      fixed_weights[i] = static_cast<std::int64_t>(factors[i]);
      factors[i] /= white_;
    }
    for (int n = 0; n < size; ++n) {
      const Candidate& place = memory.found[n];
      for (int y = 0; y < k; ++y) {
        const std::size_t at = plane * area_pixels() + (place.y() + y) * sizes_.area_row + place.x();
        const Value* estimate = memory.coefficients + n * sizes_.patch_pixels + y * k;
        for (int x = 0; x < k; ++x) {
          const float value = std::real(estimate[x]) * factors[y * k + x];
          memory.values[at + x] += static_cast<std::int64_t>(std::clamp(value, -fixed_most, fixed_most));
          memory.weights[at + x] += fixed_weights[y * k + x];
        }
      }
    }
  }

  // Adds a tile's sums to the shared ones: integers, so that the order does not matter.
  void add_to(const SharedSums& sums, const Rect& out, const Rect& area, const Memory& memory) const {
    const int x0 = std::max(out.x0, area.x0);
    const int x1 = std::min(out.x1, area.x1);
    for (int plane = 0; plane < planes_; ++plane) {
      for (int y = std::max(out.y0, area.y0); y < std::min(out.y1, area.y1); ++y) {
        const std::size_t from = plane * area_pixels() + (y - area.y0) * sizes_.area_row;
        for (int x = x0; x < x1; ++x) {
          if (memory.weights[from + x - area.x0] == 0) continue;
          std::atomic_ref(sums.values(plane, y)[x - out.x0])
              .fetch_add(memory.values[from + x - area.x0], std::memory_order_relaxed);
          std::atomic_ref(sums.weights(plane, y)[x - out.x0])
              .fetch_add(memory.weights[from + x - area.x0], std::memory_order_relaxed);
        }
      }
    }
  }

  void finish(const StageCall& call, const SharedSums& sums) const {
    const Rect& out = call.out.rect;
    const bool to_rgb = settings_.opponent && index_ + 1 == settings_.steps;
    for (int y = out.y0; y < out.y1; ++y) {
      for (int x = 0; x < out.width(); ++x) {
        double means[max_channels] = {};
        for (int plane = 0; plane < planes_; ++plane) {
          means[plane] = static_cast<double>(sums.values(plane, y)[x]) /
                         static_cast<double>(sums.weights(plane, y)[x]) * white_;
        }
        for (int plane = 0; plane < planes_; ++plane) {
          double value = means[plane];
          if (to_rgb) {
            value = 0;
            for (int from = 0; from < 3; ++from) value += opponent_matrix[from][plane] * means[from];
          }
          call.out.row(plane, y)[x] = static_cast<float>(value);
        }
      }
    }
  }

  Bm3dSettings settings_;
  int index_;
  Bm3dStep step_;
  Sizes sizes_;
  int planes_;
  float white_;
  bool varies_;
  bool correlated_;
  Transforms<Value> transforms_;
  Matcher matcher_;
  std::vector<float> window_;
};

void to_opponent(const StageCall& call) {
  const Rect& out = call.out.rect;
  call.workers.for_each(out.height(), [&](std::int64_t row, int) {
    const int y = out.y0 + static_cast<int>(row);
    for (int plane = 0; plane < 3; ++plane) {
      for (int x = out.x0; x < out.x1; ++x) {
        double sum = 0;
        for (int c = 0; c < 3; ++c) sum += opponent_matrix[plane][c] * call.in[0].at(c, x, y);
        call.out.at(plane, x, y) = static_cast<float>(sum);
      }
    }
  });
}

template <class Value>
Stage stage(const char* name, const Bm3dSettings& settings, const ImageSpec& spec, int index,
            const std::vector<int>& reads) {
  const auto step = std::make_shared<const Step<Value>>(settings, spec, index);
  const int reach = bm3d_reach(settings, index);
  return {.name = name,
          .reach = {.x = reach, .y = reach},
          .planes = spec.colour_channels(),
          .reads = std::move(reads),
          .scratch = step->scratch(),
          .shared_per_pixel = step->shared(),
          .run = [step](const StageCall& call) { step->run(call); }};
}

}  // namespace

Pipeline bm3d_general(const Bm3dSettings& settings, const ImageSpec& spec) {
  Pipeline pipeline;
  int noisy = 0;
  if (settings.opponent) {
    pipeline.stages.push_back({.name = "opponent", .planes = 3, .reads = {0}, .run = to_opponent});
    noisy = 1;
  }
  for (int index = 0; index < settings.steps; ++index) {
    const Bm3dStep& step = index == 0 ? settings.first : settings.second;
    const bool complex = step.transform == PatchTransform::dft || step.along == GroupTransform::dft;
    const char* name = index == 0 ? "threshold" : "wiener";
    const std::vector<int> reads = index == 0 ? std::vector{noisy} : std::vector{noisy, noisy + 1};
    pipeline.stages.push_back(complex ? stage<std::complex<float>>(name, settings, spec, index, reads)
                                      : stage<float>(name, settings, spec, index, reads));
  }
  return pipeline;
}

}  // namespace ungrain
