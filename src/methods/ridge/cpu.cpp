#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "core/border.h"
#include "core/convert.h"
#include "core/opponent.h"
#include "core/opponent_rows.h"
#include "core/scratch.h"
#include "groups/tile_search.h"
#include "groups/tile_sums.h"
#include "methods/ridge/group_simd.h"
#include "methods/ridge/ridge.h"

namespace ungrain {
namespace {

static_assert(compared_side == match_patch);

// Sums over the patches of a tile: at each position the sum of the patch that begins there. Always in the
// same order, so that a band's edge changes no bit.
void sum_patches(float* values, int side, int pitch, int patch) {
  for (int y = 0; y < side; ++y) {
    float* row = values + static_cast<std::ptrdiff_t>(y) * pitch;
    for (int x = 0; x + patch <= side; ++x) {
      float sum = row[x];
      for (int i = 1; i < patch; ++i) sum += row[x + i];
      row[x] = sum;
    }
  }
  for (int y = 0; y + patch <= side; ++y) {
    float* row = values + static_cast<std::ptrdiff_t>(y) * pitch;
    for (int i = 1; i < patch; ++i) {
      for (int x = 0; x < side; ++x) row[x] += row[x + static_cast<std::ptrdiff_t>(i) * pitch];
    }
  }
}

// The reverse, for weights: each pixel gets the sum of those of all patches that cover it.
void spread_patches(float* values, int side, int pitch, int patch) {
  for (int y = 0; y < side; ++y) {
    float* row = values + static_cast<std::ptrdiff_t>(y) * pitch;
    for (int x = side - 1; x >= 0; --x) {
      float sum = row[x];
      for (int i = 1; i < std::min(patch, x + 1); ++i) sum += row[x - i];
      row[x] = sum;
    }
  }
  for (int y = side - 1; y >= 0; --y) {
    float* row = values + static_cast<std::ptrdiff_t>(y) * pitch;
    for (int i = 1; i < std::min(patch, y + 1); ++i) {
      for (int x = 0; x < side; ++x) row[x] += row[x - static_cast<std::ptrdiff_t>(i) * pitch];
    }
  }
}

class Pass {
 public:
  Pass(const RidgeSettings& settings, int pass)
      : settings_(settings),
        pass_(pass),
        last_(pass + 1 == settings.passes),
        sums_({settings.spec.width, settings.spec.height}, patches_of(settings, pass), settings.planes(),
              last_ ? 1 : 2),
        shape_(sums_.shape()),
        search_(shape_.side + compared_side - settings.patch, settings.search, settings.spacing,
                settings.group) {
    for (int plane = 0; plane < settings.planes(); ++plane) {
      MatchScale usual = match_scale(settings, plane);
      usual.deep = usual.deep || usual.most > match_depth(false);
      scales_.push_back({.usual = usual,
                         .beyond = match_scale_beyond(settings, plane),
                         .max_distance = std::numeric_limits<double>::infinity()});
    }
  }

  std::size_t scratch() const { return memory_at(nullptr).floats + 32; }
  std::size_t shared() const { return sums_.shared(); }

  void run(const StageCall& call) const {
    sums_.run(
        call.workers, call.out, call.shared.data(),
        [&](const TileSums::Tile& tile, int worker) { filter_tile(call, tile, worker); },
        [&](int y) { finish_row(call, y); }, [](const auto& work) { work(); });
  }

 private:
  static TileSums::Patches patches_of(const RidgeSettings& settings, int pass) {
    const GridShift shift = grid_shift(settings, pass);
    const auto lead = [&](int by) { return (settings.spacing - by) % settings.spacing; };
    return {.side = settings.patch,
            .spacing = settings.spacing,
            .reach = settings.search / 2,
            .lead_x = lead(shift.x),
            .lead_y = lead(shift.y)};
  }

  // A worker's memory. Planes of a tile have its shape.
  struct Memory {
    float* compared = nullptr;  // what is compared: the tile and a margin
    float* guide = nullptr;
    float* partly = nullptr;
    float* removed = nullptr;  // noise that was removed so far: sums over patches, and of squares
    float* removed_squares = nullptr;
    float* variances = nullptr;  // of the map: sums over patches
    float* levels = nullptr;     // with a model, of the plane that is matched: sums over patches of the guide
    double* group_levels = nullptr;
    TileSearch::Memory search;
    float* combine = nullptr;
    std::int32_t* places = nullptr;  // settings_.group for each reference
    std::int32_t* sizes = nullptr;
    std::size_t floats = 0;
  };

  int compared_pitch() const { return shape_.pitch + 16; }

