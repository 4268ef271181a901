// bm3d over time by its definition, in double: for every reference patch the path of the patch through the
// images around, the patches of its own image that look like it and their paths, the group's coefficients,
// their shrinkage, and the sums of the estimates of this image's patches.
#include <bit>
#include <complex>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "methods/bm3d/pilot.h"
#include "methods/bm3d/time.h"
#include "methods/bm3d/transforms.h"

namespace ungrain {
namespace {

using Pixels = BasicPlanes<const std::uint16_t>;
using Patch = std::array<double, static_cast<std::size_t>(time_patch) * time_patch>;

struct Place {
  int x = 0;
  int y = 0;
};

// ---- What is compared

void run_colour(const StageCall& call) {
  for (int y = call.out.rect.y0; y < call.out.rect.y1; ++y) {
    for (int x = call.out.rect.x0; x < call.out.rect.x1; ++x) {
      for (int plane = 0; plane < 3; ++plane) {
        double sum = 0;
        for (int c = 0; c < 3; ++c) sum += opponent_matrix[plane][c] * call.in[0].at(c, x, y);
        call.out.at(plane, x, y) = static_cast<float>(sum);
      }
    }
  }
}

// A pixel of a level: the rounded mean of four of the finer level.
int level_pixel(const ConstPlanes& image, int plane, const MatchPixels& pixels, const Extent& extent,
                int level, int x, int y) {
  if (level == 0) return pixels(image.at(plane, x, y));
  const auto finer = [&](int dx, int dy) {
    const int fx = std::min(2 * x + dx, (level == 1 ? extent.width : level_length(extent.width, 1)) - 1);
    const int fy = std::min(2 * y + dy, (level == 1 ? extent.height : level_length(extent.height, 1)) - 1);
    return level_pixel(image, plane, pixels, extent, level - 1, fx, fy);
  };
  return (finer(0, 0) + finer(1, 0) + finer(0, 1) + finer(1, 1) + 2) / 4;
}

void run_match(const StageCall& call, const std::vector<int>& matched, const std::vector<MatchPixels>& pixels,
               bool coarse) {
  const auto out = call.typed_out.as<std::uint16_t>();
  for (std::size_t unit = 0; unit < matched.size(); ++unit) {
    for (int level = 0; level < (coarse ? motion_levels : 1); ++level) {
      const LevelPixels to = level_of({out.data, out.rect, out.row_stride, out.plane_stride, out.count},
                                      static_cast<int>(unit), call.image, level);
      const int step = 1 << level;
      const int end_x = std::min(out.rect.x1 / step, to.width);
      for (int y = to.first_y; y < to.height && y * step + std::max(level - 1, 0) < out.rect.y1; ++y) {
        for (int x = to.first_x; x < end_x; ++x) {
          *const_cast<std::uint16_t*>(to.at(x, y)) = static_cast<std::uint16_t>(
              level_pixel(call.in[0], matched[unit], pixels[unit], call.image, level, x, y));
        }
      }
    }
  }
}

// ---- Motion

class BlockMotion {
 public:
  BlockMotion(const Pixels& from, const Pixels& to, int unit, const Extent& image, int penalty)
      : penalty_(penalty) {
    for (int level = 0; level < motion_levels; ++level) {
      from_[level] = level_of(from, unit, image, level);
      to_[level] = level_of(to, unit, image, level);
    }
  }

  // Found once, because nine blocks ask for it.
  MotionVector at(int level, int block_x, int block_y) {
    const auto [known, is_new] = found_.try_emplace({level, block_x, block_y});
    if (is_new) known->second = search(level, block_x, block_y);
    return known->second;
  }

