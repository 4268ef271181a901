// DNG files as this program writes them, and camera raw files as LibRaw reads them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "folder_test.h"
#include "io/dng_output.h"
#include "io/image_file.h"
#include "io/raw_file.h"
#include "io/tiff_entries.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

RawInfo raw_of(int width, int height) {
  RawInfo raw;
  raw.width = width;
  raw.height = height;
  raw.black = {512, 512, 512, 512};
  raw.white = 16383;
  raw.camera_of_xyz = {{{1.2, -0.4, -0.2}, {-0.6, 1.4, 0.1}, {0, -0.1, 0.6}}};
  raw.neutral = {0.5, 1, 0.625};
  raw.make = "Maker";
  raw.model = "Camera One";
  raw.iso = 3200;
  return raw;
}

// Whole numbers, each photosite's own, some below black.
float level_at(int x, int y) { return static_cast<float>((31 * x + 17 * y) % 9000 - 100); }

// What photosites of an odd edge that are not there hold does not matter.
Image samples_of(const RawInfo& raw) {
  Image image(raw_spec(raw));
  const int side = raw.colour ? 2 : 1;
  for (int y = 0; y < raw.height; ++y) {
    for (int x = 0; x < raw.width; ++x) {
      const int channel = raw.colour ? raw.pattern[2 * (y % 2) + x % 2] : 0;
      image.samples<float>()[(y / side * image.spec().width + x / side) * image.spec().channels + channel] =
          level_at(x, y);
    }
  }
  return image;
}

class Dng : public testing::FolderTest {
 protected:
  std::filesystem::path write(const RawInfo& raw, const Metadata& metadata = {}) {
    const std::filesystem::path to = path("a.dng");
    const Image samples = samples_of(raw);
    FileInfo info;
    info.spec = samples.spec();
    const auto output = create_dng(to, info, raw, metadata);
    // In two parts, as filters write them.
    const int half = info.spec.height / 2;
    output->write_rows(0, samples.view().rows(0, half));
    output->write_rows(half, samples.view().rows(half, info.spec.height - half));
    output->commit();
    return to;
  }
};

class DngFile {
 public:
  explicit DngFile(const std::filesystem::path& path) : file_(path), tiff_(file_) {}

  std::vector<std::uint64_t> numbers(std::uint16_t tag) const {
    std::vector<std::uint64_t> values;
    for (const TiffField& field : tiff_.directory(tiff_.first_directory()).fields) {
      const TiffTypeSize size = tiff_type_size(field.type);
      for (std::uint64_t i = 0; field.tag == tag && i < field.count * size.value / size.unit; ++i) {
        values.push_back(tiff_.number(field.at + i * size.unit, size.unit));
      }
    }
    return values;
  }

  int photosite(int x, int y, int width) const {
    return static_cast<int>(tiff_.number(numbers(273)[0] + 2 * static_cast<std::uint64_t>(y * width + x), 2));
  }

 private:
  SourceFile file_;
  TiffReader tiff_;
};

using Numbers = std::vector<std::uint64_t>;

TEST_F(Dng, photosites_lie_where_they_were) {
  for (const auto& pattern : {std::array{0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}}) {
    RawInfo raw = raw_of(37, 25);
    raw.pattern = pattern;
    raw.black = {512, 500, 510, 520};
    const DngFile dng(write(raw));
    for (int y = 0; y < 25; ++y) {
      for (int x = 0; x < 37; ++x) {
        const double black = raw.black[pattern[2 * (y % 2) + x % 2]];
        ASSERT_EQ(dng.photosite(x, y, 37), level_at(x, y) + black) << x << ", " << y;
      }
    }
  }
}

