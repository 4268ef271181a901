// ridge by its definition, in double: README.md has the formulas.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/border.h"
#include "core/channel_noise.h"
#include "core/opponent.h"
#include "methods/ridge/ridge.h"

namespace ungrain {
namespace {

// The top left pixel of a patch.
struct Place {
  int x = 0;
  int y = 0;
};

using Row = std::vector<double>;
using Matrix = std::vector<Row>;  // a row for each patch of a group

// A plane of a result, continued symmetrically beyond the image.
class WorkingPlane {
 public:
  WorkingPlane(const ConstPlanes& planes, const Extent& image, int plane)
      : image_(planes, image, Border::symmetric), plane_(plane) {}

  double at(int x, int y) const { return image_.at(plane_, x, y); }

  Row patch(const Place& place, int side) const {
    Row pixels;
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) pixels.push_back(at(place.x + x, place.y + y));
    }
    return pixels;
  }
  Matrix patches(const std::vector<Place>& places, int side) const {
    Matrix rows;
    for (const Place& place : places) rows.push_back(patch(place, side));
    return rows;
  }

 private:
  BorderedPlanes<const float> image_;
  int plane_;
};

// The variance of a plane's noise at a pixel.
class NoiseVariance {
 public:
  NoiseVariance(const RidgeSettings& settings, int plane) : settings_(settings), plane_(plane) {}

  double at(int x, int y) const {
    if (settings_.sigma_map.data == nullptr) return settings_.sigma[plane_] * settings_.sigma[plane_];
    return map_variance(settings_.sigma_map, settings_.opponent, plane_, x, y);
  }
  double of_patch(const Place& place) const {
    double sum = 0;
    for (int y = 0; y < settings_.patch; ++y) {
      for (int x = 0; x < settings_.patch; ++x) sum += at(place.x + x, place.y + y);
    }
    return sum;
  }

 private:
  const RidgeSettings& settings_;
  int plane_;
};

// ---- groups

class Search {
 public:
  Search(const RidgeSettings& settings, const Extent& image)
      : settings_(settings),
        last_x_(std::max(0, image.width - settings.patch)),
        last_y_(std::max(0, image.height - settings.patch)) {}

  int last_x() const { return last_x_; }
  int last_y() const { return last_y_; }

  // The reference, then the patches most similar to it.
  std::vector<Place> group(const WorkingPlane& image, int plane, const Place& reference) const {
    const int half = settings_.search / 2;
    const Place first{std::max(0, reference.x - half), std::max(0, reference.y - half)};
    const Place last{std::min(last_x_, reference.x + half), std::min(last_y_, reference.y + half)};
    const MatchScale scale = scale_for(image, plane, reference, first, last);
    const std::vector<std::int64_t> own = integers(image, scale, reference);
    struct Candidate {
      std::int64_t distance;
      Place place;
    };
    std::vector<Candidate> found;
    for (int y = first.y; y <= last.y; ++y) {
      for (int x = first.x; x <= last.x; ++x) {
        const bool itself = x == reference.x && y == reference.y;
        found.push_back({itself ? -1 : distance(own, integers(image, scale, {x, y})), {x, y}});
      }
    }
    // Among equally similar ones, in reading order.
    std::stable_sort(found.begin(), found.end(),
                     [](const Candidate& a, const Candidate& b) { return a.distance < b.distance; });
    found.resize(std::min(found.size(), static_cast<std::size_t>(settings_.group)));
    std::vector<Place> places;
    for (const Candidate& candidate : found) places.push_back(candidate.place);
    return places;
  }

