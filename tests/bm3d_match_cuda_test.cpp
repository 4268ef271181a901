// The search for similar patches on a GPU against one by its definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "cuda/memory.h"
#include "groups/cuda_match.h"
#include "test_devices.h"

namespace ungrain::testing {
namespace {

using cuda::GroupMatchCall;
using cuda::ReferenceGrid;

constexpr float no_limit = std::numeric_limits<float>::infinity();
constexpr int most_wanted = 64;

struct Picture {
  Extent extent;
  std::vector<float> pixels;

  Picture(int width, int height, const auto& value)
      : extent{width, height}, pixels(static_cast<std::size_t>(width) * height) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) pixels[index(x, y)] = static_cast<float>(value(x, y));
    }
  }
  std::size_t index(int x, int y) const { return static_cast<std::size_t>(y) * extent.width + x; }
  double at(int x, int y) const { return pixels[index(x, y)]; }
};

// Whole numbers of 8 bits, of which products of halves are exact.
Picture noise(int width, int height) {
  std::mt19937 random(1);
  return {width, height, [&](int x, int y) { return (x * 3 + y * 2) % 128 + random() % 128; }};
}
Picture flat(int width, int height) {
  return {width, height, [](int, int) { return 77; }};
}
// Almost everything looks the same.
Picture ties(int width, int height) {
  std::mt19937 random(2);
  return {width, height,
          [&](int x, int) { return (x < width / 2 ? 255 : 30) - (random() % 50 == 0 ? 1 : 0); }};
}
// What looks the same lies in few columns.
Picture stripes(int width, int height) {
  std::mt19937 random(3);
  return {width, height, [&](int x, int) { return (x * x / 7) % 200 + random() % 3; }};
}

struct Place {
  int dx = 0;
  int dy = 0;
  friend bool operator==(const Place&, const Place&) = default;
};
using Group = std::vector<Place>;

// What is asked for, without memory; all references.
GroupMatchCall call_for(const Picture& picture, int patch, int spacing, int search, int count,
                        float max_distance = no_limit) {
  GroupMatchCall call;
  call.image = picture.extent;
  call.plane.rect = {0, 0, picture.extent.width, picture.extent.height};
  call.plane.row_stride = picture.extent.width;
  call.plane.count = 1;
  call.patch = patch;
  call.search = search;
  call.count = count;
  call.max_distance = max_distance;
  call.middle = 128;
  ReferenceGrid& grid = call.grid;
  grid.spacing = spacing;
  grid.last_x = picture.extent.width - patch;
  grid.last_y = picture.extent.height - patch;
  grid.count_i = (grid.last_x + spacing - 1) / spacing + 1;
  grid.count_j = (grid.last_y + spacing - 1) / spacing + 1;
  return call;
}

double distance(const Picture& picture, int patch, int ax, int ay, int bx, int by) {
  double sum = 0;
  for (int y = 0; y < patch; ++y) {
    for (int x = 0; x < patch; ++x) {
      const double difference = picture.at(ax + x, ay + y) - picture.at(bx + x, by + y);
      sum += difference * difference;
    }
  }
  return sum;
}

// Of these places those that are nearest to a reference: the reference first, ties in reading order.
Group nearest_of(const Picture& picture, const GroupMatchCall& call, int x, int y, const Group& places) {
  std::vector<std::tuple<double, int, int>> others;
  for (const Place& place : places) {
    if (place == Place{}) continue;
    const double d = distance(picture, call.patch, x, y, x + place.dx, y + place.dy);
    if (d <= call.max_distance) others.emplace_back(d, place.dy, place.dx);
  }
  const auto kept = std::min(others.size(), static_cast<std::size_t>(call.count - 1));
  std::partial_sort(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(kept), others.end());
  Group group{{}};
  for (std::size_t i = 0; i < kept; ++i) group.push_back({std::get<2>(others[i]), std::get<1>(others[i])});
  return group;
}

