// BM3D by its definition, in double. One step: for every reference patch the group of similar patches, the
// group's coefficients, their shrinkage, and the sums of all patches' estimates.
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <map>
#include <vector>

#include "core/border.h"
#include "core/channel_noise.h"
#include "methods/bm3d/bm3d.h"
#include "methods/bm3d/scales.h"
#include "methods/bm3d/time.h"
#include "methods/bm3d/transforms.h"

namespace ungrain {
namespace {

using Complex = std::complex<double>;
using Coefficients = std::vector<Complex>;  // of one patch, side x side

// The top left pixel of a patch.
struct Place {
  int x = 0;
  int y = 0;
};

// A plane of the image as the method works on it: rgb turned into luminance and colour differences where
// `opponent`, axes shorter than a patch continued symmetrically.
class WorkingPlane {
 public:
  WorkingPlane(const ConstPlanes& planes, const Extent& image, int plane, bool opponent)
      : image_(planes, image, Border::symmetric), plane_(plane), opponent_(opponent) {}

  double at(int x, int y) const {
    if (!opponent_) return image_.at(plane_, x, y);
    double sum = 0;
    for (int c = 0; c < 3; ++c) sum += opponent_matrix[plane_][c] * image_.at(c, x, y);
    return static_cast<float>(sum);  // planes are float: the groups may depend on the rounding
  }

 private:
  BorderedPlanes<const float> image_;
  int plane_;
  bool opponent_;
};

// The noise's variance in a plane: the same everywhere, or by the map.
class NoiseVariance {
 public:
  NoiseVariance(const Bm3dSettings& settings, int plane)
      : map_(settings.sigma_map),
        plane_(plane),
        opponent_(settings.opponent),
        everywhere_(settings.sigma[plane] * settings.sigma[plane]),
        model_(settings.model.empty() ? nullptr : &settings.model[static_cast<std::size_t>(plane)]) {}

  bool varies() const { return map_.data != nullptr || by_model(); }
  bool by_model() const { return model_ != nullptr; }
  // The variance of coefficient c of a group's patches at the group's level, and the factor on the deviation.
  double at_level(double level) const { return model_->variance(level); }
  double at_level(double level, std::size_t c) const { return model_->variance(level) * model_->shares[c]; }
  double strength() const { return by_model() ? model_->strength : 1; }
  // Null if a coefficient's variance is the same in all groups of a level.
  const PatchCovariances* covariances() const { return by_model() ? model_->covariances.get() : nullptr; }
  double everywhere() const { return everywhere_; }
  double at(int x, int y) const { return map_variance(map_, opponent_, plane_, x, y); }

 private:
  ConstImageView map_;
  int plane_;
  bool opponent_;
  double everywhere_;
  const PlaneNoise* model_;
};

// Haar and Hadamard take powers of two, the others any number.
int group_size(GroupTransform along, int found) {
  const bool any = along == GroupTransform::dct || along == GroupTransform::dft;
  return any ? found : static_cast<int>(std::bit_floor(static_cast<unsigned>(found)));
}

// One step's transforms.
class GroupBasis {
 public:
  explicit GroupBasis(const Bm3dStep& step)
      : side_(step.patch), levels_(patch_transform(step.transform, step.patch)) {
    for (int size = 1; size <= step.group; ++size) {
      if (group_size(step.along, size) == size) along_.emplace(size, group_transform(step.along, size));
    }
  }

  int side() const { return side_; }

  Coefficients forward(Coefficients patch) const {
    for (const TransformPair& level : levels_) apply(level.forward, patch);
    return patch;
  }
  Coefficients inverse(Coefficients patch) const {
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) apply(level->inverse, patch);
    return patch;
  }

  std::vector<Coefficients> forward(std::vector<Coefficients> patches) const {
    for (Coefficients& patch : patches) patch = forward(std::move(patch));
    return across(along(patches).forward, patches);
  }
  std::vector<Coefficients> inverse(const std::vector<Coefficients>& group) const {
    std::vector<Coefficients> patches = across(along(group).inverse, group);
    for (Coefficients& patch : patches) patch = inverse(std::move(patch));
    return patches;
  }

