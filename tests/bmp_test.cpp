// BMP: every kind of header and pixel that is read, what is refused, and what is written.
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "folder_test.h"
#include "io/image_file.h"

namespace ungrain::io {
namespace {

using testing::io_failure;
using BmpTest = testing::FolderTest;
using namespace std::string_literals;

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xffU);
  return text;
}

// A file by hand. Everything that a header can say can be said wrongly.
struct Bmp {
  std::uint32_t header = 40;  // bytes of the second header
  std::int64_t width = 1;
  std::int64_t height = 1;
  unsigned planes = 1;
  unsigned bits = 24;
  unsigned compression = 0;
  std::uint32_t colours = 0;  // as the header says
  std::string palette = {};
  std::vector<std::uint32_t> masks = {};  // in or after the header
  std::int64_t offset = -1;               // of the pixels; -1: right
  std::string pixels = {};

  std::string bytes() const {
    std::string second;
    if (header == 12) {
      second = little(12, 4) + little(width, 2) + little(height, 2) + little(planes, 2) + little(bits, 2);
    } else {
      second = little(header, 4) + little(width, 4) + little(height, 4) + little(planes, 2) +
               little(bits, 2) + little(compression, 4) + little(0, 4) + little(0, 8) + little(colours, 4) +
               little(0, 4);
    }
    for (const std::uint32_t mask : masks) second += little(mask, 4);
    if (second.size() < header) second.resize(header, '\0');
    second += palette;
    const std::uint64_t at = offset < 0 ? 14 + second.size() : static_cast<std::uint64_t>(offset);
    return "BM" + little(14 + second.size() + pixels.size(), 4) + little(0, 4) + little(at, 4) + second +
           pixels;
  }
};

std::vector<int> samples_of(const Image& image) {
  return {image.samples<std::uint8_t>(), image.samples<std::uint8_t>() + image.bytes()};
}

const std::string black_white = "\0\0\0\0\xff\xff\xff\0"s;
const std::string red_green = "\0\0\xff\0\0\xff\0\0"s;

TEST_F(BmpTest, PalettesOfGraysGiveAGrayImage) {
  const Image bits = read_image(file(
      "a.bmp",
      Bmp{.width = 10, .height = 2, .bits = 1, .palette = black_white, .pixels = "\x01\x40\0\0\xa0\x80\0\0"s}
          .bytes()));
  EXPECT_EQ(bits.spec(), (ImageSpec{10, 2, 1, PixelType::u8, Colour::gray}));
  EXPECT_EQ(samples_of(bits), (std::vector{255, 0, 255, 0, 0, 0, 0, 0,   255, 0,  //
                                           0,   0, 0,   0, 0, 0, 0, 255, 0,   255}));
  std::string ramp;
  for (int i = 0; i < 16; ++i) ramp += std::string(3, static_cast<char>(17 * i)) + '\0';
  const Image nibbles = read_image(file(
      "b.bmp", Bmp{.width = 3, .height = -1, .bits = 4, .palette = ramp, .pixels = "\x1f\x70\0\0"s}.bytes()));
  EXPECT_EQ(nibbles.spec().channels, 1);
  EXPECT_EQ(samples_of(nibbles), (std::vector{17, 255, 119}));
}

TEST_F(BmpTest, OtherPalettesGiveRgb) {
  const Image info = read_image(
      file("a.bmp",
           Bmp{.width = 2, .bits = 8, .colours = 2, .palette = red_green, .pixels = "\1\0\0\0"s}.bytes()));
  EXPECT_EQ(info.spec(), (ImageSpec{2, 1, 3, PixelType::u8, Colour::rgb}));
  EXPECT_EQ(samples_of(info), (std::vector{0, 255, 0, 255, 0, 0}));
  // Three bytes a colour.
  const Image core = read_image(
      file("b.bmp",
           Bmp{.header = 12, .width = 2, .bits = 1, .palette = "\0\0\xff\0\xff\0"s, .pixels = "\x80\0\0\0"s}
               .bytes()));
  EXPECT_EQ(samples_of(core), (std::vector{0, 255, 0, 255, 0, 0}));
}

