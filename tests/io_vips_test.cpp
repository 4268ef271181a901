// The file formats that libvips reads and writes for us. Inputs are made with libvips itself.
//
// Under the address sanitizer: ASAN_OPTIONS=detect_leaks=0, as GLib keeps its types for ever.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vips/vips.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "io/formats.h"
#include "io/image_file.h"
#include "io/row_queue.h"
#include "io/tiff_exif.h"

#include "io/vips_session.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

class IoVipsTest : public testing::Test {
 protected:
  IoVipsTest() {
    start_vips();
    std::string name = (fs::temp_directory_path() / "ungrain-io-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~IoVipsTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  fs::path path(const std::string& name) const { return folder_ / name; }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  fs::path folder_;
};

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

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

double sample(const Image& image, std::size_t i) {
  switch (image.spec().type) {
    case PixelType::u8:
      return image.samples<std::uint8_t>()[i];
    case PixelType::u16:
      return image.samples<std::uint16_t>()[i];
    default:
      return image.samples<float>()[i];
  }
}
std::size_t samples(const Image& image) { return image.bytes() / bytes_per_sample(image.spec().type); }

// Smooth with a little noise, so that lossy formats come close to it.
Image picture(const ImageSpec& spec, unsigned seed = 1) {
  Image image(spec);
  std::mt19937 random(seed);
  const double white = spec.white();
  std::size_t i = 0;
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < spec.channels; ++c, ++i) {
        const double wave = 0.5 + 0.3 * std::sin(0.05 * x + 0.08 * y + c + seed);
        const double value = white * (wave + 0.01 * static_cast<double>(random() % 10));
        if (spec.type == PixelType::u8) image.samples<std::uint8_t>()[i] = static_cast<std::uint8_t>(value);
        if (spec.type == PixelType::u16)
          image.samples<std::uint16_t>()[i] = static_cast<std::uint16_t>(value);
        if (spec.type == PixelType::f32) image.samples<float>()[i] = static_cast<float>(value);
      }
    }
  }
  return image;
}

testing::AssertionResult same(const Image& a, const Image& b) {
  if (a.bytes() != b.bytes())
    return testing::AssertionFailure() << a.bytes() << " and " << b.bytes() << " bytes";
  if (std::memcmp(a.samples<std::byte>(), b.samples<std::byte>(), a.bytes()) == 0)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "the samples differ";
}

double mean_difference(const Image& a, const Image& b) {
  EXPECT_EQ(samples(a), samples(b));
  double sum = 0;
  for (std::size_t i = 0; i < samples(a); ++i) sum += std::abs(sample(a, i) - sample(b, i));
  return sum / static_cast<double>(samples(a));
}

Image read_page(InputFile& in, int page) {
  Image image(in.info().spec);
  in.select_page(page);
  in.read_rows(0, image.view());
  return image;
}

void write_pages(const fs::path& file, const std::vector<Image>& pages, const InputFile* like = nullptr) {
  const auto out =
      OutputFile::create(file, {.spec = pages[0].spec(), .pages = static_cast<int>(pages.size())}, like);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (i > 0) out->next_page();
    out->write_rows(0, pages[i].view());
  }
  out->commit();
}

VipsBandFormat band_format(PixelType type) {
  return type == PixelType::u8    ? VIPS_FORMAT_UCHAR
         : type == PixelType::u16 ? VIPS_FORMAT_USHORT
                                  : VIPS_FORMAT_FLOAT;
}

VipsPointer<VipsImage> as_vips(const Image& image, VipsInterpretation interpretation) {
  const ImageSpec& spec = image.spec();
  VipsImage* memory = vips_image_new_from_memory_copy(image.samples<std::byte>(), image.bytes(), spec.width,
                                                      spec.height, spec.channels, band_format(spec.type));
  memory->Type = interpretation;
  return VipsPointer<VipsImage>(memory);
}

// "x.tif[tile,compression=lzw]"
void save(VipsImage* image, const std::string& name_and_options) {
  ASSERT_EQ(vips_image_write_to_file(image, name_and_options.c_str(), nullptr), 0) << take_vips_message();
}

void set_blob(VipsImage* image, const char* field, const std::string& bytes) {
  vips_image_set_blob_copy(image, field, bytes.data(), bytes.size());
}

std::string blob(VipsImage* image, const char* field) {
  const void* data = nullptr;
  std::size_t size = 0;
  if (vips_image_get_typeof(image, field) == 0 || vips_image_get_blob(image, field, &data, &size) != 0)
    return {};
  return {static_cast<const char*>(data), size};
}

VipsPointer<VipsImage> load(const fs::path& file) {
  return VipsPointer<VipsImage>(vips_image_new_from_file(file.c_str(), nullptr));
}

std::string text(VipsImage* image, const char* field) {
  char* value = nullptr;
  if (vips_image_get_typeof(image, field) == 0 || vips_image_get_as_string(image, field, &value) != 0)
    return {};
  std::string copy = value;
  g_free(value);
  return copy;
}

bool can_save(const char* extension) { return can_write("x"s + extension, nullptr); }

// Samples
// ---------------------------------------------------------------------------------------------------------------