  // The variances of a group's coefficients, from variances of pixels with independent noise.
  std::vector<Coefficients> variances(const std::vector<Coefficients>& pixels) const {
    const std::size_t count = pixels[0].size();
    std::vector<Coefficients> patches(pixels.size(), Coefficients(count));
    for (std::size_t i = 0; i < count; ++i) {
      Coefficients impulse(count);
      impulse[i] = 1;
      const Coefficients response = forward(std::move(impulse));
      for (std::size_t n = 0; n < pixels.size(); ++n) {
        for (std::size_t c = 0; c < count; ++c) patches[n][c] += std::norm(response[c]) * pixels[n][i];
      }
    }
    TransformMatrix squares = along(pixels).forward;
    for (Complex& value : squares.values) value = std::norm(value);
    return across(squares, patches);
  }

  // The shares of a level's variance of a group's coefficients if patches share noise.
  std::vector<Coefficients> shares(const PatchCovariances& covariances,
                                   const std::vector<Place>& group) const {
    const std::size_t count = static_cast<std::size_t>(side_) * side_;
    const TransformMatrix& matrix = along_.at(static_cast<int>(group.size())).forward;
    std::vector<Coefficients> result(group.size(), Coefficients(count));
    for (int m = 0; m < matrix.side; ++m) {
      for (int n = 0; n < matrix.side; ++n) {
        const int dx = group[m].x - group[n].x;
        const int dy = group[m].y - group[n].y;
        if (!covariances.within(dx, dy)) continue;
        const NoiseModel::Spectrum& common = covariances.at(dx, dy);
        for (int f = 0; f < matrix.side; ++f) {
          const double weight = (matrix.at(f, m) * std::conj(matrix.at(f, n))).real();
          for (std::size_t c = 0; c < count; ++c) result[f][c] += weight * common[c];
        }
      }
    }
    for (Coefficients& row : result) {
      for (Complex& share : row) share = std::max(share.real(), least_share);
    }
    return result;
  }

 private:
  // Along the rows and columns of the first matrix.side x matrix.side coefficients.
  void apply(const TransformMatrix& matrix, Coefficients& patch) const {
    const int n = matrix.side;
    Coefficients rows(static_cast<std::size_t>(n * n));
    for (int y = 0; y < n; ++y) {
      for (int f = 0; f < n; ++f) {
        for (int x = 0; x < n; ++x) rows[y * n + f] += matrix.at(f, x) * patch[y * side_ + x];
      }
    }
    for (int f = 0; f < n; ++f) {
      for (int x = 0; x < n; ++x) {
        Complex sum = 0;
        for (int y = 0; y < n; ++y) sum += matrix.at(f, y) * rows[y * n + x];
        patch[f * side_ + x] = sum;
      }
    }
  }

  static std::vector<Coefficients> across(const TransformMatrix& matrix,
                                          const std::vector<Coefficients>& group) {
    std::vector<Coefficients> result(group.size(), Coefficients(group[0].size()));
    for (int f = 0; f < matrix.side; ++f) {
      for (int n = 0; n < matrix.side; ++n) {
        for (std::size_t c = 0; c < group[0].size(); ++c) result[f][c] += matrix.at(f, n) * group[n][c];
      }
    }
    return result;
  }

  const TransformPair& along(const std::vector<Coefficients>& group) const {
    return along_.at(static_cast<int>(group.size()));
  }

  int side_;
  std::map<int, TransformPair> along_;  // by the group's size
  std::vector<TransformPair> levels_;
};

Coefficients pixels_of(const auto& plane, const Place& place, int side) {
  Coefficients patch;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) patch.emplace_back(plane.at(place.x + x, place.y + y));
  }
  return patch;
}

struct Candidate {
  double distance = 0;
  Place place;
};

// Sorts by distance; ties in reading order.
void keep_nearest(std::vector<Candidate>& candidates, int count) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.distance < b.distance; });
  if (static_cast<int>(candidates.size()) > count) candidates.resize(static_cast<std::size_t>(count));
}

// Finds the patches that look like a reference patch.
class Search {
 public:
  Search(const Bm3dSettings& settings, int index, const Extent& image)
      : settings_(settings),
        index_(index),
        step_(index == 0 ? settings.first : settings.second),
        basis_(step_),
        image_(image) {}