Group window_of(const GroupMatchCall& call, int x, int y) {
  const int reach = call.search / 2;
  Group places;
  for (int dy = -reach; dy <= reach; ++dy) {
    for (int dx = -reach; dx <= reach; ++dx) {
      const bool inside = x + dx >= 0 && y + dy >= 0 && x + dx <= call.image.width - call.patch &&
                          y + dy <= call.image.height - call.patch;
      if (inside) places.push_back({dx, dy});
    }
  }
  return places;
}

std::vector<Group> exact_groups(const Picture& picture, const GroupMatchCall& call) {
  std::vector<Group> groups;
  const ReferenceGrid& grid = call.grid;
  for (int j = grid.first_j; j < grid.first_j + grid.count_j; ++j) {
    for (int i = grid.first_i; i < grid.first_i + grid.count_i; ++i) {
      groups.push_back(
          nearest_of(picture, call, grid.x(i), grid.y(j), window_of(call, grid.x(i), grid.y(j))));
    }
  }
  return groups;
}

template <class T>
cuda::DeviceBuffer on_gpu(const std::vector<T>& values) {
  cuda::DeviceBuffer buffer(values.size() * sizeof(T));
  cuda::check(cudaMemcpy(buffer.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
              "copying");
  return buffer;
}
template <class T>
void from_gpu(std::vector<T>& values, const cuda::DeviceBuffer& buffer) {
  cuda::check(cudaMemcpy(values.data(), buffer.data(), values.size() * sizeof(T), cudaMemcpyDeviceToHost),
              "copying");
}

// What the GPU finds. Memory around the results stays as it was, places past those found are 0.
std::vector<Group> gpu_groups(const Picture& picture, GroupMatchCall call) {
  constexpr std::size_t guard = 64;
  constexpr std::uint8_t untouched = 0xa5;
  const auto references = static_cast<std::size_t>(call.grid.references());
  std::vector<std::uint8_t> offsets(references * call.count * 2 + guard, untouched);
  std::vector<std::uint8_t> found(references + guard, untouched);
  std::vector<float> scratch(cuda::group_match_scratch(call) + guard, 42.0F);
  const cuda::DeviceBuffer plane = on_gpu(picture.pixels);
  const cuda::DeviceBuffer gpu_offsets = on_gpu(offsets);
  const cuda::DeviceBuffer gpu_found = on_gpu(found);
  const cuda::DeviceBuffer gpu_scratch = on_gpu(scratch);

  const auto first = static_cast<std::ptrdiff_t>(picture.index(call.plane.rect.x0, call.plane.rect.y0));
  call.plane.data = static_cast<const float*>(plane.data()) + first;
  call.offsets = static_cast<std::int8_t*>(gpu_offsets.data());
  call.found = static_cast<std::uint8_t*>(gpu_found.data());
  call.scratch = static_cast<float*>(gpu_scratch.data());
  cuda::launch_group_match(call, {});
  cuda::check(cudaDeviceSynchronize(), "searching");
  from_gpu(offsets, gpu_offsets);
  from_gpu(found, gpu_found);
  from_gpu(scratch, gpu_scratch);
  for (std::size_t i = 0; i < guard; ++i) {
    EXPECT_EQ(offsets[offsets.size() - 1 - i], untouched);
    EXPECT_EQ(found[found.size() - 1 - i], untouched);
    EXPECT_EQ(scratch[scratch.size() - 1 - i], 42.0F);
  }

  std::vector<Group> groups(references);
  for (std::size_t reference = 0; reference < references; ++reference) {
    for (int i = 0; i < call.count; ++i) {
      const std::size_t at = (reference * call.count + i) * 2;
      const Place place{static_cast<std::int8_t>(offsets[at]), static_cast<std::int8_t>(offsets[at + 1])};
      if (i < found[reference]) {
        groups[reference].push_back(place);
      } else {
        EXPECT_EQ(place, Place{}) << "past those found";
      }
    }
  }
  return groups;
}

void expect_equal(const std::vector<Group>& groups, const std::vector<Group>& expected,
                  const GroupMatchCall& call, int count) {
  ASSERT_EQ(groups.size(), expected.size());
  int different = 0;
  for (std::size_t reference = 0; reference < groups.size(); ++reference) {
    Group group = expected[reference];
    group.resize(std::min(group.size(), static_cast<std::size_t>(count)));
    if (groups[reference] == group) continue;
    if (++different > 1) continue;
    std::size_t place = 0;
    while (place < group.size() && place < groups[reference].size() &&
           group[place] == groups[reference][place])
      ++place;
    ADD_FAILURE() << "reference " << reference << " of " << groups.size() << " (" << call.grid.count_i
                  << " in a row) has " << groups[reference].size() << " for " << group.size()
                  << ", the first different at " << place;
  }
  EXPECT_EQ(different, 0) << "patch " << call.patch << ", spacing " << call.grid.spacing << ", search "
                          << call.search << ", count " << count;
}

// Groups of any size are the first of the largest ones.
void expect_exact(const Picture& picture, int patch, int spacing, int search, const std::vector<int>& counts,
                  float max_distance = no_limit) {
  const std::vector<Group> expected =
      exact_groups(picture, call_for(picture, patch, spacing, search, most_wanted, max_distance));
  for (const int count : counts) {
    const GroupMatchCall call = call_for(picture, patch, spacing, search, count, max_distance);
    expect_equal(gpu_groups(picture, call), expected, call, count);
  }
}

TEST(Bm3dMatchCuda, FindsTheNearest) {
  UNGRAIN_NEEDS_GPU();
  expect_exact(noise(71, 58), 8, 1, 19, {8, 16, 32, 64});
  expect_exact(noise(71, 58), 8, 1, 39, {16});
  expect_exact(noise(160, 121), 8, 3, 39, {1, 8, 16, 17, 31, 32, 33, 64});
  expect_exact(noise(160, 121), 8, 3, 19, {8, 16, 32, 64});
  for (const int spacing : {2, 4, 6, 8}) {
    expect_exact(noise(110, 83), 8, spacing, 19, {8, 16, 32, 64});
    expect_exact(noise(110, 83), 8, spacing, 39, {8, 16, 32, 64});
  }
}

TEST(Bm3dMatchCuda, OfAnyWindow) {
  UNGRAIN_NEEDS_GPU();
  for (const int search : {1, 3, 5, 9, 21, 25, 33, 45, 65, 127}) {
    expect_exact(noise(150, 90), 8, 4, search, {16, 32, 64});
  }
}

TEST(Bm3dMatchCuda, InReadingOrderWhereManyAreEquallyNear) {
  UNGRAIN_NEEDS_GPU();
  for (const auto& make : {flat, ties, stripes}) {
    const Picture picture = make(90, 77);
    expect_exact(picture, 8, 3, 39, {8, 16, 32, 64});
    expect_exact(picture, 8, 4, 19, {16, 32, 64});
  }
}

TEST(Bm3dMatchCuda, WithinTheDistanceAllowed) {
  UNGRAIN_NEEDS_GPU();
  expect_exact(noise(120, 90), 8, 3, 39, {16, 32}, 160000);
  expect_exact(noise(120, 90), 8, 3, 39, {16}, 0);
  expect_exact(ties(120, 90), 8, 3, 39, {16, 64}, 2);
  expect_exact(stripes(120, 90), 8, 6, 39, {32}, 64 * 400);
}

TEST(Bm3dMatchCuda, InSmallImages) {
  UNGRAIN_NEEDS_GPU();
  for (const auto& [width, height] : {std::pair{8, 8}, {9, 8}, {8, 70}, {100, 9}, {17, 13}, {40, 25}}) {
    expect_exact(noise(width, height), 8, 3, 39, {16, 32, 64});
  }
}

TEST(Bm3dMatchCuda, OfAnyPatch) {
  UNGRAIN_NEEDS_GPU();
  for (const int patch : {1, 4, 7, 11, 12}) expect_exact(noise(70, 61), patch, 4, 25, {16, 64});
}

TEST(Bm3dMatchCuda, WhereHalvesAreTooCoarse) {
  UNGRAIN_NEEDS_GPU();
  Picture picture = noise(120, 90);
  picture.pixels[picture.index(60, 40)] = 2000;
  picture.pixels[picture.index(3, 80)] = -1500;
  expect_exact(picture, 8, 3, 19, {16, 32});
}

// References of a part of the image find the same as those of all of it, whatever the values.
TEST(Bm3dMatchCuda, TheSameInParts) {
  UNGRAIN_NEEDS_GPU();
  std::mt19937 random(4);
  const Picture picture(200, 150,
                        [&](int x, int) { return x * 0.7 + static_cast<double>(random() % 100000) * 0.001; });
  for (const auto& [count, nearly] :
       {std::pair{16, false}, {32, false}, {64, false}, {16, true}, {32, true}}) {
    GroupMatchCall all = call_for(picture, 8, 3, 39, count);
    all.nearly = nearly;
    const std::vector<Group> expected = gpu_groups(picture, all);
    EXPECT_EQ(gpu_groups(picture, all), expected) << "again";
    GroupMatchCall part = all;
    part.grid.first_i = 13;
    part.grid.first_j = 11;
    part.grid.count_i = 29;
    part.grid.count_j = 17;
    const int reach = part.search / 2;
    part.plane.rect = {part.grid.x(13) - reach, part.grid.y(11) - reach, part.grid.x(41) + reach + 8,
                       part.grid.y(27) + reach + 8};
    const std::vector<Group> groups = gpu_groups(picture, part);
    int different = 0;
    for (int j = 0; j < part.grid.count_j; ++j) {
      for (int i = 0; i < part.grid.count_i; ++i) {
        const int of_all = (part.grid.first_j + j) * all.grid.count_i + part.grid.first_i + i;
        different += groups[j * part.grid.count_i + i] != expected[of_all] ? 1 : 0;
      }
    }
    EXPECT_EQ(different, 0) << "of " << groups.size() << ", count " << count;
  }
}

// How near the patches of a call's groups are, beside the nearest ones.
struct Agreement {
  double distances = 0;  // sum over all groups, as a multiple of the least
  double members = 0;    // share of the nearest that were found
};

Agreement agreement_with_exact(const Picture& picture, const GroupMatchCall& call) {
  const std::vector<Group> groups = gpu_groups(picture, call);
  const std::vector<Group> expected = exact_groups(picture, call);
  const double told_apart = call.nearly ? 1.0 / 60 : 1e-3;
  double sum = 0;
  double least = 0;
  std::size_t members = 0;
  std::size_t common = 0;
  for (std::size_t reference = 0; reference < groups.size(); ++reference) {
    const int x = call.grid.x(static_cast<int>(reference) % call.grid.count_i);
    const int y = call.grid.y(static_cast<int>(reference) / call.grid.count_i);
    EXPECT_EQ(groups[reference].size(), expected[reference].size()) << reference;
    double before = -1;
    for (const Place& place : groups[reference]) {
      const double d = distance(picture, 8, x, y, x + place.dx, y + place.dy);
      EXPECT_GE(d, before * (1 - told_apart)) << "in the order of distances, reference " << reference;
      before = d;
      sum += d;
      common += std::count(expected[reference].begin(), expected[reference].end(), place);
    }
    for (const Place& place : expected[reference])
      least += distance(picture, 8, x, y, x + place.dx, y + place.dy);
    members += groups[reference].size();
  }
  // A window of one pixel: every group is its reference alone.
  const double distances = least == 0 && sum == 0 ? 1 : sum / least;
  return {distances, static_cast<double>(common) / static_cast<double>(members)};
}

// Values of 0 ... 1.
GroupMatchCall call_for_floats(const Picture& picture, int count) {
  GroupMatchCall call = call_for(picture, 8, 3, 39, count);
  call.middle = 0.5F;
  call.scale = 255;
  return call;
}
Picture noisy_waves() {
  std::mt19937 random(5);
  std::normal_distribution<double> gaussian(0, 0.1);
  return {150, 120,
          [&](int x, int y) { return 0.5 + 0.3 * std::sin(0.1 * x + 0.05 * y) + gaussian(random); }};
}

// What is not exact differs only where two are nearly as near: the distances of the groups hardly grow.
TEST(Bm3dMatchCuda, NearlyTheNearestOfAnyValues) {
  UNGRAIN_NEEDS_GPU();
  const Picture picture = noisy_waves();
  const Agreement agreement = agreement_with_exact(picture, call_for_floats(picture, 32));
  EXPECT_LT(agreement.distances, 1 + 1e-5);
  EXPECT_GT(agreement.members, 0.998);
}

// Few of the nearest are lost, and others that are nearly as near take their places.
TEST(Bm3dMatchCuda, NearlyTheNearestInOnePass) {
  UNGRAIN_NEEDS_GPU();
  const Picture picture = noisy_waves();
  for (const auto& [count, members] : {std::pair{8, 0.92}, {16, 0.92}, {32, 0.9}}) {
    GroupMatchCall call = call_for_floats(picture, count);
    call.nearly = true;
    const Agreement agreement = agreement_with_exact(picture, call);
    EXPECT_LT(agreement.distances, 1.002) << count;
    EXPECT_GT(agreement.members, members) << count;
  }
}

// All windows, spacings and sizes of images; every offset lies in the window and in the image.
TEST(Bm3dMatchCuda, InOnePassOfAnyWindow) {
  UNGRAIN_NEEDS_GPU();
  for (const auto& [width, height] : {std::pair{150, 90}, {40, 25}, {8, 70}}) {
    const Picture picture = noise(width, height);
    for (const int spacing : {1, 2, 3, 5, 8}) {
      for (const int search : {1, 3, 5, 19, 25, 39, 45, 65, 127}) {
        GroupMatchCall call = call_for(picture, 8, spacing, search, 16);
        call.nearly = true;
        const Agreement agreement = agreement_with_exact(picture, call);
        EXPECT_LT(agreement.distances, 1.005) << spacing << ' ' << search;
        EXPECT_GT(agreement.members, 0.9) << spacing << ' ' << search;
      }
    }
  }
}

// Every other patch of a pattern that repeats every 8 pixels would be of one class.
TEST(Bm3dMatchCuda, InOnePassWherePatternsRepeat) {
  UNGRAIN_NEEDS_GPU();
  for (const int period : {2, 4, 8, 16}) {
    std::mt19937 random(6);
    std::vector<double> tile(static_cast<std::size_t>(period) * period);
    for (double& value : tile) value = static_cast<double>(random() % 200);
    const Picture picture(150, 120, [&](int x, int y) {
      return tile[static_cast<std::size_t>(y % period) * period + x % period] +
             static_cast<double>(random() % 20);
    });
    GroupMatchCall call = call_for(picture, 8, 3, 39, 8);
    call.nearly = true;
    EXPECT_GT(agreement_with_exact(picture, call).members, period == 16 ? 0.6 : 0.75) << period;
  }
}

// Where halves are too coarse, and where the distance is limited.
TEST(Bm3dMatchCuda, InOnePassBeyondHalvesAndWithLimits) {
  UNGRAIN_NEEDS_GPU();
  Picture picture = noise(120, 90);
  picture.pixels[picture.index(60, 40)] = 2000;
  GroupMatchCall call = call_for(picture, 8, 3, 19, 16);
  call.nearly = true;
  EXPECT_GT(agreement_with_exact(picture, call).members, 0.94);
  GroupMatchCall only_itself = call_for(noise(120, 90), 8, 3, 39, 16, 0);
  only_itself.nearly = true;
  for (const Group& group : gpu_groups(noise(120, 90), only_itself)) EXPECT_EQ(group, Group{{}});
  const Picture flat_picture = flat(90, 77);
  GroupMatchCall all_equal = call_for(flat_picture, 8, 3, 39, 32);
  all_equal.nearly = true;
  for (const Group& group : gpu_groups(flat_picture, all_equal)) {
    EXPECT_EQ(group.size(), 32U);
    EXPECT_EQ(group.front(), Place{});
    for (std::size_t i = 1; i < group.size(); ++i) EXPECT_NE(group[i], Place{});
  }
}

}  // namespace
}  // namespace ungrain::testing