 private:
  MotionVector search(int level, int block_x, int block_y) {
    Best best{*this, level, block_x, block_y};
    best.attempt({0, 0}, 0);
    if (level == motion_levels - 1) {
      for (int y = -coarse_range; y <= coarse_range; ++y) {
        for (int x = -coarse_range; x <= coarse_range; ++x) best.attempt({x, y}, penalty_);
      }
      return best.vector;
    }
    const int across = divided_up(from_[level + 1].width, motion_block);
    const int down = divided_up(from_[level + 1].height, motion_block);
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) {
        const MotionVector coarse = at(level + 1, std::clamp(block_x / 2 + dx, 0, across - 1),
                                       std::clamp(block_y / 2 + dy, 0, down - 1));
        best.attempt({2 * coarse.x, 2 * coarse.y}, 0);
      }
    }
    const MotionVector centre = best.vector;
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) best.attempt({centre.x + dx, centre.y + dy}, penalty_);
    }
    return best.vector;
  }

  struct Best {
    const BlockMotion& motion;
    int level;
    int block_x;
    int block_y;
    MotionVector vector = {};
    int cost = std::numeric_limits<int>::max();

    void attempt(MotionVector v, int penalty) {
      const int tried = motion.difference(level, block_x, block_y, v) + penalty;
      if (tried >= cost) return;
      cost = tried;
      vector = v;
    }
  };

  int difference(int level, int block_x, int block_y, MotionVector v) const {
    const auto pixel = [](const LevelPixels& of, int x, int y) {
      return static_cast<int>(*of.at(std::clamp(x, 0, of.width - 1), std::clamp(y, 0, of.height - 1)));
    };
    int sum = 0;
    for (int y = block_y * motion_block; y < (block_y + 1) * motion_block; ++y) {
      for (int x = block_x * motion_block; x < (block_x + 1) * motion_block; ++x)
        sum += std::abs(pixel(from_[level], x, y) - pixel(to_[level], x + v.x, y + v.y));
    }
    return sum;
  }

  LevelPixels from_[motion_levels];
  LevelPixels to_[motion_levels];
  int penalty_;
  std::map<std::tuple<int, int, int>, MotionVector> found_;
};

void run_motion(const StageCall& call, int units, const std::vector<int>& penalties) {
  const auto out = call.typed_out.as<std::uint16_t>();
  const auto image_at = [&](int offset) {
    const TypedPlanes& planes = call.typed_in[static_cast<std::size_t>(1 + offset)];
    return planes.data == nullptr ? std::nullopt : std::optional(planes.as<const std::uint16_t>());
  };
  for (int unit = 0; unit < units; ++unit) {
    const MotionFields fields = fields_of(out, unit);
    for (const bool after : {false, true}) {
      const auto to = image_at(after ? 1 : -1);
      std::optional<BlockMotion> motion;
      if (to) motion.emplace(*image_at(0), *to, unit, call.image, penalties[unit]);
      for (int block_y = fields.first_y; block_y * motion_block < out.rect.y1; ++block_y) {
        std::uint16_t* const row = out.row(unit, block_y * motion_block) + (after ? fields.across : 0);
        for (int i = 0; i < fields.across; ++i)
          row[i] = packed(motion ? motion->at(0, fields.first_x + i, block_y) : MotionVector{});
      }
    }
  }
}

// ---- Groups

// The places of patches by image, from `first` to `last` relative to the image that is filtered.
struct Path {
  int first = 0;
  int last = 0;
  std::map<int, Place> places;
};

// Follows patches through the images around one.
class Follower {
 public:
  Follower(const StageCall& call, const TimeStep& step, int unit, const Extent& image)
      : step_(step), last_x_(image.width - time_patch), last_y_(image.height - time_patch) {
    const int slices = call.reach.slices();
    for (int offset = -step.radius; offset <= step.radius; ++offset) {
      const TypedPlanes& pixels =
          call.typed_in[static_cast<std::size_t>(slices + call.reach.before + offset)];
      const TypedPlanes& motion =
          call.typed_in[static_cast<std::size_t>(2 * slices + call.reach.before + offset)];
      if (pixels.data == nullptr) continue;
      pixels_[offset] = level_of(pixels.as<const std::uint16_t>(), unit, image, 0);
      fields_[offset] = fields_of(motion.as<const std::uint16_t>(), unit);
    }
  }

