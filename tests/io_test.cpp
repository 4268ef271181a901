// The file formats of every build: PNM, PAM, PFM, NPY, and how files are replaced.
#include <gtest/gtest.h>
#ifndef _WIN32  // which has no permissions by bits, no named pipes in folders and no limits of a file's size
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "io/file_access.h"
#include "io/image_file.h"
#include "platform/files.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

class IoTest : public testing::Test {
 protected:
  IoTest() : folder_(platform::make_private_folder(fs::temp_directory_path(), "ungrain-io-")) {}
  ~IoTest() override {
    std::error_code ignored;
    fs::permissions(folder_, fs::perms::owner_all, ignored);
    fs::remove_all(folder_, ignored);
  }

  fs::path path(const std::string& name) const { return folder_ / name; }

  fs::path file(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  static std::string bytes_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  fs::path folder_;
};

// Runs `call`, which must throw Error(io) in one line that begins with the file's name; returns the rest of
// it.
std::string failure_of(const fs::path& file, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), ErrorCode::io) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with(file.string() + ": ")) << message;
    return message.substr(std::min(message.size(), file.string().size() + 2));
  }
  ADD_FAILURE() << file << ": no error";
  return {};
}

std::string reading_failure(const fs::path& file) {
  return failure_of(file, [&] { read_image(file); });
}

void fill(Image& image, unsigned seed) {
  std::mt19937 random(seed);
  const std::size_t samples = image.bytes() / bytes_per_sample(image.spec().type);
  const auto white = static_cast<unsigned>(image.spec().white());
  for (std::size_t i = 0; i < samples; ++i) {
    switch (image.spec().type) {
      case PixelType::u8:
        image.samples<std::uint8_t>()[i] = static_cast<std::uint8_t>(random() % (white + 1));
        break;
      case PixelType::u16:
        image.samples<std::uint16_t>()[i] = static_cast<std::uint16_t>(random() % (white + 1));
        break;
      case PixelType::f16:
        image.samples<std::uint16_t>()[i] = static_cast<std::uint16_t>(random() & 0xffffU);
        break;
      case PixelType::f32:  // any bits: NaN and infinity are carried too
        image.samples<float>()[i] = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        break;
    }
  }
}

testing::AssertionResult same_samples(const Image& a, const Image& b) {
  if (a.bytes() != b.bytes())
    return testing::AssertionFailure() << a.bytes() << " and " << b.bytes() << " bytes";
  const auto* p = a.samples<std::byte>();
  const auto* q = b.samples<std::byte>();
  const auto [at, other] = std::mismatch(p, p + a.bytes(), q);
  if (at == p + a.bytes()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "byte " << at - p << " is " << std::to_integer<int>(*at) << " and "
                                     << std::to_integer<int>(*other);
}

// Formats and what they hold
// ------------------------------------------------------------------------------------------

struct RoundTrip {
  const char* extension;
  PixelType type;
  int channels;
  Colour colour;
  bool alpha;
  double range;
};

std::string describe(const RoundTrip& c) {
  return std::string(c.extension) + " " + std::string(name(c.type)) + " x" + std::to_string(c.channels) +
         " " + std::string(name(c.colour)) + (c.alpha ? "+alpha" : "") + " range " + std::to_string(c.range);
}

std::vector<RoundTrip> round_trips() {
  std::vector<RoundTrip> list;
  for (const auto& [type, ranges] : {std::pair{PixelType::u8, std::vector{0.0, 1.0, 100.0}},
                                     std::pair{PixelType::u16, std::vector{0.0, 256.0, 1023.0, 4095.0}}}) {
    for (const double range : ranges) {
      list.push_back({".pgm", type, 1, Colour::gray, false, range});
      list.push_back({".ppm", type, 3, Colour::rgb, false, range});
      for (const char* extension : {".pnm", ".pam", ".PAM"}) {
        list.push_back({extension, type, 1, Colour::gray, false, range});
        list.push_back({extension, type, 2, Colour::gray, true, range});
        list.push_back({extension, type, 2, Colour::multi, false, range});
        list.push_back({extension, type, 3, Colour::rgb, false, range});
        list.push_back({extension, type, 3, Colour::multi, false, range});
        list.push_back({extension, type, 4, Colour::rgb, true, range});
        list.push_back({extension, type, 4, Colour::multi, false, range});
      }
    }
  }
  list.push_back({".pfm", PixelType::f32, 1, Colour::gray, false, 0});
  list.push_back({".pfm", PixelType::f32, 3, Colour::rgb, false, 0});
  for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f16, PixelType::f32}) {
    list.push_back({".npy", type, 1, Colour::gray, false, 0});
    list.push_back({".npy", type, 2, Colour::multi, false, 0});
    list.push_back({".npy", type, 3, Colour::rgb, false, 0});
    list.push_back({".npy", type, 4, Colour::multi, false, 0});
  }
  return list;
}

TEST_F(IoTest, EveryFormatGivesBackTheBitsAndTheSpec) {
  for (const RoundTrip& c : round_trips()) {
    SCOPED_TRACE(describe(c));
    for (const auto& [width, height] : {std::pair{7, 5}, std::pair{1, 1}, std::pair{33, 2}}) {
      if (c.range != 0 && width != 7) continue;
      Image image(ImageSpec{width, height, c.channels, c.type, c.colour, c.alpha, c.range});
      fill(image, 1);
      const fs::path file = path("image"s + c.extension);
      write_image(file, image.view());
      const auto back = InputFile::open(file);
      EXPECT_EQ(back->info().spec, image.spec());
      EXPECT_EQ(back->info().pages, 1);
      EXPECT_EQ(back->info().note, "");
      EXPECT_TRUE(same_samples(read_image(file), image));
    }
  }
}

TEST_F(IoTest, WideRowsAndManyRowsAreStreamedInBlocks) {
  for (const char* extension : {".pgm", ".npy"}) {
    Image image(ImageSpec{3001, 1500, 1, PixelType::u16, Colour::gray});  // 9 MB: several blocks
    fill(image, 2);
    write_image(path("large"s + extension), image.view());
    EXPECT_TRUE(same_samples(read_image(path("large"s + extension)), image));
  }
  Image image(ImageSpec{3001, 700, 1, PixelType::f32, Colour::gray});
  fill(image, 2);
  write_image(path("large.pfm"), image.view());
  EXPECT_TRUE(same_samples(read_image(path("large.pfm")), image));
}