TEST_F(IoVipsTest, LosslessFormatsGiveBackTheBitsAndTheSpec) {
  const ImageSpec gray{61, 47, 1, PixelType::u8, Colour::gray};
  const ImageSpec gray_alpha{61, 47, 2, PixelType::u8, Colour::gray, true};
  const ImageSpec rgb{61, 47, 3, PixelType::u8, Colour::rgb};
  const ImageSpec rgba{61, 47, 4, PixelType::u8, Colour::rgb, true};
  for (const char* extension : {".png", ".tif"}) {
    for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f32}) {
      if (writable_type("x"s + extension, type) != type) continue;
      for (ImageSpec spec : {gray, gray_alpha, rgb, rgba}) {
        spec.type = type;
        SCOPED_TRACE(extension + " "s + std::string(name(type)) + " x" + std::to_string(spec.channels));
        const Image image = picture(spec);
        const fs::path file = path("image"s + extension);
        write_image(file, image.view());
        const auto in = InputFile::open(file);
        EXPECT_EQ(in->info().spec, spec);
        EXPECT_EQ(in->info().format, extension == ".png"s ? "PNG" : "TIFF");
        EXPECT_EQ(in->info().note, "");
        EXPECT_TRUE(same(read_image(file), image));
      }
    }
  }
}

TEST_F(IoVipsTest, TiffHoldsIndependentChannels) {
  for (const int channels : {2, 4}) {
    const Image image = picture({20, 10, channels, PixelType::u16, Colour::multi});
    write_image(path("a.tif"), image.view());
    EXPECT_TRUE(same(read_image(path("a.tif")), image));
  }
}

TEST_F(IoVipsTest, BandsInAnyOrderAreTheWhole) {
  const Image image = picture({300, 200, 3, PixelType::u16, Colour::rgb});
  write_image(path("strips.tif"), image.view());
  save(as_vips(image, VIPS_INTERPRETATION_RGB16).get(), path("tiles.tif[tile,tile-width=64,tile-height=32]"));
  save(as_vips(image, VIPS_INTERPRETATION_RGB16).get(), path("deflate.tif[compression=deflate]"));
  save(as_vips(image, VIPS_INTERPRETATION_RGB16).get(), path("big.tif[bigtiff]"));
  write_image(path("plain.png"), image.view());
  save(as_vips(image, VIPS_INTERPRETATION_RGB16).get(), path("interlaced.png[interlace]"));
  for (const std::string& name : files()) {
    SCOPED_TRACE(name);
    const auto in = InputFile::open(path(name));
    for (const int band : {1, 7, 64, 200}) {
      Image bands(image.spec());
      for (int y = 0; y < 200; y += band) in->read_rows(y, bands.view().rows(y, std::min(band, 200 - y)));
      EXPECT_TRUE(same(bands, image));
    }
    Image wrapped(image.spec());  // as a wrapping border asks: the last rows, then from the top
    in->read_rows(190, wrapped.view().rows(190, 10));
    in->read_rows(0, wrapped.view().rows(0, 190));
    EXPECT_TRUE(same(wrapped, image));
    Image skipped(image.spec());
    in->read_rows(0, skipped.view().rows(0, 200));
    in->read_rows(100, skipped.view().rows(0, 1));
    EXPECT_EQ(std::memcmp(skipped.samples<std::byte>(),
                          image.samples<std::uint16_t>() + std::size_t{100} * 900, 1800),
              0);
    in->check_unchanged();
  }
}

TEST_F(IoVipsTest, StridesOfAnyKind) {
  const ImageSpec spec{30, 20, 3, PixelType::u8, Colour::rgb};
  const Image image = picture(spec);
  std::vector<std::uint8_t> planes(3 * 20 * 40, 0xee);
  const ImageView planar(planes.data(), spec, {.x = 1, .y = 40, .channel = 20 * 40});
  write_image(path("a.png"), image.view());
  InputFile::open(path("a.png"))->read_rows(0, planar);
  EXPECT_EQ(planes[20 * 40 + 40 * 3 + 5], image.samples<std::uint8_t>()[(3 * 30 + 5) * 3 + 1]);
  EXPECT_EQ(planes[35], 0xee);
  write_image(path("b.png"), planar);
  EXPECT_TRUE(same(read_image(path("b.png")), image));
}

TEST_F(IoVipsTest, ReadingFromAnotherThreadThanTheOneThatOpened) {
  const Image image = picture({100, 80, 3, PixelType::u8, Colour::rgb});
  write_image(path("a.png"), image.view());
  const auto in = InputFile::open(path("a.png"));
  Image back(image.spec());
  in->read_rows(0, back.view().rows(0, 10));
  std::thread([&] { in->read_rows(10, back.view().rows(10, 70)); }).join();
  EXPECT_TRUE(same(back, image));
}

TEST_F(IoVipsTest, OtherSampleTypesBecomeFloat) {
  struct Case {
    VipsBandFormat format;
    const char* note;
    double range;
  };
  // libvips reads 64-bit samples from FITS but not from TIFF.
  for (const Case& c : {Case{VIPS_FORMAT_DOUBLE, "f64 samples converted to f32", 0},
                        Case{VIPS_FORMAT_SHORT, "i16 samples converted to f32", 32767},
                        Case{VIPS_FORMAT_CHAR, "i8 samples converted to f32", 127},
                        Case{VIPS_FORMAT_INT, "i32 samples converted to f32", 2147483647},
                        Case{VIPS_FORMAT_UINT, "u32 samples converted to f32", 4294967295}}) {
    const Image image = picture({16, 8, 1, PixelType::u8, Colour::gray, false, 100});
    VipsImage* cast = nullptr;
    ASSERT_EQ(vips_cast(as_vips(image, VIPS_INTERPRETATION_B_W).get(), &cast, c.format, nullptr), 0);
    const char* name = c.format == VIPS_FORMAT_DOUBLE ? "a.fits" : "a.tif";
    if (!can_save(fs::path(name).extension().c_str())) continue;
    save(VipsPointer<VipsImage>(cast).get(), path(name));
    const auto in = InputFile::open(path(name));
    EXPECT_EQ(in->info().note, c.note);
    EXPECT_EQ(in->info().spec, (ImageSpec{16, 8, 1, PixelType::f32, Colour::gray, false, c.range}));
    EXPECT_EQ(mean_difference(read_image(path(name)), image), 0);
  }
}