  int last_x() const { return last_x_; }
  int last_y() const { return last_y_; }

  std::uint32_t distance(int image, Place a, int other_image, Place b) const {
    std::uint32_t sum = 0;
    for (int y = 0; y < time_patch; ++y) {
      for (int x = 0; x < time_patch; ++x) {
        const int d = *pixels_.at(image).at(a.x + x, a.y + y) - *pixels_.at(other_image).at(b.x + x, b.y + y);
        sum += static_cast<std::uint32_t>(d * d);
      }
    }
    return sum;
  }

  // As far as the patch stays similar, but not beyond the images [first, last].
  Path follow(Place start, int first, int last) const {
    Path path{.places = {{0, start}}};
    while (path.last < last && advance(path, path.last, 1)) ++path.last;
    while (path.first > first && advance(path, path.first, -1)) --path.first;
    return path;
  }

  // The most similar patches of the same image, at most `count`, the most similar first.
  std::vector<Place> similar(Place reference, int count) const {
    std::vector<std::pair<std::uint32_t, Place>> found;
    const int reach = step_.search / 2;
    for (int y = std::max(0, reference.y - reach); y <= std::min(last_y_, reference.y + reach); ++y) {
      for (int x = std::max(0, reference.x - reach); x <= std::min(last_x_, reference.x + reach); ++x) {
        if (x == reference.x && y == reference.y) continue;
        const std::uint32_t d = distance(0, reference, 0, {x, y});
        if (d <= step_.match_limit) found.push_back({d, {x, y}});
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Place> places;
    for (int n = 0; n < std::min(count, static_cast<int>(found.size())); ++n)
      places.push_back(found[n].second);
    return places;
  }

 private:
  // Adds the patch of the next image; false if there is none.
  bool advance(Path& path, int image, int direction) const {
    const int next = image + direction;
    if (!pixels_.contains(next)) return false;
    const Place from = path.places.at(image);
    const MotionVector v =
        fields_.at(image).at(block_of_patch(from.x), block_of_patch(from.y), direction > 0);
    const Place guess{std::clamp(from.x + v.x, 0, last_x_), std::clamp(from.y + v.y, 0, last_y_)};
    const bool with_previous = step_.index == 0;
    const auto cost = [&](Place at) {
      return distance(with_previous ? image : 0, path.places.at(with_previous ? image : 0), next, at);
    };
    Place best = guess;
    std::uint32_t least = cost(guess);
    for (int y = std::max(0, guess.y - 1); y <= std::min(last_y_, guess.y + 1); ++y) {
      for (int x = std::max(0, guess.x - 1); x <= std::min(last_x_, guess.x + 1); ++x) {
        const std::uint32_t tried = cost({x, y});
        if (tried >= least) continue;
        least = tried;
        best = {x, y};
      }
    }
    if (least > step_.follow_limit) return false;
    path.places[next] = best;
    return true;
  }

  const TimeStep& step_;
  int last_x_;
  int last_y_;
  std::map<int, LevelPixels> pixels_;
  std::map<int, MotionFields> fields_;
};

// Paths of the same images; their number is a power of two, the reference's is the first.
std::vector<Path> find_group(const Follower& follower, const TimeStep& step, Place reference) {
  std::vector<Path> group{follower.follow(reference, -step.radius, step.radius)};
  const int first = group[0].first;
  const int last = group[0].last;
  const int wanted = matches_for(step.group, last - first + 1);
  for (const Place& place : follower.similar(reference, wanted - 1)) {
    const Path path = follower.follow(place, first, last);
    if (path.first == first && path.last == last) group.push_back(path);
  }
  group.resize(std::bit_floor(group.size()));
  return group;
}

// ---- Filtering

class TimeBasis {
 public:
  TimeBasis(PatchTransform transform) : levels_(patch_transform(transform, time_patch)) {}

  Patch forward(Patch patch) const {
    for (const TransformPair& level : levels_) apply(level.forward, patch);
    return patch;
  }
  Patch inverse(Patch patch) const {
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) apply(level->inverse, patch);
    return patch;
  }

 private:
  static void apply(const TransformMatrix& matrix, Patch& patch) {
    const int n = matrix.side;
    Patch rows{};
    for (int y = 0; y < n; ++y) {
      for (int f = 0; f < n; ++f) {
        for (int x = 0; x < n; ++x) rows[y * n + f] += matrix.at(f, x).real() * patch[y * time_patch + x];
      }
    }
    for (int f = 0; f < n; ++f) {
      for (int x = 0; x < n; ++x) {
        double sum = 0;
        for (int y = 0; y < n; ++y) sum += matrix.at(f, y).real() * rows[y * n + x];
        patch[f * time_patch + x] = sum;
      }
    }
  }

  std::vector<TransformPair> levels_;
};

// Patches by match and image.
using Stack = std::vector<std::vector<Patch>>;

// Along matches by Haar's transform and along images by the cosine transform, or back.
Stack along_group(const Stack& stack, bool inverse) {
  const int matches = static_cast<int>(stack.size());
  const int images = static_cast<int>(stack[0].size());
  const TransformPair by_match = group_transform(GroupTransform::haar, matches);
  const TransformPair by_image = group_transform(GroupTransform::dct, images);
  const TransformMatrix& a = inverse ? by_match.inverse : by_match.forward;
  const TransformMatrix& b = inverse ? by_image.inverse : by_image.forward;
  const Stack empty(stack.size(), std::vector<Patch>(stack[0].size(), Patch{}));
  const auto add = [](double weight, const Patch& patch, Patch& to) {
    for (std::size_t c = 0; c < to.size(); ++c) to[c] += weight * patch[c];
  };
  Stack along_images = empty;
  Stack result = empty;
  for (int m = 0; m < matches; ++m) {
    for (int f = 0; f < images; ++f) {
      for (int i = 0; i < images; ++i) add(b.at(f, i).real(), stack[m][i], along_images[m][f]);
    }
  }
  for (int m = 0; m < matches; ++m) {
    for (int n = 0; n < matches; ++n) {
      for (int f = 0; f < images; ++f) add(a.at(m, n).real(), along_images[n][f], result[m][f]);
    }
  }
  return result;
}

// Filters the patches of one part's planes.
class PartFilter {
 public:
  PartFilter(const StageCall& call, const Bm3dSettings& settings, const TimePart& part, const TimeStep& step)
      : call_(call),
        settings_(settings),
        part_(part),
        step_(step),
        from_(step.index == 0 ? settings.first : settings.second),
        basis_(from_.transform),
        window_(patch_window(time_patch, from_.kaiser)) {}