TEST_F(Dng, tags_tell_what_the_photosites_are) {
  RawInfo raw = raw_of(64, 48);
  raw.pattern = {1, 0, 3, 2};  // green red blue green
  raw.orientation = 6;
  raw.noise.assign(4, {.a = 15.871, .b = 15871});
  const DngFile dng(write(raw));
  EXPECT_EQ(dng.numbers(256), Numbers{64});
  EXPECT_EQ(dng.numbers(257), Numbers{48});
  EXPECT_EQ(dng.numbers(262), Numbers{32803});
  EXPECT_EQ(dng.numbers(274), Numbers{6});
  EXPECT_EQ(dng.numbers(33422), (Numbers{1, 0, 2, 1}));
  EXPECT_EQ(dng.numbers(50706), (Numbers{1, 4, 0, 0}));
  EXPECT_EQ(dng.numbers(50717), Numbers{16383});
  EXPECT_EQ(dng.numbers(50728), (Numbers{500000, 1000000, 1000000, 1000000, 625000, 1000000}));
  const Numbers profile = dng.numbers(51041);
  ASSERT_EQ(profile.size(), 6U);
  for (std::size_t i = 0; i < profile.size(); ++i) {
    EXPECT_NEAR(std::bit_cast<double>(profile[i]), i % 2 == 0 ? 1e-3 : 1.0 / 15871, 1e-9);
  }
}

TEST_F(Dng, levels_beyond_16_bits_are_cut_off) {
  RawInfo raw = raw_of(4, 2);
  FileInfo info;
  info.spec = raw_spec(raw);
  Image samples(info.spec);
  samples.samples<float>()[0] = -2000;
  samples.samples<float>()[1] = 1e6F;
  const auto output = create_dng(path("b.dng"), info, raw, {});
  output->write_rows(0, samples.view());
  output->commit();
  const DngFile dng(path("b.dng"));
  EXPECT_EQ(dng.photosite(0, 0, 4), 0);
  EXPECT_EQ(dng.photosite(1, 0, 4), 65535);
  EXPECT_EQ(dng.photosite(2, 0, 4), 512);
}

TEST_F(Dng, is_made_from_raw_files_only) {
  const ImageSpec spec{.width = 8, .height = 8, .channels = 3, .colour = Colour::rgb};
  try {
    write_image(path("c.dng"), Image(spec).view());
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("c.dng: a DNG file is made from a camera raw file"),
              std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(path("c.dng")));
}

#if UNGRAIN_HAVE_RAW

std::unique_ptr<InputFile> open(const std::filesystem::path& path) { return InputFile::open(path); }

TEST_F(Dng, comes_back_through_LibRaw) {
  for (const auto& pattern : {std::array{0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}}) {
    for (const auto& [width, height] : {std::pair{64, 48}, {65, 49}}) {
      RawInfo raw = raw_of(width, height);
      raw.pattern = pattern;
      raw.black = {512, 500, 510, 520};
      raw.noise.assign(4, {.a = 12, .b = 345});
      raw.orientation = 8;
      const auto input = open(write(raw));
      const auto* found = dynamic_cast<const RawFile*>(input.get());
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(input->info().format, "DNG");
      EXPECT_EQ(input->info().spec, raw_spec(raw));
      EXPECT_EQ(found->raw().pattern, raw.pattern);
      EXPECT_EQ(found->raw().black, raw.black);
      EXPECT_EQ(found->raw().white, raw.white);
      EXPECT_EQ(found->raw().orientation, 8);
      EXPECT_EQ(found->raw().iso, 3200);
      EXPECT_EQ(found->raw().make, "Maker");
      for (const double neutral : {found->raw().neutral[0] - 0.5, found->raw().neutral[2] - 0.625}) {
        EXPECT_NEAR(neutral, 0, 1e-6);
      }
      ASSERT_EQ(found->raw().noise.size(), 4U);
      EXPECT_NEAR(found->raw().noise[1].a, 12, 1e-9);
      EXPECT_NEAR(found->raw().noise[3].b, 345, 1e-6);

      Image samples(input->info().spec);
      input->read_rows(0, samples.view());
      const float* at = samples.samples<float>();
      for (int y = 0; y < samples.spec().height; ++y) {
        for (int x = 0; x < samples.spec().width; ++x) {
          for (int i = 0; i < 4; ++i) {
            // An odd edge repeats the channel's last photosite.
            const int site_x = 2 * x + i % 2 < width ? 2 * x + i % 2 : 2 * x - 2 + i % 2;
            const int site_y = 2 * y + i / 2 < height ? 2 * y + i / 2 : 2 * y - 2 + i / 2;
            ASSERT_EQ(at[pattern[i]], level_at(site_x, site_y)) << x << ", " << y;
          }
          at += 4;
        }
      }
    }
  }
}

