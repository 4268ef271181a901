// What pages are made of. That browsers and other programs read it is tested in tests/page and tests/cli.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "page/deflate.h"
#include "page/html.h"
#include "page/plot.h"
#include "page/png.h"
#include "page/viewer.h"

namespace ungrain::page {
namespace {

// Reads what RFC 1950 and 1951 describe, as far as our writer uses it: blocks with codes of their own.
class Inflater {
 public:
  explicit Inflater(const std::string& stream) : stream_(stream), bit_(16) {}

  std::vector<std::uint8_t> all() {
    bool last = false;
    while (!last) {
      last = take(1) == 1;
      if (take(2) != 2) throw std::runtime_error("not a block of ours");
      block();
    }
    return out_;
  }

 private:
  int take(int count) {
    int value = 0;
    for (int i = 0; i < count; ++i, ++bit_)
      value |= (static_cast<unsigned char>(stream_.at(bit_ / 8)) >> (bit_ % 8) & 1) << i;
    return value;
  }

  // The symbol whose code comes next, by trying lengths: slow and plain.
  int symbol(const std::vector<int>& lengths) {
    int code = 0;
    int first = 0;
    for (int length = 1; length <= 15; ++length) {
      code = code << 1 | take(1);
      int count = 0;
      for (const int one : lengths) count += one == length ? 1 : 0;
      if (code - first < count) {
        int rank = code - first;
        for (std::size_t i = 0; i < lengths.size(); ++i) {
          if (lengths[i] == length && rank-- == 0) return static_cast<int>(i);
        }
      }
      first = (first + count) << 1;
    }
    throw std::runtime_error("no such code");
  }

  void block() {
    const int literals = take(5) + 257;
    const int distances = take(5) + 1;
    const int told = take(4) + 4;
    constexpr int order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    std::vector<int> code_lengths(19, 0);
    for (int i = 0; i < told; ++i) code_lengths[static_cast<std::size_t>(order[i])] = take(3);
    std::vector<int> lengths;
    while (static_cast<int>(lengths.size()) < literals + distances) lengths.push_back(symbol(code_lengths));
    const std::vector<int> literal_lengths(lengths.begin(), lengths.begin() + literals);
    const std::vector<int> distance_lengths(lengths.begin() + literals, lengths.end());
    for (;;) {
      const int code = symbol(literal_lengths);
      if (code == 256) return;
      if (code < 256) {
        out_.push_back(static_cast<std::uint8_t>(code));
        continue;
      }
      constexpr int length_base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                     31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
      constexpr int length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                     2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
      const int length = length_base[code - 257] + take(length_bits[code - 257]);
      const int distance_code = symbol(distance_lengths);
      int distance = distance_code + 1;
      if (distance_code >= 4) {
        const int bits = distance_code / 2 - 1;
        distance = ((2 + distance_code % 2) << bits) + 1 + take(bits);
      }
      for (int i = 0; i < length; ++i)
        out_.push_back(out_.at(out_.size() - static_cast<std::size_t>(distance)));
    }
  }

  const std::string& stream_;
  std::size_t bit_;
  std::vector<std::uint8_t> out_;
};

std::vector<std::uint8_t> noise(std::size_t count, unsigned spread) {
  std::vector<std::uint8_t> bytes(count);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>((state >> 16) % spread);
  }
  return bytes;
}

TEST(Page, WhatIsCompressedComesBack) {
  std::vector<std::vector<std::uint8_t>> contents = {{}, {7}, {1, 2, 3}, std::vector<std::uint8_t>(70000, 9)};
  for (const unsigned spread : {2U, 10U, 256U}) contents.push_back(noise(20000, spread));
  // The same after a distance of up to the whole window, and just beyond it.
  for (const std::size_t gap : {5UL, 300UL, 32767UL, 32768UL, 40000UL}) {
    std::vector<std::uint8_t> bytes = noise(40, 256);
    const std::vector<std::uint8_t> start = bytes;
    bytes.resize(gap, 0);
    bytes.insert(bytes.end(), start.begin(), start.end());
    contents.push_back(bytes);
  }
  for (const std::vector<std::uint8_t>& bytes : contents) {
    const std::string stream = zlib_compressed(bytes);
    EXPECT_EQ(Inflater(stream).all(), bytes) << bytes.size();
  }
}

TEST(Page, RareBytesDoNotMakeCodesTooLong) {
  std::vector<std::uint8_t> bytes;
  std::size_t count = 1;
  std::size_t before = 1;
  for (int value = 0; value < 22; ++value) {
    // No run and no match: each of a value's bytes stands between others.
    for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(value));
    count += std::exchange(before, count);
  }
  const std::vector<std::uint8_t> order = noise(bytes.size(), 256);
  for (std::size_t i = bytes.size() - 1; i > 0; --i)
    std::swap(bytes[i], bytes[(order[i] * 2654435761UL + i * 40503UL) % (i + 1)]);
  EXPECT_EQ(Inflater(zlib_compressed(bytes)).all(), bytes);
}