  void run() {
    const Rect& out = call_.out.rect;
    area_ = {divided_up(out.x0, part_.step.x), divided_up(out.y0, part_.step.y),
             std::min(divided_up(out.x1, part_.step.x), part_.extent.width),
             std::min(divided_up(out.y1, part_.step.y), part_.extent.height)};
    const std::size_t size = static_cast<std::size_t>(part_.planes) * area_.width() * area_.height();
    values_.assign(size, 0);
    weights_.assign(size, 0);
    const Follower follower(call_, step_, part_.unit, call_.image);
    const int reach_x = part_reach(step_.search, part_.step.x);
    const int reach_y = part_reach(step_.search, part_.step.y);
    for (int y = 0; y <= part_.extent.height - time_patch; ++y) {
      if (!is_reference(y, part_.extent.height, time_patch, step_.spacing)) continue;
      if (y + time_patch + reach_y <= area_.y0 || y - reach_y >= area_.y1) continue;
      for (int x = 0; x <= part_.extent.width - time_patch; ++x) {
        if (!is_reference(x, part_.extent.width, time_patch, step_.spacing)) continue;
        if (x + time_patch + reach_x <= area_.x0 || x - reach_x >= area_.x1) continue;
        filter(follower, x, y);
      }
    }
    for (int plane = 0; plane < part_.planes; ++plane) {
      for (int y = area_.y0; y < area_.y1; ++y) {
        for (int x = area_.x0; x < area_.x1; ++x) {
          *pixel(call_.out, part_.first_plane + plane, x, y) =
              static_cast<float>(values_[index(plane, x, y)] / weights_[index(plane, x, y)]);
        }
      }
    }
  }

