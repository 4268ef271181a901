// References are taken in tiles of a fixed size. Tiles two apart touch no voxel in common, so those of one
// parity along each axis add their estimates at the same time; the eight parities follow each other. Each
// voxel's sum has then one order, whatever the threads and the slabs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/scratch.h"
#include "groups/match_simd.h"
#include "methods/bm4d/bm4d.h"
#include "methods/bm4d/cubes_simd.h"

namespace ungrain {
namespace {

// References of a tile along an axis.
int tile_references(const Bm4dStep& step) {
  const int radius = std::max(step.radius, step.radius_z);
  const int touched = 2 * radius + step.cube - 1;
  constexpr int least = 6;
  return std::max(least, (touched + step.spacing - 1) / step.spacing);
}

class CubeStep {
 public:
  CubeStep(const Bm4dSettings& settings, bool wiener)
      : settings_(settings),
        step_(wiener ? settings.wiener : settings.threshold),
        wiener_(wiener),
        extent_(solid_extent(settings.spec)),
        tile_(tile_references(step_)) {
    const std::vector<double> rows = cube_transform(step_.cube);
    const std::vector<double> weights = cube_window(step_.cube);
    const auto side = static_cast<std::size_t>(step_.cube);
    for (std::size_t k = 0; k < side; ++k) {
      for (std::size_t i = 0; i < side; ++i) {
        transform_.push_back(static_cast<float>(rows[k * side + i]));
        back_.push_back(static_cast<float>(rows[i * side + k]));
      }
    }
    for (const double z : weights) {
      for (const double y : weights) {
        for (const double x : weights) window_.push_back(static_cast<float>(x * y * z));
      }
    }
    const std::vector<double> deviations = coefficient_deviations(settings, step_.cube);
    for (std::size_t first = 0; first < deviations.size(); first += side) {
      for (std::size_t i = 0; i < side; ++i) deviations_.push_back(static_cast<float>(deviations[first + i]));
      for (int i = step_.cube; i < coefficient_row(step_.cube); ++i) deviations_.push_back(1);
    }
    const int touched = (tile_ - 1) * step_.spacing + step_.cube;
    side_ = touched + 2 * step_.radius;
    side_z_ = touched + 2 * step_.radius_z;
    pitch_ = (side_ + cube_row_slack + 15) / 16 * 16;
  }

  std::size_t scratch() const {
    ScratchPieces pieces(nullptr);
    take(pieces);
    return pieces.floats();
  }

  void run(const StageCall& call) const {
    for (int channel = 0; channel < call.out.count; ++channel) run_channel(call, channel);
  }

 private:
  struct Memory {
    float* compared = nullptr;   // the voxels of a tile's search boxes
    float* distances = nullptr;  // of one line of candidates
    float* filter = nullptr;
    std::uint64_t* keys = nullptr;  // candidates: distance, then place in the search box
  };
  static constexpr int keys_held = 4 * most_cubes + largest_cube_search;

  Memory take(ScratchPieces& pieces) const {
    Memory memory;
    memory.compared = pieces.take<float>(static_cast<std::size_t>(pitch_) * side_ * side_z_ + cube_row_slack);
    memory.distances = pieces.take<float>(largest_cube_search + cube_row_slack);
    memory.filter = pieces.take<float>(filter_cubes_floats);
    memory.keys = pieces.take<std::uint64_t>(keys_held);
    return memory;
  }

  struct Tile {
    RowRange x;  // references
    RowRange y;
    RowRange z;
  };

  CubeAxis axis(int size) const { return {size - step_.cube, step_.spacing}; }