TEST_F(IoVipsTest, SamplesThatCannotBeReadAndManyChannelsAreRefused) {
  VipsImage* complex = nullptr;
  ASSERT_EQ(vips_black(&complex, 4, 4, nullptr), 0);
  VipsImage* cast = nullptr;
  ASSERT_EQ(vips_cast(complex, &cast, VIPS_FORMAT_COMPLEX, nullptr), 0);
  save(cast, path("complex.tif"));
  EXPECT_EQ(reading_failure(path("complex.tif")), "its samples are complex numbers, which cannot be read");
  g_object_unref(cast);
  g_object_unref(complex);
  VipsImage* five = nullptr;
  ASSERT_EQ(vips_black(&five, 4, 4, "bands", 5, nullptr), 0);
  save(VipsPointer<VipsImage>(five).get(), path("five.tif"));
  EXPECT_EQ(reading_failure(path("five.tif")), "has 5 channels: 1 to 4 are supported");
}

TEST_F(IoVipsTest, CmykIsFourIndependentChannelsAndStaysCmyk) {
  const Image image = picture({64, 48, 4, PixelType::u8, Colour::multi});
  save(as_vips(image, VIPS_INTERPRETATION_CMYK).get(), path("cmyk.jpg[Q=100]"));
  const auto in = InputFile::open(path("cmyk.jpg"));
  EXPECT_EQ(in->info().spec, image.spec());
  const Image read = read_image(path("cmyk.jpg"));
  EXPECT_LT(mean_difference(read, image), 4);
  for (const char* name : {"out.jpg", "out.tif"}) {
    write_image(path(name), read.view(), in.get());
    EXPECT_EQ(load(path(name))->Type, VIPS_INTERPRETATION_CMYK) << name;
    EXPECT_LT(mean_difference(read_image(path(name)), read), 3) << name;
  }
  EXPECT_EQ(failure_of(path("out.png"), [&] { write_image(path("out.png"), read.view(), in.get()); }),
            "PNG holds gray, gray with alpha, rgb, rgb with alpha, not 4 channels");
}

TEST_F(IoVipsTest, JpegIsWrittenAtQuality95WithoutSubsampling) {
  const Image image = picture({160, 120, 3, PixelType::u8, Colour::rgb});
  write_image(path("a.jpg"), image.view());
  EXPECT_LT(mean_difference(read_image(path("a.jpg")), image), 4);
  EXPECT_EQ(text(load(path("a.jpg")).get(), "jpeg-chroma-subsample"), "4:4:4");
  save(as_vips(image, VIPS_INTERPRETATION_sRGB).get(),
       path("b.jpg[Q=95,subsample-mode=off,optimize-coding]"));
  EXPECT_EQ(bytes_of(path("a.jpg")), bytes_of(path("b.jpg")));
  const auto out = OutputFile::create(path("low.jpg"), {.spec = image.spec()}, nullptr, {.quality = 30});
  out->write_rows(0, image.view());
  out->commit();
  EXPECT_LT(fs::file_size(path("low.jpg")), fs::file_size(path("a.jpg")) / 2);
  EXPECT_EQ(
      failure_of(path("c.jpg"),
                 [&] {
                   write_image(path("c.jpg"), picture({4, 4, 4, PixelType::u8, Colour::rgb, true}).view());
                 }),
      "JPEG holds gray, rgb, 4 channels, not rgb with alpha");
}

TEST_F(IoVipsTest, OtherFormatsComeClose) {
  struct Case {
    const char* name;
    PixelType type;
    bool alpha;
    double difference;  // of white
  };
  for (const Case& c :
       {Case{"a.webp", PixelType::u8, false, 0.02}, Case{"b.webp", PixelType::u8, true, 0.02},
        Case{"a.gif", PixelType::u8, false, 0.05}, Case{"a.jxl", PixelType::u8, true, 0.02},
        Case{"b.jxl", PixelType::u16, false, 0.02}, Case{"c.jxl", PixelType::f32, false, 0.03},
        Case{"a.jp2", PixelType::u8, false, 0.02}, Case{"b.jp2", PixelType::u16, false, 0.02},
        Case{"a.avif", PixelType::u8, true, 0.02}, Case{"b.avif", PixelType::u16, false, 0.02},
        Case{"a.heic", PixelType::u8, false, 0.02}, Case{"a.hdr", PixelType::f32, false, 0.01},
        Case{"a.fits", PixelType::u16, false, 0}, Case{"b.fits", PixelType::f32, false, 0}}) {
    if (!can_save(fs::path(c.name).extension().c_str())) continue;
    SCOPED_TRACE(c.name);
    const Image image = picture({96, 64, c.alpha ? 4 : 3, c.type, Colour::rgb, c.alpha});
    try {
      write_image(path(c.name), image.view());
    } catch (const Error& error) {
      // A library may be there without its encoder.
      if (std::string(error.what()).find("nsupported") == std::string::npos) ADD_FAILURE() << error.what();
      continue;
    }
    const auto in = InputFile::open(path(c.name));
    EXPECT_EQ(in->info().spec.type, c.type);
    EXPECT_EQ(in->info().spec.channels, image.spec().channels);
    EXPECT_EQ(in->info().spec.alpha, c.alpha);
    EXPECT_LE(mean_difference(read_image(path(c.name)), image), c.difference * image.spec().white());
  }
}

