// The parts of bm3d's fast version against their definitions, for every set of vector instructions that the
// processor has: which patches are found, and what becomes of a group.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/simd.h"
#include "groups/match_simd.h"
#include "methods/bm3d/filter_simd.h"
#include "methods/bm3d/transforms.h"

namespace ungrain::testing {
namespace {

class Bm3dParts : public ::testing::Test {
 protected:
  void TearDown() override { use_simd_target(""); }

  // Those with vectors.
  static std::vector<std::string> targets() {
    std::vector<std::string> list = simd_targets();
    for (const std::string& variant : simd_variants()) list.push_back(variant);
    std::erase_if(list, [](const std::string& target) {
      use_simd_target(target);
      return !has_match_vectors();
    });
    return list;
  }
};

struct Searched {
  int width, height, search, most, spacing;
  bool deep, noisy;
  bool flat = false;
  bool wild = false;
  std::uint32_t largest = 1U << 30;
};

// Waves with noise, or without: then many patches are equally far. Flat: all are. Wild: strong noise in every
// second square, whose patches are farther than 16 bits.
std::vector<float> searched_image(const Searched& s) {
  std::mt19937 random(static_cast<unsigned>(s.width * s.height + s.search));
  std::vector<float> image;
  for (int y = 0; y < s.height; ++y) {
    for (int x = 0; x < s.width; ++x) {
      const double noise = s.noisy ? static_cast<double>(random() % 64) : 0;
      const double waves = s.flat ? 0 : 40 * std::sin(0.2 * x) + 30 * std::cos(0.15 * y);
      if (s.wild && (x / 20 + y / 20) % 2 == 1) {
        image.push_back(static_cast<float>(random() % 256));
        continue;
      }
      image.push_back(static_cast<float>(90 + waves + noise));
    }
  }
  return image;
}

void expect_nearest(const Searched& s) {
  const std::vector<float> pixels = searched_image(s);
  const ConstPlanes image{pixels.data(), {0, 0, s.width, s.height}, s.width, 0, 1};
  const MatchScale scale{128, s.deep ? 8.0F : s.wild ? 0.99F : 0.4F, s.deep, match_depth(s.deep)};
  const auto level = [&](int x, int y) {
    const float most = scale.most;
    const float value =
        (pixels[static_cast<std::size_t>(y * s.width + x)] - scale.middle) * scale.inverse_step;
    return static_cast<int>(std::nearbyint(std::clamp(value, -most, most)));
  };
  const int half = s.search / 2;
  const int last_x = s.width - match_patch;
  const int last_y = s.height - match_patch;
  const Rect area = match_area({-half, -half, last_x + half + 1, last_y + half + 1});
  std::vector<std::uint32_t> words(match_all_words(area));
  std::vector<std::int32_t> energies(match_words(area));
  const MatchTile tile{area, match_pitch(area), s.deep, words.data(), energies.data()};
  fill_match_tile(image, 0, {s.width, s.height}, scale, tile);
  std::vector<std::uint32_t> scratch(match_scratch);

  // Half the distance as it is computed: energies are halved, and rounded up.
  const auto distance = [&](int ax, int ay, int bx, int by) {
    int a = 0;
    int b = 0;
    int product = 0;
    for (int y = 0; y < match_patch; ++y) {
      for (int x = 0; x < match_patch; ++x) {
        const int p = level(ax + x, ay + y);
        const int q = level(bx + x, by + y);
        a += p * p;
        b += q * q;
        product += p * q;
      }
    }
    return (a + 1) / 2 + (b + 1) / 2 - product;
  };
  const int at_once = references_at_once(s.search, s.spacing, s.deep);
  for (int y = 0; y <= last_y; y += 9) {
    for (int first = 0; first <= last_x; first += at_once * s.spacing) {
      std::vector<int> x;
      for (int r = 0; r < at_once && first + r * s.spacing <= last_x; ++r) x.push_back(first + r * s.spacing);
      MatchGroup groups[most_references_at_once];
      find_matches({tile, s.search, s.most, s.largest, static_cast<int>(x.size()), x.data(), y,
                    scratch.data(), groups});
      for (std::size_t r = 0; r < x.size(); ++r) {
        std::vector<std::array<int, 3>> others;
        for (int cy = std::max(0, y - half); cy <= std::min(last_y, y + half); ++cy) {
          for (int cx = std::max(0, x[r] - half); cx <= std::min(last_x, x[r] + half); ++cx) {
            if (cx == x[r] && cy == y) continue;
            others.push_back({distance(x[r], y, cx, cy), cy - y, cx - x[r]});
          }
        }
        std::erase_if(others, [&](const auto& other) { return other[0] > static_cast<int>(s.largest); });
        std::sort(others.begin(), others.end());
        const int count = std::min(s.most, static_cast<int>(others.size()) + 1);
        ASSERT_EQ(groups[r].count, count);
        ASSERT_EQ(groups[r].dx[0], 0);
        ASSERT_EQ(groups[r].dy[0], 0);
        const bool exact = count == 1 || others[count - 2][0] < 1 << 16;
        for (int i = 1; !exact && i < count; ++i) {
          // Far patches are told apart by the first bits of their distances.
          const int found = distance(x[r], y, x[r] + groups[r].dx[i], y + groups[r].dy[i]);
          ASSERT_NEAR(found, others[i - 1][0], others[count - 2][0] >> 16)
              << "patch " << i << " of " << x[r] << ", " << y;
        }
        for (int i = 1; exact && i < count; ++i) {
          ASSERT_EQ(groups[r].dy[i], others[i - 1][1]) << "patch " << i << " of " << x[r] << ", " << y;
          ASSERT_EQ(groups[r].dx[i], others[i - 1][2]) << "patch " << i << " of " << x[r] << ", " << y;
        }
      }
    }
  }
}

TEST_F(Bm3dParts, FindTheNearestPatches) {
  if (targets().empty()) GTEST_SKIP() << "no vector instructions";
  for (const std::string& target : targets()) {
    use_simd_target(target);
    SCOPED_TRACE(target);
    for (const Searched& s :
         {Searched{61, 47, 39, 16, 3, false, true}, Searched{50, 40, 39, 32, 3, false, true},
          Searched{45, 60, 25, 32, 4, true, true}, Searched{40, 40, 19, 16, 6, false, true},
          Searched{33, 29, 11, 16, 2, false, false}, Searched{64, 30, 49, 64, 5, true, true},
          Searched{30, 30, 21, 32, 1, true, false}, Searched{8, 8, 39, 16, 3, false, true},
          Searched{9, 31, 5, 32, 3, false, true}, Searched{50, 45, 39, 16, 3, false, false, true},
          Searched{45, 50, 25, 32, 5, true, false, true},
          Searched{75, 60, 39, 16, 3, false, true, false, true},
          Searched{75, 60, 25, 32, 4, false, true, false, true},
          Searched{75, 61, 39, 32, 3, false, true, false, true, 50000},
          Searched{70, 61, 39, 32, 1, false, true, false, true, 90000}}) {
      SCOPED_TRACE(s.search);
      expect_nearest(s);
    }
  }
}

using Cube = std::vector<std::vector<double>>;  // patches of 64

void apply(const TransformMatrix& m, std::vector<double>& patch) {
  const int n = m.side;
  std::vector<double> half(64);
  for (int f = 0; f < n; ++f) {
    for (int x = 0; x < n; ++x) {
      for (int y = 0; y < n; ++y) half[f * 8 + x] += m.at(f, y).real() * patch[y * 8 + x];
    }
  }
  for (int y = 0; y < n; ++y) {
    for (int f = 0; f < n; ++f) {
      double sum = 0;
      for (int x = 0; x < n; ++x) sum += m.at(f, x).real() * half[y * 8 + x];
      patch[y * 8 + f] = sum;
    }
  }
}

Cube across(const TransformMatrix& m, const Cube& cube) {
  Cube result(cube.size(), std::vector<double>(64));
  for (std::size_t f = 0; f < cube.size(); ++f) {
    for (std::size_t n = 0; n < cube.size(); ++n) {
      for (int i = 0; i < 64; ++i)
        result[f][i] += m.at(static_cast<int>(f), static_cast<int>(n)).real() * cube[n][i];
    }
  }
  return result;
}

struct Filtered {
  PatchTransform transform;
  int count;
  bool wiener;
  bool by_model = false;
};

// Other noise at every frequency, also at (i, j) and (j, i), and at every level.
PlaneNoise some_noise() {
  PlaneNoise noise;
  noise.levels = {90, 130};
  noise.variances = {500, 200};
  for (int j = 0; j < 8; ++j) {
    for (int i = 0; i < 8; ++i) noise.shares[j * 8 + i] = 2.0 / (1 + 0.3 * i + 0.1 * j);
  }
  noise.strength = 1.2;
  return noise;
}

void expect_filtered(const Filtered& f) {
  constexpr int side = 61;
  constexpr double sigma = 20;
  ColumnTile tile{side, side, 80};
  std::mt19937 random(static_cast<unsigned>(f.count));
  std::uniform_real_distribution<float> uniform(0, 255);
  std::vector<float> noisy(static_cast<std::size_t>(tile.pitch) * side + 16);
  std::vector<float> basic(noisy.size());
  for (float& v : noisy) v = uniform(random);
  for (std::size_t i = 0; i < noisy.size(); ++i) basic[i] = 0.5F * noisy[i] + 0.1F * uniform(random);
  std::vector<std::int32_t> places;
  for (int i = 0; i < f.count; ++i) {
    places.push_back(static_cast<std::int32_t>(random() % 54 * tile.pitch + random() % 54));
  }
  Bm3dStep step;
  step.transform = f.transform;
  step.strength = f.wiener ? 1 : 2.7;
  step.group = f.count;
  ASSERT_TRUE(filter_knows(step));
  const std::vector<double> window = patch_window(8, true);
  std::array<double, 8> along{};
  std::copy_n(window.begin(), 8, along.begin());

  // By the definition.
  const std::vector<TransformPair> levels = patch_transform(f.transform, 8);
  const TransformPair group = group_transform(GroupTransform::haar, f.count);
  const auto forward = [&](const std::vector<float>& image) {
    Cube cube;
    for (const std::int32_t place : places) {
      std::vector<double> patch;
      for (int y = 0; y < 8; ++y) {
        for (int x = 0; x < 8; ++x) patch.push_back(image[place + y * tile.pitch + x]);
      }
      for (const TransformPair& level : levels) apply(level.forward, patch);
      cube.push_back(patch);
    }
    return across(group.forward, cube);
  };
  Cube cube = forward(noisy);
  const Cube pilot = forward(basic);
  const PlaneNoise model = some_noise();
  const double mean = (f.wiener ? pilot : cube)[0][0] / (8 * std::sqrt(f.count));
  double sum = 0;
  double left = 0;
  for (std::size_t n = 0; n < cube.size(); ++n) {
    for (int i = 0; i < 64; ++i) {
      const double energy = pilot[n][i] * pilot[n][i];
      const double variance = f.by_model ? model.variance(mean) * model.shares[i] : sigma * sigma;
      const double noise = step.strength * std::sqrt(variance) * (f.by_model ? model.strength : 1);
      const bool keep = std::abs(cube[n][i]) > noise || (f.by_model && n == 0 && i == 0);
      const double factor = f.wiener ? energy / (energy + noise * noise) : (keep ? 1.0 : 0.0);
      cube[n][i] *= factor;
      sum += factor * factor;
      left += factor * factor * variance;
    }
  }
  const double one = model.variance(mean) * mean_share(model);
  const double weight = f.by_model ? weight_of_varying(left, one, sigma * sigma) : 1 / std::max(sum, 1.0);
  cube = across(group.inverse, cube);
  std::vector<double> values(noisy.size());
  std::vector<double> weights(noisy.size());
  for (std::size_t n = 0; n < cube.size(); ++n) {
    for (auto level = levels.rbegin(); level != levels.rend(); ++level) apply(level->inverse, cube[n]);
    for (int y = 0; y < 8; ++y) {
      for (int x = 0; x < 8; ++x) {
        const double w = weight * along[y] * along[x];
        values[places[n] + y * tile.pitch + x] += w * cube[n][y * 8 + x];
        weights[places[n] + y * tile.pitch + x] += w;
      }
    }
  }

  const auto tables = std::make_unique<FilterTables>();
  fill_filter_tables(step, f.wiener, sigma, f.by_model ? &model : nullptr, along, *tables);
  std::vector<float> noisy_columns(tile.floats());
  std::vector<float> basic_columns(tile.floats());
  std::vector<float> filtered(tile.floats());
  transform_columns(f.transform, tile, noisy.data(), noisy_columns.data());
  transform_columns(f.transform, tile, basic.data(), basic_columns.data());
  std::vector<float> found(noisy.size());
  std::vector<float> found_weights(noisy.size());
  float found_level = 0;
  filter_group({*tables, f.transform, noisy_columns.data(), f.wiener ? basic_columns.data() : nullptr,
                places.data(), f.count, filtered.data(), found_weights.data(), &found_level});
  if (f.by_model) {
    ASSERT_NEAR(found_level, mean, 1e-3);
  }
  move_columns(f.transform, tile, *tables, filtered.data(), found.data());
  EXPECT_TRUE(std::all_of(filtered.begin(), filtered.end(), [](float v) { return v == 0; }));
  spread_weights(tile, *tables, found_weights.data());
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const std::size_t at = y * tile.pitch + x;
      // AVX-512 finds Wiener factors by a reciprocal of 14 bits.
      const double allowed = f.wiener ? 0.003 + 2e-5 * std::abs(values[at] / weight) : 0.003;
      ASSERT_NEAR(found[at] / weight, values[at] / weight, allowed) << x << ", " << y;
      ASSERT_NEAR(found_weights[at] / weight, weights[at] / weight, 1e-4) << x << ", " << y;
    }
  }
}

TEST_F(Bm3dParts, FilterAGroupByItsDefinition) {
  if (targets().empty()) GTEST_SKIP() << "no vector instructions";
  for (const std::string& target : targets()) {
    use_simd_target(target);
    for (const PatchTransform transform : {PatchTransform::dct, PatchTransform::bior15}) {
      for (int count = 1; count <= most_filtered; count *= 2) {
        for (const bool wiener : {false, true}) {
          SCOPED_TRACE(target + " " + std::to_string(count) + (wiener ? " wiener" : " threshold"));
          expect_filtered({transform, count, wiener});
          if (transform == PatchTransform::dct) expect_filtered({transform, count, wiener, true});
        }
      }
    }
  }
}

}  // namespace
}  // namespace ungrain::testing