  Memory memory_at(float* start) const {
    Memory m;
    ScratchPieces pieces(start);
    const auto references = static_cast<std::size_t>(shape_.references) * shape_.references;
    const std::size_t plane = shape_.plane + 16;
    m.compared =
        pieces.take<float>(static_cast<std::size_t>(compared_pitch()) * (shape_.side + compared_side));
    m.guide = pieces.take<float>(plane);
    m.partly = pieces.take<float>(plane);
    m.removed = pieces.take<float>(plane);
    m.removed_squares = pieces.take<float>(plane);
    m.variances = settings_.sigma_map.data != nullptr ? pieces.take<float>(plane) : nullptr;
    m.levels = settings_.model.empty() ? nullptr : pieces.take<float>(plane);
    m.group_levels = pieces.take<double>(references);
    m.search = search_.take_memory(pieces);
    m.combine = pieces.take<float>(combine_scratch_floats);
    m.places = pieces.take<std::int32_t>(references * settings_.group);
    m.sizes = pieces.take<std::int32_t>(references);
    m.floats = pieces.floats();
    return m;
  }

  // Whether no noise was removed so far.
  bool starts_noisy() const { return pass_ == 0 && settings_.start == 1; }

  void filter_tile(const StageCall& call, const TileSums::Tile& at, int worker) const {
    const Memory memory = memory_at(TileSums::aligned(call.scratch_of(worker)));
    std::fill_n(at.sums, sums_.tile_floats(), 0.0F);
    for (int plane = 0; plane < settings_.planes(); ++plane) {
      if (settings_.finds_groups(plane)) find_groups(call, at, plane, memory);
      copy_planes(call, at, plane, memory);
      const int groups = at.xs.count() * at.ys.count();
      for (int group = 0; group < groups; ++group) combine(at, plane, group, memory);
      spread_patches(sums_.weights_of(at, plane), shape_.side, shape_.pitch, settings_.patch);
    }
  }

  // The part of a tile that lies in the image and in what the call has of it.
  Rect tile_in(const TileSums::Tile& at, const Rect& rect) const {
    return {std::max(at.left, rect.x0), std::max(at.top, rect.y0), std::min(at.left + shape_.side, rect.x1),
            std::min(at.top + shape_.side, rect.y1)};
  }

  // The search sees an image that is larger by what is compared around a patch: mirrored pixels. A patch's
  // place there is that of what is compared.
  void find_groups(const StageCall& call, const TileSums::Tile& at, int plane, const Memory& memory) const {
    const ConstPlanes& from = call.in[1];
    const int margin = compared_margin(settings_);
    const int more = compared_side - settings_.patch;
    const Extent larger{call.image.width + more, call.image.height + more};
    // In coordinates of the larger image.
    const auto known = [&](int rect_begin, int rect_end, int length) {
      return RowRange{rect_begin <= 0 ? 0 : rect_begin + margin,
                      rect_end >= length ? length + more : rect_end + margin};
    };
    const RowRange columns = known(from.rect.x0, from.rect.x1, call.image.width);
    const RowRange rows = known(from.rect.y0, from.rect.y1, call.image.height);
    const Rect rect{std::max(at.left, columns.begin), std::max(at.top, rows.begin),
                    std::min(at.left + shape_.side + more, columns.end),
                    std::min(at.top + shape_.side + more, rows.end)};
    for (int y = rect.y0; y < rect.y1; ++y) {
      const int row = border_index(Border::symmetric, y - margin, call.image.height);
      const float* pixels = from.row(partly_plane(plane), row) - from.rect.x0;
      float* to = memory.compared + static_cast<std::ptrdiff_t>(y - rect.y0) * compared_pitch();
      for (int x = rect.x0; x < rect.x1; ++x)
        to[x - rect.x0] = pixels[border_index(Border::symmetric, x - margin, call.image.width)];
    }
    const ConstPlanes image{memory.compared, rect, compared_pitch(), 0, 1};
    int number = 0;
    search_.find(
        image, larger, scales_[plane], search_.integers(image, larger, scales_[plane], at, memory.search),
        sums_, at, memory.search, [&](const MatchGroup& group, int x, int y) {
          std::int32_t* places = memory.places + static_cast<std::ptrdiff_t>(number) * settings_.group;
          memory.sizes[number++] = group.count;
          for (int i = 0; i < group.count; ++i)
            places[i] = (y - at.top + group.dy[i]) * shape_.pitch + (x - at.left + group.dx[i]);
        });
  }