  // Patches around the reference, which comes first even among equal ones. `number` is the plane's.
  std::vector<Candidate> nearest(const WorkingPlane& plane, int number, const Place& reference) const {
    const double sigma = settings_.sigma[number];
    const int reach = step_.search / 2;
    std::vector<Candidate> others;
    for (int y = std::max(0, reference.y - reach); y <= std::min(last_y(), reference.y + reach); ++y) {
      for (int x = std::max(0, reference.x - reach); x <= std::min(last_x(), reference.x + reach); ++x) {
        if (x == reference.x && y == reference.y) continue;
        const double d = distance(plane, sigma, reference, {x, y}) +
                         distance_correction(settings_, index_, number, x - reference.x, y - reference.y);
        if (d <= step_.max_distance) others.push_back({d, {x, y}});
      }
    }
    keep_nearest(others, step_.group - 1);
    others.insert(others.begin(), {0, reference});
    return others;
  }

  int last_x() const { return padded_length(image_.width, step_.patch) - step_.patch; }
  int last_y() const { return padded_length(image_.height, step_.patch) - step_.patch; }

 private:
  double distance(const WorkingPlane& plane, double sigma, const Place& a, const Place& b) const {
    double sum = 0;
    if (step_.prefilter > 0) {
      const Coefficients of_a = thresholded(plane, sigma, a);
      const Coefficients of_b = thresholded(plane, sigma, b);
      for (std::size_t c = 0; c < of_a.size(); ++c) sum += std::norm(of_a[c] - of_b[c]);
    } else {
      for (int y = 0; y < step_.patch; ++y) {
        for (int x = 0; x < step_.patch; ++x) {
          const double d = plane.at(a.x + x, a.y + y) - plane.at(b.x + x, b.y + y);
          sum += d * d;
        }
      }
    }
    return sum / (step_.patch * step_.patch);
  }

  Coefficients thresholded(const WorkingPlane& plane, double sigma, const Place& place) const {
    Coefficients patch = basis_.forward(pixels_of(plane, place, step_.patch));
    for (Complex& c : patch) {
      if (std::abs(c) <= step_.prefilter * sigma) c = 0;
    }
    return patch;
  }

  const Bm3dSettings& settings_;
  int index_;
  const Bm3dStep& step_;
  GroupBasis basis_;
  Extent image_;
};

struct Estimate {
  std::vector<Coefficients> patches;  // pixels
  double weight = 1;
};

// The noise left in a group.
class RemainingNoise {
 public:
  explicit RemainingNoise(const NoiseVariance& noise) : noise_(noise) {}

  // A coefficient with noise of this variance was multiplied by `factor`.
  void add(double factor, double variance) {
    factors_ += factor * factor;
    left_ += factor * factor * variance;
    all_ += variance;
    ++count_;
  }
  // Groups with little noise left were flat or have little noise: they weigh more.
  double weight() const {
    if (!noise_.varies()) return 1 / std::max(factors_, 1.0);
    return weight_of_varying(left_, all_ / count_, noise_.everywhere());
  }

 private:
  const NoiseVariance& noise_;
  double factors_ = 0;
  double left_ = 0;
  double all_ = 0;
  int count_ = 0;
};

// A group's coefficients, each multiplied by factor(n, c, variance).
Estimate shrunk(const GroupBasis& basis, const std::vector<Place>& group, const WorkingPlane& plane,
                const NoiseVariance& noise, double level, const auto& factor) {
  std::vector<Coefficients> coefficients;
  std::vector<Coefficients> variances;
  for (const Place& place : group) {
    coefficients.push_back(pixels_of(plane, place, basis.side()));
    if (noise.varies() && !noise.by_model()) variances.push_back(pixels_of(noise, place, basis.side()));
  }
  coefficients = basis.forward(std::move(coefficients));
  if (!variances.empty()) variances = basis.variances(variances);
  const PatchCovariances* const covariances = noise.covariances();
  std::vector<Coefficients> shares;
  if (covariances != nullptr) shares = basis.shares(*covariances, group);
  RemainingNoise remainder(noise);
  for (std::size_t n = 0; n < coefficients.size(); ++n) {
    for (std::size_t c = 0; c < coefficients[n].size(); ++c) {
      const double variance = covariances != nullptr ? noise.at_level(level) * shares[n][c].real()
                              : noise.by_model()     ? noise.at_level(level, c)
                              : noise.varies()       ? variances[n][c].real()
                                                     : noise.everywhere();
      const double by = factor(n, c, variance, coefficients[n][c]);
      coefficients[n][c] *= by;
      remainder.add(by, variance);
    }
  }
  return {basis.inverse(coefficients), remainder.weight()};
}

