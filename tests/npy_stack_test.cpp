// Stacks in NPY files: every place of the stacked axis, both orders, and what comes back when they are
// written.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "folder_test.h"
#include "io/array_order.h"
#include "io/image_file.h"

namespace ungrain::io {
namespace {

using testing::io_failure;
using NpyStackTest = testing::FolderTest;
using namespace std::string_literals;

using Shape = std::vector<int>;

std::string text_of(const Shape& shape) {
  std::string text = "(";
  for (const int length : shape) text += std::to_string(length) + ", ";
  return text.substr(0, text.size() - 2) + ")";
}

std::string npy(const std::string& dtype, bool fortran, const std::string& shape,
                const std::string& samples) {
  std::string text = "{'descr': '" + dtype + "', 'fortran_order': " + (fortran ? "True" : "False") +
                     ", 'shape': " + shape + ", }";
  text.resize(117, ' ');
  return "\x93NUMPY\1\0"s + static_cast<char>(118) + '\0' + text + '\n' + samples;
}

// Each sample is its place in C order.
std::string counted(const Shape& shape, bool fortran) {
  std::size_t count = 1;
  for (const int length : shape) count *= static_cast<std::size_t>(length);
  std::string bytes(2 * count, '\0');
  std::vector<int> index(shape.size());
  for (std::size_t value = 0; value < count; ++value) {
    std::size_t place = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::size_t axis = fortran ? shape.size() - 1 - i : i;
      place = place * static_cast<std::size_t>(shape[axis]) + static_cast<std::size_t>(index[axis]);
    }
    bytes[2 * place] = static_cast<char>(value & 0xffU);
    bytes[2 * place + 1] = static_cast<char>(value >> 8U);
    for (std::size_t axis = shape.size(); axis-- > 0 && ++index[axis] == shape[axis];) index[axis] = 0;
  }
  return bytes;
}

// What page `page` of the array above holds at a place.
int expected(const Shape& shape, std::size_t axis, int page, int y, int x, int channel) {
  std::vector<int> index = {y, x};
  if (shape.size() == 4) index.push_back(channel);
  index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis), page);
  int value = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) value = value * shape[i] + index[i];
  return value;
}

void check_page(const Image& image, const Shape& shape, std::size_t axis, int page) {
  const ImageSpec& spec = image.spec();
  const auto* sample = image.samples<std::uint16_t>();
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int channel = 0; channel < spec.channels; ++channel) {
        ASSERT_EQ(*sample++, expected(shape, axis, page, y, x, channel)) << page << " " << y << " " << x;
      }
    }
  }
}

Shape stacked(Shape image, int pages, int axis) {
  image.insert(image.begin() + axis, pages);
  return image;
}

TEST_F(NpyStackTest, EveryAxisAndOrderIsReadAndWrittenBack) {
  for (const Shape& image : {Shape{5, 7}, Shape{5, 7, 3}, Shape{5, 7, 1}, Shape{5, 1}, Shape{1, 7, 2}}) {
    for (int axis = 0; axis <= static_cast<int>(image.size()); ++axis) {
      for (const int pages : {1, 4}) {
        for (const bool fortran : {false, true}) {
          const Shape shape = stacked(image, pages, axis);
          SCOPED_TRACE(text_of(shape) + " axis " + std::to_string(axis) + (fortran ? " Fortran" : ""));
          const auto name = file("a.npy", npy("<u2", fortran, text_of(shape), counted(shape, fortran)));
          const auto in = InputFile::open(name, {.axis = axis - static_cast<int>(shape.size())});
          ASSERT_EQ(in->info().pages, pages);
          ASSERT_EQ(in->info().spec.height, image[0]);
          ASSERT_EQ(in->info().spec.width, image[1]);
          const auto out = OutputFile::create(path("b.npy"), in->info(), in.get());
          for (int page = 0; page < pages; ++page) {
            if (page > 0) out->next_page();
            in->select_page(page);
            Image read(in->info().spec);
            for (int y = 0; y < image[0]; y += 2) {
              in->read_rows(y, read.view().rows(y, std::min(2, image[0] - y)));
            }
            check_page(read, shape, static_cast<std::size_t>(axis), page);
            out->write_rows(0, read.view());
          }
          out->commit();
          EXPECT_EQ(bytes_of(path("b.npy")).substr(128), counted(shape, false));
          EXPECT_NE(bytes_of(path("b.npy")).find("'shape': " + text_of(shape)), std::string::npos);
          in->select_page(0);
          Image again(in->info().spec);
          in->read_rows(0, again.view());
          check_page(again, shape, static_cast<std::size_t>(axis), 0);
          EXPECT_EQ(io_failure(name, [&] { in->select_page(pages); }),
                    "has no page " + std::to_string(pages + 1));
        }
      }
    }
  }
}