// Pages
// ---------------------------------------------------------------------------------------------------------------

TEST_F(IoVipsTest, PagesOneByOne) {
  // 37 rows: no multiple of any strip or tile.
  std::vector<Image> pages;
  for (unsigned i = 0; i < 5; ++i) pages.push_back(picture({40, 37, 1, PixelType::u16, Colour::gray}, i));
  write_pages(path("a.tif"), pages);
  const auto in = InputFile::open(path("a.tif"));
  EXPECT_EQ(in->info().pages, 5);
  EXPECT_EQ(in->info().spec, pages[0].spec());
  for (const int page : {0, 1, 2, 3, 4, 2, 0}) EXPECT_TRUE(same(read_page(*in, page), pages[page])) << page;
  EXPECT_EQ(failure_of(path("a.tif"), [&] { in->select_page(5); }), "has no page 6");
  EXPECT_EQ(text(load(path("a.tif")).get(), "n-pages"), "5");
}

TEST_F(IoVipsTest, TiledPagesStayTiled) {
  std::vector<Image> pages;
  for (unsigned i = 0; i < 3; ++i) pages.push_back(picture({100, 90, 3, PixelType::u8, Colour::rgb}, i));
  VipsImage* strips[3];
  for (int i = 0; i < 3; ++i) strips[i] = as_vips(pages[i], VIPS_INTERPRETATION_sRGB).release();
  VipsImage* roll = nullptr;
  ASSERT_EQ(vips_arrayjoin(strips, &roll, 3, "across", 1, nullptr), 0);
  save(roll, path("in.tif[tile,tile-width=32,tile-height=48,page-height=90]"));
  g_object_unref(roll);
  for (VipsImage* strip : strips) g_object_unref(strip);

  const auto in = InputFile::open(path("in.tif"));
  ASSERT_EQ(in->info().pages, 3);
  for (int page = 0; page < 3; ++page) EXPECT_TRUE(same(read_page(*in, page), pages[page])) << page;
  write_pages(path("out.tif"), pages, in.get());
  const auto back = InputFile::open(path("out.tif"));
  ASSERT_EQ(back->info().pages, 3);
  for (int page = 0; page < 3; ++page) EXPECT_TRUE(same(read_page(*back, page), pages[page])) << page;
  ASSERT_TRUE(back->metadata().tiff_storage);
  EXPECT_EQ(back->metadata().tiff_storage->tile_width, 32);
  EXPECT_EQ(back->metadata().tiff_storage->tile_height, 48);
}

TEST_F(IoVipsTest, AnimationsKeepTheirDelays) {
  for (const char* extension : {".webp", ".gif"}) {
    if (!can_save(extension)) continue;
    SCOPED_TRACE(extension);
    std::vector<Image> pages;
    VipsImage* frames[3];
    for (int i = 0; i < 3; ++i) {
      pages.push_back(picture({50, 30, 3, PixelType::u8, Colour::rgb}, static_cast<unsigned>(i)));
      frames[i] = as_vips(pages[i], VIPS_INTERPRETATION_sRGB).release();
    }
    VipsImage* roll = nullptr;
    ASSERT_EQ(vips_arrayjoin(frames, &roll, 3, "across", 1, nullptr), 0);
    const int delays[] = {100, 200, 300};
    vips_image_set_int(roll, "page-height", 30);
    vips_image_set_array_int(roll, "delay", delays, 3);
    vips_image_set_int(roll, "loop", 4);
    save(roll, path("in"s + extension));
    g_object_unref(roll);
    for (VipsImage* frame : frames) g_object_unref(frame);

    const auto in = InputFile::open(path("in"s + extension));
    ASSERT_EQ(in->info().pages, 3);
    std::vector<Image> read;
    for (int page = 0; page < 3; ++page) read.push_back(read_page(*in, page));
    write_pages(path("out"s + extension), read, in.get());
    const auto back = InputFile::open(path("out"s + extension));
    ASSERT_EQ(back->info().pages, 3);
    for (int page = 0; page < 3; ++page)
      EXPECT_LT(mean_difference(read_page(*back, page), read[page]), 8) << page;
    const VipsPointer<VipsImage> image(
        vips_image_new_from_file(path("out"s + extension).c_str(), "n", -1, nullptr));
    EXPECT_EQ(text(image.get(), "delay"), "100 200 300 ");
    EXPECT_EQ(text(image.get(), "loop"), "4");
  }
}

