// The definition of bm4d, in double, cube by cube.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "methods/bm4d/bm4d.h"

namespace ungrain {
namespace {

struct Position {
  int x = 0;
  int y = 0;
  int z = 0;
};

using Cube = std::vector<double>;

// Multiplies by the matrix along each axis; `back` by its transpose.
void transform(const std::vector<double>& matrix, int side, bool back, Cube& cube) {
  for (int axis = 0; axis < 3; ++axis) {
    const int step = axis == 0 ? 1 : axis == 1 ? side : side * side;
    Cube result(cube.size(), 0.0);
    for (int at = 0; at < static_cast<int>(cube.size()); ++at) {
      const int k = at / step % side;
      for (int i = 0; i < side; ++i) {
        const double weight = back ? matrix[static_cast<std::size_t>(i * side + k)]
                                   : matrix[static_cast<std::size_t>(k * side + i)];
        result[static_cast<std::size_t>(at)] += weight * cube[static_cast<std::size_t>(at + (i - k) * step)];
      }
    }
    cube = result;
  }
}

// Haar's transform along the group, in place: sums and differences of neighbours, then of their sums.
void transform_group(std::vector<Cube>& cubes, bool back) {
  const std::size_t count = cubes.size();
  const auto level = [&](std::size_t step) {
    for (std::size_t first = 0; first < count; first += 2 * step) {
      for (std::size_t i = 0; i < cubes[first].size(); ++i) {
        const double a = cubes[first][i];
        const double b = cubes[first + step][i];
        cubes[first][i] = (a + b) / std::sqrt(2.0);
        cubes[first + step][i] = (a - b) / std::sqrt(2.0);
      }
    }
  };
  if (back) {
    for (std::size_t step = count / 2; step >= 1; step /= 2) level(step);
  } else {
    for (std::size_t step = 1; step < count; step *= 2) level(step);
  }
}

class StepByDefinition {
 public:
  StepByDefinition(const Bm4dSettings& settings, bool wiener)
      : settings_(settings),
        step_(wiener ? settings.wiener : settings.threshold),
        wiener_(wiener),
        extent_(solid_extent(settings.spec)),
        transform_(cube_transform(step_.cube)),
        window_(cube_window(step_.cube)),
        deviations_(coefficient_deviations(settings, step_.cube)) {
    if (deviations_.empty())
      deviations_.resize(static_cast<std::size_t>(step_.cube * step_.cube * step_.cube), 1);
  }

  void run(const StageCall& call) const {
    for (int channel = 0; channel < call.out.count; ++channel) run_channel(call, channel);
  }

 private:
  void run_channel(const StageCall& call, int channel) const {
    const ConstSolid noisy = solid_of(call.in[0], channel, settings_.spec.slice);
    const ConstSolid guide = wiener_ ? solid_of(call.in[1], channel, settings_.spec.slice) : noisy;
    const Solid out = solid_of(call.out, channel, settings_.spec.slice);
    const double sigma = settings_.sigma[static_cast<std::size_t>(channel)];
    const Box& box = out.box;
    if (sigma == 0) {
      for (int z = box.z.begin; z < box.z.end; ++z) {
        for (int y = box.y.begin; y < box.y.end; ++y) {
          std::copy_n(noisy.at(box.x.begin, y, z), box.x.count(), out.at(box.x.begin, y, z));
        }
      }
      return;
    }
    Sums sums{box, std::vector<double>(voxels(box), 0.0), std::vector<double>(voxels(box), 0.0)};
    const auto axis = [&](int size) { return CubeAxis{size - step_.cube, step_.spacing}; };
    const CubeAxis across = axis(extent_.width);
    const CubeAxis down = axis(extent_.height);
    const CubeAxis deep = axis(extent_.depth);
    for (int k = 0; k < deep.count(); ++k) {
      const int z = deep.position(k);
      if (z + step_.cube + step_.radius_z <= box.z.begin || z - step_.radius_z >= box.z.end) continue;
      for (int j = 0; j < down.count(); ++j) {
        for (int i = 0; i < across.count(); ++i) {
          filter(noisy, guide, {across.position(i), down.position(j), z}, channel, sigma, sums);
        }
      }
    }
    for (int z = box.z.begin; z < box.z.end; ++z) {
      for (int y = box.y.begin; y < box.y.end; ++y) {
        for (int x = box.x.begin; x < box.x.end; ++x) {
          const std::size_t at = place(box, x, y, z);
          const double weight = sums.weights[at];
          *out.at(x, y, z) = weight > 0 ? static_cast<float>(sums.values[at] / weight) : 0;
        }
      }
    }
  }

  struct Sums {
    Box box;
    std::vector<double> values;
    std::vector<double> weights;
  };

  static std::size_t voxels(const Box& box) {
    return static_cast<std::size_t>(box.x.count()) * box.y.count() * box.z.count();
  }
  static std::size_t place(const Box& box, int x, int y, int z) {
    return (static_cast<std::size_t>(z - box.z.begin) * box.y.count() + (y - box.y.begin)) * box.x.count() +
           (x - box.x.begin);
  }

  template <class Visit>
  void for_voxels(const Visit& visit) const {
    for (int z = 0; z < step_.cube; ++z) {
      for (int y = 0; y < step_.cube; ++y) {
        for (int x = 0; x < step_.cube; ++x) visit(x, y, z);
      }
    }
  }