 private:
  // Half the squared distance, with the squares of each patch halved and rounded up.
  static std::int64_t distance(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
    std::int64_t squares_a = 0;
    std::int64_t squares_b = 0;
    std::int64_t products = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      squares_a += a[i] * a[i];
      squares_b += b[i] * b[i];
      products += a[i] * b[i];
    }
    return (squares_a + 1) / 2 + (squares_b + 1) / 2 - products;
  }

  // What is compared of the patch at a place.
  std::vector<std::int64_t> integers(const WorkingPlane& image, const MatchScale& scale,
                                     const Place& place) const {
    std::vector<std::int64_t> list;
    const int margin = compared_margin(settings_);
    for (int y = 0; y < compared_side; ++y) {
      for (int x = 0; x < compared_side; ++x) {
        const auto pixel = static_cast<float>(image.at(place.x - margin + x, place.y - margin + y));
        const float level = (pixel - scale.middle) * scale.inverse_step;
        list.push_back(std::lrint(std::clamp(level, -scale.most, scale.most)));
      }
    }
    return list;
  }

  MatchScale scale_for(const WorkingPlane& image, int plane, const Place& reference, const Place& first,
                       const Place& last) const {
    const MatchScale usual = match_scale(settings_, plane);
    const float most = usual.most / usual.inverse_step;
    const int margin = compared_margin(settings_);
    bool within = true;
    for (int y = first.y - margin; y < last.y - margin + compared_side; ++y) {
      for (int x = first.x - margin; x < last.x - margin + compared_side; ++x)
        within = within && std::abs(static_cast<float>(image.at(x, y)) - usual.middle) <= most;
    }
    if (within) return usual;
    MatchScale beyond = match_scale_beyond(settings_, plane);
    const Row around = image.patch({reference.x - margin, reference.y - margin}, compared_side);
    for (const double pixel : around)
      beyond.middle += static_cast<float>(pixel) / (compared_side * compared_side);
    return beyond;
  }

  const RidgeSettings& settings_;
  int last_x_;
  int last_y_;
};

bool is_reference(int position, int last, int spacing, int shift) {
  if (position == 0 || position == last) return true;
  return position > 0 && position < last && (position + spacing - shift) % spacing == 0;
}

// ---- one group

// In place: the inverse of a positive definite matrix, by its Cholesky factor, whose pivots are at least
// `pivots`: rounding makes them smaller where patches are very far apart.
void invert(Matrix& a, const Row& pivots) {
  const std::size_t size = a.size();
  Matrix factor(size, Row(size));
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= factor[i][k] * factor[j][k];
      factor[i][j] = i == j ? std::sqrt(std::max(pivots[i], sum)) : sum / factor[j][j];
    }
  }
  for (std::size_t column = 0; column < size; ++column) {
    Row x(size);
    for (std::size_t i = 0; i < size; ++i) {
      double sum = i == column ? 1 : 0;
      for (std::size_t k = 0; k < i; ++k) sum -= factor[i][k] * x[k];
      x[i] = sum / factor[i][i];
    }
    for (std::size_t i = size; i-- > 0;) {
      double sum = x[i];
      for (std::size_t k = i + 1; k < size; ++k) sum -= factor[k][i] * x[k];
      x[i] = sum / factor[i][i];
    }
    for (std::size_t i = 0; i < size; ++i) a[i][column] = x[i];
  }
}

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The combinations of patches with the least expected error, a row for each patch; `noise` is the variance of
// each patch's noise, summed over its pixels. Rows sum to 1.
Matrix combinations(const Matrix& guide, const Row& noise) {
  const std::size_t count = guide.size();
  Matrix inverse(count, Row(count));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) inverse[i][j] = dot(guide[i], guide[j]) + (i == j ? noise[i] : 0);
  }
  invert(inverse, noise);
  Row q(count);
  double all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) q[i] += inverse[i][j];
    all += q[i];
  }
  Matrix theta(count, Row(count));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j)
      theta[i][j] = (i == j ? 1 : 0) - noise[i] * (inverse[i][j] - q[i] * q[j] / all);
  }
  return theta;
}

// The largest of the pixels' energies in a group, its mean subtracted. Patches count by their precision, in
// units of `common` noise.
double largest_energy(const Matrix& patches, const Row& noise, double common) {
  double largest = 0;
  for (std::size_t n = 0; n < patches[0].size(); ++n) {
    double all = 0;
    double mean = 0;
    for (std::size_t i = 0; i < patches.size(); ++i) {
      all += common / noise[i];
      mean += common / noise[i] * patches[i][n];
    }
    mean /= all;
    double energy = 0;
    for (std::size_t i = 0; i < patches.size(); ++i)
      energy += common / noise[i] * std::pow(patches[i][n] - mean, 2);
    largest = std::max(largest, energy);
  }
  return largest;
}

// The standard deviation of all entries of a - b.
double deviation(const Matrix& a, const Matrix& b) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].size(); ++j) {
      const double difference = a[i][j] - b[i][j];
      sum += difference;
      squares += difference * difference;
      ++count;
    }
  }
  return std::sqrt(std::max(0.0, squares / count - sum / count * (sum / count)));
}

// What a group's patches become, and their weights.
struct Estimate {
  Matrix guide;
  Matrix partly;
  Row weights;
};