  void copy_planes(const StageCall& call, const TileSums::Tile& at, int plane, const Memory& memory) const {
    const ConstPlanes& first = call.in[0];
    const ConstPlanes& before = call.in[1];
    const Rect rect = tile_in(at, before.rect);
    const auto width = static_cast<std::size_t>(rect.width());
    for (int y = rect.y0; y < rect.y1; ++y) {
      const std::ptrdiff_t to = static_cast<std::ptrdiff_t>(y - at.top) * shape_.pitch + (rect.x0 - at.left);
      const float* partly = before.row(partly_plane(plane), y) + (rect.x0 - before.rect.x0);
      std::memcpy(memory.guide + to, before.row(guide_plane(plane), y) + (rect.x0 - before.rect.x0),
                  width * sizeof(float));
      std::memcpy(memory.partly + to, partly, width * sizeof(float));
      if (starts_noisy()) continue;
      const float* started = first.row(partly_plane(plane), y) + (rect.x0 - first.rect.x0);
      const float* pilot = first.row(guide_plane(plane), y) + (rect.x0 - first.rect.x0);
      float* removed = memory.removed + to;
      float* squares = memory.removed_squares + to;
      for (std::size_t x = 0; x < width; ++x) {
        removed[x] = unmixed(settings_, started[x], pilot[x]) - partly[x];
        squares[x] = removed[x] * removed[x];
      }
    }
    if (!starts_noisy()) {
      sum_patches(memory.removed, shape_.side, shape_.pitch, settings_.patch);
      sum_patches(memory.removed_squares, shape_.side, shape_.pitch, settings_.patch);
    }
    if (memory.variances != nullptr) sum_variances(call, at, plane, memory);
    if (memory.levels != nullptr && settings_.finds_groups(plane)) find_levels(at, memory);
  }

  void sum_variances(const StageCall& call, const TileSums::Tile& at, int plane, const Memory& memory) const {
    const ConstImageView& map = settings_.sigma_map;
    const Rect rect = tile_in(at, {0, 0, call.image.width, call.image.height});
    std::vector<float> row(static_cast<std::size_t>(rect.width()));
    std::fill_n(memory.variances, shape_.plane, 0.0F);
    for (int y = rect.y0; y < rect.y1; ++y) {
      float* to =
          memory.variances + static_cast<std::ptrdiff_t>(y - at.top) * shape_.pitch + (rect.x0 - at.left);
      ConstImageView part = map.rows(y, 1);
      part.data = static_cast<const std::byte*>(part.data) + rect.x0 * part.strides.x;
      part.spec.width = rect.width();
      for (int channel = 0; channel < (settings_.opponent ? 3 : 1); ++channel) {
        const int from = map.spec.channels == 1 ? 0 : settings_.opponent ? channel : plane;
        const double share = settings_.opponent ? std::pow(opponent_matrix[plane][channel], 2) : 1;
        load_row(part, 0, from, row.data());
        for (std::size_t x = 0; x < row.size(); ++x) to[x] += static_cast<float>(share) * row[x] * row[x];
      }
    }
    sum_patches(memory.variances, shape_.side, shape_.pitch, settings_.patch);
  }

  void find_levels(const TileSums::Tile& at, const Memory& memory) const {
    std::copy_n(memory.guide, shape_.plane, memory.levels);
    sum_patches(memory.levels, shape_.side, shape_.pitch, settings_.patch);
    const double pixels = static_cast<double>(settings_.patch) * settings_.patch;
    for (int group = 0; group < at.xs.count() * at.ys.count(); ++group) {
      const std::int32_t* places = memory.places + static_cast<std::ptrdiff_t>(group) * settings_.group;
      double sum = 0;
      for (int i = 0; i < memory.sizes[group]; ++i) sum += memory.levels[places[i]];
      memory.group_levels[group] = sum / pixels / memory.sizes[group];
    }
  }

  // The noise that a group has left, as a share of all noise.
  double share_of(const std::int32_t* places, int count, double variance, const Memory& memory) const {
    const double kept = kept_by(settings_, pass_);
    if (starts_noisy()) return 1;
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < count; ++i) {
      sum += memory.removed[places[i]];
      squares += memory.removed_squares[places[i]];
    }
    const double entries = static_cast<double>(count) * settings_.patch * settings_.patch;
    const double deviation = std::sqrt(std::max(0.0, squares / entries - sum / entries * (sum / entries)));
    return std::max({1 - deviation / std::sqrt(variance), kept, least_left});
  }