// Two pages of different size, by joining two files' directories.
void join_tiffs(const fs::path& first, const fs::path& second, const fs::path& joined) {
  std::string a = bytes_of(first);
  std::string b = bytes_of(second);
  const auto get = [](const std::string& s, std::size_t at, int size) {
    std::uint32_t value = 0;
    std::memcpy(&value, s.data() + at, static_cast<std::size_t>(size));
    return value;
  };
  const auto put = [](std::string& s, std::size_t at, std::uint32_t value) {
    std::memcpy(s.data() + at, &value, 4);
  };
  if (a.size() % 2 != 0) a += '\0';
  const auto base = static_cast<std::uint32_t>(a.size());
  const std::uint32_t directory = get(b, 4, 4);
  const std::uint32_t entries = get(b, directory, 2);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * 12;
    static constexpr std::uint32_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8};
    const std::uint32_t bytes = sizes[get(b, entry + 2, 2)] * get(b, entry + 4, 4);
    if (bytes > 4 || get(b, entry, 2) == 273)
      put(b, entry + 8, get(b, entry + 8, 4) + base);  // 273: one strip
  }
  const std::uint32_t first_directory = get(a, 4, 4);
  put(a, first_directory + 2 + get(a, first_directory, 2) * 12, base + directory);
  write_bytes(joined, a + b);
}

TEST_F(IoVipsTest, PagesOfDifferentSizeAreAnError) {
  write_image(path("a.tif"), picture({8, 8, 1, PixelType::u8, Colour::gray}).view());
  write_image(path("b.tif"), picture({6, 8, 1, PixelType::u8, Colour::gray}).view());
  join_tiffs(path("a.tif"), path("a.tif"), path("same.tif"));
  EXPECT_EQ(InputFile::open(path("same.tif"))->info().pages, 2);
  join_tiffs(path("a.tif"), path("b.tif"), path("mixed.tif"));
  EXPECT_NE(reading_failure(path("mixed.tif")).find("page 2 is 6 x 8"), std::string::npos);
}

// Metadata
// ------------------------------------------------------------------------------------------------------------

std::string srgb_profile() {
  VipsBlob* profile = nullptr;
  if (vips_profile_load("srgb", &profile, nullptr) != 0) return {};
  std::size_t size = 0;
  const auto* data = static_cast<const char*>(vips_blob_get(profile, &size));
  std::string bytes(data, size);
  vips_area_unref(VIPS_AREA(profile));
  return bytes;
}

TEST_F(IoVipsTest, MetadataAreKept) {
  const Image image = picture({64, 48, 3, PixelType::u8, Colour::rgb});
  const std::string xmp = "<x:xmpmeta xmlns:x='adobe:ns:meta/'><note>grain</note></x:xmpmeta>";
  const std::string icc = srgb_profile();
  ASSERT_FALSE(icc.empty());
  const VipsPointer<VipsImage> tagged = as_vips(image, VIPS_INTERPRETATION_sRGB);
  tagged->Xres = 11.811;  // 300 dpi
  tagged->Yres = 11.811;
  set_blob(tagged.get(), VIPS_META_XMP_NAME, xmp);
  set_blob(tagged.get(), VIPS_META_ICC_NAME, icc);
  vips_image_set_int(tagged.get(), VIPS_META_ORIENTATION, 6);
  vips_image_set_string(tagged.get(), "exif-ifd0-Make",
                        "Grainworks (Grainworks, ASCII, 11 components, 11 bytes)");
  vips_image_set_string(tagged.get(), "exif-ifd2-FNumber", "28/10 (f/2.8, Rational, 1 components, 8 bytes)");
  save(tagged.get(), path("in.jpg"));

  const auto in = InputFile::open(path("in.jpg"));
  EXPECT_EQ(in->info().spec.width, 48);  // upright
  const Image read = read_image(path("in.jpg"));
  for (const char* name : {"out.jpg", "out.png", "out.tif", "out.webp"}) {
    if (!can_save(fs::path(name).extension().c_str())) continue;
    SCOPED_TRACE(name);
    write_image(path(name), read.view(), in.get());
    const VipsPointer<VipsImage> out = load(path(name));
    EXPECT_EQ(blob(out.get(), VIPS_META_ICC_NAME), icc);
    EXPECT_EQ(blob(out.get(), VIPS_META_XMP_NAME).find(xmp), 0U);
    EXPECT_EQ(text(out.get(), VIPS_META_ORIENTATION), "1");
    if (name != "out.webp"s) {
      EXPECT_NEAR(out->Xres, 11.811, 0.01);
    }
    if (name == "out.tif"s) continue;  // libvips itself reads no EXIF of TIFF: see the next test
    EXPECT_EQ(text(out.get(), "exif-ifd0-Make").find("Grainworks"), 0U);
    EXPECT_EQ(text(out.get(), "exif-ifd2-FNumber").find("28/10"), 0U);
  }
  // And once more, through 16 bits.
  Image deep(ImageSpec{64, 48, 3, PixelType::u16, Colour::rgb});
  write_image(path("deep.png"), deep.view(), InputFile::open(path("out.png")).get());
  EXPECT_EQ(blob(load(path("deep.png")).get(), VIPS_META_ICC_NAME), icc);
  EXPECT_EQ(load(path("deep.png"))->Type, VIPS_INTERPRETATION_RGB16);
  // A profile for three channels is not for one.
  write_image(path("gray.jpg"), picture({64, 48, 1, PixelType::u8, Colour::gray}).view(), in.get());
  EXPECT_EQ(blob(load(path("gray.jpg")).get(), VIPS_META_ICC_NAME), "");
  EXPECT_EQ(text(load(path("gray.jpg")).get(), "exif-ifd0-Make").find("Grainworks"), 0U);
}