Estimate estimate(const RidgeSettings& settings, int plane, int pass, const Matrix& noisy,
                  const Matrix& guide, const Matrix& partly, Row noise) {
  const std::size_t count = partly.size();
  const double pixels = static_cast<double>(settings.patch) * settings.patch;
  Estimate result{partly, partly, Row(count, 1)};
  double mean = 0;  // variance of a pixel
  for (const double sum : noise) mean += sum / pixels / static_cast<double>(count);
  const double kept = kept_by(settings, pass);
  if (mean > 0) {
    const double share = std::max({1 - deviation(noisy, partly) / std::sqrt(mean), kept, least_left});
    const double assumed = settings.noise_factor * share * share;
    for (double& sum : noise) sum = std::max(sum, least_noise_share * pixels * mean) * assumed;
    const double common = pixels * mean * assumed;
    const double factor =
        std::max(1.0, least_noise_of_energy * largest_energy(guide, noise, common) / common);
    for (double& sum : noise) sum *= factor;
    const Matrix theta = combinations(guide, noise);
    for (std::size_t i = 0; i < count; ++i) {
      Row& to = result.guide[i];
      std::fill(to.begin(), to.end(), 0);
      double left = 0;
      for (std::size_t j = 0; j < count; ++j) {
        for (std::size_t n = 0; n < to.size(); ++n) to[n] += theta[i][j] * partly[j][n];
        left += theta[i][j] * theta[i][j] * noise[j] / (factor * common);
      }
      for (std::size_t n = 0; n < to.size(); ++n)
        result.partly[i][n] = (1 - kept / share) * to[n] + kept / share * partly[i][n];
      result.weights[i] = 1 / std::max(left, 1 / static_cast<double>(count));
    }
  }
  const double plane_variance = settings.sigma[plane] * settings.sigma[plane];
  for (double& weight : result.weights) weight *= weight_by_noise(plane_variance, mean);
  return result;
}

// ---- a pass

class Sums {
 public:
  Sums(int side, const Rect& area)
      : side_(side),
        area_(area),
        guide_(static_cast<std::size_t>(area.width()) * area.height()),
        partly_(guide_.size()),
        weights_(guide_.size()) {}

  void add(const std::vector<Place>& group, const Estimate& estimate) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (int n = 0; n < side_ * side_; ++n) {
        const int x = group[i].x + n % side_;
        const int y = group[i].y + n / side_;
        if (!area_.contains({x, y, x + 1, y + 1})) continue;
        guide_[index(x, y)] += estimate.weights[i] * estimate.guide[i][n];
        partly_[index(x, y)] += estimate.weights[i] * estimate.partly[i][n];
        weights_[index(x, y)] += estimate.weights[i];
      }
    }
  }

  double guide(int x, int y) const { return guide_[index(x, y)] / weights_[index(x, y)]; }
  double partly(int x, int y) const { return partly_[index(x, y)] / weights_[index(x, y)]; }

 private:
  std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y - area_.y0) * area_.width() + (x - area_.x0);
  }

  int side_;
  Rect area_;
  std::vector<double> guide_;
  std::vector<double> partly_;
  std::vector<double> weights_;
};

void write(const StageCall& call, const RidgeSettings& settings, int pass, const std::vector<Sums>& sums) {
  const Rect& area = call.out.rect;
  const bool last = pass + 1 == settings.passes;
  const auto set = [&](int plane, int x, int y, double value) {
    call.out.at(plane, x, y) = static_cast<float>(value);
  };
  for (int y = area.y0; y < area.y1; ++y) {
    for (int x = area.x0; x < area.x1; ++x) {
      for (int plane = 0; plane < settings.planes(); ++plane) {
        if (!last) {
          set(guide_plane(plane), x, y, sums[plane].guide(x, y));
          set(partly_plane(plane), x, y, sums[plane].partly(x, y));
        } else if (settings.opponent) {
          double value = 0;
          for (int from = 0; from < 3; ++from)
            value += opponent_matrix[from][plane] * sums[from].partly(x, y);
          set(plane, x, y, value);
        } else {
          set(plane, x, y, sums[plane].partly(x, y));
        }
      }
    }
  }
}