  double distance(const ConstSolid& guide, const Position& a, const Position& b, float scale) const {
    double sum = 0;
    for_voxels([&](int x, int y, int z) {
      const float first = std::nearbyint(*guide.at(a.x + x, a.y + y, a.z + z) * scale);
      const float second = std::nearbyint(*guide.at(b.x + x, b.y + y, b.z + z) * scale);
      const double difference = std::min(std::fabs(first - second), largest_difference);
      sum += difference * difference;
    });
    return sum;
  }

  // The reference first, the others by distance, then in reading order.
  std::vector<Position> find_group(const ConstSolid& guide, const Position& reference,
                                   const CubeSearch& search, float scale) const {
    std::vector<std::pair<double, Position>> candidates;
    for (int z = search.z0; z <= search.z1; ++z) {
      for (int y = search.y0; y <= search.y1; ++y) {
        for (int x = search.x0; x <= search.x1; ++x) {
          const bool self = x == reference.x && y == reference.y && z == reference.z;
          candidates.emplace_back(self ? -1 : distance(guide, reference, {x, y, z}, scale),
                                  Position{x, y, z});
        }
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    candidates.resize(
        static_cast<std::size_t>(cubes_taken(step_.group, static_cast<int>(candidates.size()))));
    std::vector<Position> group;
    for (const auto& [distance, position] : candidates) group.push_back(position);
    return group;
  }

  std::vector<Cube> coefficients(const ConstSolid& from, const std::vector<Position>& group) const {
    std::vector<Cube> cubes;
    for (const Position& at : group) {
      Cube cube;
      for_voxels([&](int x, int y, int z) { cube.push_back(*from.at(at.x + x, at.y + y, at.z + z)); });
      transform(transform_, step_.cube, false, cube);
      cubes.push_back(std::move(cube));
    }
    transform_group(cubes, false);
    return cubes;
  }

  double deviation_of(const std::vector<Position>& group, int channel, double mean) const {
    const int middle = step_.cube / 2;
    double sum = 0;
    for (const Position& at : group)
      sum += std::pow(map_deviation(settings_, channel, at.x + middle, at.y + middle, at.z + middle), 2);
    return std::sqrt(std::max(sum / static_cast<double>(group.size()), least_variance_share * mean * mean));
  }

  void filter(const ConstSolid& noisy, const ConstSolid& guide, const Position& reference, int channel,
              double sigma, Sums& sums) const {
    const CubeSearch search = cube_search(step_, extent_, reference.x, reference.y, reference.z);
    const Box needed{{search.x0, search.x1 + step_.cube},
                     {search.y0, search.y1 + step_.cube},
                     {search.z0, search.z1 + step_.cube}};
    if (!guide.box.contains(needed)) return;  // its estimates lie in no output
    const std::vector<Position> group =
        find_group(guide, reference, search, compared_scale(settings_, channel));
    if (settings_.sigma_map.data != nullptr) sigma = deviation_of(group, channel, sigma);
    std::vector<Cube> cubes = coefficients(noisy, group);
    double squares = 0;  // of the factors that coefficients are multiplied by
    if (wiener_) {
      const std::vector<Cube> signal = coefficients(guide, group);
      for (std::size_t m = 0; m < cubes.size(); ++m) {
        for (std::size_t i = 0; i < cubes[m].size(); ++i) {
          const double energy = signal[m][i] * signal[m][i];
          const double factor = energy / (energy + std::pow(sigma * deviations_[i], 2));
          cubes[m][i] *= factor;
          squares += factor * factor;
        }
      }
    } else {
      for (std::size_t m = 0; m < cubes.size(); ++m) {
        for (std::size_t i = 0; i < cubes[m].size(); ++i) {
          const bool mean = m == 0 && i == 0;
          if (!mean && std::fabs(cubes[m][i]) < settings_.lambda * sigma * deviations_[i]) {
            cubes[m][i] = 0;
          } else {
            squares += 1;
          }
        }
      }
    }
    transform_group(cubes, true);
    for (std::size_t m = 0; m < cubes.size(); ++m) {
      transform(transform_, step_.cube, true, cubes[m]);
      add(group[m], cubes[m], 1 / std::max(squares, 1.0), sums);
    }
  }

  void add(const Position& at, const Cube& cube, double weight, Sums& sums) const {
    std::size_t i = 0;
    for_voxels([&](int x, int y, int z) {
      const double value = cube[i++];
      if (at.z + z < sums.box.z.begin || at.z + z >= sums.box.z.end) return;
      const std::size_t to = place(sums.box, at.x + x, at.y + y, at.z + z);
      const double share = weight * window_[static_cast<std::size_t>(x)] *
                           window_[static_cast<std::size_t>(y)] * window_[static_cast<std::size_t>(z)];
      sums.values[to] += share * value;
      sums.weights[to] += share;
    });
  }

  Bm4dSettings settings_;
  Bm4dStep step_;
  bool wiener_;
  SolidExtent extent_;
  std::vector<double> transform_;
  std::vector<double> window_;
  std::vector<double> deviations_;  // of coefficients, in units of sigma
};

}  // namespace

Pipeline bm4d_reference(const Bm4dParams& params, const ImageSpec& spec) {
  const Bm4dSettings settings = bm4d_settings(params, spec);
  if (is_identity(settings)) return {};
  Pipeline pipeline = bm4d_stages(settings);
  for (std::size_t index = 0; index < pipeline.stages.size(); ++index) {
    pipeline.stages[index].run = [step = StepByDefinition(settings, index > 0)](const StageCall& call) {
      step.run(call);
    };
  }
  return pipeline;
}

}  // namespace ungrain
