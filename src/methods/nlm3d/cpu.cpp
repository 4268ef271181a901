// The volume is cut into tiles. Each is filtered by itself: weights of pairs of voxels of two tiles are found
// for both.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/scratch.h"
#include "methods/nlm3d/nlm3d.h"
#include "methods/nlm3d/search_simd.h"

namespace ungrain {
namespace {

constexpr float most_scaled = 8e37F;  // differences and their squares are finite or infinity, never NaN

// The weighted mean of a voxel and its neighbours along each axis.
class Prefilter {
 public:
  explicit Prefilter(const NlmVolumeSettings& settings)
      : settings_(settings), extent_(solid_extent(settings.spec)) {}

  void run(const StageCall& call) const {
    for (int channel = 0; channel < call.out.count; ++channel) {
      const ConstSolid noisy = solid_of(call.in[0], channel, settings_.spec.slice);
      const Solid out = solid_of(call.out, channel, settings_.spec.slice);
      const int lines = out.box.y.count();
      call.workers.for_each(std::int64_t{out.box.z.count()} * lines, [&](std::int64_t item, int worker) {
        const auto z = static_cast<int>(item / lines);
        const auto y = static_cast<int>(item % lines);
        filter_line(noisy, out.box.y.begin + y, out.box.z.begin + z, call.scratch_of(worker),
                    out.at(out.box.x.begin, out.box.y.begin + y, out.box.z.begin + z));
      });
    }
  }
  std::size_t scratch() const { return static_cast<std::size_t>(settings_.spec.slice.width) + 2; }

 private:
  void filter_line(const ConstSolid& noisy, int y, int z, float* line, float* out) const {
    const Box& box = noisy.box;
    const int count = box.x.count();
    const float* from[3][3];
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 3; ++k) {
        from[k][j] = noisy.at(box.x.begin, held_index(y + j - 1, extent_.height, box.y),
                              held_index(z + k - 1, extent_.depth, box.z));
      }
    }
    const Shares across(settings_.prefilter);
    const Shares deep(settings_.prefilter_z);
    for (int x = 0; x < count; ++x) {
      float rows[3];
      for (int k = 0; k < 3; ++k) rows[k] = across.mean(from[k][0][x], from[k][1][x], from[k][2][x]);
      line[x + 1] = deep.mean(rows[0], rows[1], rows[2]);
    }
    line[0] = line[held_index(box.x.begin - 1, extent_.width, box.x) - box.x.begin + 1];
    line[count + 1] = line[held_index(box.x.end, extent_.width, box.x) - box.x.begin + 1];
    for (int x = 0; x < count; ++x) out[x] = across.mean(line[x], line[x + 1], line[x + 2]);
  }

  struct Shares {
    float own;
    float neighbour;
    explicit Shares(double prefilter)
        : own(static_cast<float>(1 - 2 * prefilter)), neighbour(static_cast<float>(prefilter)) {}
    float mean(float before, float at, float after) const { return own * at + neighbour * (before + after); }
  };

  NlmVolumeSettings settings_;
  SolidExtent extent_;
};

class Search {
 public:
  explicit Search(const NlmVolumeSettings& settings)
      : settings_(settings),
        extent_(solid_extent(settings.spec)),
        scale_(static_cast<float>(settings.exponent_scale())),
        noise_exponent_(static_cast<float>(settings.noise_exponent())) {}

  std::size_t scratch() const {
    ScratchPieces pieces(nullptr);
    take(pieces);
    return pieces.floats();
  }

  void run(const StageCall& call) const {
    for (int channel = 0; channel < call.out.count; ++channel) {
      const ConstSolid noisy = solid_of(call.in[0], channel, settings_.spec.slice);
      const ConstSolid guide = solid_of(call.in.back(), channel, settings_.spec.slice);
      const Solid out = solid_of(call.out, channel, settings_.spec.slice);
      const std::vector<Box> tiles = tiles_of(out.box, call.workers.count());
      call.workers.for_each(static_cast<std::int64_t>(tiles.size()), [&](std::int64_t item, int worker) {
        ScratchPieces pieces(call.scratch_of(worker));
        filter_tile(noisy, guide, tiles[static_cast<std::size_t>(item)], take(pieces), out);
      });
    }
  }