void run_pass(const StageCall& call, const RidgeSettings& settings, int pass) {
  const Rect& area = call.out.rect;
  const Search search(settings, call.image);
  std::vector<Sums> sums(settings.planes(), Sums(settings.patch, area));
  const auto plane_of = [&](int result, int plane) {
    return WorkingPlane(call.in[static_cast<std::size_t>(result)], call.image, plane);
  };
  // The mean of a group in the guide of the plane that it was found in.
  const auto level_of = [&](int plane, const std::vector<Place>& group) {
    double sum = 0;
    for (const Row& patch : plane_of(1, guide_plane(plane)).patches(group, settings.patch))
      sum += std::accumulate(patch.begin(), patch.end(), 0.0);
    return sum / static_cast<double>(group.size() * settings.patch * settings.patch);
  };
  const auto noisy_patches = [&](int plane, const std::vector<Place>& group) {
    Matrix noisy = plane_of(0, partly_plane(plane)).patches(group, settings.patch);
    const Matrix pilot = plane_of(0, guide_plane(plane)).patches(group, settings.patch);
    for (std::size_t i = 0; i < noisy.size(); ++i) {
      for (std::size_t n = 0; n < noisy[i].size(); ++n)
        noisy[i][n] = unmixed(settings, noisy[i][n], pilot[i][n]);
    }
    return noisy;
  };
  const auto filter = [&](int plane, const std::vector<Place>& group, double level) {
    const NoiseVariance variance(settings, plane);
    Row noise;
    for (const Place& place : group) {
      noise.push_back(settings.model.empty()
                          ? variance.of_patch(place)
                          : settings.patch * settings.patch * variance_at(settings, plane, level));
    }
    const int side = settings.patch;
    sums[plane].add(group, estimate(settings, plane, pass, noisy_patches(plane, group),
                                    plane_of(1, guide_plane(plane)).patches(group, side),
                                    plane_of(1, partly_plane(plane)).patches(group, side), noise));
  };

  // References whose groups may reach the area. Rows are taken one after the other, so that every pixel's
  // sums have the same order for any area and any number of workers.
  const GridShift shift = grid_shift(settings, pass);
  const int reach = settings.search / 2;
  const int begin = std::max(0, area.y0 - reach - settings.patch + 1);
  const int end = std::min(search.last_y(), area.y1 - 1 + reach) + 1;
  const auto filter_row = [&](int y) {
    if (!is_reference(y, search.last_y(), settings.spacing, shift.y)) return;
    for (int x = std::max(0, area.x0 - reach - settings.patch + 1);
         x <= std::min(search.last_x(), area.x1 - 1 + reach); ++x) {
      if (!is_reference(x, search.last_x(), settings.spacing, shift.x)) continue;
      std::vector<Place> group;
      double level = 0;
      for (int plane = 0; plane < settings.planes(); ++plane) {
        if (settings.finds_groups(plane))
          group = search.group(plane_of(1, partly_plane(plane)), plane, {x, y});
        if (settings.finds_groups(plane)) level = level_of(plane, group);
        filter(plane, group, level);
      }
    }
  };
  for (int y = begin; y < end; ++y) {
    call.workers.for_each_of(y - begin, y - begin + 1, end - begin,
                             [&](std::int64_t, int) { filter_row(y); });
  }
  write(call, settings, pass, sums);
}

void run_start(const StageCall& call, const RidgeSettings& settings) {
  const Rect& area = call.out.rect;
  call.workers.for_each(area.height(), [&](std::int64_t row, int) {
    const int y = area.y0 + static_cast<int>(row);
    const auto working = [&](const ConstPlanes& from, int plane, int x) {
      if (!settings.opponent) return from.at(plane, x, y);
      double sum = 0;
      for (int c = 0; c < 3; ++c) sum += opponent_matrix[plane][c] * from.at(c, x, y);
      return static_cast<float>(sum);
    };
    for (int plane = 0; plane < settings.planes(); ++plane) {
      for (int x = area.x0; x < area.x1; ++x) {
        call.out.at(guide_plane(plane), x, y) = working(call.in[1], plane, x);
        const float pilot = call.out.at(guide_plane(plane), x, y);
        call.out.at(partly_plane(plane), x, y) = mixed(settings, working(call.in[0], plane, x), pilot);
      }
    }
  });
}

}  // namespace

RidgePasses ridge_passes_by_definition(const RidgeSettings& settings) {
  return {.start = {.name = "start", .run = [settings](const StageCall& call) { run_start(call, settings); }},
          .pass = [settings](int pass) {
            return Stage{.name = "pass",
                         .run = [settings, pass](const StageCall& call) { run_pass(call, settings, pass); }};
          }};
}

Pipeline ridge_reference(const RidgeParams& params, const ImageSpec& spec) {
  const RidgeSettings settings = ridge_settings(params, spec);
  if (is_identity(settings)) return {};
  return ridge_pipeline(ridge_pilot(params, spec, Device::Kind::reference), settings,
                        ridge_passes_by_definition(settings));
}

}  // namespace ungrain