// A JPEG with the tags of a camera; gives back what it holds.
Image write_photograph(const fs::path& file) {
  const VipsPointer<VipsImage> tagged =
      as_vips(picture({96, 80, 3, PixelType::u8, Colour::rgb}), VIPS_INTERPRETATION_sRGB);
  vips_image_set_int(tagged.get(), VIPS_META_ORIENTATION, 6);
  for (const auto& [field, value] :
       {std::pair{"exif-ifd0-Make", "Grainworks (Grainworks, ASCII, 11 components, 11 bytes)"},
        std::pair{"exif-ifd0-Artist", "A. Photographer (A. Photographer, ASCII, 16 components, 16 bytes)"},
        std::pair{"exif-ifd2-DateTimeOriginal",
                  "2024:05:06 07:08:09 (2024:05:06 07:08:09, ASCII, 20 components, 20 bytes)"},
        std::pair{"exif-ifd2-FNumber", "28/10 (f/2.8, Rational, 1 components, 8 bytes)"},
        std::pair{"exif-ifd3-GPSLatitudeRef", "N (N, ASCII, 2 components, 2 bytes)"},
        std::pair{"exif-ifd3-GPSLatitude", "48/1 8/1 30/1 (48, 8, 30, Rational, 3 components, 24 bytes)"}}) {
    vips_image_set_string(tagged.get(), field, value);
  }
  save(tagged.get(), file);
  return read_image(file);
}

void expect_camera_tags(VipsImage* image, const char* orientation = "1") {
  EXPECT_EQ(text(image, "exif-ifd0-Make").find("Grainworks (Grainworks, ASCII, 11 "), 0U);
  EXPECT_EQ(text(image, "exif-ifd0-Artist").find("A. Photographer"), 0U);
  EXPECT_EQ(text(image, "exif-ifd2-DateTimeOriginal").find("2024:05:06 07:08:09"), 0U);
  EXPECT_EQ(text(image, "exif-ifd2-FNumber").find("28/10"), 0U);
  EXPECT_EQ(text(image, "exif-ifd3-GPSLatitudeRef").find("N (N, ASCII, 2 "), 0U);
  EXPECT_EQ(text(image, "exif-ifd3-GPSLatitude").find("48/1 8/1 30/1"), 0U);
  EXPECT_EQ(text(image, VIPS_META_ORIENTATION), orientation);
}

std::string exif_in_tiff(const fs::path& file) {
  const std::vector<std::byte> block = exif_of_tiff(SourceFile(file));
  return {reinterpret_cast<const char*>(block.data()), block.size()};
}

TEST_F(IoVipsTest, ExifGoesThroughTiff) {
  const Image image = write_photograph(path("in.jpg"));
  expect_camera_tags(load(path("in.jpg")).get(), "6");
  write_image(path("first.tif"), image.view(), InputFile::open(path("in.jpg")).get());
  const std::string block = exif_in_tiff(path("first.tif"));
  for (const char* value : {"Grainworks", "2024:05:06 07:08:09", "A. Photographer"}) {
    EXPECT_NE(block.find(value), std::string::npos) << value;
  }

  // The same in every kind of file that libvips writes.
  std::vector<std::string> names = {"first.tif"};
  for (const char* options : {"tile,tile-width=32,tile-height=48", "bigtiff", "bigtiff,tile", "pyramid,tile",
                              "compression=deflate", "page-height=48"}) {
    const std::string name = std::to_string(names.size()) + ".tif";
    save(load(path("first.tif")).get(), path(name + '[' + options + ']'));
    EXPECT_EQ(exif_in_tiff(path(name)), "") << options;
    add_exif_to_tiff(path(name), std::as_bytes(std::span(block)));
    names.push_back(name);
  }
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    EXPECT_EQ(exif_in_tiff(path(name)), block);
    const auto in = InputFile::open(path(name));
    std::vector<Image> pages;
    for (int page = 0; page < in->info().pages; ++page) pages.push_back(read_page(*in, page));
    if (pages.size() == 1) {
      EXPECT_TRUE(same(pages[0], image));
    }
    const auto out = OutputFile::create(path("out.tif"), in->info(), in.get());
    for (std::size_t i = 0; i < pages.size(); ++i) {
      if (i > 0) out->next_page();
      out->write_rows(0, pages[i].view());
    }
    out->commit();
    EXPECT_EQ(exif_in_tiff(path("out.tif")), block);
    const auto back = InputFile::open(path("out.tif"));
    ASSERT_EQ(back->info().pages, static_cast<int>(pages.size()));
    EXPECT_EQ(InputFile::open(path("out.tif"))->metadata().tiff_storage->tile_width,
              InputFile::open(path(name))->metadata().tiff_storage->tile_width);
    for (int page = 0; page < back->info().pages; ++page) {
      EXPECT_TRUE(same(read_page(*back, page), pages[page]));
    }
    EXPECT_EQ(text(load(path("out.tif")).get(), VIPS_META_ORIENTATION), "1");
    for (const char* other : {"out.jpg", "out.png", "out.webp"}) {
      if (!can_save(fs::path(other).extension().c_str())) continue;
      SCOPED_TRACE(other);
      write_image(path(other), pages[0].view(), back.get());
      expect_camera_tags(load(path(other)).get());
    }
  }
}

TEST_F(IoVipsTest, ExifOfAllPagesTogether) {
  write_photograph(path("in.jpg"));
  std::vector<Image> pages;
  for (unsigned i = 0; i < 4; ++i) pages.push_back(picture({40, 37, 1, PixelType::u16, Colour::gray}, i));
  write_pages(path("a.tif"), pages, InputFile::open(path("in.jpg")).get());
  write_pages(path("b.tif"), pages, InputFile::open(path("a.tif")).get());
  for (const char* name : {"a.tif", "b.tif"}) {
    const auto in = InputFile::open(path(name));
    ASSERT_EQ(in->info().pages, 4);
    for (const int page : {3, 2, 1, 0}) EXPECT_TRUE(same(read_page(*in, page), pages[page])) << page;
    // Going back opened the file again.
    write_image(path("out.jpg"), picture({40, 37, 1, PixelType::u8, Colour::gray}).view(), in.get());
    expect_camera_tags(load(path("out.jpg")).get());
  }
  EXPECT_EQ(exif_in_tiff(path("a.tif")), exif_in_tiff(path("b.tif")));
}