  void combine(const TileSums::Tile& at, int plane, int group, const Memory& memory) const {
    const double pixels = static_cast<double>(settings_.patch) * settings_.patch;
    const int count = memory.sizes[group];
    const std::int32_t* places = memory.places + static_cast<std::ptrdiff_t>(group) * settings_.group;
    const double plane_variance = settings_.sigma[plane] * settings_.sigma[plane];
    double variance = plane_variance;
    float precisions[most_combined];
    if (memory.levels != nullptr) variance = variance_at(settings_, plane, memory.group_levels[group]);
    if (memory.variances != nullptr) {
      variance = 0;
      for (int i = 0; i < count; ++i) variance += memory.variances[places[i]] / pixels / count;
    }
    const double weight = weight_by_noise(plane_variance, variance);
    if (!(variance > 0)) {  // nothing to remove
      for (int i = 0; i < count; ++i) sums_.weights_of(at, plane)[places[i]] += static_cast<float>(weight);
      return;
    }
    if (memory.variances != nullptr) {
      for (int i = 0; i < count; ++i) {
        const double own = memory.variances[places[i]] / pixels;
        precisions[i] = static_cast<float>(variance / std::max(own, least_noise_share * variance));
      }
    }
    const double share = share_of(places, count, variance, memory);
    CombineCall call;
    call.patch = settings_.patch;
    call.count = count;
    call.places = places;
    call.pitch = shape_.pitch;
    call.guide = memory.guide;
    call.partly = memory.partly;
    call.noise = static_cast<float>(settings_.noise_factor * pixels * variance * share * share);
    call.least_noise = static_cast<float>(least_noise_of_energy);
    call.precisions = memory.variances != nullptr ? precisions : nullptr;
    call.step = static_cast<float>(1 - kept_by(settings_, pass_) / share);
    call.weight = static_cast<float>(weight);
    call.guide_sums = last_ ? nullptr : sums_.values_of(at, plane, 0);
    call.partly_sums = sums_.values_of(at, plane, last_ ? 0 : 1);
    call.weight_sums = sums_.weights_of(at, plane);
    call.scratch = memory.combine;
    combine_group(call);
  }

  // From differences to values.
  void finish_row(const StageCall& call, int y) const {
    const ConstPlanes& before = call.in[1];
    const int width = call.out.rect.width();
    for (int plane = 0; plane < settings_.planes(); ++plane) {
      const float* partly = before.row(partly_plane(plane), y) + (call.out.rect.x0 - before.rect.x0);
      for (int to = last_ ? plane : guide_plane(plane); to <= (last_ ? plane : partly_plane(plane)); ++to) {
        float* values = call.out.row(to, y);
        for (int x = 0; x < width; ++x) values[x] += partly[x];
      }
    }
    if (last_ && settings_.opponent) rgb_row(call.out, y);
  }

  RidgeSettings settings_;
  int pass_;
  bool last_;
  TileSums sums_;
  TileSums::Shape shape_;
  TileSearch search_;
  std::vector<TileSearch::Scales> scales_;
};

void run_start(const StageCall& call, const RidgeSettings& settings) {
  const Rect& area = call.out.rect;
  call.workers.for_each(area.height(), [&](std::int64_t row, int) {
    const int y = area.y0 + static_cast<int>(row);
    const auto fill = [&](const ConstPlanes& from, int plane, int to) {
      const auto source = [&](int channel) { return from.row(channel, y) + (area.x0 - from.rect.x0); };
      if (settings.opponent) {
        opponent_row(source(0), source(1), source(2), plane, area.width(), call.out.row(to, y));
      } else {
        std::copy_n(source(plane), area.width(), call.out.row(to, y));
      }
    };
    for (int plane = 0; plane < settings.planes(); ++plane) {
      fill(call.in[1], plane, guide_plane(plane));
      fill(call.in[0], plane, partly_plane(plane));
      const float* pilot = call.out.row(guide_plane(plane), y);
      float* partly = call.out.row(partly_plane(plane), y);
      for (int x = 0; x < area.width(); ++x) partly[x] = mixed(settings, partly[x], pilot[x]);
    }
  });
}

bool has_tiles(const RidgeSettings& settings) {
  return settings.spec.width >= settings.patch && settings.spec.height >= settings.patch &&
         has_match_vectors();
}

}  // namespace

RidgePasses ridge_passes_on_cpu(const RidgeSettings& settings) {
  if (!has_tiles(settings)) return ridge_passes_by_definition(settings);
  return {.start = {.name = "start", .run = [settings](const StageCall& call) { run_start(call, settings); }},
          .pass = [settings](int index) {
            const auto pass = std::make_shared<const Pass>(settings, index);
            return Stage{.name = "pass",
                         .scratch = pass->scratch(),
                         .shared = pass->shared(),
                         .repeated_rows = ridge_reach(settings),
                         .run = [pass](const StageCall& call) { pass->run(call); }};
          }};
}

Pipeline ridge_cpu(const RidgeParams& params, const ImageSpec& spec) {
  const RidgeSettings settings = ridge_settings(params, spec);
  if (is_identity(settings)) return {};
  return ridge_pipeline(ridge_pilot(params, spec, Device::Kind::cpu), settings,
                        ridge_passes_on_cpu(settings));
}

}  // namespace ungrain
