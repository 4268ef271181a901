#include "io/jpeg_segments.h"

#include "folder_test.h"

namespace ungrain::io {
namespace {

class JpegSegmentsTest : public ungrain::testing::FolderTest {
 protected:
  JpegSegments read(const std::string& bytes) const {
    std::ofstream(path("a.jpg"), std::ios::binary) << bytes;
    return read_jpeg_segments(SourceFile(path("a.jpg")));
  }
};

std::string segment(int marker, const std::string& data) {
  const std::size_t length = data.size() + 2;
  return std::string{'\xff', static_cast<char>(marker), static_cast<char>(length / 256),
                     static_cast<char>(length % 256)} +
         data;
}

// A table that counts its places in the order of the file.
std::string counting_table(int number) {
  std::string data(1, static_cast<char>(number));
  for (int n = 1; n <= 64; ++n) data += static_cast<char>(n);
  return data;
}

std::string frame(int table_of_luminance) {
  return std::string{8, 0, 16, 0, 16, 1, 1, 0x11, static_cast<char>(table_of_luminance)};
}

const std::string start = "\xff\xd8";
const std::string scan = segment(0xda, "");

TEST_F(JpegSegmentsTest, StepsAreThoseOfTheFirstComponent) {
  std::string other(1, 0);
  other.append(64, 99);
  const JpegSegments found =
      read(start + segment(0xdb, other + counting_table(1)) + segment(0xc2, frame(1)) + scan);
  ASSERT_EQ(found.steps.size(), 64U);
  // Along diagonals, to and fro: 1 2 6 7 / 3 5 8 / 4 9 / 10
  EXPECT_EQ(std::vector<int>(found.steps.begin(), found.steps.begin() + 4), (std::vector{1, 2, 6, 7}));
  EXPECT_EQ(found.steps[8], 3);
  EXPECT_EQ(found.steps[16], 4);
  EXPECT_EQ(found.steps[24], 10);
  EXPECT_EQ(found.steps[63], 64);
}

TEST_F(JpegSegmentsTest, StepsOfTwoBytes) {
  std::string table(1, 0x10);
  for (int n = 0; n < 64; ++n) table += std::string{1, 2};
  EXPECT_EQ(read(start + segment(0xdb, table) + segment(0xc0, frame(0)) + scan).steps,
            std::vector<int>(64, 258));
}

TEST_F(JpegSegmentsTest, NothingWhereTheFileDoesNotTell) {
  EXPECT_TRUE(read(start + segment(0xdb, counting_table(0)) + scan).steps.empty());  // no frame
  EXPECT_TRUE(read(start + segment(0xc0, frame(0)) + scan).steps.empty());           // no table
  EXPECT_TRUE(read(start + segment(0xdb, counting_table(0).substr(0, 40)) + segment(0xc0, frame(0)) + scan)
                  .steps.empty());  // cut short
  EXPECT_TRUE(read(start + segment(0xdb, counting_table(7)) + segment(0xc0, frame(7)) + scan).steps.empty());
}

TEST_F(JpegSegmentsTest, Comments) {
  EXPECT_EQ(read(start + segment(0xfe, "one") + segment(0xfe, "") + segment(0xfe, "two") + scan).comments,
            (std::vector<std::string>{"one", "two"}));
}

}  // namespace
}  // namespace ungrain::io