 private:
  // Sides of a tile along y and z at most. Smaller ones find more weights twice, larger ones leave the cache.
  static constexpr int most_lines = 24;
  static constexpr int least_lines = 12;

  struct Memory {
    float* guide = nullptr;
    float* values = nullptr;
    float* weight_sums = nullptr;
    float* value_sums = nullptr;
    float* largest = nullptr;
    float* search = nullptr;
  };

  static int pitch(int voxels) { return (voxels + volume_vector_slack + 15) / 16 * 16 + volume_vector_slack; }

  int width() const { return std::min(widest_volume_tile, settings_.spec.slice.width); }
  int height() const { return std::min(most_lines, settings_.spec.slice.height); }
  int depth() const { return std::min(most_lines, extent_.depth); }
  int guide_reach() const { return settings_.radius + settings_.around; }
  int guide_reach_z() const { return settings_.radius_z + settings_.around_z; }

  Memory take(ScratchPieces& pieces) const {
    const auto solid = [&](int reach, int reach_z) {
      return pieces.take<float>(static_cast<std::size_t>(pitch(width() + 2 * reach)) *
                                static_cast<std::size_t>(height() + 2 * reach) *
                                static_cast<std::size_t>(depth() + 2 * reach_z));
    };
    Memory memory;
    memory.guide = solid(guide_reach(), guide_reach_z());
    memory.values = solid(settings_.radius, settings_.radius_z);
    memory.weight_sums = solid(0, 0);
    memory.value_sums = solid(0, 0);
    memory.largest = solid(0, 0);
    memory.search = pieces.take<float>(volume_search_floats(settings_.radius, settings_.around));
    return memory;
  }

  // Parts of nearly equal length.
  static std::vector<RowRange> parts(const RowRange& range, int most) {
    const int count = (range.count() + most - 1) / most;
    std::vector<RowRange> list;
    for (int i = 0; i < count; ++i) {
      list.push_back({range.begin + static_cast<int>(std::int64_t{range.count()} * i / count),
                      range.begin + static_cast<int>(std::int64_t{range.count()} * (i + 1) / count)});
    }
    return list;
  }

  std::vector<Box> tiles_of(const Box& out, int workers) const {
    const std::vector<RowRange> across = parts(out.x, widest_volume_tile);
    // Enough for the workers to end at about the same time.
    int most = most_lines;
    const auto count = [&] { return across.size() * parts(out.y, most).size() * parts(out.z, most).size(); };
    while (workers > 1 && most > least_lines &&
           count() < std::size_t{4} * static_cast<std::size_t>(workers)) {
      most -= 4;
    }
    std::vector<Box> tiles;
    for (const RowRange& z : parts(out.z, most)) {
      for (const RowRange& y : parts(out.y, most)) {
        for (const RowRange& x : across) tiles.push_back({x, y, z});
      }
    }
    return tiles;
  }

  static Box grown(const Box& box, int reach, int reach_z) {
    return {{box.x.begin - reach, box.x.end + reach},
            {box.y.begin - reach, box.y.end + reach},
            {box.z.begin - reach_z, box.z.end + reach_z}};
  }

  template <class T>
  static BasicSolid<T> solid_in(T* memory, const Box& box) {
    const std::ptrdiff_t line = pitch(box.x.count());
    return {memory, box, line, line * box.y.count()};
  }

