#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "core/opponent_rows.h"
#include "core/scratch.h"
#include "cpu/tiles.h"
#include "groups/tile_sums.h"
#include "methods/bm3d/pilot.h"
#include "methods/bm3d/time.h"
#include "methods/bm3d/time_simd.h"
#include "methods/bm3d/transforms.h"
#include "motion/cpu.h"

namespace ungrain {
namespace {

using Pixels = BasicPlanes<const std::uint16_t>;

void run_colour(const StageCall& call) {
  constexpr int rows_at_once = 16;
  for_tiles(call.workers, call.out.rect, call.image.width, rows_at_once, [&](const Rect& tile, int) {
    for (int y = tile.y0; y < tile.y1; ++y) {
      const auto from = [&](int c) { return call.in[0].row(c, y) + (tile.x0 - call.in[0].rect.x0); };
      for (int plane = 0; plane < 3; ++plane) {
        opponent_row(from(0), from(1), from(2), plane, tile.width(),
                     call.out.row(plane, y) + (tile.x0 - call.out.rect.x0));
      }
    }
  });
}

// ---- Match pixels

// Four rows of an image and what the coarser levels make of them.
struct MatchRows {
  static constexpr int rows = 4;
  std::uint16_t* pixels[rows];
  std::uint16_t* halves[rows / 2];

  MatchRows(float* scratch, int width) {
    auto* at = reinterpret_cast<std::uint16_t*>(scratch);
    for (auto& row : pixels) row = std::exchange(at, at + width);
    for (auto& row : halves) row = std::exchange(at, at + width);
  }
  static std::size_t floats(int width) { return 3 * static_cast<std::size_t>(width) + 16; }
};

void halve(const std::uint16_t* upper, const std::uint16_t* lower, int count, std::uint16_t* to) {
  for (int x = 0; x < count; ++x) {
    to[x] = static_cast<std::uint16_t>(
        (upper[2 * x] + upper[2 * x + 1] + lower[2 * x] + lower[2 * x + 1] + 2) / 4);
  }
}

void run_match(const StageCall& call, const std::vector<int>& matched, const std::vector<MatchPixels>& pixels,
               bool coarse) {
  const auto out = call.typed_out.as<std::uint16_t>();
  const Rect& area = out.rect;
  const ConstPlanes& in = call.in[0];
  const int first_group = area.y0 / MatchRows::rows;
  const int groups = divided_up(area.y1, MatchRows::rows) - first_group;
  const int height = call.image.height;
  call.workers.for_each(
      groups * static_cast<std::int64_t>(matched.size()), [&](std::int64_t item, int worker) {
        const int unit = static_cast<int>(item / groups);
        const int top = (first_group + static_cast<int>(item % groups)) * MatchRows::rows;
        const MatchRows rows(call.scratch_of(worker), area.width());
        for (int i = 0; i < MatchRows::rows; ++i) {
          const int y = top + i;
          if (y >= height || (!coarse && (y < area.y0 || y >= area.y1))) continue;
          const float* from = in.row(matched[unit], y) + (area.x0 - in.rect.x0);
          for (int x = 0; x < area.width(); ++x) rows.pixels[i][x] = pixels[unit](from[x]);
          if (y >= area.y0 && y < area.y1) {
            std::memcpy(out.row(match_planes * unit, y), rows.pixels[i],
                        static_cast<std::size_t>(area.width()) * sizeof(std::uint16_t));
          }
        }
        if (!coarse) return;
        const Extent half{level_length(call.image.width, 1), level_length(height, 1)};
        const Extent quarter{level_length(call.image.width, 2), level_length(height, 2)};
        const int half_x = divided_up(area.x0, 2);
        const int half_count = std::min(area.x1 / 2, half.width) - half_x;
        for (int i = 0; i < 2; ++i) {
          const int y = top / 2 + i;
          if (y >= half.height) continue;
          halve(rows.pixels[2 * i] + (2 * half_x - area.x0), rows.pixels[2 * i + 1] + (2 * half_x - area.x0),
                half_count, rows.halves[i]);
          if (2 * y < area.y0 || 2 * y >= area.y1) continue;
          std::memcpy(out.row(match_planes * unit + 1, 2 * y), rows.halves[i],
                      static_cast<std::size_t>(half_count) * sizeof(std::uint16_t));
        }
        const int y = top / 4;
        if (y >= quarter.height || top + 1 < area.y0 || top + 1 >= area.y1) return;
        const int quarter_x = divided_up(area.x0, 4);
        const int quarter_count = std::min(area.x1 / 4, quarter.width) - quarter_x;
        halve(rows.halves[0] + (2 * quarter_x - half_x), rows.halves[1] + (2 * quarter_x - half_x),
              quarter_count, out.row(match_planes * unit + 1, top + 1));
      });
}

// ---- Groups

struct Place {
  int x = 0;
  int y = 0;
};

// The places of a patch by image, of the images [first, last] relative to the one that is filtered.
struct Path {
  Place places[most_time_images];  // the own image's at most_time_radius
  int first = 0;
  int last = 0;