  void run_channel(const StageCall& call, int channel) const {
    const ConstSolid noisy = solid_of(call.in[0], channel, settings_.spec.slice);
    const ConstSolid guide = wiener_ ? solid_of(call.in[1], channel, settings_.spec.slice) : noisy;
    const Solid out = solid_of(call.out, channel, settings_.spec.slice);
    const auto voxels = static_cast<std::size_t>(out.box.x.count()) * out.box.y.count();
    if (settings_.sigma[static_cast<std::size_t>(channel)] == 0) {
      for (int z = out.box.z.begin; z < out.box.z.end; ++z) {
        std::copy_n(noisy.at(out.box.x.begin, out.box.y.begin, z), voxels,
                    out.at(out.box.x.begin, out.box.y.begin, z));
      }
      return;
    }
    // The values' sums lie where the result will.
    const CubeSlices<float> values{out.data, out.slice, out.box.z.begin};
    const CubeSlices<float> weights{call.shared.data(), static_cast<std::ptrdiff_t>(voxels), out.box.z.begin};
    call.workers.for_each(out.box.z.count(), [&](std::int64_t slice, int) {
      const int z = out.box.z.begin + static_cast<int>(slice);
      std::fill_n(values.at(z), voxels, 0.0F);
      std::fill_n(weights.at(z), voxels, 0.0F);
    });
    for (int parity = 0; parity < 8; ++parity) {
      const std::vector<Tile> tiles = tiles_of(parity, out.box);
      call.workers.for_each(static_cast<std::int64_t>(tiles.size()), [&](std::int64_t item, int worker) {
        ScratchPieces pieces(call.scratch_of(worker));
        filter_tile(noisy, guide, tiles[static_cast<std::size_t>(item)], channel, out.box.z, values, weights,
                    take(pieces));
      });
    }
    call.workers.for_each(out.box.z.count(), [&](std::int64_t slice, int) {
      const int z = out.box.z.begin + static_cast<int>(slice);
      float* const to = values.at(z);
      const float* const by = weights.at(z);
      for (std::size_t i = 0; i < voxels; ++i) to[i] = by[i] > 0 ? to[i] / by[i] : 0;
    });
  }

  // The tiles of a parity whose groups may touch the output.
  std::vector<Tile> tiles_of(int parity, const Box& out) const {
    const auto ranges = [&](int size, const RowRange& made, int radius, int odd) {
      const CubeAxis positions = axis(size);
      std::vector<RowRange> list;
      for (int begin = odd * tile_; begin < positions.count(); begin += 2 * tile_) {
        RowRange range{begin, std::min(begin + tile_, positions.count())};
        while (range.count() > 0 && positions.position(range.begin) + step_.cube - 1 + radius < made.begin)
          ++range.begin;
        while (range.count() > 0 && positions.position(range.end - 1) - radius >= made.end) --range.end;
        if (range.count() > 0) list.push_back(range);
      }
      return list;
    };
    std::vector<Tile> tiles;
    for (const RowRange& z : ranges(extent_.depth, out.z, step_.radius_z, parity / 4)) {
      for (const RowRange& y : ranges(extent_.height, out.y, step_.radius, parity / 2 % 2)) {
        for (const RowRange& x : ranges(extent_.width, out.x, step_.radius, parity % 2))
          tiles.push_back({x, y, z});
      }
    }
    return tiles;
  }

  // A tile's voxels as they are compared, as far as they are held.
  struct Compared {
    const float* data = nullptr;
    Box box;
    std::ptrdiff_t line = 0;
    std::ptrdiff_t slice = 0;
    const float* at(int x, int y, int z) const {
      return data + (z - box.z.begin) * slice + (y - box.y.begin) * line + (x - box.x.begin);
    }
  };