TEST_F(IoVipsTest, ATiffOntoItselfKeepsItsExif) {
  const Image image = write_photograph(path("in.jpg"));
  write_image(path("a.tif"), image.view(), InputFile::open(path("in.jpg")).get());
  const std::string before = bytes_of(path("a.tif"));
  write_image(path("a.tif"), image.view(), InputFile::open(path("a.tif")).get());
  EXPECT_EQ(bytes_of(path("a.tif")), before);
}

TEST_F(IoVipsTest, TheInputNeedNotStayOpen) {
  const Image image = picture({64, 48, 3, PixelType::u8, Colour::rgb});
  const VipsPointer<VipsImage> tagged = as_vips(image, VIPS_INTERPRETATION_sRGB);
  const std::string xmp(10000, 'x');
  set_blob(tagged.get(), VIPS_META_XMP_NAME, xmp);
  save(tagged.get(), path("in.png"));
  auto in = InputFile::open(path("in.png"));
  const auto out = OutputFile::create(path("in.png"), in->info(), in.get());  // and may be the output
  in.reset();
  out->write_rows(0, image.view());
  out->commit();
  EXPECT_EQ(blob(load(path("in.png")).get(), VIPS_META_XMP_NAME), xmp);
  EXPECT_TRUE(same(read_image(path("in.png")), image));
  EXPECT_EQ(files(), std::vector<std::string>{"in.png"});
}

// Errors
// --------------------------------------------------------------------------------------------------------------

TEST_F(IoVipsTest, WhatIsNotAnImageIsRefused) {
  const std::string svg = "<svg xmlns='http://www.w3.org/2000/svg' width='10' height='10'></svg>";
  for (const auto& [name, bytes] :
       {std::pair{"a.txt"s, "just a text file\nwith lines\n"s}, std::pair{"a.csv"s, "1,2\n3,4\n"s},
        std::pair{"a.mat"s, "2 2\n1 2\n3 4\n"s}, std::pair{"a.jpg"s, "1,2\n3,4\n"s}}) {
    write_bytes(path(name), bytes);
    EXPECT_EQ(reading_failure(path(name)), "not an image that this build can read") << name;
  }
  write_bytes(path("a.svg"), svg);
  EXPECT_EQ(reading_failure(path("a.svg")), "an SVG drawing (vector graphics), not an image");
  write_bytes(path("start.png"), "\x89PNG");
  EXPECT_EQ(reading_failure(path("start.png")), "a PNG file that is damaged or truncated");
  write_bytes(path("empty.png"), "");
  EXPECT_EQ(reading_failure(path("empty.png")), "the file is empty");
}

TEST_F(IoVipsTest, TruncatedAndDamagedFilesAreErrors) {
  const Image image = picture({300, 300, 3, PixelType::u8, Colour::rgb});
  for (const char* extension : {".png", ".jpg", ".tif", ".webp", ".gif"}) {
    if (!can_save(extension)) continue;
    SCOPED_TRACE(extension);
    write_image(path("whole"s + extension), image.view());
    const std::string whole = bytes_of(path("whole"s + extension));
    for (const std::size_t size :
         {whole.size() / 2, whole.size() - whole.size() / 8, whole.size() / 10, std::size_t{40}}) {
      write_bytes(path("part"s + extension), whole.substr(0, size));
      EXPECT_NE(reading_failure(path("part"s + extension)), "") << size;
    }
  }
  std::string damaged = bytes_of(path("whole.png"));
  for (std::size_t i = damaged.size() / 2; i < damaged.size() / 2 + 50; ++i)
    damaged[i] = static_cast<char>(~damaged[i]);
  write_bytes(path("damaged.png"), damaged);
  EXPECT_NE(reading_failure(path("damaged.png")), "");
}

TEST_F(IoVipsTest, NamesWithBrackets) {
  const Image image = picture({30, 20, 3, PixelType::u8, Colour::rgb});
  write_image(path("a[1].png"), image.view());
  EXPECT_TRUE(same(read_image(path("a[1].png")), image));
  fs::rename(path("a[1].png"), path("a.png[1]"));
  EXPECT_TRUE(same(read_image(path("a.png[1]")), image));
}

TEST_F(IoVipsTest, AFailingEncoderEndsTheWriting) {
  const ImageSpec wide{70000, 300, 1, PixelType::u8, Colour::gray};  // a JPEG has 65500 at most
  const std::string message =
      failure_of(path("wide.jpg"), [&] { write_image(path("wide.jpg"), picture(wide).view()); });
  EXPECT_EQ(message.find("cannot be written: "), 0U) << message;
  EXPECT_TRUE(files().empty());
}