// More than the memory that the samples are brought into order with, so that they go in several boxes.
TEST_F(NpyStackTest, LargeArraysGoInBoxes) {
  const ArrayAxes counts = {37, 301, 1777, 1};
  const std::size_t count = std::size_t{37} * 301 * 1777;
  std::vector<std::uint16_t> source(count);
  for (std::size_t i = 0; i < count; ++i) source[i] = static_cast<std::uint16_t>(i * 2654435761U >> 7U);
  for (const std::array<std::size_t, 4> order :
       {std::array<std::size_t, 4>{1, 2, 0, 3}, {2, 1, 0, 3}, {1, 0, 2, 3}, {3, 2, 1, 0}}) {
    const ArrayAxes from = packed_strides(counts, order);
    const ArrayAxes to = packed_strides(counts, {0, 1, 2, 3});
    std::vector<std::uint16_t> result(count);
    std::size_t reads = 0;
    reorder(
        counts, 2, from,
        [&](void* bytes, std::size_t size, std::uint64_t at) {
          ++reads;
          std::memcpy(bytes, reinterpret_cast<const char*>(source.data()) + at, size);
        },
        to,
        [&](const void* bytes, std::size_t size, std::uint64_t at) {
          std::memcpy(reinterpret_cast<char*>(result.data()) + at, bytes, size);
        });
    EXPECT_LT(reads, 40000U) << "short runs are slow";
    std::size_t place = 0;
    bool same = true;
    for (std::int64_t page = 0; page < counts[0]; ++page) {
      for (std::int64_t y = 0; y < counts[1]; ++y) {
        for (std::int64_t x = 0; x < counts[2]; ++x) {
          same = same && result[place++] ==
                             source[static_cast<std::size_t>(page * from[0] + y * from[1] + x * from[2])];
        }
      }
    }
    EXPECT_TRUE(same);
  }
}

TEST_F(NpyStackTest, PagesOfOtherFormatsAreStackedFirst) {
  const ImageSpec spec{2, 1, 3, PixelType::u8, Colour::rgb};
  Image image(spec);
  const auto out = OutputFile::create(path("a.npy"), {.spec = spec, .pages = 2}, nullptr);
  out->write_rows(0, image.view());
  out->next_page();
  out->write_rows(0, image.view());
  out->commit();
  EXPECT_NE(bytes_of(path("a.npy")).find("'shape': (2, 1, 2, 3)"), std::string::npos);
}

TEST_F(NpyStackTest, WhatIsNoImageSaysWhichAxisWouldDo) {
  const auto refusal = [&](const std::string& shape, std::optional<int> axis = {}) {
    const auto name = file("a.npy", npy("|u1", false, shape, std::string(100, '\0')));
    return io_failure(name, [&] { InputFile::open(name, {.axis = axis}); });
  };
  const std::string image = "an image is (height, width) or (height, width, 1 to 4 channels)";
  EXPECT_EQ(refusal("(10, 480, 640)"),
            "shape (10, 480, 640): " + image + "; for a stack of 10 images of 640 x 480 give --axis 0");
  EXPECT_EQ(refusal("(480, 640, 10)"),
            "shape (480, 640, 10): " + image + "; for a stack of 10 images of 640 x 480 give --axis 2");
  EXPECT_EQ(refusal("(9, 480, 640, 3)"),
            "shape (9, 480, 640, 3): " + image + "; for a stack of 9 images of 640 x 480 give --axis 0");
  EXPECT_EQ(refusal("(2, 3, 480, 640)"), "shape (2, 3, 480, 640): " + image);
  EXPECT_EQ(refusal("(2, 3, 480, 640)", 0),
            "shape (2, 3, 480, 640) without its axis 0 is (3, 480, 640): " + image);
  EXPECT_EQ(refusal("(5, 5)", 0), "shape (5, 5) without its axis 0 is (5): " + image);
  EXPECT_EQ(refusal("(5,)"), "shape (5): " + image);
  EXPECT_EQ(refusal("(2, 5, 5)", 3), "shape (2, 5, 5) has no axis 3");
  EXPECT_EQ(refusal("(2, 5, 5)", -4), "shape (2, 5, 5) has no axis -4");
  EXPECT_EQ(refusal("(0, 5, 5)", 0), "shape (0, 5, 5): a stack has 1 to 2147483647 images");
  EXPECT_EQ(refusal("(5, 5, 5)", 0),
            "truncated: the header promises 125 bytes of pixels (5 x 5, 5 pages), the file has 100");
  EXPECT_EQ(
      refusal("(2147483647, 2147483647, 2147483647)", 1),
      "truncated: the header promises more than 2^64 bytes of pixels (2147483647 x 2147483647, 2147483647 "
      "pages), the file has 100");
}

TEST_F(NpyStackTest, OtherTypesOfSamplesAreConvertedAndTold) {
  const auto open = [&](const std::string& dtype, const std::string& samples) {
    return InputFile::open(file("a.npy", npy(dtype, false, "(1, 2)", samples)));
  };
  const auto first_two = [&] {
    const Image image = read_image(path("a.npy"));
    return std::vector{image.samples<float>()[0], image.samples<float>()[1]};
  };
  EXPECT_EQ(open("|i1", "\xfb\x7f"s)->info().note, "i8 samples converted to f32");
  EXPECT_EQ(first_two(), (std::vector{-5.0F, 127.0F}));
  EXPECT_EQ(open("<u4", "\0\0\0\x80\1\0\0\0"s)->info().note, "u32 samples converted to f32");
  EXPECT_EQ(first_two(), (std::vector{2147483648.0F, 1.0F}));
  EXPECT_EQ(open(">i4", "\xff\xff\xff\xfe\0\1\0\0"s)->info().spec.range, 2147483647);
  EXPECT_EQ(first_two(), (std::vector{-2.0F, 65536.0F}));
  const auto bits = open("|b1", "\1\0"s);
  EXPECT_EQ(bits->info().note, "bool samples converted to u8");
  const Image image = read_image(path("a.npy"));
  EXPECT_EQ(image.spec(), (ImageSpec{2, 1, 1, PixelType::u8, Colour::gray}));
  EXPECT_EQ(image.samples<std::uint8_t>()[0], 255);
  EXPECT_EQ(image.samples<std::uint8_t>()[1], 0);
}

}  // namespace
}  // namespace ungrain::io