TEST_F(IoTest, AnyStridesAreReadAndWritten) {
  const ImageSpec spec{9, 6, 3, PixelType::u16, Colour::rgb};
  Image image(spec);
  fill(image, 3);
  for (const char* extension : {".ppm", ".npy"}) {
    const fs::path file = path("strided"s + extension);
    // Planar, rows upside down, 10 bytes of padding after each.
    const std::ptrdiff_t row = 9 * 2 + 10;
    std::vector<std::byte> memory(3 * 6 * row, std::byte{0xee});
    const Strides strides{.x = 2, .y = -row, .channel = 6 * row};
    const ImageView planar(memory.data() + 5 * row, spec, strides);
    write_image(file, image.view());
    InputFile::open(file)->read_rows(0, planar);
    for (int channel = 0; channel < 3; ++channel) {
      for (int y = 0; y < 6; ++y) {
        for (int x = 0; x < 9; ++x) {
          std::uint16_t sample = 0;
          std::memcpy(&sample, memory.data() + channel * 6 * row + (5 - y) * row + x * 2, 2);
          ASSERT_EQ(sample, image.samples<std::uint16_t>()[(y * 9 + x) * 3 + channel]);
        }
        for (int i = 18; i < row; ++i) ASSERT_EQ(memory[channel * 6 * row + y * row + i], std::byte{0xee});
      }
    }
    write_image(file, planar);
    EXPECT_TRUE(same_samples(read_image(file), image));
  }
}

TEST_F(IoTest, BandsInAnyOrderAreTheWhole) {
  Image image(ImageSpec{5, 11, 1, PixelType::u16, Colour::gray, false, 999});
  fill(image, 4);
  write_image(path("a.pgm"), image.view());
  std::string ascii = "P2 5 11 999\n";
  for (int i = 0; i < 55; ++i) ascii += std::to_string(image.samples<std::uint16_t>()[i]) + " ";
  Image real(ImageSpec{5, 11, 1, PixelType::f32, Colour::gray});
  fill(real, 4);
  write_image(path("a.pfm"), real.view());

  for (const fs::path& name : {path("a.pgm"), file("ascii.pgm", ascii), path("a.pfm")}) {
    const Image whole = read_image(name);
    const auto in = InputFile::open(name);
    for (const int band : {1, 3, 4, 11}) {
      Image forwards(whole.spec());
      for (int y = 0; y < 11; y += band) in->read_rows(y, forwards.view().rows(y, std::min(band, 11 - y)));
      EXPECT_TRUE(same_samples(forwards, whole)) << name;
      Image backwards(whole.spec());
      for (int y = 10; y >= 0; --y) in->read_rows(y, backwards.view().rows(y, 1));
      EXPECT_TRUE(same_samples(backwards, whole)) << name;
    }
  }
}