  Compared compare(const ConstSolid& guide, const Tile& tile, float scale, float* to) const {
    const auto around = [&](const RowRange& references, int size, int radius, const RowRange& held) {
      const CubeAxis positions = axis(size);
      return RowRange{std::max(positions.position(references.begin) - radius, held.begin),
                      std::min(positions.position(references.end - 1) + radius + step_.cube, held.end)};
    };
    Compared compared{to,
                      {around(tile.x, extent_.width, step_.radius, guide.box.x),
                       around(tile.y, extent_.height, step_.radius, guide.box.y),
                       around(tile.z, extent_.depth, step_.radius_z, guide.box.z)},
                      pitch_,
                      static_cast<std::ptrdiff_t>(pitch_) * side_};
    const Box& box = compared.box;
    for (int z = box.z.begin; z < box.z.end; ++z) {
      for (int y = box.y.begin; y < box.y.end; ++y) {
        float* const line = to + (z - box.z.begin) * compared.slice + (y - box.y.begin) * compared.line;
        compared_voxels(guide.at(box.x.begin, y, z), box.x.count(), scale, line);
        // Vectors reach beyond the last candidate.
        std::fill_n(line + box.x.count(), pitch_ - box.x.count(), 0.0F);
      }
    }
    return compared;
  }

  void filter_tile(const ConstSolid& noisy, const ConstSolid& guide, const Tile& tile, int channel,
                   const RowRange& made, const CubeSlices<float>& values, const CubeSlices<float>& weights,
                   const Memory& memory) const {
    const double sigma = settings_.sigma[static_cast<std::size_t>(channel)];
    const Compared compared = compare(guide, tile, compared_scale(settings_, channel), memory.compared);
    const auto slices = [](const ConstSolid& solid) {
      return CubeSlices<const float>{solid.data, solid.slice, solid.box.z.begin};
    };
    CubeGroup group;
    FilterCall filter{.cube = step_.cube,
                      .transform = transform_.data(),
                      .back = back_.data(),
                      .window = window_.data(),
                      .group = &group,
                      .line = noisy.line,
                      .noisy = slices(noisy),
                      .guide = wiener_ ? slices(guide) : CubeSlices<const float>{},
                      .threshold = static_cast<float>(settings_.lambda * sigma),
                      .variance = static_cast<float>(sigma * sigma),
                      .deviations = deviations_.empty() ? nullptr : deviations_.data(),
                      .values = values,
                      .weights = weights,
                      .first_z = made.begin,
                      .end_z = made.end,
                      .scratch = memory.filter};
    const CubeAxis across = axis(extent_.width);
    const CubeAxis down = axis(extent_.height);
    const CubeAxis deep = axis(extent_.depth);
    for (int k = tile.z.begin; k < tile.z.end; ++k) {
      for (int j = tile.y.begin; j < tile.y.end; ++j) {
        for (int i = tile.x.begin; i < tile.x.end; ++i) {
          if (!find_group(compared, across.position(i), down.position(j), deep.position(k), noisy, memory,
                          group))
            continue;
          if (settings_.sigma_map.data != nullptr) set_noise(group, noisy, channel, filter);
          filter_cubes(filter);
        }
      }
    }
  }

  // That of the group's cubes, by the map.
  void set_noise(const CubeGroup& group, const ConstSolid& noisy, int channel, FilterCall& filter) const {
    const int middle = step_.cube / 2;
    const double mean = settings_.sigma[static_cast<std::size_t>(channel)];
    double sum = 0;
    for (int m = 0; m < group.count; ++m) {
      const int x = noisy.box.x.begin + static_cast<int>(group.places[m] % noisy.line);
      const int y = noisy.box.y.begin + static_cast<int>(group.places[m] / noisy.line);
      sum += std::pow(map_deviation(settings_, channel, x + middle, y + middle, group.z[m] + middle), 2);
    }
    const double variance = std::max(sum / group.count, least_variance_share * mean * mean);
    filter.threshold = static_cast<float>(settings_.lambda * std::sqrt(variance));
    filter.variance = static_cast<float>(variance);
  }