  Place& at(int image) { return places[most_time_radius + image]; }
  const Place& at(int image) const { return places[most_time_radius + image]; }
};

struct Group {
  Path paths[most_time_matches];
  int matches = 0;
};

// Follows patches through the images around one.
class Follower {
 public:
  Follower(const StageCall& call, const TimeStep& step, int unit)
      : step_(step), last_x_(call.image.width - time_patch), last_y_(call.image.height - time_patch) {
    const int slices = call.reach.slices();
    for (int offset = -step.radius; offset <= step.radius; ++offset) {
      const std::size_t slice = static_cast<std::size_t>(call.reach.before + offset);
      const TypedPlanes& pixels = call.typed_in[static_cast<std::size_t>(slices) + slice];
      const TypedPlanes& motion = call.typed_in[2 * static_cast<std::size_t>(slices) + slice];
      exists_[most_time_radius + offset] = pixels.data != nullptr;
      if (pixels.data == nullptr) continue;
      pixels_[most_time_radius + offset] = level_of(pixels.as<const std::uint16_t>(), unit, call.image, 0);
      fields_[most_time_radius + offset] = fields_of(motion.as<const std::uint16_t>(), unit);
    }
  }

  int last_x() const { return last_x_; }
  int last_y() const { return last_y_; }

  void find(Place reference, std::uint32_t* scratch, Group& group) const {
    Path& own = group.paths[0];
    follow(reference, -step_.radius, step_.radius, own);
    group.matches = 1;
    const int wanted = matches_for(step_.group, own.last - own.first + 1);
    if (wanted == 1) return;
    Place similar[most_time_matches];
    const int found = find_similar(reference, wanted - 1, scratch, similar);
    for (int n = 0; n < found; ++n) {
      Path& path = group.paths[group.matches];
      follow(similar[n], own.first, own.last, path);
      if (path.first == own.first && path.last == own.last) ++group.matches;
    }
    group.matches = static_cast<int>(std::bit_floor(static_cast<unsigned>(group.matches)));
  }

 private:
  const LevelPixels& pixels(int image) const { return pixels_[most_time_radius + image]; }

  // As far as the patch stays similar, but not beyond the images [first, last].
  void follow(Place start, int first, int last, Path& path) const {
    path.first = path.last = 0;
    path.at(0) = start;
    while (path.last < last && advance(path, path.last, 1)) ++path.last;
    while (path.first > first && advance(path, path.first, -1)) --path.first;
  }

  // Finds the patch in the next image; false if there is none.
  bool advance(Path& path, int image, int direction) const {
    const int next = image + direction;
    if (!exists_[most_time_radius + next]) return false;
    const Place from = path.at(image);
    const MotionVector v =
        fields_[most_time_radius + image].at(block_of_patch(from.x), block_of_patch(from.y), direction > 0);
    const Place guess{std::clamp(from.x + v.x, 0, last_x_), std::clamp(from.y + v.y, 0, last_y_)};
    const int compared = step_.index == 0 ? image : 0;
    const Place other = path.at(compared);
    const int x0 = std::max(0, guess.x - 1);
    const int x1 = std::min(last_x_, guess.x + 1);
    const int y0 = std::max(0, guess.y - 1);
    const int y1 = std::min(last_y_, guess.y + 1);
    const int columns = x1 - x0 + 1;
    std::uint32_t distances[9];
    patch_distances({pixels(compared).at(other.x, other.y), pixels(compared).row_stride,
                     pixels(next).at(x0, y0), pixels(next).row_stride, columns, y1 - y0 + 1, distances});
    // The place that the motion leads to comes first among equals.
    int best = (guess.y - y0) * columns + (guess.x - x0);
    for (int n = 0; n < columns * (y1 - y0 + 1); ++n) {
      if (distances[n] < distances[best]) best = n;
    }
    if (distances[best] > step_.follow_limit) return false;
    path.at(next) = {x0 + best % columns, y0 + best / columns};
    return true;
  }