TEST_F(IoVipsTest, AFullDiskIsAnErrorAndLeavesNothing) {
  Image noise(ImageSpec{600, 600, 1, PixelType::u8, Colour::gray});
  std::mt19937 random(1);
  for (int i = 0; i < 600 * 600; ++i) noise.samples<std::uint8_t>()[i] = static_cast<std::uint8_t>(random());
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  for (const rlim_t most : {rlim_t{0}, rlim_t{100000}}) {
    for (const char* name : {"a.png", "a.tif", "a.jpg", "a.webp", "a.fits", "a.jxl", "a.jp2", "a.gif"}) {
      if (!can_save(fs::path(name).extension().c_str())) continue;
      const rlimit small{most, limit.rlim_max};
      setrlimit(RLIMIT_FSIZE, &small);
      const std::string message = failure_of(path(name), [&] { write_image(path(name), noise.view()); });
      setrlimit(RLIMIT_FSIZE, &limit);
      if (name == "a.fits"s) {  // cfitsio does not say why
        EXPECT_EQ(message.find("cannot be written: "), 0U) << message;
      } else {
        EXPECT_EQ(message, "cannot be written: File too large") << name;
      }
    }
  }
  std::signal(SIGXFSZ, before);
  EXPECT_TRUE(files().empty());
}

TEST_F(IoVipsTest, AbandoningLeavesNothingAndDoesNotHang) {
  const Image image = picture({500, 400, 3, PixelType::u8, Colour::rgb});
  for (const char* name : {"a.png", "a.tif", "a.jpg", "a.webp", "a.gif", "a.fits", "a.jp2"}) {
    if (!can_save(fs::path(name).extension().c_str())) continue;
    for (const int rows : {0, 1, 399, 400}) {
      const auto out = OutputFile::create(path(name), {.spec = image.spec()}, nullptr);
      if (rows > 0) out->write_rows(0, image.view().rows(0, rows));
    }
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(IoVipsTest, ANewOutputIsNotOpenToMoreThanItsInput) {
  const Image image = picture({40, 30, 1, PixelType::u8, Colour::gray});
  write_image(path("in.png"), image.view());
  fs::permissions(path("in.png"), static_cast<fs::perms>(0600));
  const auto in = InputFile::open(path("in.png"));
  for (const char* name : {"a.png", "a.tif", "a.jpg", "a.webp", "a.gif", "a.fits", "a.jp2"}) {
    if (!can_save(fs::path(name).extension().c_str())) continue;
    write_image(path(name), image.view(), in.get());
    EXPECT_EQ(fs::status(path(name)).permissions(), static_cast<fs::perms>(0600)) << name;
  }
}

TEST_F(IoVipsTest, ManyWritersAtOnce) {
  const Image image = picture({400, 300, 3, PixelType::u8, Colour::rgb});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const fs::path file = path(std::to_string(i) + ".png");
      write_image(file, image.view());
      EXPECT_TRUE(same(read_image(file), image));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(files().size(), 8U);
}

// Memory
// --------------------------------------------------------------------------------------------------------------

double resident_megabytes() {
  std::ifstream status("/proc/self/statm");
  double pages = 0;
  status >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

TEST_F(IoVipsTest, MemoryIsOfRowsNotOfTheImage) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#endif
#endif
  const ImageSpec spec{20000, 8000, 1, PixelType::u16, Colour::gray};  // 320 MB
  constexpr int band = 64;
  const Image rows = picture({20000, band, 1, PixelType::u16, Colour::gray});
  const double before = resident_megabytes();
  double most = 0;
  {
    const auto out = OutputFile::create(path("a.tif"), {.spec = spec}, nullptr);
    for (int y = 0; y < spec.height; y += band) {
      out->write_rows(y, rows.view());
      most = std::max(most, resident_megabytes());
    }
    out->commit();
  }
  {
    const auto in = InputFile::open(path("a.tif"));
    const auto out = OutputFile::create(path("b.tif"), in->info(), in.get());
    Image read(rows.spec());
    for (int y = 0; y < spec.height; y += band) {
      in->read_rows(y, read.view());
      ASSERT_TRUE(same(read, rows)) << y;
      out->write_rows(y, read.view());
      most = std::max(most, resident_megabytes());
    }
    out->commit();
  }
  EXPECT_LT(most - before, 100) << "MB";
  EXPECT_EQ(fs::file_size(path("a.tif")), fs::file_size(path("b.tif")));
}

TEST(RowQueue, GrowsOnlyForAReaderThatWaits) {
  RowQueue queue(1, 2);
  std::thread writer([&] {
    for (int i = 0; i < 100; ++i) {
      RowQueue::Row row = queue.blank();
      row[0] = static_cast<std::byte>(i);
      ASSERT_TRUE(queue.push(std::move(row)));
    }
  });
  // 50 rows at once, with room for 2.
  for (int top = 0; top < 100; top += 50) {
    queue.release_before(top);
    for (int y = top; y < top + 50; ++y) {
      const std::byte* row = queue.wait_for(y);
      ASSERT_NE(row, nullptr);
      EXPECT_EQ(*row, static_cast<std::byte>(y));
    }
  }
  writer.join();
  EXPECT_EQ(queue.wait_for(10), nullptr);  // released
}

TEST(RowQueue, EachSideCanEndTheOther) {
  RowQueue abandoned(1, 2);
  std::thread reader([&] { EXPECT_EQ(abandoned.wait_for(0), nullptr); });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  abandoned.abandon();
  reader.join();

  RowQueue closed(1, 2);
  std::thread writer([&] {
    bool open = true;
    for (int i = 0; i < 3; ++i) open = closed.push(closed.blank());
    EXPECT_FALSE(open);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  closed.close();
  writer.join();
}

}  // namespace
}  // namespace ungrain::io