TEST_F(IoTest, RowsThatAreNotTheImagesAreRefused) {
  Image image(ImageSpec{5, 4, 1, PixelType::u8, Colour::gray});
  write_image(path("a.pgm"), image.view());
  const auto in = InputFile::open(path("a.pgm"));
  const auto out = OutputFile::create(path("b.pgm"), in->info(), in.get());
  const auto code = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  Image other(ImageSpec{5, 4, 1, PixelType::u16, Colour::gray});
  EXPECT_EQ(code([&] { in->read_rows(1, image.view()); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([&] { in->read_rows(-1, image.view().rows(0, 1)); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([&] { in->read_rows(0, other.view()); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([&] { out->write_rows(1, image.view().rows(0, 1)); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([&] { out->write_rows(0, other.view()); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([&] { out->next_page(); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([&] { out->commit(); }), ErrorCode::invalid_argument);
  EXPECT_NO_THROW(in->select_page(0));
  EXPECT_EQ(code([&] { in->select_page(1); }), ErrorCode::io);
}

// Single formats, against bytes written by hand
// -----------------------------------------------------------------------

TEST_F(IoTest, AsciiPnmWithComments) {
  const auto image = read_image(
      file("a.ppm", "P3 # colour\n# a comment\n 2#width\n1 # height\n15\n1 2 3 #pixel\n\t15 0\r\n7"));
  EXPECT_EQ(image.spec(), (ImageSpec{2, 1, 3, PixelType::u8, Colour::rgb, false, 15}));
  EXPECT_EQ((std::vector<int>(image.samples<std::uint8_t>(), image.samples<std::uint8_t>() + 6)),
            (std::vector{1, 2, 3, 15, 0, 7}));
  EXPECT_EQ(read_image(file("c.pgm", "P5 1 1 255#comment\nx")).samples<char>()[0], 'x');
  const auto wide = read_image(file("b.pgm", "P2\n2 1\n60000\n00059999 60000\n"));
  EXPECT_EQ(wide.spec(), (ImageSpec{2, 1, 1, PixelType::u16, Colour::gray, false, 60000}));
  EXPECT_EQ(wide.samples<std::uint16_t>()[0], 59999);
}

TEST_F(IoTest, BitmapsAreBlackWhereTheBitIsSet) {
  const std::vector<int> expected = {0,   255, 0,   255, 255, 255, 255, 255, 255, 0,   // 1010 0000 01
                                     255, 255, 255, 255, 255, 255, 255, 0,   0,   0};  // 0000 0001 11
  const std::string bits = "P4\n10 2\n\xa0\x40\x01\xc0"s;
  for (const fs::path& name :
       {file("bits.pbm", bits), file("ascii.pbm", "P1\n10 2\n1010 000001\n0000000111\n")}) {
    const Image image = read_image(name);
    EXPECT_EQ(image.spec(), (ImageSpec{10, 2, 1, PixelType::u8, Colour::gray}));
    EXPECT_EQ(std::vector<int>(image.samples<std::uint8_t>(), image.samples<std::uint8_t>() + 20), expected);
  }
}

TEST_F(IoTest, PamTupleTypes) {
  const auto spec_of = [&](const std::string& depth, const std::string& tuple) {
    const std::string header = "P7\n# made by hand\nHEIGHT 1\nWIDTH 1\nMAXVAL 255\nDEPTH " + depth + "\n" +
                               (tuple.empty() ? "" : "TUPLTYPE " + tuple + "\n") + "ENDHDR\n";
    return InputFile::open(file("a.pam", header + std::string(4, 'x')))->info().spec;
  };
  EXPECT_EQ(spec_of("1", "GRAYSCALE"), (ImageSpec{1, 1, 1, PixelType::u8, Colour::gray}));
  EXPECT_EQ(spec_of("2", "GRAYSCALE_ALPHA"), (ImageSpec{1, 1, 2, PixelType::u8, Colour::gray, true}));
  EXPECT_EQ(spec_of("3", "RGB"), (ImageSpec{1, 1, 3, PixelType::u8, Colour::rgb}));
  EXPECT_EQ(spec_of("4", "RGB_ALPHA"), (ImageSpec{1, 1, 4, PixelType::u8, Colour::rgb, true}));
  EXPECT_EQ(spec_of("1", ""), (ImageSpec{1, 1, 1, PixelType::u8, Colour::gray}));
  EXPECT_EQ(spec_of("3", ""), (ImageSpec{1, 1, 3, PixelType::u8, Colour::multi}));
  EXPECT_EQ(spec_of("4", "CMYK"), (ImageSpec{1, 1, 4, PixelType::u8, Colour::multi}));
  EXPECT_EQ(spec_of("3", "GRAYSCALE_ALPHA"), (ImageSpec{1, 1, 3, PixelType::u8, Colour::multi}));
  const Image bits = read_image(
      file("b.pam", "P7\nWIDTH 3\nHEIGHT 1\nDEPTH 1\nMAXVAL 1\nTUPLTYPE BLACKANDWHITE\nENDHDR\n\0\1\0"s));
  EXPECT_EQ(bits.spec().range, 0);
  EXPECT_EQ(bits.samples<std::uint8_t>()[1], 255);
}

TEST_F(IoTest, PnmSamplesAreBigEndianAndClampedToTheRangeOnWriting) {
  Image image(ImageSpec{2, 1, 1, PixelType::u16, Colour::gray, false, 0x3ff});
  image.samples<std::uint16_t>()[0] = 0x102;
  image.samples<std::uint16_t>()[1] = 0x400;
  write_image(path("a.pgm"), image.view());
  EXPECT_EQ(bytes_of(path("a.pgm")), "P5\n2 1\n1023\n\x01\x02\x03\xff"s);
  Image low(ImageSpec{2, 1, 1, PixelType::u8, Colour::gray, false, 100});
  low.samples<std::uint8_t>()[0] = 100;
  low.samples<std::uint8_t>()[1] = 101;
  write_image(path("b.pgm"), low.view());
  EXPECT_EQ(bytes_of(path("b.pgm")), "P5\n2 1\n100\ndd");
}

TEST_F(IoTest, PnmTellsThatMoreImagesFollow) {
  const auto in = InputFile::open(file("two.pgm", "P5 1 1 255\nxP5 1 1 255\ny"));
  EXPECT_EQ(in->info().note, "12 bytes after the image ignored");
}

TEST_F(IoTest, PfmRowsGoFromTheBottomUpInBothByteOrders) {
  const std::string one = "\x3f\x80\x00\x00"s, two = "\x40\x00\x00\x00"s, three = "\x40\x40\x00\x00"s,
                    four = "\x40\x80\x00\x00"s;
  const auto reversed = [](std::string s) { return std::string(s.rbegin(), s.rend()); };
  const std::string big = "Pf\n2 2\n1.0\n" + three + four + one + two;
  const std::string little =
      "Pf\n2 2\n-1.0\n" + reversed(three) + reversed(four) + reversed(one) + reversed(two);
  for (const fs::path& name : {file("big.pfm", big), file("little.pfm", little)}) {
    const Image image = read_image(name);
    EXPECT_EQ(image.spec(), (ImageSpec{2, 2, 1, PixelType::f32, Colour::gray}));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(image.samples<float>()[i], static_cast<float>(i + 1));
  }
  write_image(path("back.pfm"), read_image(path("big.pfm")).view());
  EXPECT_EQ(bytes_of(path("back.pfm")), little);
  EXPECT_EQ(InputFile::open(file("scaled.pfm", "PF 1 1 -2.5\n" + std::string(12, '\0')))->info().note,
            "the header's scale of 2.5 ignored");
}

std::string npy(const std::string& descr, bool fortran, const std::string& shape, const std::string& samples,
                int version = 1) {
  std::string text = "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
                     ", 'shape': " + shape + ", }";
  text.resize(117, ' ');
  text += '\n';
  std::string header =
      "\x93NUMPY"s + static_cast<char>(version) + '\0' + static_cast<char>(text.size()) + '\0';
  if (version > 1) header += "\0\0"s;
  return header + text + samples;
}

template <class T>
std::string bytes_as(const std::vector<T>& values, bool big_endian) {
  std::string bytes;
  for (const T value : values) {
    std::string sample(reinterpret_cast<const char*>(&value), sizeof value);
    if (big_endian) std::reverse(sample.begin(), sample.end());
    bytes += sample;
  }
  return bytes;
}

TEST_F(IoTest, NpyInBothByteOrdersAndAllVersions) {
  for (const int version : {1, 2, 3}) {
    for (const bool big : {false, true}) {
      const std::string order = big ? ">" : "<";
      const auto u2 = read_image(file("a.npy", npy(order + "u2", false, "(1, 3)",
                                                   bytes_as<std::uint16_t>({1, 258, 65535}, big), version)));
      EXPECT_EQ(u2.spec(), (ImageSpec{3, 1, 1, PixelType::u16, Colour::gray}));
      EXPECT_EQ(u2.samples<std::uint16_t>()[1], 258);
      const auto f2 = read_image(
          file("a.npy", npy(order + "f2", false, "(1, 1)", bytes_as<std::uint16_t>({0x3c00}, big), version)));
      EXPECT_EQ(f2.spec().type, PixelType::f16);
      EXPECT_EQ(f2.samples<std::uint16_t>()[0], 0x3c00);
      const auto f4 = read_image(
          file("a.npy", npy(order + "f4", false, "(2, 1)", bytes_as<float>({1.5F, -2}, big), version)));
      EXPECT_EQ(f4.samples<float>()[1], -2);
      const fs::path f8 =
          file("a.npy", npy(order + "f8", false, "(1, 2)", bytes_as<double>({0.1, -1e30}, big), version));
      EXPECT_EQ(InputFile::open(f8)->info().note, "f64 samples converted to f32");
      EXPECT_EQ(read_image(f8).samples<float>()[0], 0.1F);
      const fs::path beyond =
          file("a.npy", npy(order + "f8", false, "(1, 2)", bytes_as<double>({0.1, -1e300}, big), version));
      EXPECT_THROW(read_image(beyond), Error);
      const fs::path i2 =
          file("a.npy", npy(order + "i2", false, "(1, 2)", bytes_as<std::int16_t>({-5, 300}, big), version));
      EXPECT_EQ(InputFile::open(i2)->info().spec,
                (ImageSpec{2, 1, 1, PixelType::f32, Colour::gray, false, 32767}));
      EXPECT_EQ(read_image(i2).samples<float>()[0], -5);
    }
  }
}

TEST_F(IoTest, NpyInFortranOrder) {
  for (const int channels : {1, 3}) {
    constexpr int width = 4, height = 5;
    std::vector<std::uint16_t> columns;
    for (int c = 0; c < channels; ++c) {
      for (int x = 0; x < width; ++x) {
        for (int y = 0; y < height; ++y)
          columns.push_back(static_cast<std::uint16_t>(1000 * c + 100 * y + x));
      }
    }
    const std::string shape = channels == 1 ? "(5, 4)" : "(5, 4, 3)";
    const fs::path name = file("f.npy", npy(">u2", true, shape, bytes_as(columns, true)));
    const auto in = InputFile::open(name);
    Image image(in->info().spec);
    for (int y = 0; y < height; y += 2) in->read_rows(y, image.view().rows(y, std::min(2, height - y)));
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < channels; ++c) {
          ASSERT_EQ(image.samples<std::uint16_t>()[(y * width + x) * channels + c], 1000 * c + 100 * y + x);
        }
      }
    }
    EXPECT_TRUE(same_samples(read_image(name), image));
  }
}

TEST_F(IoTest, NpyIsWrittenAsNumpyWritesIt) {
  Image image(ImageSpec{3, 2, 1, PixelType::u8, Colour::gray});
  write_image(path("a.npy"), image.view());
  const std::string bytes = bytes_of(path("a.npy"));
  const std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }";
  EXPECT_EQ(bytes.substr(0, 10), "\x93NUMPY\x01\x00\x76\x00"s);
  EXPECT_EQ(bytes.substr(10, 118), text + std::string(117 - text.size(), ' ') + "\n");
  EXPECT_EQ(bytes.size(), 128U + 6U);
}

// Files that are not what they should be
// ------------------------------------------------------------------------------

TEST_F(IoTest, DamagedFilesAreClearErrors) {
  struct Case {
    std::string bytes;
    std::string says;
  };
  const std::string huge = "99999999999999999999";
  const std::vector<Case> cases = {
      {"", "the file is empty"},
      {"P", "not an image"},
      {"hello, this is no image\n", "not an image"},
      {"P8\n1 1\n255\nx", "not an image"},
      {std::string(4096, '\0'), "not an image"},
      // PNM
      {"P5\n", "the width is \"\", not a number"},
      {"P5\nfour 4\n255\n", "the width is \"four\""},
      {"P5\n4x 4\n255\n", "the width is \"4x\""},
      {"P5\n4 4\n", "the largest sample is \"\""},
      {"P5\n4 4\n255", "does not end in white space"},
      {"P5\n0 4\n255\n", "0 x 4 pixels"},
      {"P5\n4 0\n255\n", "4 x 0 pixels"},
      {"P5\n-4 4\n255\n", "-4 x 4 pixels"},
      {"P5\n" + huge + " 4\n255\n", "2147483647 a side"},
      {"P5\n2147483648 1\n255\n", "2147483648 x 1"},
      {"P6\n2147483647 2147483647\n65535\nxx", "truncated: the header promises more than 2^64 bytes"},
      {"P5\n2147483647 2147483647\n255\nxx", "truncated: the header promises 4611686014132420609 bytes"},
      {"P5\n4 4\n0\n", "0 for the largest sample"},
      {"P5\n4 4\n65536\n", "65536 for the largest sample"},
      {"P5\n4 4\n-1\n", "-1 for the largest sample"},
      {"P5\n4 4\n255\n" + std::string(15, 'x'),
       "truncated: the header promises 16 bytes of pixels (4 x 4), the file has 15"},
      {"P6\n4 4\n256\n" + std::string(95, '\0'), "promises 96 bytes"},
      {"P4\n9 2\nabc", "promises 4 bytes"},
      {"P5\n2 1\n100\n\x64\x65", "row 0 has the sample 101: the header says 100 at most"},
      {"P5\n1 2\n1000\n"s + "\x03\xe8\x03\xe9", "row 1 has the sample 1001"},
      {"P2\n2 1\n10\n3 11\n", "row 0 has the sample 11"},
      {"P2\n2 1\n10\n3 x1\n", "row 0 has something that is not a number"},
      {"P2\n2 2\n10\n1 2 3 \n\n\n\n", "truncated: it ends in row 1 of 2"},
      {"P2\n2 2\n10\n1 2\n", "truncated"},
      {"P2\n1 1\n65535\n" + huge + "\n", "has the sample"},
      {"P1\n3 1\n102\n", "has the sample 2"},
      {"P2\n1000000 1000000\n255\n1 2 3\n", "truncated"},
      {"P7\nWIDTH 2\nHEIGHT 2\nENDHDR\n", "has 0 channels"},
      {"P7\nWIDTH 2\nHEIGHT 2\nDEPTH 5\nMAXVAL 255\nENDHDR\n", "has 5 channels: 1 to 4"},
      {"P7\nWIDTH 2\nHEIGHT 2\nDEPTH 1\nENDHDR\n", "0 for the largest sample"},
      {"P7\nWIDTH 2\nCOLOUR 2\n", "\"COLOUR\" is not a part"},
      {"P7\nWIDTH 2\n", "\"\" is not a part"},
      // PFM
      {"Pf\n2 2\n0\n", "the scale is \"0\""},
      {"Pf\n2 2\nnan\n", "the scale is \"nan\""},
      {"Pf\n2 2\nx\n", "the scale is \"x\""},
      {"PF\n2 0\n1\n", "2 x 0"},
      {"PF\n2 2\n-1\nabc", "promises 48 bytes"},
      // NPY
      {"\x93NUMPY", "truncated: it ends in its header"},
      {"\x93NUMPY\x04\x00\x10\x00 1234567"s, "version 4"},
      {"\x93NUMPY\x01\x00\xff\xff{'descr'"s, "truncated: it ends in its header"},
      {"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'"s, "header is damaged: 4294967295 bytes"},
      {npy("|O", false, "(2, 2)", "xxxx"), "the type \"|O\""},
      {npy("<i8", false, "(2, 2)", "xxxx"), "the type \"<i8\""},
      {npy("<c8", false, "(2, 2)", "xxxx"), "the type \"<c8\""},
      {npy("|S5", false, "(2, 2)", "xxxx"), "the type \"|S5\""},
      {npy("u1", false, "(2, 2)", "xxxx"), "the type \"u1\""},
      {npy("", false, "(2, 2)", "xxxx"), "the type \"\""},
      {npy("|u1', 'x': __import__('os').system('true') or '", false, "(2, 2)", "xxxx"),
       "NPY header is damaged"},
      {npy("|u1", false, "__import__('os')", "xxxx"), "NPY header is damaged"},
      {npy("|u1", false, "(2, 2), 'more': 1", "xxxx"), "NPY header is damaged"},
      {npy("|u1", false, "(2 2)", "xxxx"), "NPY header is damaged"},
      {npy("|u1", false, "(2, 2", "xxxx"), "NPY header is damaged"},
      {npy("|u1", false, "(2, two)", "xxxx"), "NPY header is damaged"},
      {"\x93NUMPY\x01\x00\x20\x00[1, 2, 3]                      \n"s, "NPY header is damaged"},
      {"\x93NUMPY\x01\x00\x25\x00{'descr': [('r', '|u1')], 'shape': ()}"s, "structured records"},
      {"\x93NUMPY\x01\x00\x24\x00{'descr': '|u1', 'shape': (2, 2), }  xxxx"s, "NPY header is damaged"},
      {npy("|u1", false, "()", "xxxx"), "shape (): an image is"},
      {npy("|u1", false, "(4,)", "xxxx"), "shape (4): an image is"},
      {npy("|u1", false, "(100, 512, 512)", "xxxx"), "shape (100, 512, 512): an image is (height, width)"},
      {npy("|u1", false, "(2, 2, 5)", "xxxx"), "shape (2, 2, 5)"},
      {npy("|u1", false, "(1, 2, 2, 1)", "xxxx"), "shape (1, 2, 2, 1)"},
      {npy("|u1", false, "(0, 2)", "xxxx"), "2 x 0 pixels"},
      {npy("|u1", false, "(2, -2)", "xxxx"), "-2 x 2 pixels"},
      {npy("|u1", false, "(2, " + huge + ")", "xxxx"), "2147483647 a side"},
      {npy("<f8", true, "(2147483647, 2147483647, 4)", "xxxx"),
       "truncated: the header promises more than 2^64"},
      {npy("<u2", false, "(2, 2)", "xxxxxxx"), "promises 8 bytes of pixels (2 x 2), the file has 7"},
  };
  for (const Case& c : cases) {
    const fs::path name = file("damaged.pgm", c.bytes);
    EXPECT_NE(reading_failure(name).find(c.says), std::string::npos)
        << "instead of \"" << c.says << "\": " << reading_failure(name);
  }
}

TEST_F(IoTest, EveryTruncationOfAGoodFileIsAnError) {
  Image image(ImageSpec{3, 3, 3, PixelType::u16, Colour::rgb});
  fill(image, 5);
  for (const char* extension : {".ppm", ".pam", ".npy"}) {
    write_image(path("whole"s + extension), image.view());
    const std::string whole = bytes_of(path("whole"s + extension));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_NE(reading_failure(file("part"s + extension, whole.substr(0, size))), "");
    }
  }
}

#ifndef _WIN32
TEST_F(IoTest, NotFiles) {
  EXPECT_EQ(reading_failure(path("missing.pgm")), "there is no such file");
  EXPECT_EQ(reading_failure(folder_), "is a folder, not an image");
  ASSERT_EQ(mkfifo(path("pipe.pgm").c_str(), 0600), 0);
  EXPECT_EQ(reading_failure(path("pipe.pgm")), "is not a regular file");  // and does not wait for a writer
  const fs::path odd = path("odd\nname.pgm");
  try {
    read_image(odd);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
  if (geteuid() == 0) return;  // root may read anything
  fs::permissions(file("secret.pgm", "P5 1 1 255\nx"), fs::perms::none);
  EXPECT_EQ(reading_failure(path("secret.pgm")), "cannot be opened: Permission denied");
}
#endif

TEST_F(IoTest, ChangesWhileReadingAreSeen) {
  const std::string bytes = "P5 2 2 255\nabcd";
  const auto check = [](InputFile& in) { in.check_unchanged(); };
  {
    const auto in = InputFile::open(file("a.pgm", bytes));
    EXPECT_NO_THROW(check(*in));
    file("a.pgm", bytes + "more");
    EXPECT_EQ(failure_of(path("a.pgm"), [&] { check(*in); }), "changed while it was read");
  }
  {
    const auto in = InputFile::open(file("b.pgm", bytes));
    fs::last_write_time(path("b.pgm"), fs::last_write_time(path("b.pgm")) + std::chrono::nanoseconds(100));
    EXPECT_EQ(failure_of(path("b.pgm"), [&] { check(*in); }), "changed while it was read");
  }
  {
    const auto in = InputFile::open(file("c.pgm", bytes));
    fs::rename(file("new.pgm", bytes), path("c.pgm"));
    EXPECT_EQ(failure_of(path("c.pgm"), [&] { check(*in); }), "changed while it was read");
  }
  {
    const auto in = InputFile::open(file("d.pgm", bytes));
    fs::remove(path("d.pgm"));
    EXPECT_EQ(failure_of(path("d.pgm"), [&] { check(*in); }), "changed while it was read");
  }
  {
    const auto in = InputFile::open(file("e.pgm", bytes));
    fs::resize_file(path("e.pgm"), 12);
    Image image(in->info().spec);
    EXPECT_EQ(failure_of(path("e.pgm"), [&] { in->read_rows(0, image.view()); }),
              "changed while it was read: it is shorter now");
  }
}

// Writing
// -------------------------------------------------------------------------------------------------------------

TEST_F(IoTest, NothingIsLeftWithoutCommit) {
  const Image image(ImageSpec{4, 4, 1, PixelType::u8, Colour::gray});
  file("a.pgm", "before");
  {
    const auto out = OutputFile::create(path("a.pgm"), {.spec = image.spec()}, nullptr);
    out->write_rows(0, image.view().rows(0, 2));
    EXPECT_EQ(files().size(), 3U);  // it and its guard
    EXPECT_EQ(files()[0].find(".a.ungrain-"), 0U) << files()[0];
    EXPECT_TRUE(files()[0].ends_with(".pgm"));
  }
  EXPECT_EQ(files(), std::vector<std::string>{"a.pgm"});
  EXPECT_EQ(bytes_of(path("a.pgm")), "before");
}

TEST_F(IoTest, RemoveTemporariesLeavesWhatIsCommitted) {
  const Image image(ImageSpec{4, 4, 1, PixelType::u8, Colour::gray});
  write_image(path("done.pgm"), image.view());
  const auto out = OutputFile::create(path("a.pgm"), {.spec = image.spec()}, nullptr);
  EXPECT_EQ(files().size(), 3U);
  remove_temporaries();
  EXPECT_EQ(files(), std::vector<std::string>{"done.pgm"});
  out->write_rows(0, image.view());
  failure_of(path("a.pgm"), [&] { out->commit(); });
  EXPECT_EQ(files(), std::vector<std::string>{"done.pgm"});
}

TEST_F(IoTest, TheOutputMayBeTheInput) {
  Image image(ImageSpec{64, 64, 1, PixelType::u8, Colour::gray});
  fill(image, 6);
  write_image(path("a.pgm"), image.view());
  const auto in = InputFile::open(path("a.pgm"));
  const auto out = OutputFile::create(path("a.pgm"), in->info(), in.get());
  Image row(ImageSpec{64, 1, 1, PixelType::u8, Colour::gray});
  for (int y = 0; y < 64; ++y) {
    in->read_rows(y, row.view());
    for (int x = 0; x < 64; ++x) row.samples<std::uint8_t>()[x] ^= 0xffU;
    out->write_rows(y, row.view());
  }
  in->check_unchanged();
  out->commit();
  const Image back = read_image(path("a.pgm"));
  for (int i = 0; i < 64 * 64; ++i) {
    ASSERT_EQ(back.samples<std::uint8_t>()[i], image.samples<std::uint8_t>()[i] ^ 0xffU);
  }
  EXPECT_EQ(files(), std::vector<std::string>{"a.pgm"});
}

#ifndef _WIN32

TEST_F(IoTest, PermissionsAreThoseOfTheFileReplacedOrTheUsual) {
  const Image image(ImageSpec{2, 2, 1, PixelType::u8, Colour::gray});
  const mode_t mask = umask(027);
  write_image(path("new.pgm"), image.view());
  umask(mask);
  EXPECT_EQ(fs::status(path("new.pgm")).permissions(), static_cast<fs::perms>(0640));
  fs::permissions(path("new.pgm"), static_cast<fs::perms>(0604));
  write_image(path("new.pgm"), image.view());
  EXPECT_EQ(fs::status(path("new.pgm")).permissions(), static_cast<fs::perms>(0604));
}

fs::perms permissions_of(const fs::path& file) { return fs::status(file).permissions(); }

TEST_F(IoTest, ANewOutputIsNotOpenToMoreThanItsInput) {
  const Image image(ImageSpec{2, 2, 1, PixelType::u8, Colour::gray});
  write_image(path("in.pgm"), image.view());
  const mode_t mask = umask(022);
  for (const auto& [input, output] :
       {std::pair(0600, 0600), {0640, 0640}, {0644, 0644}, {0666, 0644}, {0400, 0600}, {0755, 0644}}) {
    fs::permissions(path("in.pgm"), static_cast<fs::perms>(input));
    const auto in = InputFile::open(path("in.pgm"));
    const auto out = OutputFile::create(path("out.pgm"), in->info(), in.get());
    EXPECT_EQ(permissions_of(path(files()[0])), static_cast<fs::perms>(output)) << files()[0];
    out->write_rows(0, image.view());
    out->commit();
    EXPECT_EQ(permissions_of(path("out.pgm")), static_cast<fs::perms>(output)) << input;
    fs::remove(path("out.pgm"));
  }
  umask(mask);
}

TEST_F(IoTest, WhatReplacesAPrivateFileIsPrivateWhileItIsWritten) {
  const Image image(ImageSpec{2, 2, 1, PixelType::u8, Colour::gray});
  write_image(path("in.pgm"), image.view());
  write_image(path("out.pgm"), image.view());
  fs::permissions(path("out.pgm"), static_cast<fs::perms>(0600));
  const auto in = InputFile::open(path("in.pgm"));
  const auto out = OutputFile::create(path("out.pgm"), in->info(), in.get());
  EXPECT_EQ(permissions_of(path(files()[0])), static_cast<fs::perms>(0600)) << files()[0];
}

#endif

TEST(FileAccess, AnotherGroupGetsWhatBothGroupAndOthersHad) {
  const FileAccess team{.mode = 0640, .group = 5};
  EXPECT_EQ(team.mode_in(5), 0640U);
  EXPECT_EQ(team.mode_in(6), 0600U);
  EXPECT_EQ((FileAccess{.mode = 0604, .group = 5}.mode_in(6)), 0600U);
  EXPECT_EQ((FileAccess{.mode = 0664, .group = 5}.mode_in(6)), 0644U);
  EXPECT_EQ(FileAccess{}.shared_with(team).mode_in(5), 0640U);
  EXPECT_EQ(team.shared_with({.mode = 0644, .group = 5}).mode_in(5), 0640U);
  EXPECT_EQ(team.shared_with({.mode = 0640, .group = 6}).mode_in(5), 0600U);
}

// Leftovers are looked for once a folder and process: each of these tests has a folder of its own.
TEST_F(IoTest, WhatADeadProcessLeftIsRemoved) {
  const Image image(ImageSpec{4, 4, 1, PixelType::u8, Colour::gray});
  file(".a.ungrain-0123abcd.pgm", "half");
  file(".a.ungrain-0123abcd.pgm.lock", "");
  file(".b.ungrain-0123abce.lock", "");  // killed before or after there was a temporary file
  write_image(path("c.pgm"), image.view());
  EXPECT_EQ(files(), std::vector<std::string>{"c.pgm"});
}

#ifndef _WIN32
TEST_F(IoTest, WhatOnlyLooksLikeALeftoverStays) {
  const Image image(ImageSpec{4, 4, 1, PixelType::u8, Colour::gray});
  const std::vector<std::string> names = {
      ".a.ungrain-0123abcd.pgm",                                    // no guard
      ".b.ungrain-0123abc.pgm",   ".b.ungrain-0123abc.pgm.lock",    // 7 digits
      ".c.ungrain-0123abcde.pgm", ".c.ungrain-0123abcde.pgm.lock",  // 9
      ".d.ungrain-0123ABCD.pgm",  ".d.ungrain-0123ABCD.pgm.lock",   // not as we write them
      "e.ungrain-0123abcd.pgm",   "e.ungrain-0123abcd.pgm.lock",    // not hidden
      ".ungrain-0123abcd.lock",                                     // no name
  };
  for (const std::string& name : names) file(name, "");
  file(".f.ungrain-0123abcd.pgm", "of the user");
  file(".f.ungrain-0123abcd.pgm.lock", "not empty");
  file("elsewhere", "");
  fs::create_symlink("elsewhere", path(".g.ungrain-0123abcd.pgm.lock"));
  fs::create_symlink("elsewhere", path(".h.ungrain-0123abcd.pgm"));
  file(".h.ungrain-0123abcd.pgm.lock", "");
  ASSERT_EQ(mkfifo(path(".i.ungrain-0123abcd.pgm.lock").c_str(), 0600), 0);
  const std::vector<std::string> before = files();
  write_image(path("z.pgm"), image.view());
  fs::remove(path("z.pgm"));
  EXPECT_EQ(files(), before);
}
#endif

TEST_F(IoTest, ALivingTemporaryFileStays) {
  const Image image(ImageSpec{4, 4, 1, PixelType::u8, Colour::gray});
  const auto out = OutputFile::create(path("a.pgm"), {.spec = image.spec()}, nullptr);
  const fs::path again = folder_ / "." / "b.pgm";  // the same folder by another name: looked at anew
  write_image(again, image.view());
  EXPECT_EQ(files().size(), 3U);
  out->write_rows(0, image.view());
  out->commit();
  EXPECT_EQ(files(), (std::vector<std::string>{"a.pgm", "b.pgm"}));
}

#ifndef _WIN32
TEST_F(IoTest, ALinkStaysAndWhatItPointsToIsReplaced) {
  const Image image(ImageSpec{2, 2, 1, PixelType::u8, Colour::gray});
  fs::create_directory(path("elsewhere"));
  file("elsewhere/real.pgm", "before");
  fs::create_symlink("elsewhere/real.pgm", path("link.pgm"));
  fs::create_symlink("link.pgm", path("chain.pgm"));
  fs::create_symlink("elsewhere/new.pgm", path("dangling.pgm"));
  fs::create_symlink("loop.pgm", path("loop.pgm"));
  write_image(path("chain.pgm"), image.view());
  write_image(path("dangling.pgm"), image.view());
  EXPECT_TRUE(fs::is_symlink(path("link.pgm")));
  EXPECT_TRUE(fs::is_symlink(path("chain.pgm")));
  EXPECT_TRUE(same_samples(read_image(path("elsewhere/real.pgm")), image));
  EXPECT_TRUE(same_samples(read_image(path("elsewhere/new.pgm")), image));
  EXPECT_EQ(failure_of(path("loop.pgm"), [&] { write_image(path("loop.pgm"), image.view()); }),
            "too many symbolic links");
}

TEST_F(IoTest, PlacesThatCannotBeWritten) {
  const Image image(ImageSpec{2, 2, 1, PixelType::u8, Colour::gray});
  const auto failure = [&](const fs::path& name) {
    return failure_of(name, [&] { write_image(name, image.view()); });
  };
  EXPECT_EQ(failure(path("none/a.pgm")), "the folder " + path("none").string() + " does not exist");
  file("plain", "x");
  EXPECT_EQ(failure(path("plain/a.pgm")), path("plain").string() + " is not a folder");
  fs::create_directory(path("folder.pgm"));
  EXPECT_EQ(failure(path("folder.pgm")), "is a folder");
  ASSERT_EQ(mkfifo(path("pipe.pgm").c_str(), 0600), 0);
  EXPECT_EQ(failure(path("pipe.pgm")), "is not a regular file");
  EXPECT_NE(failure(fs::path(folder_ / (std::string(300, 'x') + ".pgm"))), "");
}
#endif

// Root may write anywhere: while this lives, root is an ordinary user who owns these.
#ifndef _WIN32
class NotRoot {
 public:
  explicit NotRoot(const std::vector<fs::path>& owned) : was_root_(geteuid() == 0) {
    constexpr uid_t nobody = 65534;
    for (const fs::path& path : owned) {
      if (was_root_) {
        EXPECT_EQ(chown(path.c_str(), nobody, static_cast<gid_t>(-1)), 0);
      }
    }
    if (was_root_) {
      EXPECT_EQ(seteuid(nobody), 0);
    }
  }
  ~NotRoot() {
    if (was_root_) {
      EXPECT_EQ(seteuid(0), 0);
    }
  }
  NotRoot(const NotRoot&) = delete;
  NotRoot& operator=(const NotRoot&) = delete;

 private:
  bool was_root_;
};

TEST_F(IoTest, FoldersAndFilesWithoutPermission) {
  const Image image(ImageSpec{2, 2, 1, PixelType::u8, Colour::gray});
  const fs::path name = file("a.pgm", "before");
  const NotRoot somebody({folder_, name});
  fs::permissions(name, static_cast<fs::perms>(0444));
  EXPECT_EQ(failure_of(name, [&] { write_image(name, image.view()); }), "is not writable: Permission denied");
  fs::permissions(folder_, static_cast<fs::perms>(0555));
  EXPECT_EQ(failure_of(path("b.pgm"), [&] { write_image(path("b.pgm"), image.view()); }),
            "the folder " + folder_.string() + " is not writable: Permission denied");
}

TEST_F(IoTest, AFullDiskIsAnErrorAndLeavesNothing) {
  const Image image(ImageSpec{1000, 1000, 1, PixelType::u8, Colour::gray});
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{100000, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = failure_of(path("a.pgm"), [&] { write_image(path("a.pgm"), image.view()); });
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(message, "cannot be written: File too large");
  EXPECT_TRUE(files().empty());
}
#endif

TEST_F(IoTest, WhatAFormatCannotHoldIsRefused) {
  const auto failure = [&](const char* name, const ImageSpec& spec, int pages = 1) {
    return failure_of(path(name),
                      [&] { OutputFile::create(path(name), {.spec = spec, .pages = pages}, nullptr); });
  };
  const ImageSpec gray{2, 2, 1, PixelType::u8, Colour::gray};
  const ImageSpec rgba{2, 2, 4, PixelType::u8, Colour::rgb, true};
  const ImageSpec real{2, 2, 1, PixelType::f32, Colour::gray};
  EXPECT_EQ(failure("a.pgm", rgba), "PGM holds gray, not rgb with alpha");
  EXPECT_EQ(failure("a.ppm", gray), "PPM holds rgb, not gray");
  EXPECT_EQ(failure("a.pgm", real), "PGM cannot hold f32 samples; u16 would do");
  EXPECT_EQ(failure("a.pfm", gray), "PFM cannot hold u8 samples; f32 would do");
  EXPECT_EQ(failure("a.pgm", gray, 3), "PGM holds one page, not 3; write .tif");
  EXPECT_EQ(failure("a.pfm", {2, 2, 4, PixelType::f32, Colour::rgb, true}),
            "PFM holds gray, rgb, not rgb with alpha");
  EXPECT_EQ(failure("a.pgm", {2, 2, 1, PixelType::u8, Colour::gray, false, 12.5}),
            "PNM cannot hold u8 samples with a range of 12.5: a whole number from 1 to 255 is needed");
  EXPECT_NE(failure("a.pgm", {2, 2, 1, PixelType::u16, Colour::gray, false, 100}), "");
  EXPECT_NE(failure("a.xyz", gray).find(".xyz files cannot be written; this build writes .pgm .ppm"),
            std::string::npos);
  EXPECT_NE(failure("a", gray).find("has no extension"), std::string::npos);
  EXPECT_NE(failure("a.pbm", gray), "");
  EXPECT_TRUE(files().empty());
}

TEST_F(IoTest, QuestionsAboutFormats) {
  std::string why;
  EXPECT_TRUE(can_write("a.pgm", &why));
  EXPECT_TRUE(can_write("a.NPY", nullptr));
  EXPECT_FALSE(can_write("a.docx", &why));
  EXPECT_NE(why.find(".npy"), std::string::npos);
  EXPECT_FALSE(can_write("a.docx", nullptr));
  EXPECT_TRUE(can_write("a.pam", ImageSpec{2, 2, 4, PixelType::u8, Colour::rgb, true}, 1, &why));
  EXPECT_FALSE(can_write("a.pam", ImageSpec{2, 2, 4, PixelType::u8, Colour::rgb, true}, 2, &why));

  EXPECT_EQ(writable_type("a.pgm", PixelType::f32), PixelType::u16);
  EXPECT_EQ(writable_type("a.pgm", PixelType::u8), PixelType::u8);
  EXPECT_EQ(writable_type("a.pfm", PixelType::u8), PixelType::f32);
  EXPECT_EQ(writable_type("a.npy", PixelType::f16), PixelType::f16);
  EXPECT_EQ(writable_type("a.jpg", PixelType::f32), PixelType::u8);
  EXPECT_EQ(writable_type("a.png", PixelType::f16), PixelType::u16);
  EXPECT_EQ(writable_type("a.tif", PixelType::f16), PixelType::f16);

  const auto has = [](const std::vector<std::string>& list, const char* extension) {
    return std::find(list.begin(), list.end(), extension) != list.end();
  };
  EXPECT_TRUE(has(readable_extensions(), ".pbm"));
  EXPECT_FALSE(has(writable_extensions(), ".pbm"));
  EXPECT_TRUE(has(writable_extensions(), ".npy"));
#if !UNGRAIN_HAVE_VIPS
  EXPECT_FALSE(has(readable_extensions(), ".png"));
  EXPECT_EQ(reading_failure(file("a.png", "\x89PNG\r\n\x1a\n")),
            "a PNG file: this build, without the library that reads it, reads PNM, PAM, PFM, BMP, NPY, NIfTI "
            "and DICOM");
#endif
}

}  // namespace
}  // namespace ungrain::io