  // A part of the volume and what lies beyond its border.
  ConstSolid gather(const ConstSolid& from, const Box& box, float scale, float* memory) const {
    const Solid to = solid_in(memory, box);
    for (int z = box.z.begin; z < box.z.end; ++z) {
      for (int y = box.y.begin; y < box.y.end; ++y) {
        const float* line = from.at(from.box.x.begin, held_index(y, extent_.height, from.box.y),
                                    held_index(z, extent_.depth, from.box.z)) -
                            from.box.x.begin;
        float* const out = to.at(box.x.begin, y, z) - box.x.begin;
        const int begin = std::clamp(from.box.x.begin, box.x.begin, box.x.end);
        const int end = std::clamp(from.box.x.end, begin, box.x.end);
        for (int x = box.x.begin; x < begin; ++x) out[x] = line[held_index(x, extent_.width, from.box.x)];
        for (int x = begin; x < end; ++x) out[x] = line[x];
        for (int x = end; x < box.x.end; ++x) out[x] = line[held_index(x, extent_.width, from.box.x)];
        std::fill_n(out + box.x.end, to.line - box.x.count(), 0.0F);
        if (scale == 1) continue;
        for (int x = box.x.begin; x < box.x.end; ++x) {
          out[x] = std::clamp(out[x] * scale, -most_scaled, most_scaled);
        }
      }
    }
    return {to.data, to.box, to.line, to.slice};
  }

  void filter_tile(const ConstSolid& noisy, const ConstSolid& guide, const Box& box, const Memory& memory,
                   const Solid& out) const {
    const bool wants_largest = settings_.self == SelfWeight::max;
    const VolumeTile tile{
        .out = box,
        .candidates = {guide.box.x, guide.box.y, guide.box.z},
        .guide = gather(guide, grown(box, guide_reach(), guide_reach_z()), scale_, memory.guide),
        .values = gather(noisy, grown(box, settings_.radius, settings_.radius_z), 1, memory.values),
        .weight_sums = solid_in(memory.weight_sums, box),
        .value_sums = solid_in(memory.value_sums, box),
        .largest = wants_largest ? solid_in(memory.largest, box) : Solid{},
        .memory = memory.search,
        .around = settings_.around,
        .around_z = settings_.around_z,
        .noise_exponent = noise_exponent_};
    for (float* const sums : {memory.weight_sums, memory.value_sums, memory.largest}) {
      std::fill_n(sums, tile.weight_sums.slice * box.z.count(), 0.0F);
    }
    const int radius = settings_.radius;
    for (int dz = 0; dz <= settings_.radius_z; ++dz) {
      for (int dy = dz == 0 ? 0 : -radius; dy <= radius; ++dy) {
        for (int dx = dz == 0 && dy == 0 ? 1 : -radius; dx <= radius; dx += volume_shifts_at_once) {
          add_volume_shifts(tile, {dx, std::min(dx + volume_shifts_at_once, radius + 1)}, dy, dz);
        }
      }
    }
    const int x = box.x.begin;
    for (int z = box.z.begin; z < box.z.end; ++z) {
      for (int y = box.y.begin; y < box.y.end; ++y) {
        finish_volume_line(tile.values.at(x, y, z), tile.value_sums.at(x, y, z), tile.weight_sums.at(x, y, z),
                           wants_largest ? tile.largest.at(x, y, z) : nullptr, box.x.count(),
                           out.at(x, y, z));
      }
    }
  }

  NlmVolumeSettings settings_;
  SolidExtent extent_;
  float scale_;
  float noise_exponent_;
};

}  // namespace

Pipeline nlm3d_cpu(const NlmVolumeParams& params, const ImageSpec& spec) {
  const NlmVolumeSettings settings = nlm3d_settings(params, spec);
  if (is_identity(settings)) return {};
  Pipeline pipeline = nlm3d_stages(settings, settings.has_prefilter());
  if (settings.has_prefilter()) {
    const auto prefilter = std::make_shared<const Prefilter>(settings);
    pipeline.stages.front().scratch = prefilter->scratch();
    pipeline.stages.front().run = [prefilter](const StageCall& call) { prefilter->run(call); };
  }
  const auto search = std::make_shared<const Search>(settings);
  Stage& stage = pipeline.stages.back();
  stage.scratch = search->scratch();
  stage.repeated_rows = settings.radius_z;
  stage.run = [search](const StageCall& call) { search->run(call); };
  return pipeline;
}

}  // namespace ungrain