 private:
  std::size_t index(int plane, int x, int y) const {
    return (static_cast<std::size_t>(plane) * area_.height() + (y - area_.y0)) * area_.width() +
           (x - area_.x0);
  }

  // A pixel of a plane with fewer samples: its rows lie in those of the image, from the first column on.
  template <class T>
  T* pixel(const BasicPlanes<T>& planes, int plane, int x, int y) const {
    const int first = divided_up(planes.rect.x0, part_.step.x);
    return planes.row(plane, y * part_.step.y) + (x - first);
  }

  Place in_plane(Place matched) const {
    return {plane_position(matched.x, part_.step.x, part_.extent.width - time_patch),
            plane_position(matched.y, part_.step.y, part_.extent.height - time_patch)};
  }

  Stack load(int read, int plane, const std::vector<Path>& group, Place reference) const {
    Stack stack;
    for (const Path& path : group) {
      std::vector<Patch> patches;
      for (const auto& [image, matched] : path.places) {
        const bool is_reference_patch = image == 0 && &path == &group[0];
        const Place place = is_reference_patch ? reference : in_plane(matched);
        Patch patch{};
        for (int i = 0; i < time_patch * time_patch; ++i) {
          patch[i] = *pixel(call_.at(read, image), part_.first_plane + plane, place.x + i % time_patch,
                            place.y + i / time_patch);
        }
        patches.push_back(patch);
      }
      stack.push_back(std::move(patches));
    }
    return stack;
  }

  static double mean_of(const Stack& stack) {
    double sum = 0;
    for (const auto& match : stack) {
      for (const Patch& patch : match) {
        for (const double value : patch) sum += value;
      }
    }
    return sum / static_cast<double>(stack.size() * stack[0].size() * time_patch * time_patch);
  }

  Stack transformed(Stack stack) const {
    for (auto& match : stack) {
      for (Patch& patch : match) patch = basis_.forward(patch);
    }
    return along_group(stack, false);
  }

  void filter(const Follower& follower, int x, int y) {
    const Place reference{x, y};
    const Place matched{matched_position(x, part_.step.x, follower.last_x()),
                        matched_position(y, part_.step.y, follower.last_y())};
    const std::vector<Path> group = find_group(follower, step_, matched);
    double level = 0;
    for (int plane = 0; plane < part_.planes; ++plane) {
      const Stack noisy = load(0, plane, group, reference);
      const std::optional<Stack> basic =
          step_.index == 0 ? std::nullopt : std::optional(load(3, plane, group, reference));
      if (plane == 0 || !settings_.opponent) level = mean_of(basic ? *basic : noisy);
      shrink(plane, group, reference, transformed(noisy), basic, level);
    }
  }