TEST_F(BmpTest, RowsGoFromTheBottomUpOrFromTheTopDown) {
  const std::string low = "\1\2\3\4\5\6\0\0"s;
  const std::string high = "\7\x8\x9\xa\xb\xc\0\0"s;
  const std::vector expected = {9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4};
  EXPECT_EQ(samples_of(read_image(file("a.bmp", Bmp{.width = 2, .height = 2, .pixels = low + high}.bytes()))),
            expected);
  EXPECT_EQ(
      samples_of(read_image(file("b.bmp", Bmp{.width = 2, .height = -2, .pixels = high + low}.bytes()))),
      expected);
  EXPECT_EQ(samples_of(read_image(
                file("c.dib", Bmp{.header = 12, .width = 2, .height = 2, .pixels = low + high}.bytes()))),
            expected);
}

TEST_F(BmpTest, SixteenBitsAreSpreadOverTheWholeRange) {
  const Image five = read_image(
      file("a.bmp", Bmp{.width = 2, .bits = 16, .pixels = little(0x7c00, 2) + little(0x000f, 2)}.bytes()));
  EXPECT_EQ(five.spec(), (ImageSpec{2, 1, 3, PixelType::u8, Colour::rgb}));
  EXPECT_EQ(samples_of(five), (std::vector{255, 0, 0, 0, 0, 123}));
  const Bmp six{.width = 2,
                .bits = 16,
                .compression = 3,
                .masks = {0xf800, 0x07e0, 0x001f},
                .pixels = little(0xf81f, 2) + little(0x0400, 2)};
  EXPECT_EQ(samples_of(read_image(file("b.bmp", six.bytes()))), (std::vector{255, 0, 255, 0, 130, 0}));
}

TEST_F(BmpTest, ThirtyTwoBitsHaveAlphaOnlyWhereAMaskSaysSo) {
  const std::string pixel = "\1\2\3\x80"s;
  const Image plain = read_image(file("a.bmp", Bmp{.bits = 32, .pixels = pixel}.bytes()));
  EXPECT_EQ(plain.spec(), (ImageSpec{1, 1, 3, PixelType::u8, Colour::rgb}));
  EXPECT_EQ(samples_of(plain), (std::vector{3, 2, 1}));
  for (const std::uint32_t header : {56U, 108U, 124U}) {
    const Image alpha = read_image(file("b.bmp", Bmp{.header = header,
                                                     .bits = 32,
                                                     .compression = 3,
                                                     .masks = {0xff0000, 0xff00, 0xff, 0xff000000},
                                                     .pixels = pixel}
                                                     .bytes()));
    EXPECT_EQ(alpha.spec(), (ImageSpec{1, 1, 4, PixelType::u8, Colour::rgb, true})) << header;
    EXPECT_EQ(samples_of(alpha), (std::vector{3, 2, 1, 128}));
    const Image none = read_image(file("c.bmp", Bmp{.header = header,
                                                    .bits = 32,
                                                    .compression = 3,
                                                    .masks = {0xff, 0xff00, 0xff0000, 0},
                                                    .pixels = pixel}
                                                    .bytes()));
    EXPECT_EQ(samples_of(none), (std::vector{1, 2, 3})) << header;
  }
  const Bmp after{
      .bits = 32, .compression = 6, .masks = {0xff0000, 0xff00, 0xff, 0xff000000}, .pixels = pixel};
  EXPECT_EQ(samples_of(read_image(file("d.bmp", after.bytes()))), (std::vector{3, 2, 1, 128}));
}

TEST_F(BmpTest, WideMasksAreToldToLoseBits) {
  const Bmp deep{.bits = 32,
                 .compression = 3,
                 .masks = {0x3ff00000, 0x000ffc00, 0x000003ff},
                 .pixels = little(0x3ffU << 20U | 512U << 10U | 1, 4)};
  const auto in = InputFile::open(file("a.bmp", deep.bytes()));
  EXPECT_EQ(in->info().note, "10-bit samples converted to u8");
  EXPECT_EQ(samples_of(read_image(path("a.bmp"))), (std::vector{255, 128, 0}));
}

TEST_F(BmpTest, WhatIsNotReadIsRefusedByName) {
  const auto refusal = [&](const Bmp& bmp) {
    const auto name = file("a.bmp", bmp.bytes());
    return io_failure(name, [&] { read_image(name); });
  };
  const std::string pixels(64, '\0');
  EXPECT_EQ(refusal({.bits = 8, .compression = 1, .palette = black_white, .pixels = pixels}),
            "a BMP file with RLE8 compression, which is not supported: save it uncompressed");
  EXPECT_EQ(refusal({.bits = 4, .compression = 2, .pixels = pixels}),
            "a BMP file with RLE4 compression, which is not supported: save it uncompressed");
  EXPECT_EQ(refusal({.bits = 0, .compression = 4, .pixels = pixels}),
            "a BMP file with JPEG compression, which is not supported: save it uncompressed");
  EXPECT_EQ(refusal({.bits = 0, .compression = 5, .pixels = pixels}),
            "a BMP file with PNG compression, which is not supported: save it uncompressed");
  EXPECT_EQ(refusal({.compression = 99, .pixels = pixels}),
            "its BMP header is damaged: the compression 99 is not known");
}