// Step 1: coefficients up to strength sigma become 0.
Estimate threshold(const Bm3dStep& step, const GroupBasis& basis, const std::vector<Place>& group,
                   const WorkingPlane& noisy, const NoiseVariance& noise, double level) {
  const double strength = step.strength * noise.strength();
  return shrunk(basis, group, noisy, noise, level,
                [&](std::size_t n, std::size_t c, double variance, const Complex& coefficient) {
                  if (noise.by_model() && n == 0 && c == 0) return 1.0;  // the group's mean
                  return std::norm(coefficient) > strength * strength * variance ? 1.0 : 0.0;
                });
}

// Step 2: each coefficient is multiplied by its share of signal, estimated from the basic estimate.
Estimate wiener(const Bm3dStep& step, const GroupBasis& basis, const std::vector<Place>& group,
                const WorkingPlane& noisy, const WorkingPlane& basic, const NoiseVariance& noise,
                double level) {
  std::vector<Coefficients> pilot;
  for (const Place& place : group) pilot.push_back(pixels_of(basic, place, step.patch));
  pilot = basis.forward(std::move(pilot));
  const double strength = step.strength * noise.strength();
  return shrunk(basis, group, noisy, noise, level,
                [&](std::size_t n, std::size_t c, double variance, const Complex&) {
                  const double signal = std::norm(pilot[n][c]);
                  const double both = signal + strength * strength * variance;
                  return both > 0 ? signal / both : 1.0;
                });
}

// The sums of all estimates of a pixel, and of their weights.
class Sums {
 public:
  Sums(const Bm3dStep& step, const Rect& area)
      : side_(step.patch),
        window_(patch_window(step.patch, step.kaiser)),
        area_(area),
        values_(static_cast<std::size_t>(area.width()) * area.height()),
        weights_(values_.size()) {}

  void add(const std::vector<Place>& group, const Estimate& estimate) {
    for (std::size_t n = 0; n < group.size(); ++n) {
      for (int y = 0; y < side_; ++y) {
        for (int x = 0; x < side_; ++x) {
          const int to_x = group[n].x + x;
          const int to_y = group[n].y + y;
          if (!area_.contains({to_x, to_y, to_x + 1, to_y + 1})) continue;
          const double weight = estimate.weight * window_[y] * window_[x];
          values_[index(to_x, to_y)] += weight * estimate.patches[n][y * side_ + x].real();
          weights_[index(to_x, to_y)] += weight;
        }
      }
    }
  }

  double mean(int x, int y) const { return values_[index(x, y)] / weights_[index(x, y)]; }

 private:
  std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y - area_.y0) * area_.width() + (x - area_.x0);
  }

  int side_;
  std::vector<double> window_;
  Rect area_;
  std::vector<double> values_;
  std::vector<double> weights_;
};

std::vector<Place> places_of(const std::vector<Candidate>& candidates, GroupTransform along) {
  std::vector<Place> group;
  for (const Candidate& candidate : candidates) group.push_back(candidate.place);
  group.resize(static_cast<std::size_t>(group_size(along, static_cast<int>(group.size()))));
  return group;
}

