// The definition of nlm3d, in double, voxel by voxel.
#include <algorithm>
#include <cmath>

#include "core/patches.h"
#include "methods/nlm3d/nlm3d.h"

namespace ungrain {
namespace {

// A volume with its border.
struct BorderedSolid {
  ConstSolid solid;
  SolidExtent extent;

  double at(int x, int y, int z) const {
    return *solid.at(held_index(x, extent.width, solid.box.x), held_index(y, extent.height, solid.box.y),
                     held_index(z, extent.depth, solid.box.z));
  }
};

template <class Function>
void for_voxels(const Box& box, Function function) {
  for (int z = box.z.begin; z < box.z.end; ++z) {
    for (int y = box.y.begin; y < box.y.end; ++y) {
      for (int x = box.x.begin; x < box.x.end; ++x) function(x, y, z);
    }
  }
}

Box around(int x, int y, int z, int radius, int radius_z) {
  return {{x - radius, x + radius + 1}, {y - radius, y + radius + 1}, {z - radius_z, z + radius_z + 1}};
}

Box common(const Box& a, const Box& b) {
  const auto both = [](const RowRange& r, const RowRange& s) {
    return RowRange{std::max(r.begin, s.begin), std::min(r.end, s.end)};
  };
  return {both(a.x, b.x), both(a.y, b.y), both(a.z, b.z)};
}

double smoothed(const NlmVolumeSettings& settings, const BorderedSolid& volume, int x, int y, int z) {
  double sum = 0;
  for_voxels(around(0, 0, 0, 1, 1), [&](int i, int j, int k) {
    const auto share = [](double prefilter, int offset) {
      return offset == 0 ? 1 - 2 * prefilter : prefilter;
    };
    sum += share(settings.prefilter, i) * share(settings.prefilter, j) * share(settings.prefilter_z, k) *
           volume.at(x + i, y + j, z + k);
  });
  return sum;
}

struct Voxel {
  int x = 0;
  int y = 0;
  int z = 0;
};

// The mean of the squared differences of two patches, in units of h².
double distance(const NlmVolumeSettings& settings, const BorderedSolid& guide, const Voxel& p,
                const Voxel& q) {
  double sum = 0;
  for_voxels(around(0, 0, 0, settings.around, settings.around_z), [&](int i, int j, int k) {
    const double difference =
        (guide.at(p.x + i, p.y + j, p.z + k) - guide.at(q.x + i, q.y + j, q.z + k)) / settings.h;
    sum += difference * difference;
  });
  return sum / settings.patch_voxels();
}

double mean_of_similar(const NlmVolumeSettings& settings, const BorderedSolid& guide,
                       const BorderedSolid& noisy, const Voxel& p) {
  const double noise = 2 * std::pow(settings.noise / settings.h, 2);
  double weights = 0;
  double values = 0;
  double largest = 0;
  const auto add = [&](const Voxel& q, double weight) {
    weights += weight;
    values += weight * noisy.at(q.x, q.y, q.z);
  };
  const Box searched = common(around(p.x, p.y, p.z, settings.radius, settings.radius_z), guide.solid.box);
  for_voxels(searched, [&](int x, int y, int z) {
    if (x == p.x && y == p.y && z == p.z) return;
    const double weight = std::exp(-std::max(distance(settings, guide, p, {x, y, z}) - noise, 0.0));
    if (weight < smallest_weight) return;
    largest = std::max(largest, weight);
    add({x, y, z}, weight);
  });
  add(p, settings.self == SelfWeight::max ? std::max(largest, least_self_weight) : 1);
  return values / weights;
}

}  // namespace

Pipeline nlm3d_reference(const NlmVolumeParams& params, const ImageSpec& spec) {
  const NlmVolumeSettings settings = nlm3d_settings(params, spec);
  if (is_identity(settings)) return {};
  Pipeline pipeline = nlm3d_stages(settings, settings.has_prefilter());
  const SolidExtent extent = solid_extent(spec);
  const auto solid = [=](const StageCall& call, std::size_t read, int channel) {
    return BorderedSolid{solid_of(call.in[read], channel, spec.slice), extent};
  };
  if (settings.has_prefilter()) {
    pipeline.stages.front().run = [=](const StageCall& call) {
      for (int channel = 0; channel < call.out.count; ++channel) {
        const BorderedSolid noisy = solid(call, 0, channel);
        const Solid out = solid_of(call.out, channel, spec.slice);
        for_voxels(out.box, [&](int x, int y, int z) {
          *out.at(x, y, z) = static_cast<float>(smoothed(settings, noisy, x, y, z));
        });
      }
    };
  }
  pipeline.stages.back().run = [=](const StageCall& call) {
    for (int channel = 0; channel < call.out.count; ++channel) {
      const BorderedSolid noisy = solid(call, 0, channel);
      const BorderedSolid guide = solid(call, call.in.size() - 1, channel);
      const Solid out = solid_of(call.out, channel, spec.slice);
      for_voxels(out.box, [&](int x, int y, int z) {
        *out.at(x, y, z) = static_cast<float>(mean_of_similar(settings, guide, noisy, {x, y, z}));
      });
    }
  };
  return pipeline;
}

}  // namespace ungrain