TEST_F(BmpTest, HostileHeadersAreOneLine) {
  const auto refusal = [&](const Bmp& bmp) {
    const auto name = file("a.bmp", bmp.bytes());
    return io_failure(name, [&] { read_image(name); });
  };
  const std::string pixels(64, '\0');
  EXPECT_EQ(refusal({.width = 0, .pixels = pixels}),
            "its header says 0 x 1 pixels: an image has at least one");
  EXPECT_EQ(refusal({.width = -5, .pixels = pixels}),
            "its header says -5 x 1 pixels: an image has at least one");
  EXPECT_EQ(refusal({.height = 0, .pixels = pixels}),
            "its header says 1 x 0 pixels: an image has at least one");
  EXPECT_NE(refusal({.height = -2147483648LL, .pixels = pixels}).find("2147483647 a side"),
            std::string::npos);
  for (const unsigned bits : {1U, 8U, 24U, 32U}) {
    for (const std::int64_t height : {2147483647LL, -2147483647LL}) {
      EXPECT_TRUE(
          refusal(
              {.width = 2147483647, .height = height, .bits = bits, .palette = black_white, .pixels = pixels})
              .starts_with("truncated: "));
    }
  }
  EXPECT_EQ(refusal({.width = 5, .height = 5, .pixels = pixels}),
            "truncated: the header promises 80 bytes of pixels (5 x 5), the file has 64");
  EXPECT_EQ(refusal({.offset = 0xffffffff, .pixels = pixels}),
            "truncated: the header promises 4 bytes of pixels (1 x 1), the file has 0");
  EXPECT_EQ(refusal({.offset = 0, .pixels = pixels}),
            "its BMP header is damaged: the pixels begin at byte 0, in the header");
  EXPECT_EQ(refusal({.bits = 32, .compression = 3, .masks = {1, 2, 4}, .offset = 54, .pixels = pixels}),
            "its BMP header is damaged: the pixels begin at byte 54, in the header");
  EXPECT_EQ(refusal({.planes = 3, .pixels = pixels}), "its BMP header is damaged: 3 planes");
  EXPECT_EQ(refusal({.bits = 23, .pixels = pixels}), "its BMP header is damaged: 23 bits a pixel");
  EXPECT_EQ(refusal({.bits = 24, .compression = 3, .masks = {1, 2, 4}, .pixels = pixels}),
            "its BMP header is damaged: masks for 24 bits a pixel");
  EXPECT_EQ(refusal({.bits = 32, .compression = 3, .masks = {0xff00ff, 0xff00, 0}, .pixels = pixels}),
            "its BMP header is damaged: the mask 0x00ff00ff has gaps");
  EXPECT_EQ(refusal({.bits = 32, .compression = 3, .masks = {0, 0, 0}, .pixels = pixels}),
            "its BMP header is damaged: no mask has a bit");
  EXPECT_EQ(refusal({.header = 41, .pixels = pixels}), "its BMP header is damaged: it has 41 bytes");
  EXPECT_EQ(refusal({.header = 0xffff, .pixels = pixels}), "its BMP header is damaged: it has 65535 bytes");
  EXPECT_EQ(refusal({.bits = 8, .colours = 0xffffffff, .offset = 54, .pixels = pixels}),
            "its BMP header is damaged: 8 bits a pixel without a palette");
  EXPECT_EQ(refusal({.bits = 8, .colours = 2, .palette = red_green, .pixels = "\2\0\0\0"s}),
            "row 0 has the colour 2: the palette has 2");
}

TEST_F(BmpTest, EveryBeginningOfAFileIsOneLine) {
  const std::string whole = Bmp{.header = 108,
                                .width = 3,
                                .height = 3,
                                .bits = 32,
                                .compression = 3,
                                .masks = {0xff0000, 0xff00, 0xff, 0xff000000},
                                .pixels = std::string(36, 'x')}
                                .bytes();
  EXPECT_NO_THROW(read_image(file("whole.bmp", whole)));
  for (std::size_t size = 2; size < whole.size(); ++size) {
    const auto name = file("cut.bmp", whole.substr(0, size));
    EXPECT_TRUE(io_failure(name, [&] { read_image(name); }).starts_with("truncated: ")) << size;
  }
}