  void shrink(int plane, const std::vector<Path>& group, Place reference, Stack coefficients,
              const std::optional<Stack>& basic, double level) {
    const int number = part_.first_plane + plane;
    const PlaneNoise* model = settings_.model.empty() ? nullptr : &settings_.model[number];
    const double everywhere = settings_.sigma[number] * settings_.sigma[number];
    const double at_level = model != nullptr ? model->variance(level) : everywhere;
    const double strength = from_.strength * (model != nullptr ? model->strength : 1);
    const std::optional<Stack> pilot = basic ? std::optional(transformed(*basic)) : std::nullopt;
    double factors = 0;
    double left = 0;
    for (std::size_t m = 0; m < coefficients.size(); ++m) {
      for (std::size_t f = 0; f < coefficients[m].size(); ++f) {
        for (std::size_t c = 0; c < coefficients[m][f].size(); ++c) {
          const double share = model != nullptr ? model->shares[c] : 1;
          const double noise = strength * strength * at_level * share;
          double& value = coefficients[m][f][c];
          double by = 0;
          if (pilot) {
            const double signal = std::pow((*pilot)[m][f][c], 2);
            by = signal + noise > 0 ? signal / (signal + noise) : 1;
          } else {
            const bool is_mean = model != nullptr && m == 0 && f == 0 && c == 0;
            by = is_mean || value * value > noise ? 1 : 0;
          }
          value *= by;
          factors += by * by;
          left += by * by * share * at_level;
        }
      }
    }
    const double weight = model != nullptr
                              ? weight_of_varying(left, mean_share(*model) * at_level, everywhere)
                              : 1 / std::max(factors, 1.0);
    add(plane, group, reference, along_group(coefficients, true), weight);
  }

  // Of the group's patches, those of the image itself.
  void add(int plane, const std::vector<Path>& group, Place reference, const Stack& stack, double weight) {
    for (std::size_t m = 0; m < group.size(); ++m) {
      const Patch patch = basis_.inverse(stack[m][static_cast<std::size_t>(-group[m].first)]);
      const Place place = m == 0 ? reference : in_plane(group[m].places.at(0));
      for (int i = 0; i < time_patch * time_patch; ++i) {
        const int x = place.x + i % time_patch;
        const int y = place.y + i / time_patch;
        if (!area_.contains({x, y, x + 1, y + 1})) continue;
        const double w = weight * window_[i / time_patch] * window_[i % time_patch];
        values_[index(plane, x, y)] += w * patch[i];
        weights_[index(plane, x, y)] += w;
      }
    }
  }

  const StageCall& call_;
  const Bm3dSettings& settings_;
  const TimePart& part_;
  const TimeStep& step_;
  const Bm3dStep& from_;
  TimeBasis basis_;
  std::vector<double> window_;
  Rect area_;
  std::vector<double> values_;
  std::vector<double> weights_;
};

void to_rgb(const Planes& planes) {
  for (int y = planes.rect.y0; y < planes.rect.y1; ++y) {
    for (int x = planes.rect.x0; x < planes.rect.x1; ++x) {
      const double from[3] = {planes.at(0, x, y), planes.at(1, x, y), planes.at(2, x, y)};
      for (int c = 0; c < 3; ++c) {
        double sum = 0;
        for (int plane = 0; plane < 3; ++plane) sum += opponent_matrix[plane][c] * from[plane];
        planes.at(c, x, y) = static_cast<float>(sum);
      }
    }
  }
}

}  // namespace

Pipeline bm3d_time_reference(const Bm3dSettings& settings, const ImageSpec& spec) {
  const TimeLayout layout = time_layout(settings, spec);
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
  stages.motion.run = [=](const StageCall& call) {
    run_motion(call, static_cast<int>(layout.matched.size()), penalties);
  };
  for (int index = 0; index < 2; ++index) {
    stages.steps[index].run = [=](const StageCall& call) {
      copy_planes(call, layout);
      for (const TimePart& part : layout.parts) {
        const TimeStep step = time_step(settings, spec, index, layout.matched[part.unit]);
        PartFilter(call, settings, part, step).run();
      }
      if (settings.opponent && index + 1 == settings.steps) to_rgb(call.out);
    };
  }
  return time_pipeline(settings, spec, stages);
}

}  // namespace ungrain