TEST(Page, CompressionIsWorthIt) {
  EXPECT_LT(zlib_compressed(std::vector<std::uint8_t>(100000, 3)).size(), 1500U);
  EXPECT_LT(zlib_compressed(noise(100000, 16)).size(), 53000U);  // four bits each
}

TEST(Page, PngSaysItsSize) {
  const std::string png = encode_png(noise(300 * 5 * 3, 256), 300, 5, 3);
  EXPECT_EQ(png.substr(1, 3), "PNG");
  EXPECT_EQ(png.substr(16, 10), std::string("\0\0\1\x2c\0\0\0\5\x08\x02", 10));
}

TEST(Page, TextIsEscaped) {
  EXPECT_EQ(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(data_uri("x/y", ""), "data:x/y;base64,");
  EXPECT_EQ(data_uri("x/y", "a"), "data:x/y;base64,YQ==");
  EXPECT_EQ(data_uri("x/y", "ab"), "data:x/y;base64,YWI=");
  EXPECT_EQ(data_uri("x/y", "ab\xff"), "data:x/y;base64,YWL/");
}

TEST(Page, NumbersAreShort) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.0274), "0.0274");
  EXPECT_EQ(short_number(1.5), "1.5");
  EXPECT_EQ(short_number(99.96), "100");
  EXPECT_EQ(short_number(1576.79), "1577");
  EXPECT_EQ(short_number(std::numeric_limits<double>::quiet_NaN()), "–");
}

TEST(Page, PlotsOfAnything) {
  EXPECT_EQ(line_plot({.title = "t", .x_label = "x", .y_label = "y", .series = {}}), "");
  EXPECT_EQ(bar_plot({.title = "t", .unit = "", .bars = {}}), "");
  const double infinity = std::numeric_limits<double>::infinity();
  for (const bool log_x : {false, true}) {
    for (const bool log_y : {false, true}) {
      for (const std::vector<Point>& points : std::vector<std::vector<Point>>{{{5, 5}},
                                                                              {{1, 1e-6}, {1, 1e9}},
                                                                              {{0, 0}, {2, 3}},
                                                                              {{1, infinity}, {2, 1}},
                                                                              {{3, 7}, {4, 7}}}) {
        const std::string html = line_plot({.title = "<t>",
                                            .x_label = "x",
                                            .y_label = "y",
                                            .series = {{"a", points, 9, false}, {"b", {}, 0, true}},
                                            .log_x = log_x,
                                            .log_y = log_y});
        EXPECT_NE(html.find("class=\"dot"), std::string::npos);
        for (const char* bad : {"nan", "inf", "<t>"}) EXPECT_EQ(html.find(bad), std::string::npos) << html;
      }
    }
  }
}

TEST(Page, LargePicturesAreCutInTheMiddle) {
  EXPECT_EQ(shown_part(100, 50, 5000), (Crop{0, 0, 100, 50}));
  EXPECT_EQ(shown_part(200, 200, 10000), (Crop{50, 50, 100, 100}));
  EXPECT_EQ(shown_part(1000, 20, 10000), (Crop{250, 0, 500, 20}));
  EXPECT_EQ(shown_part(20, 1000, 10000), (Crop{0, 250, 20, 500}));
}

}  // namespace
}  // namespace ungrain::page
