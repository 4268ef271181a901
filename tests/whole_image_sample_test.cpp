// By which pixels a GPU decides how a whole-image search compares patches.
#include "cuda/whole_image_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace ungrain::cuda {
namespace {

TEST(WholeImageSample, LiesInTheImage) {
  for (const Extent& image : {Extent{1, 1}, Extent{1, 2}, Extent{1, 100003}, Extent{100003, 1},
                              Extent{23, 17}, Extent{513, 1}, Extent{61, 43}, Extent{16384, 16384}}) {
    EXPECT_LE(sample_count(image), most_samples);
    for (int sample = 0; sample < sample_count(image); ++sample) {
      const int position = sample_position(sample, image);
      ASSERT_GE(position, 0) << image.width << " x " << image.height;
      ASSERT_LT(position, image.width * image.height) << image.width << " x " << image.height;
    }
  }
}

TEST(WholeImageSample, HasEveryPixelOfASmallImage) {
  for (const Extent& image : {Extent{1, 1}, Extent{19, 15}, Extent{16, 32}}) {
    std::set<int> positions;
    for (int sample = 0; sample < sample_count(image); ++sample) {
      positions.insert(sample_position(sample, image));
    }
    EXPECT_EQ(positions.size(), static_cast<std::size_t>(image.width * image.height));
  }
}

// Sides of a power of two are where a raster of samples would keep to few columns.
TEST(WholeImageSample, FillsTheImageEvenly) {
  for (const Extent& image : {Extent{64, 64}, Extent{256, 256}, Extent{1024, 1024}, Extent{401, 303}}) {
    constexpr int cells = 8;
    std::vector<int> in_cell(cells * cells);
    std::vector<int> of_phase(cells);  // columns and rows by their remainder
    std::vector<int> of_row_phase(cells);
    for (int sample = 0; sample < most_samples; ++sample) {
      const int x = sample_position(sample, image) % image.width;
      const int y = sample_position(sample, image) / image.width;
      ++in_cell[static_cast<std::size_t>(y * cells / image.height * cells + x * cells / image.width)];
      ++of_phase[static_cast<std::size_t>(x % cells)];
      ++of_row_phase[static_cast<std::size_t>(y % cells)];
    }
    const auto [fewest, most] = std::minmax_element(in_cell.begin(), in_cell.end());
    EXPECT_GE(*fewest, 5) << image.width;
    EXPECT_LE(*most, 11) << image.width;
    for (const std::vector<int>& phases : {of_phase, of_row_phase}) {
      EXPECT_GE(*std::min_element(phases.begin(), phases.end()), 40) << image.width;
      EXPECT_LE(*std::max_element(phases.begin(), phases.end()), 90) << image.width;
    }
  }
}

TEST(WholeImageSample, MayBeSearchedAgainAsLongAsThatIsLessWork) {
  const auto share = [](int halves, int pairs) {
    return most_searched_again(most_samples, halves, pairs) / static_cast<double>(most_samples);
  };
  EXPECT_NEAR(share(16, 32), 0.08, 0.01);    // patches of 3: both take nearly the same time
  EXPECT_NEAR(share(64, 160), 0.29, 0.01);   // of 7
  EXPECT_NEAR(share(160, 448), 0.46, 0.01);  // of 7 in colour
  EXPECT_EQ(most_searched_again(1, 64, 160), 0);
}

}  // namespace
}  // namespace ungrain::cuda
