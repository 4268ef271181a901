// NIfTI: both versions and byte orders, every type, what an output keeps of its input's header, gzip files,
// and what is refused. Headers are made by hand here.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "folder_test.h"
#include "io/image_file.h"

namespace ungrain::io {
namespace {

using testing::io_failure;
using NiftiTest = testing::FolderTest;
using namespace std::string_literals;

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Bytes with numbers of one byte order.
class Buffer {
 public:
  Buffer(std::size_t size, bool big) : bytes_(size, '\0'), big_(big) {}

  void integer(std::size_t at, std::size_t size, std::int64_t value) {
    for (std::size_t i = 0; i < size; ++i) {
      bytes_[at + (big_ ? size - 1 - i : i)] =
          static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xffU);
    }
  }
  void real(std::size_t at, std::size_t size, double value) {
    integer(at, size,
            size == 4 ? std::int64_t{std::bit_cast<std::int32_t>(static_cast<float>(value))}
                      : std::bit_cast<std::int64_t>(value));
  }
  void text(std::size_t at, const std::string& text) { bytes_.replace(at, text.size(), text); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  bool big_;
};

// A file by hand. Everything that a header can say can be said wrongly.
struct Nifti {
  int version = 1;
  bool big = false;
  std::vector<std::int64_t> dims = {2, 1};
  std::int64_t axes = -1;  // -1: right
  int datatype = 2;
  int bits = 8;
  std::vector<double> spacing = {1, 1, 1};
  double slope = 0;
  double intercept = 0;
  std::int64_t size = -1;    // of the header; -1: right
  double offset = -1;        // of the samples; -1: right
  std::string magic = {};    // empty: right
  std::string between = {};  // flag and extensions
  std::string samples = {};

  std::string bytes() const { return version == 1 ? first() : second(); }

 private:
  std::string end() const { return (between.empty() ? std::string(4, '\0') : between) + samples; }
  double samples_at(double header) const {
    return offset != -1 ? offset : header + static_cast<double>(between.empty() ? 4 : between.size());
  }

  std::string first() const {
    Buffer header(348, big);
    header.integer(0, 4, size < 0 ? 348 : size);
    header.integer(40, 2, axes < 0 ? static_cast<std::int64_t>(dims.size()) : axes);
    for (std::size_t i = 0; i < dims.size(); ++i) header.integer(42 + 2 * i, 2, dims[i]);
    header.integer(70, 2, datatype);
    header.integer(72, 2, bits);
    header.real(76, 4, -1);
    for (std::size_t i = 0; i < spacing.size(); ++i) header.real(80 + 4 * i, 4, spacing[i]);
    header.real(108, 4, samples_at(348));
    header.real(112, 4, slope);
    header.real(116, 4, intercept);
    header.integer(120, 2, 7);   // slice_end
    header.text(122, "\3\12"s);  // slice_code, units: mm and s
    header.real(124, 4, 200);    // cal_max
    header.real(128, 4, 10);     // cal_min
    header.real(132, 4, 0.25);   // slice_duration
    header.integer(140, 4, 99);  // glmax
    header.text(148, "a description");
    header.text(228, "aux");
    header.integer(252, 2, 1);
    header.integer(254, 2, 2);
    for (std::size_t i = 0; i < 18; ++i) header.real(256 + 4 * i, 4, 0.5 * static_cast<double>(i) - 3);
    header.text(328, "intent");
    header.text(344, magic.empty() ? "n+1\0"s : magic);
    return header.bytes() + end();
  }