  // The most similar patches of the same image, the most similar first, among equals in reading order.
  int find_similar(Place reference, int most, std::uint32_t* distances, Place* places) const {
    const int reach = step_.search / 2;
    const int x0 = std::max(0, reference.x - reach);
    const int x1 = std::min(last_x_, reference.x + reach);
    const int y0 = std::max(0, reference.y - reach);
    const int y1 = std::min(last_y_, reference.y + reach);
    const int columns = x1 - x0 + 1;
    const int candidates = columns * (y1 - y0 + 1);
    patch_distances({pixels(0).at(reference.x, reference.y), pixels(0).row_stride, pixels(0).at(x0, y0),
                     pixels(0).row_stride, columns, y1 - y0 + 1, distances});
    const int own = (reference.y - y0) * columns + (reference.x - x0);
    int best[most_time_matches];
    int count = 0;
    std::uint32_t limit = step_.match_limit;  // largest that is still taken
    for (int n = 0; n < candidates; ++n) {
      if (distances[n] > limit || n == own) continue;
      if (count == most && distances[n] == distances[best[count - 1]]) continue;
      int at = count < most ? count++ : count - 1;
      for (; at > 0 && distances[best[at - 1]] > distances[n]; --at) best[at] = best[at - 1];
      best[at] = n;
      if (count == most) limit = distances[best[count - 1]];
    }
    for (int n = 0; n < count; ++n) places[n] = {x0 + best[n] % columns, y0 + best[n] / columns};
    return count;
  }

  const TimeStep& step_;
  int last_x_;
  int last_y_;
  std::array<bool, most_time_images> exists_{};
  std::array<LevelPixels, most_time_images> pixels_{};
  std::array<MotionFields, most_time_images> fields_{};
};

// ---- Steps

// One step of one part's planes.
class PartStep {
 public:
  PartStep(const Bm3dSettings& settings, const ImageSpec& spec, const TimePart& part, int matched_plane,
           int index)
      : part_(part),
        step_(time_step(settings, spec, index, matched_plane)),
        transform_((index == 0 ? settings.first : settings.second).transform),
        opponent_(settings.opponent),
        model_(settings.model),
        along_(time_transforms(settings.radius_t)),
        sums_(
            part.extent,
            {.side = time_patch,
             .spacing = step_.spacing,
             .reach = std::max(part_reach(step_.search, part.step.x), part_reach(step_.search, part.step.y))},
            part.planes),
        tables_(std::make_unique<FilterTables[]>(static_cast<std::size_t>(part.planes))) {
    const Bm3dStep& from = index == 0 ? settings.first : settings.second;
    const std::vector<double> window = patch_window(time_patch, from.kaiser);
    for (int plane = 0; plane < part.planes; ++plane) {
      const int number = part.first_plane + plane;
      const PlaneNoise* model = model_.empty() ? nullptr : &model_[static_cast<std::size_t>(number)];
      fill_filter_tables(from, index == 1, settings.sigma[number], model,
                         std::span<const double, filter_patch>(window), tables_[plane]);
    }
  }

  std::size_t scratch() const { return static_cast<std::size_t>(step_.search) * step_.search + 16; }
  std::size_t shared() const { return sums_.shared(); }

  template <class Done>
  void run(const StageCall& call, const Done& done_row) const {
    const Follower follower(call, step_, part_.unit);
    sums_.run(
        call.workers, out_planes(call), call.shared.data(),
        [&](const TileSums::Tile& tile, int worker) { filter_tile(call, follower, tile, worker); }, done_row,
        [](const auto& work) { work(); });
  }

 private:
  // A part with fewer samples has its rows in those of the image, from the first column on.
  Planes out_planes(const StageCall& call) const {
    const Planes& out = call.out;
    Planes planes = out;
    planes.rect = {divided_up(out.rect.x0, part_.step.x), divided_up(out.rect.y0, part_.step.y),
                   std::min(divided_up(out.rect.x1, part_.step.x), part_.extent.width),
                   std::min(divided_up(out.rect.y1, part_.step.y), part_.extent.height)};
    planes.data = out.row(part_.first_plane, planes.rect.y0 * part_.step.y);
    planes.row_stride = out.row_stride * part_.step.y;
    planes.count = part_.planes;
    return planes;
  }

  PatchPixels patch(const ConstPlanes& planes, int plane, const Place& at) const {
    return {planes.row(part_.first_plane + plane, at.y * part_.step.y) +
                (at.x - divided_up(planes.rect.x0, part_.step.x)),
            planes.row_stride * part_.step.y};
  }

  Place in_plane(const Place& matched) const {
    return {plane_position(matched.x, part_.step.x, part_.extent.width - time_patch),
            plane_position(matched.y, part_.step.y, part_.extent.height - time_patch)};
  }