  // Returns false where a part of its search box is not held: its estimates lie in no output.
  bool find_group(const Compared& compared, int x, int y, int z, const ConstSolid& noisy,
                  const Memory& memory, CubeGroup& group) const {
    const CubeSearch search = cube_search(step_, extent_, x, y, z);
    const Box needed{{search.x0, search.x1 + step_.cube},
                     {search.y0, search.y1 + step_.cube},
                     {search.z0, search.z1 + step_.cube}};
    if (!compared.box.contains(needed)) return false;
    float reference[largest_cube * largest_cube * largest_cube];
    for (int c = 0; c < step_.cube; ++c) {
      for (int b = 0; b < step_.cube; ++b) {
        std::copy_n(compared.at(x, y + b, z + c), step_.cube, reference + (c * step_.cube + b) * step_.cube);
      }
    }
    const int wide = search.x1 - search.x0 + 1;
    const int high = search.y1 - search.y0 + 1;
    const int candidates = wide * high * (search.z1 - search.z0 + 1);
    const int wanted = cubes_taken(step_.group, candidates);
    const auto self =
        static_cast<std::uint32_t>(((z - search.z0) * high + (y - search.y0)) * wide + (x - search.x0));
    int held = 0;
    // Distances beyond this one belong to no member.
    float enough = std::numeric_limits<float>::max();
    std::uint32_t place = 0;
    for (int qz = search.z0; qz <= search.z1; ++qz) {
      for (int qy = search.y0; qy <= search.y1; ++qy) {
        cube_distances(step_.cube, reference, compared.at(search.x0, qy, qz), compared.line, compared.slice,
                       wide, enough, memory.distances);
        for (int i = 0; i < wide; ++i, ++place) {
          const float distance = memory.distances[i];
          if (distance > enough || place == self) continue;
          memory.keys[held++] = static_cast<std::uint64_t>(distance) << 32U | place;
        }
        if (held > keys_held - largest_cube_search) {
          std::nth_element(memory.keys, memory.keys + wanted - 1, memory.keys + held);
          enough = static_cast<float>(memory.keys[wanted - 1] >> 32U);
          held = wanted;
        }
      }
    }
    group.count = wanted;
    const auto members = std::min(held, wanted - 1);
    std::partial_sort(memory.keys, memory.keys + members, memory.keys + held);
    const auto add = [&](int index, std::uint32_t at) {
      const int px = search.x0 + static_cast<int>(at) % wide;
      const int py = search.y0 + static_cast<int>(at) / wide % high;
      group.z[index] = search.z0 + static_cast<int>(at) / (wide * high);
      group.places[index] = (py - noisy.box.y.begin) * noisy.line + (px - noisy.box.x.begin);
    };
    add(0, self);
    for (int m = 0; m < members; ++m) add(m + 1, static_cast<std::uint32_t>(memory.keys[m]));
    return true;
  }

  Bm4dSettings settings_;
  Bm4dStep step_;
  bool wiener_;
  SolidExtent extent_;
  int tile_;
  int side_ = 0;    // voxels of a tile's search boxes along x and y
  int side_z_ = 0;  // and along z
  int pitch_ = 0;
  std::vector<float> transform_;
  std::vector<float> back_;
  std::vector<float> window_;
  std::vector<float> deviations_;  // FilterCall::deviations; empty: white noise
};

}  // namespace

Pipeline bm4d_cpu(const Bm4dParams& params, const ImageSpec& spec) {
  if (!has_match_vectors()) return bm4d_reference(params, spec);
  const Bm4dSettings settings = bm4d_settings(params, spec);
  if (is_identity(settings)) return {};
  Pipeline pipeline = bm4d_stages(settings);
  for (std::size_t index = 0; index < pipeline.stages.size(); ++index) {
    const auto step = std::make_shared<const CubeStep>(settings, index > 0);
    const Bm4dStep& sizes = index > 0 ? settings.wiener : settings.threshold;
    Stage& stage = pipeline.stages[index];
    stage.scratch = step->scratch();
    stage.shared_per_pixel = 1;
    stage.repeated_rows = sizes.cube - 1 + 2 * sizes.radius_z;
    stage.run = [step](const StageCall& call) { step->run(call); };
  }
  return pipeline;
}

}  // namespace ungrain