  std::string second() const {
    Buffer header(540, big);
    header.integer(0, 4, size < 0 ? 540 : size);
    header.text(4, magic.empty() ? "n+2\0\r\n\x1a\n"s : magic);
    header.integer(12, 2, datatype);
    header.integer(14, 2, bits);
    header.integer(16, 8, axes < 0 ? static_cast<std::int64_t>(dims.size()) : axes);
    for (std::size_t i = 0; i < dims.size(); ++i) header.integer(24 + 8 * i, 8, dims[i]);
    header.real(104, 8, -1);
    for (std::size_t i = 0; i < spacing.size(); ++i) header.real(112 + 8 * i, 8, spacing[i]);
    header.integer(168, 8, static_cast<std::int64_t>(samples_at(540)));
    header.real(176, 8, slope);
    header.real(184, 8, intercept);
    header.real(192, 8, 200);  // cal_max
    header.real(200, 8, 10);   // cal_min
    header.real(208, 8, 0.25);
    header.integer(232, 8, 7);
    header.text(240, "a description");
    header.text(320, "aux");
    header.integer(344, 4, 1);
    header.integer(348, 4, 2);
    for (std::size_t i = 0; i < 18; ++i) header.real(352 + 8 * i, 8, 0.5 * static_cast<double>(i) - 3);
    header.integer(496, 4, 3);
    header.integer(500, 4, 10);
    header.text(508, "intent");
    return header.bytes() + end();
  }
};

std::string numbers(bool big, std::size_t size, bool real, const std::vector<double>& values) {
  Buffer buffer(size * values.size(), big);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (real) {
      buffer.real(i * size, size, values[i]);
    } else {
      buffer.integer(i * size, size, static_cast<std::int64_t>(values[i]));
    }
  }
  return buffer.bytes();
}

std::string extension(bool big, std::size_t size, int code, const std::string& text) {
  Buffer buffer(size, big);
  buffer.integer(0, 4, static_cast<std::int64_t>(size));
  buffer.integer(4, 4, code);
  buffer.text(8, text);
  return buffer.bytes();
}

std::uint32_t checksum(const std::string& bytes) {
  std::uint32_t sum = ~0U;
  for (const char byte : bytes) {
    sum ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1U ^ (0xedb88320U & (0U - (sum & 1U)));
  }
  return ~sum;
}

// A gzip member that stores its content uncompressed.
std::string gzip(const std::string& content) {
  std::string out = "\x1f\x8b\x08\0\0\0\0\0\0\xff"s;
  constexpr std::size_t most = 65535;
  for (std::size_t at = 0; at < content.size(); at += most) {
    const std::string block = content.substr(at, most);
    out += static_cast<char>(at + most >= content.size() ? 1 : 0);
    out += numbers(false, 2, false,
                   {static_cast<double>(block.size()), static_cast<double>(~block.size() & 0xffffU)});
    out += block;
  }
  return out + numbers(false, 4, false,
                       {static_cast<double>(checksum(content)), static_cast<double>(content.size())});
}

template <class T>
std::vector<double> samples_of(const Image& image) {
  const std::size_t count = image.bytes() / sizeof(T);
  return {image.samples<T>(), image.samples<T>() + count};
}

std::vector<double> samples_of(const Image& image) {
  switch (image.spec().type) {
    case PixelType::u8:
      return samples_of<std::uint8_t>(image);
    case PixelType::u16:
      return samples_of<std::uint16_t>(image);
    default:
      return samples_of<float>(image);
  }
}

std::vector<double> page_of(InputFile& file, int page) {
  file.select_page(page);
  Image image(file.info().spec);
  file.read_rows(0, image.view());
  return samples_of(image);
}

void copy_pages(InputFile& in, OutputFile& out, ImageSpec spec) {
  for (int page = 0; page < in.info().pages; ++page) {
    if (page > 0) out.next_page();
    in.select_page(page);
    Image image(in.info().spec);
    in.read_rows(0, image.view());
    Image converted(spec);
    if (spec.type == image.spec().type) {
      std::memcpy(converted.view().data, image.view().data, image.bytes());
    }
    out.write_rows(0, converted.view());
  }
  out.commit();
}

struct TypeCase {
  int datatype;
  int bits;
  bool real;
  PixelType type;
  std::string note;
  std::vector<double> values;
};

const std::vector<TypeCase>& type_cases() {
  static const std::vector<TypeCase> cases = {
      {2, 8, false, PixelType::u8, "", {0, 200}},
      {512, 16, false, PixelType::u16, "", {1, 65535}},
      {16, 32, true, PixelType::f32, "", {-0.5, 1e30}},
      {256, 8, false, PixelType::f32, "i8 samples converted to f32", {-128, 127}},
      {4, 16, false, PixelType::f32, "i16 samples converted to f32", {-32768, 1000}},
      {8, 32, false, PixelType::f32, "i32 samples converted to f32", {-2147483648.0, 65537}},
      {768, 32, false, PixelType::f32, "u32 samples converted to f32", {4294967040.0, 1}},
      {1024, 64, false, PixelType::f32, "i64 samples converted to f32", {-1099511627776.0, 3}},
      {1280, 64, false, PixelType::f32, "u64 samples converted to f32", {1099511627776.0, 3}},
      {64, 64, true, PixelType::f32, "f64 samples converted to f32", {-0.25, 3e20F}},
  };
  return cases;
}

TEST_F(NiftiTest, EveryTypeIsReadInBothVersionsAndByteOrders) {
  for (const TypeCase& type : type_cases()) {
    for (const int version : {1, 2}) {
      for (const bool big : {false, true}) {
        for (const bool compressed : {false, true}) {
          SCOPED_TRACE(std::to_string(type.datatype) + " version " + std::to_string(version) +
                       (big ? " big" : ""));
          const std::string bytes =
              Nifti{.version = version,
                    .big = big,
                    .datatype = type.datatype,
                    .bits = type.bits,
                    .samples = numbers(big, static_cast<std::size_t>(type.bits / 8), type.real, type.values)}
                  .bytes();
          const auto in = InputFile::open(file("a.nii", compressed ? gzip(bytes) : bytes));
          const FileInfo& info = in->info();
          EXPECT_EQ(info.format, "NIfTI");
          EXPECT_EQ(info.spec.type, type.type);
          EXPECT_EQ(info.spec.width, 2);
          EXPECT_EQ(info.spec.height, 1);
          EXPECT_EQ(info.spec.colour, Colour::gray);
          EXPECT_EQ(info.note, type.note);
          EXPECT_EQ(info.white_unknown, type.type == PixelType::f32);
          EXPECT_EQ(info.gzip, compressed);
          const std::vector<double> values = page_of(*in, 0);
          for (std::size_t i = 0; i < 2; ++i) {
            EXPECT_EQ(values[i],
                      type.type == PixelType::f32 ? static_cast<float>(type.values[i]) : type.values[i]);
          }
        }
      }
    }
  }
}

TEST_F(NiftiTest, ScaledSamplesBecomeFloats) {
  const auto open = [&](const Nifti& nifti) { return InputFile::open(file("a.nii", nifti.bytes())); };
  const auto bytes = open({.slope = 0.5, .intercept = -1, .samples = "\0\xff"s});
  EXPECT_EQ(bytes->info().note, "u8 samples converted to f32, slope 0.5 and intercept -1 applied");
  EXPECT_EQ(bytes->info().spec.type, PixelType::f32);
  EXPECT_EQ(bytes->info().spec.range, 0);
  EXPECT_TRUE(bytes->info().white_unknown);
  EXPECT_EQ(page_of(*bytes, 0), (std::vector{-1.0, 126.5}));
  const auto words = open({.big = true,
                           .datatype = 4,
                           .bits = 16,
                           .slope = 1,
                           .intercept = -1024,
                           .samples = numbers(true, 2, false, {-5, 24})});
  EXPECT_EQ(page_of(*words, 0), (std::vector{-1029.0, -1000.0}));
  const auto floats =
      open({.datatype = 16, .bits = 32, .slope = 2, .samples = numbers(false, 4, true, {1.5, nan})});
  EXPECT_EQ(floats->info().note, "slope 2 and intercept 0 applied");
  EXPECT_EQ(page_of(*floats, 0)[0], 3);
  EXPECT_TRUE(std::isnan(page_of(*floats, 0)[1]));
}

TEST_F(NiftiTest, NoSlopeAndASlopeOfOneLeaveTheSamples) {
  for (const auto& [slope, intercept] :
       {std::pair{0.0, 5.0}, {1.0, 0.0}, {nan, nan}, {infinite, 0.0}, {nan, 3.0}}) {
    const auto in = InputFile::open(
        file("a.nii", Nifti{.slope = slope, .intercept = intercept, .samples = "\1\2"s}.bytes()));
    EXPECT_EQ(in->info().spec.type, PixelType::u8);
    EXPECT_EQ(in->info().note, "");
  }
}

TEST_F(NiftiTest, ColoursAreRgbAndRgba) {
  const auto rgb = InputFile::open(
      file("a.nii", Nifti{.datatype = 128, .bits = 24, .slope = 3, .samples = "\1\2\3\4\5\6"s}.bytes()));
  EXPECT_EQ(rgb->info().spec, (ImageSpec{2, 1, 3, PixelType::u8, Colour::rgb}));
  EXPECT_EQ(page_of(*rgb, 0), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  const auto rgba = InputFile::open(
      file("b.nii", Nifti{.dims = {1, 1}, .datatype = 2304, .bits = 32, .samples = "\1\2\3\4"s}.bytes()));
  EXPECT_EQ(rgba->info().spec.channels, 4);
  EXPECT_TRUE(rgba->info().spec.alpha);
  for (const std::string name : {"c.nii", "c.nii.gz"}) {
    for (InputFile* in : {rgb.get(), rgba.get()}) {
      copy_pages(*in, *OutputFile::create(path(name), in->info(), in), in->info().spec);
      const auto back = InputFile::open(path(name));
      EXPECT_EQ(back->info().spec, in->info().spec);
      EXPECT_EQ(page_of(*back, 0), page_of(*in, 0));
    }
  }
}

TEST_F(NiftiTest, FurtherAxesArePages) {
  const auto open = [&](const std::vector<std::int64_t>& dims,
                        const std::vector<double>& spacing = {1, 1, 1}) {
    std::size_t count = 1;
    for (const std::int64_t length : dims) count *= static_cast<std::size_t>(length);
    std::string samples(count, '\0');
    for (std::size_t i = 0; i < count; ++i) samples[i] = static_cast<char>(i);
    return InputFile::open(
        file("a.nii", Nifti{.dims = dims, .spacing = spacing, .samples = samples}.bytes()));
  };
  const auto line = open({3});
  EXPECT_EQ(line->info().spec.width, 3);
  EXPECT_EQ(line->info().spec.height, 1);
  const auto volume = open({3, 2, 4}, {-0.5, 0.25, 2});
  EXPECT_EQ(volume->info().pages, 4);
  EXPECT_EQ(volume->info().volume->depth, 4);
  EXPECT_EQ(volume->info().volume->spacing, (std::array{0.5, 0.25, 2.0}));
  EXPECT_EQ(page_of(*volume, 2), (std::vector<double>{12, 13, 14, 15, 16, 17}));
  const auto series = open({3, 2, 4, 5}, {0, nan, infinite});
  EXPECT_EQ(series->info().pages, 20);
  EXPECT_EQ(series->info().volume->depth, 4);
  EXPECT_EQ(series->info().volume->spacing, (std::array{1.0, 1.0, 1.0}));
  EXPECT_EQ(page_of(*series, 19)[5], 119);
  EXPECT_EQ(open({1, 1, 1, 2, 3, 2, 2})->info().pages, 24);
  EXPECT_EQ(io_failure(path("a.nii"), [&] { open({1, 1, 2})->select_page(2); }), "has no page 3");
}

TEST_F(NiftiTest, PagesThatAreSelectedKnowTheirVolume) {
  const auto name = file("a.nii", Nifti{.dims = {1, 1, 4, 3}, .samples = "abcdefghijkl"}.bytes());
  const auto depth = [&](const std::vector<std::pair<int, int>>& ranges) {
    OpenOptions options;
    for (const auto& [first, last] : ranges) options.pages.add(first, last);
    return InputFile::open(name, options)->info().volume->depth;
  };
  EXPECT_EQ(depth({{5, 12}}), 4);         // whole volumes
  EXPECT_EQ(depth({{2, 4}}), 3);          // slices of one volume
  EXPECT_EQ(depth({{3, 6}}), 1);          // of two
  EXPECT_EQ(depth({{1, 1}, {5, 5}}), 1);  // not neighbours
}

TEST_F(NiftiTest, AnOutputKeepsTheHeaderButForTheSamples) {
  const std::string flag = "\1\0\0\0"s;
  for (const int version : {1, 2}) {
    for (const bool big : {false, true}) {
      for (const std::string name : {"b.nii", "b.nii.gz"}) {
        SCOPED_TRACE(std::to_string(version) + (big ? " big " : " little ") + name);
        Nifti source{.version = version,
                     .big = big,
                     .dims = {3, 2, 2, 2},
                     .datatype = 4,
                     .bits = 16,
                     .spacing = {0.5, 0.75, 3, 2.5},
                     .slope = 2,
                     .intercept = 1,
                     .between = flag + extension(big, 32, 6, "a comment") + extension(big, 16, 4, "more"),
                     .samples = numbers(big, 2, false, std::vector<double>(24, -7))};
        const auto in = InputFile::open(file("a.nii", source.bytes()));
        copy_pages(*in, *OutputFile::create(path(name), in->info(), in.get()), in->info().spec);
        // What is expected is made by hand: little endian, f32, no scaling, no display range.
        Nifti wanted = source;
        wanted.big = false;
        wanted.datatype = 16;
        wanted.bits = 32;
        wanted.slope = 1;
        wanted.intercept = 0;
        wanted.between = flag + extension(false, 32, 6, "a comment") + extension(false, 16, 4, "more");
        wanted.samples = numbers(false, 4, true, std::vector<double>(24, -13));
        std::string bytes = wanted.bytes();
        if (version == 1) {
          bytes.replace(124, 8, std::string(8, '\0'));
          bytes.replace(140, 8, std::string(8, '\0'));
        } else {
          bytes.replace(192, 16, std::string(16, '\0'));
        }
        if (name == "b.nii") {
          EXPECT_EQ(bytes_of(path(name)), bytes);
        } else {
          EXPECT_TRUE(bytes_of(path(name)).starts_with("\x1f\x8b\x08\0\0\0\0\0"s));
          const auto back = InputFile::open(path(name));
          EXPECT_TRUE(back->info().gzip);
          const Bytes& fields = back->metadata().nifti->fields;
          EXPECT_EQ(std::string(reinterpret_cast<const char*>(fields.data()), fields.size()),
                    bytes.substr(0, fields.size()));
          EXPECT_EQ(back->metadata().nifti->extensions, in->metadata().nifti->extensions);
          EXPECT_EQ(page_of(*back, 3), std::vector<double>(6, -13));
        }
      }
    }
  }
}

TEST_F(NiftiTest, EveryTypeIsWritten) {
  for (const PixelType type : {PixelType::u8, PixelType::u16, PixelType::f32}) {
    const ImageSpec spec{5, 3, 1, type, Colour::gray};
    for (const std::string name : {"a.nii", "a.nii.gz", "A.NII.GZ"}) {
      Image image(spec);
      for (std::size_t i = 0; i < image.bytes(); ++i) {
        static_cast<unsigned char*>(image.view().data)[i] = static_cast<unsigned char>(37 * i % 120);
      }
      const auto out = OutputFile::create(path(name), {.spec = spec, .pages = 3}, nullptr);
      for (int page = 0; page < 3; ++page) {
        if (page > 0) out->next_page();
        out->write_rows(0, image.view().rows(0, 2));
        out->write_rows(2, image.view().rows(2, 1));
      }
      out->commit();
      const auto back = InputFile::open(path(name));
      EXPECT_EQ(back->info().spec, spec);
      EXPECT_EQ(back->info().pages, 3);
      EXPECT_EQ(back->info().volume->depth, 3);
      EXPECT_EQ(back->info().gzip, name != "a.nii");
      for (int page = 3; page-- > 0;) EXPECT_EQ(page_of(*back, page), samples_of(image));
    }
  }
  EXPECT_EQ(writable_type("a.nii", ImageSpec{1, 1, 1, PixelType::f16, Colour::gray}), PixelType::f32);
  EXPECT_EQ(writable_type("a.nii.gz", ImageSpec{1, 1, 3, PixelType::u16, Colour::rgb}), PixelType::u8);
  const auto refusal = [&](const ImageSpec& spec) {
    return io_failure(path("r.nii"), [&] { OutputFile::create(path("r.nii"), {.spec = spec}, nullptr); });
  };
  EXPECT_EQ(refusal({1, 1, 1, PixelType::f16, Colour::gray}), "NIfTI cannot hold f16 samples; f32 would do");
  EXPECT_EQ(refusal({1, 1, 3, PixelType::u16, Colour::rgb}),
            "NIfTI cannot hold u16 rgb samples; u8 would do");
  EXPECT_EQ(refusal({1, 1, 2, PixelType::u8, Colour::multi}),
            "NIfTI holds gray, rgb, rgb with alpha, not 2 channels");
}

TEST_F(NiftiTest, SelectedPagesGetANewHeaderWithTheSameDistances) {
  const auto name =
      file("a.nii", Nifti{.dims = {2, 1, 3, 2}, .spacing = {0.5, 2, 4}, .samples = "abcdefghijkl"}.bytes());
  OpenOptions options;
  options.pages.add(2, 2);
  options.pages.add(4, 5);
  const auto in = InputFile::open(name, options);
  EXPECT_EQ(metadata_not_kept("b.nii", in->info(), *in), "NIfTI header");
  copy_pages(*in, *OutputFile::create(path("b.nii"), in->info(), in.get(), {.pages = in->selected_pages()}),
             in->info().spec);
  const std::string bytes = bytes_of(path("b.nii"));
  EXPECT_EQ(bytes.substr(352), "cdghij");
  const auto back = InputFile::open(path("b.nii"));
  EXPECT_EQ(back->info().pages, 3);
  EXPECT_EQ(back->info().volume->spacing, (std::array{0.5, 2.0, 4.0}));
  EXPECT_EQ(bytes.substr(40, 16), numbers(false, 2, false, {3, 2, 1, 3, 1, 1, 1, 1}));
  EXPECT_EQ(bytes[123], 2) << "millimetres";
  EXPECT_EQ(bytes.substr(252, 4), std::string(4, '\0')) << "no affine matrix";
}

TEST_F(NiftiTest, OtherFormatsReportTheHeaderThatTheyLose) {
  const auto in = InputFile::open(file("a.nii", Nifti{.samples = "ab"}.bytes()));
  EXPECT_EQ(metadata_not_kept("b.npy", in->info(), *in), "NIfTI header");
  EXPECT_EQ(metadata_not_kept("b.nii.gz", in->info(), *in), "");
}

TEST_F(NiftiTest, LongAxesNeedTheSecondVersion) {
  for (const int width : {32767, 32768}) {
    const ImageSpec spec{width, 1, 1, PixelType::u8, Colour::gray};
    Image image(spec);
    std::memset(image.view().data, 7, image.bytes());
    write_image(path("a.nii"), image.view());
    EXPECT_EQ(bytes_of(path("a.nii")).size(), static_cast<std::size_t>(width + (width == 32767 ? 352 : 544)));
    EXPECT_EQ(samples_of(read_image(path("a.nii"))), samples_of(image));
  }
}

TEST_F(NiftiTest, DataBehindTheSamplesAndGapsBeforeThemAreIgnored) {
  const auto gap = InputFile::open(
      file("a.nii", Nifti{.between = std::string(100, '\0'), .samples = "\5\6more"s}.bytes()));
  EXPECT_EQ(page_of(*gap, 0), (std::vector{5.0, 6.0}));
  EXPECT_TRUE(gap->metadata().nifti->extensions.empty());
  const auto compressed =
      InputFile::open(file("b.nii.gz", gzip(Nifti{.samples = "\5\6more"s}.bytes()) + "junk"));
  EXPECT_EQ(page_of(*compressed, 0), (std::vector{5.0, 6.0}));
}

TEST_F(NiftiTest, DamagedExtensionsAreLeftOutAndReported) {
  for (const std::string& broken : {extension(false, 16, 6, "ab").replace(0, 1, "\x40"),
                                    extension(false, 16, 6, "ab").replace(0, 1, "\4"),
                                    extension(false, 16, 6, "ab").replace(3, 1, "\xff")}) {
    const auto in =
        InputFile::open(file("a.nii", Nifti{.between = "\1\0\0\0"s + broken, .samples = "ab"}.bytes()));
    EXPECT_EQ(in->info().note, "header extensions left out");
    EXPECT_EQ(page_of(*in, 0)[0], 'a');
  }
}

// More than the distance of the saved states, in an order that goes back.
TEST_F(NiftiTest, GzipFilesAreReadInAnyOrder) {
  const ImageSpec spec{512, 256, 1, PixelType::u16, Colour::gray};
  constexpr int pages = 40;  // 10 MiB
  const auto value = [](int page, int y, int x) {
    return static_cast<std::uint16_t>(static_cast<unsigned>(page * 131 + y * 17 + x) * 2654435761U >> 13U);
  };
  const auto out = OutputFile::create(path("a.nii.gz"), {.spec = spec, .pages = pages}, nullptr);
  Image image(spec);
  for (int page = 0; page < pages; ++page) {
    auto* sample = static_cast<std::uint16_t*>(image.view().data);
    for (int y = 0; y < spec.height; ++y) {
      for (int x = 0; x < spec.width; ++x) *sample++ = value(page, y, x);
    }
    if (page > 0) out->next_page();
    out->write_rows(0, image.view());
  }
  out->commit();
  const auto in = InputFile::open(path("a.nii.gz"));
  for (const int page : {0, 39, 38, 3, 4, 20, 19, 39, 0}) {
    in->select_page(page);
    for (const int top : {0, 100, 90, 251}) {
      in->read_rows(top, image.view().rows(top, 5));
      const auto* row = image.samples<std::uint16_t>() + (top + 4) * spec.width;
      for (int x = 0; x < spec.width; ++x) ASSERT_EQ(row[x], value(page, top + 4, x)) << page << " " << top;
    }
  }
}

TEST_F(NiftiTest, GzipFilesMayHaveSeveralMembers) {
  const std::string bytes = Nifti{.dims = {4, 1}, .samples = "abcd"}.bytes();
  for (const std::size_t cut : {std::size_t{1}, std::size_t{200}, std::size_t{350}, std::size_t{354}}) {
    const auto in = InputFile::open(file("a.nii.gz", gzip(bytes.substr(0, cut)) + gzip(bytes.substr(cut))));
    EXPECT_EQ(page_of(*in, 0), (std::vector<double>{'a', 'b', 'c', 'd'})) << cut;
  }
}

TEST_F(NiftiTest, WhatIsDamagedIsRefused) {
  const auto refusal = [&](const std::string& bytes) {
    const auto name = file("a.nii", bytes);
    const std::string plain = io_failure(name, [&] { page_of(*InputFile::open(name), 0); });
    const auto packed = file("a.nii.gz", gzip(bytes));
    const std::string compressed = io_failure(packed, [&] { page_of(*InputFile::open(packed), 0); });
    if (!plain.starts_with("truncated: the header promises")) {
      EXPECT_EQ(plain, compressed);
    } else {
      EXPECT_TRUE(compressed.starts_with("truncated: ")) << compressed;
    }
    return plain;
  };
  const std::string damaged = "its NIfTI header is damaged: ";
  for (const int version : {1, 2}) {
    const std::string kind = std::to_string(version);
    const std::string pixels = "ab";
    EXPECT_EQ(refusal(Nifti{.version = version}.bytes().substr(0, 300)), "truncated: it ends in its header");
    EXPECT_EQ(refusal(Nifti{.version = version}.bytes().substr(0, 4)), "truncated: it ends in its header");
    EXPECT_EQ(refusal(Nifti{.version = version, .samples = "a"}.bytes()),
              "truncated: the header promises 2 bytes of pixels (2 x 1), the file has 1");
    EXPECT_EQ(
        refusal(Nifti{.version = version, .size = 500, .samples = pixels}.bytes()),
        damaged + "its size is not " + (version == 1 ? "348" : "540") + ", which NIfTI-" + kind + " has");
    EXPECT_EQ(refusal(Nifti{.version = version, .magic = "abc", .samples = pixels}.bytes()),
              damaged + "the magic \"n+" + kind + "\" is missing (Analyze 7.5 has none and cannot be read)");
    EXPECT_EQ(
        refusal(Nifti{
            .version = version, .magic = version == 1 ? "ni1\0"s : "ni2\0\r\n\x1a\n"s, .samples = pixels}
                    .bytes()),
        "a NIfTI header whose samples are in another file (.img), which cannot be read: join them in a "
        ".nii file");
    for (const int axes : {0, 8}) {
      EXPECT_EQ(refusal(Nifti{.version = version, .axes = axes, .samples = pixels}.bytes()),
                damaged + "it has " + std::to_string(axes) + " axes: 1 to 7 are possible");
    }
    EXPECT_EQ(refusal(Nifti{.version = version, .dims = {2, 0}, .samples = pixels}.bytes()),
              damaged + "axis 2 has the length 0");
    EXPECT_EQ(refusal(Nifti{.version = version, .dims = {2, 1, -4}, .samples = pixels}.bytes()),
              damaged + "axis 3 has the length -4");
    EXPECT_EQ(refusal(Nifti{.version = version, .datatype = 4, .bits = 8, .samples = pixels}.bytes()),
              damaged + "8 bits a voxel, and the datatype 4 (i16) has 16");
    EXPECT_EQ(refusal(Nifti{.version = version, .datatype = 77, .samples = pixels}.bytes()),
              damaged + "the datatype 77 is not known");
    for (const int complex : {32, 1792, 2048}) {
      EXPECT_EQ(refusal(Nifti{.version = version, .datatype = complex, .samples = pixels}.bytes()),
                "its samples are complex numbers, which cannot be read");
    }
    EXPECT_EQ(refusal(Nifti{.version = version, .datatype = 1536, .samples = pixels}.bytes()),
              "its samples are 128-bit floats, which cannot be read");
    EXPECT_EQ(refusal(Nifti{.version = version, .datatype = 1, .samples = pixels}.bytes()),
              "its samples are single bits, which cannot be read");
    const std::string least = version == 1 ? "352" : "544";
    EXPECT_EQ(refusal(Nifti{.version = version, .offset = 300, .samples = pixels}.bytes()),
              damaged + "the samples begin at byte 300, in the header of " + least);
    EXPECT_EQ(refusal(Nifti{.version = version, .offset = 1e6, .samples = pixels}.bytes()),
              "truncated: the header promises 2 bytes of pixels (2 x 1), the file has 0");
    EXPECT_EQ(refusal(Nifti{.version = version, .slope = 2, .intercept = nan, .samples = pixels}.bytes()),
              damaged + "the slope is 2 and the intercept nan");
    EXPECT_EQ(
        refusal(Nifti{
            .version = version, .datatype = 64, .bits = 64, .samples = numbers(false, 8, true, {0, 1e200})}
                    .bytes()),
        "row 0 has the value 1e+200, which is beyond what 32-bit floats hold");
    EXPECT_EQ(refusal(Nifti{.version = version,
                            .datatype = 16,
                            .bits = 32,
                            .slope = 1e30,
                            .samples = numbers(false, 4, true, {0, 1e30})}
                          .bytes())
                  .substr(0, 19),
              "row 0 has the value");
  }
  EXPECT_EQ(refusal(Nifti{.offset = nan}.bytes()),
            damaged + "the samples begin at byte nan, in the header of 352");
  EXPECT_EQ(refusal(Nifti{.offset = 1e30}.bytes()), damaged + "the samples begin at byte 1.000000015e+30");
  EXPECT_EQ(refusal(Nifti{.offset = 352.5}.bytes()), damaged + "the samples begin at byte 352.5");
}

TEST_F(NiftiTest, HostileSizesAreRefusedBeforeMemoryIsTaken) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto refusal = [&](const std::vector<std::int64_t>& dims, bool compressed) {
    const std::string bytes = Nifti{.version = 2, .dims = dims}.bytes();
    const auto name = file("a.nii", compressed ? gzip(bytes) : bytes);
    return io_failure(name, [&] { InputFile::open(name); });
  };
  for (const bool compressed : {false, true}) {
    EXPECT_EQ(refusal({most, 1}, compressed),
              "its header says 9223372036854775807 x 1 pixels: 2147483647 a side are supported");
    EXPECT_EQ(refusal({1, 1, most, most}, compressed),
              "its header says more than 2147483647 slices, which is the limit");
    EXPECT_EQ(refusal({1, 1, 65536, 65536}, compressed),
              "its header says more than 2147483647 slices, which is the limit");
    EXPECT_EQ(refusal({2147483647, 2147483647, 2147483647}, compressed).substr(0, 62),
              "truncated: the header promises more than 2^64 bytes of pixels ");
  }
  EXPECT_EQ(
      refusal({2147483647, 1000}, true),
      "truncated: the header promises 2147483647000 bytes of pixels (2147483647 x 1000), the file has at "
      "most " +
          std::to_string(1032 * gzip(Nifti{.version = 2}.bytes()).size() - 544));
}

TEST_F(NiftiTest, DamagedGzipFilesAreRefused) {
  const std::string whole = gzip(Nifti{.dims = {2, 1, 2}, .samples = "abcd"}.bytes());
  const auto refusal = [&](const std::string& bytes) {
    const auto name = file("a.nii.gz", bytes);
    return io_failure(name, [&] {
      const auto in = InputFile::open(name);
      page_of(*in, 0);
      page_of(*in, 1);
    });
  };
  for (const std::size_t length :
       {std::size_t{5}, std::size_t{12}, std::size_t{100}, whole.size() - 9, whole.size() - 1}) {
    EXPECT_EQ(refusal(whole.substr(0, length)), "truncated: its gzip data end too early") << length;
  }
  std::string changed = whole;
  changed[whole.size() - 9] = 'x';  // the last sample
  EXPECT_EQ(refusal(changed), "its gzip data are damaged before byte " + std::to_string(whole.size() - 4) +
                                  ": incorrect data check");
  changed = whole;
  changed[10] = 7;  // the first block's type
  EXPECT_EQ(refusal(changed), "its gzip data are damaged before byte 11: invalid block type");
  changed = whole;
  changed[2] = 9;
  EXPECT_EQ(refusal(changed), "its gzip data are damaged before byte 4: unknown compression method");
  for (const std::string& other : {"P5 1 1 255 a"s, std::string(1000, 'x'), ""s}) {
    EXPECT_EQ(refusal(gzip(other.empty() ? "x" : other)),
              "a gzip file that contains no NIfTI image: decompress it first");
  }
  // A failure does not change what is read after it.
  const std::string long_rows =
      gzip(Nifti{.dims = {300, 1, 2}, .samples = std::string(300, 'a') + std::string(300, 'b')}.bytes());
  const auto name = file("a.nii.gz", long_rows.substr(0, long_rows.size() - 100));
  const auto in = InputFile::open(name);
  EXPECT_EQ(page_of(*in, 0), std::vector<double>(300, 'a'));
  EXPECT_EQ(io_failure(name, [&] { page_of(*in, 1); }), "truncated: its gzip data end too early");
  EXPECT_EQ(page_of(*in, 0), std::vector<double>(300, 'a'));
}

TEST_F(NiftiTest, BothExtensionsAreKnown) {
  EXPECT_EQ(file_extension("a/b.c.nii.gz"), ".nii.gz");
  EXPECT_EQ(file_stem("a/b.c.nii.gz"), "b.c");
  EXPECT_EQ(file_extension("B.Nii.GZ"), ".Nii.GZ");
  EXPECT_EQ(file_extension("b.tar.gz"), ".gz");
  EXPECT_EQ(file_stem("b.tar.gz"), "b.tar");
  EXPECT_EQ(file_extension("b"), "");
  EXPECT_EQ(file_stem("b"), "b");
  EXPECT_EQ(file_extension(".nii.gz"), ".gz");
  for (const std::string name : {"a.nii", "a.nii.gz", "a.NII.gz"}) {
    EXPECT_TRUE(can_read(name)) << name;
    EXPECT_TRUE(can_write(name, nullptr)) << name;
    EXPECT_TRUE(is_format(name, "NIfTI")) << name;
    EXPECT_TRUE(keeps_white_level(name)) << name;
  }
  EXPECT_FALSE(can_read("a.gz"));
  EXPECT_FALSE(can_write("a.tar.gz", nullptr));
  EXPECT_EQ(extension_of("NIfTI"), ".nii");
  const std::vector<std::string> written = writable_extensions();
  EXPECT_NE(std::find(written.begin(), written.end(), ".nii.gz"), written.end());
}

}  // namespace
}  // namespace ungrain::io