TEST_F(Dng, of_a_monochrome_sensor_has_one_channel) {
  RawInfo raw = raw_of(50, 40);
  raw.colour = false;
  raw.noise.assign(1, {.a = 12, .b = 345});
  const auto input = open(write(raw));
  EXPECT_EQ(input->info().spec, raw_spec(raw));
  EXPECT_NEAR(dynamic_cast<const RawFile&>(*input).raw().noise.at(0).a, 12, 1e-9);
  Image samples(input->info().spec);
  input->read_rows(0, samples.view());
  EXPECT_EQ(samples.samples<float>()[50 * 7 + 3], level_at(3, 7));
}

TEST_F(Dng, written_again_is_the_same) {
  const RawInfo raw = raw_of(64, 48);
  const auto input = open(write(raw));
  const auto& found = dynamic_cast<const RawFile&>(*input);
  Image samples(input->info().spec);
  input->read_rows(0, samples.view());
  FileInfo info;
  info.spec = samples.spec();
  const auto output = create_dng(path("again.dng"), info, found.raw(), found.metadata());
  output->write_rows(0, samples.view());
  output->commit();
  EXPECT_TRUE(bytes_of(path("again.dng")) == bytes_of(path("a.dng")));
}

TEST_F(Dng, is_developed_upright_and_in_srgb) {
  RawInfo raw = raw_of(64, 48);
  raw.orientation = 6;
  const auto input = open(write(raw));
  Image gray(input->info().spec);
  // What the sensor says of half of its white balance's gray.
  const std::array<float, 4> levels = {0.25F, 0.5F, 0.5F, 0.3125F};
  for (int i = 0; i < 32 * 24 * 4; ++i) gray.samples<float>()[i] = 15871 * levels[i % 4];
  for (const PixelType type : {PixelType::u8, PixelType::u16}) {
    const Image developed = dynamic_cast<RawFile&>(*input).develop(gray.view(), type);
    ASSERT_EQ(developed.spec().width, 48);
    ASSERT_EQ(developed.spec().height, 64);
    ASSERT_EQ(developed.spec().type, type);
    const double white = developed.spec().white();
    for (int c = 0; c < 3; ++c) {
      const std::ptrdiff_t middle = (32 * 48 + 24) * 3 + c;
      const double value = type == PixelType::u8 ? developed.samples<std::uint8_t>()[middle]
                                                 : developed.samples<std::uint16_t>()[middle];
      EXPECT_NEAR(value / white, 0.7354, 0.01) << c;  // sRGB's curve at 0.5
    }
  }
}

TEST_F(Dng, one_that_was_demosaiced_is_refused) {
  // A monochrome file that says that it has three samples a pixel.
  RawInfo raw = raw_of(90, 40);
  raw.colour = false;
  const std::filesystem::path linear = write(raw);
  std::fstream stream(linear, std::ios::binary | std::ios::in | std::ios::out);
  const SourceFile source(linear);
  const TiffReader tiff(source);
  for (const TiffField& field : tiff.directory(tiff.first_directory()).fields) {
    if (field.tag != 277 && field.tag != 256) continue;
    stream.seekp(static_cast<std::streamoff>(field.at));
    stream.put(static_cast<char>(field.tag == 277 ? 3 : 30));
  }
  stream.close();
  try {
    open(linear);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("demosaiced already (linear)"), std::string::npos)
        << error.what();
  }
}

#else

TEST_F(Dng, needs_LibRaw_to_be_read) {
  try {
    InputFile::open(write(raw_of(64, 48)));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("this build lacks LibRaw"), std::string::npos) << error.what();
  }
}

#endif

}  // namespace
}  // namespace ungrain::io