  void filter_tile(const StageCall& call, const Follower& follower, const TileSums::Tile& tile,
                   int worker) const {
    std::fill_n(tile.sums, sums_.tile_floats(), 0.0F);
    Group group;
    auto* scratch = reinterpret_cast<std::uint32_t*>(call.scratch_of(worker));
    for (int yi = tile.ys.begin; yi < tile.ys.end; ++yi) {
      for (int xi = tile.xs.begin; xi < tile.xs.end; ++xi) {
        const Place reference{sums_.across().position(xi), sums_.down().position(yi)};
        follower.find({matched_position(reference.x, part_.step.x, follower.last_x()),
                       matched_position(reference.y, part_.step.y, follower.last_y())},
                      scratch, group);
        filter_group(call, tile, reference, group);
      }
    }
  }

  void filter_group(const StageCall& call, const TileSums::Tile& tile, const Place& reference,
                    const Group& group) const {
    const int first = group.paths[0].first;
    const int images = group.paths[0].last - first + 1;
    Place places[most_time_patches];
    for (int m = 0; m < group.matches; ++m) {
      for (int i = 0; i < images; ++i) places[m * images + i] = in_plane(group.paths[m].at(first + i));
    }
    places[-first] = reference;
    const auto gather = [&](int read, int plane, PatchPixels* to) {
      for (int m = 0; m < group.matches; ++m) {
        for (int i = 0; i < images; ++i)
          to[m * images + i] = patch(call.at(read, first + i), plane, places[m * images + i]);
      }
    };
    float level = 0;
    for (int plane = 0; plane < part_.planes; ++plane) {
      PatchPixels noisy[most_time_patches];
      PatchPixels basic[most_time_patches];
      gather(0, plane, noisy);
      if (step_.index == 1) gather(3, plane, basic);
      float* values[most_time_matches];
      const TileSums::Shape& shape = sums_.shape();
      for (int m = 0; m < group.matches; ++m) {
        const Place& at = places[m * images - first];
        values[m] = sums_.values_of(tile, plane) + (at.y - tile.top) * shape.pitch + (at.x - tile.left);
      }
      filter_time_group({.tables = tables_[plane],
                         .transform = transform_,
                         .matches = group.matches,
                         .images = images,
                         .own = -first,
                         .along = along_[static_cast<std::size_t>(images)].data(),
                         .noisy = noisy,
                         .basic = step_.index == 1 ? basic : nullptr,
                         .values = values,
                         .to_weights = static_cast<std::ptrdiff_t>(shape.plane),
                         .pitch = shape.pitch,
                         .level = &level,
                         .finds_level = plane == 0 || !opponent_});
    }
  }

  TimePart part_;
  TimeStep step_;
  PatchTransform transform_;
  bool opponent_;
  std::vector<PlaneNoise> model_;
  std::vector<std::vector<float>> along_;
  TileSums sums_;
  std::unique_ptr<FilterTables[]> tables_;
};

}  // namespace

Pipeline bm3d_time_cpu(const Bm3dSettings& settings, const ImageSpec& spec) {
  if (!has_time_vectors()) return bm3d_time_reference(settings, spec);
  const TimeLayout layout = time_layout(settings, spec);
  const Extent image{spec.width, spec.height};
  std::vector<MatchPixels> pixels;
  std::vector<int> penalties;
  for (const int plane : layout.matched) {
    pixels.push_back(match_pixels(settings, spec, plane));
    penalties.push_back(motion_penalty(settings, spec, plane));
  }
  TimeStages stages;
  stages.pilot.run = [pilot = PilotRows(settings, spec)](const StageCall& call) {
    pilot.read(call.slice, call.out);
  };
  stages.colour.run = run_colour;
  stages.match.run = [=](const StageCall& call) { run_match(call, layout.matched, pixels, true); };
  stages.match_again.run = [=](const StageCall& call) { run_match(call, layout.matched, pixels, false); };
  stages.match.scratch = stages.match_again.scratch = MatchRows::floats(spec.width);
  stages.motion.run = [=](const StageCall& call) { run_motion(call, penalties); };
  stages.motion.shared = motion_scratch(image);
  for (int index = 0; index < settings.steps; ++index) {
    std::vector<std::shared_ptr<const PartStep>> parts;
    Stage& stage = stages.steps[index];
    for (const TimePart& part : layout.parts) {
      parts.push_back(
          std::make_shared<const PartStep>(settings, spec, part, layout.matched[part.unit], index));
      stage.scratch = std::max(stage.scratch, parts.back()->scratch());
      stage.shared = std::max(stage.shared, parts.back()->shared());
    }
    const bool to_rgb = settings.opponent && index + 1 == settings.steps;
    stage.run = [parts, layout, to_rgb](const StageCall& call) {
      copy_planes(call, layout);
      for (const auto& part : parts) {
        part->run(call, [&](int y) {
          if (to_rgb) rgb_row(call.out, y);
        });
      }
    };
  }
  return time_pipeline(settings, spec, stages);
}

}  // namespace ungrain