// Any bytes in the headers: an image or one line, and never a crash.
TEST_F(BmpTest, AnyBytesAreReadOrRefused) {
  std::mt19937 random(7);
  const std::string whole = Bmp{.header = 124,
                                .width = 3,
                                .height = 3,
                                .bits = 8,
                                .palette = red_green,
                                .pixels = std::string(36, '\1')}
                                .bytes();
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    for (unsigned i = 0; i < 1 + random() % 4; ++i)
      bytes[2 + random() % (bytes.size() - 2)] = static_cast<char>(random());
    const auto name = file("any.bmp", bytes);
    try {
      const auto in = InputFile::open(name);
      const ImageSpec& spec = in->info().spec;
      ASSERT_LT(static_cast<double>(spec.width) * spec.height, 1e6) << "more pixels than the file can have";
      Image image(spec);
      in->read_rows(0, image.view());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io) << error.what();
    }
  }
}

TEST_F(BmpTest, EveryLayoutGivesBackTheBitsAndTheSpec) {
  for (const int channels : {1, 3, 4}) {
    for (const auto& [width, height] :
         {std::pair{7, 5}, std::pair{1, 1}, std::pair{2, 9}, std::pair{2500, 900}}) {
      const Colour colour = channels == 1 ? Colour::gray : Colour::rgb;
      Image image(ImageSpec{width, height, channels, PixelType::u8, colour, channels == 4});
      std::mt19937 random(static_cast<unsigned>(width));
      for (std::size_t i = 0; i < image.bytes(); ++i)
        image.samples<std::uint8_t>()[i] = static_cast<std::uint8_t>(random());
      write_image(path("a.bmp"), image.view());
      const auto in = InputFile::open(path("a.bmp"));
      EXPECT_EQ(in->info().spec, image.spec());
      EXPECT_EQ(in->info().format, "BMP");
      EXPECT_EQ(in->info().note, "");
      Image back(image.spec());
      for (int y = height - 1; y >= 0; --y) in->read_rows(y, back.view().rows(y, 1));
      EXPECT_TRUE(samples_of(back) == samples_of(image)) << channels << " " << width;
      EXPECT_TRUE(samples_of(read_image(path("a.bmp"))) == samples_of(image)) << channels << " " << width;
    }
  }
}

TEST_F(BmpTest, WhatIsWrittenIsWhatOtherProgramsRead) {
  Image rgb(ImageSpec{1, 2, 3, PixelType::u8, Colour::rgb});
  std::iota(rgb.samples<std::uint8_t>(), rgb.samples<std::uint8_t>() + 6, std::uint8_t{1});
  write_image(path("a.bmp"), rgb.view());
  const std::string bytes = bytes_of(path("a.bmp"));
  EXPECT_EQ(bytes.substr(0, 14), "BM" + little(62, 4) + little(0, 4) + little(54, 4));
  EXPECT_EQ(bytes.substr(14, 24), little(40, 4) + little(1, 4) + little(2, 4) + little(1, 2) + little(24, 2) +
                                      little(0, 4) + little(8, 4));
  EXPECT_EQ(bytes.substr(54), "\6\5\4\0\3\2\1\0"s);
}

TEST_F(BmpTest, WhatBmpCannotHoldIsRefused) {
  std::string why;
  EXPECT_FALSE(can_write("a.bmp", ImageSpec{1, 1, 2, PixelType::u8, Colour::gray, true}, 1, &why));
  EXPECT_EQ(why, "BMP holds gray, rgb, rgb with alpha, not gray with alpha");
  EXPECT_FALSE(can_write("a.dib", nullptr));
  EXPECT_EQ(writable_type("a.bmp", PixelType::f32), PixelType::u8);
  EXPECT_EQ(io_failure(path("a.bmp"),
                       [&] {
                         OutputFile::create(path("a.bmp"),
                                            {.spec = ImageSpec{40000, 40000, 3, PixelType::u8, Colour::rgb}},
                                            nullptr);
                       }),
            "BMP holds 4 GiB at most, and 40000 x 40000 pixels need 4800000054 bytes; write .tif");
}

}  // namespace
}  // namespace ungrain::io