// One step (0 or 1) of the method. Step 0 reads the noisy image; step 1 reads it and the basic estimate,
// whose planes are working planes.
void run_step(const StageCall& call, const Bm3dSettings& settings, int index) {
  const Bm3dStep& step = index == 0 ? settings.first : settings.second;
  const bool opponent = settings.opponent;
  const Rect& area = call.out.rect;
  const int planes = call.out.count;
  const Search search(settings, index, call.image);
  const GroupBasis basis(step);

  std::vector<WorkingPlane> noisy;
  std::vector<WorkingPlane> basic;
  std::vector<NoiseVariance> noise;
  std::vector<Sums> sums;
  for (int plane = 0; plane < planes; ++plane) {
    noisy.emplace_back(call.in[0], call.image, plane, opponent);
    if (index == 1) basic.emplace_back(call.in[1], call.image, plane, false);
    noise.emplace_back(settings, plane);
    sums.emplace_back(step, area);
  }

  const auto group_of = [&](int plane, const Place& reference) {
    return search.nearest(index == 0 ? noisy[plane] : basic[plane], plane, reference);
  };
  // The mean of a group in the plane that it was found in.
  const auto level_of = [&](int plane, const std::vector<Place>& group) {
    double sum = 0;
    for (const Place& place : group) {
      const Coefficients pixels = pixels_of((index == 0 ? noisy : basic)[plane], place, step.patch);
      for (const Complex& pixel : pixels) sum += pixel.real();
    }
    return sum / static_cast<double>(group.size() * step.patch * step.patch);
  };
  const auto filter = [&](int plane, const std::vector<Place>& group, double level) {
    sums[plane].add(group, index == 0
                               ? threshold(step, basis, group, noisy[plane], noise[plane], level)
                               : wiener(step, basis, group, noisy[plane], basic[plane], noise[plane], level));
  };

  // References whose groups may reach the area. One worker takes the rows in order, so every pixel's sums
  // have the same order for any area.
  const int reach = group_reach(settings, index);
  const int begin = std::max(0, area.y0 - reach - step.patch + 1);
  const int end = std::min(search.last_y(), area.y1 - 1 + reach) + 1;
  call.workers.for_each(std::max(0, end - begin), [&](std::int64_t row, int) {
    const int y = begin + static_cast<int>(row);
    if (!is_reference(y, call.image.height, step.patch, step.spacing)) return;
    for (int x = std::max(0, area.x0 - reach - step.patch + 1);
         x <= std::min(search.last_x(), area.x1 - 1 + reach); ++x) {
      if (!is_reference(x, call.image.width, step.patch, step.spacing)) continue;
      std::vector<Place> group;
      double level = 0;
      for (int plane = 0; plane < planes; ++plane) {
        if (plane == 0 || !opponent) group = places_of(group_of(plane, {x, y}), step.along);
        if (plane == 0 || !opponent) level = level_of(plane, group);
        filter(plane, group, level);
      }
    }
  });

  const bool last = index + 1 == settings.steps;
  for (int y = area.y0; y < area.y1; ++y) {
    for (int x = area.x0; x < area.x1; ++x) {
      for (int plane = 0; plane < planes; ++plane) {
        double value = 0;
        if (opponent && last) {
          for (int from = 0; from < 3; ++from) value += opponent_matrix[from][plane] * sums[from].mean(x, y);
        } else {
          value = sums[plane].mean(x, y);
        }
        call.out.at(plane, x, y) = static_cast<float>(value);
      }
    }
  }
}

Pipeline one_scale(const Bm3dParams& params, const ImageSpec& spec) {
  const Bm3dSettings settings = bm3d_settings(params, spec);
  if (is_identity(settings)) return {};
  if (settings.over_time) return bm3d_time_reference(settings, spec);
  const auto stage = [&](const char* name, int index, std::vector<int> reads) {
    const int reach = bm3d_reach(settings, index);
    return Stage{.name = name,
                 .reach = {.x = reach, .y = reach},
                 .planes = spec.colour_channels(),
                 .reads = std::move(reads),
                 .run = [settings, index](const StageCall& call) { run_step(call, settings, index); }};
  };
  Pipeline pipeline;
  pipeline.stages.push_back(stage("threshold", 0, {0}));
  if (settings.steps == 2) pipeline.stages.push_back(stage("wiener", 1, {0, 1}));
  return pipeline;
}

}  // namespace

Pipeline bm3d_reference(const Bm3dParams& params, const ImageSpec& spec) {
  return bm3d_in_scales(params, spec, cpu_scale_passes(), one_scale);
}

}  // namespace ungrain
