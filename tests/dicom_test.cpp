// DICOM: transfer syntaxes, samples, the order of slices and their place in space, and what is refused. Files
// are made by hand here.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "folder_test.h"
#include "io/image_file.h"

namespace ungrain::io {
namespace {

using testing::io_failure;
using namespace std::string_literals;
namespace fs = std::filesystem;

struct Syntax {
  std::string uid = "1.2.840.10008.1.2.1";
  bool typed = true;
  bool big = false;
  bool deflated = false;
};

const Syntax explicit_little;
const Syntax implicit_little = {"1.2.840.10008.1.2", false};
const Syntax explicit_big = {"1.2.840.10008.1.2.2", true, true};
const Syntax deflated = {"1.2.840.10008.1.2.1.99", true, false, true};
const Syntax rle = {"1.2.840.10008.1.2.5"};

std::string number(std::uint64_t value, std::size_t size, bool big = false) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * (big ? size - 1 - i : i));
  return bytes;
}

constexpr std::uint32_t no_length = 0xffffffffU;

// Data elements of one syntax.
class Elements {
 public:
  explicit Elements(Syntax syntax) : syntax_(std::move(syntax)) {}

  Elements& raw(std::uint32_t tag, const std::string& type, const std::string& value,
                std::optional<std::uint32_t> length = {}) {
    const auto promised = length.value_or(static_cast<std::uint32_t>(value.size()));
    static const std::vector<std::string> wide = {"OB", "OW", "SQ", "UN", "UT", "OF"};
    bytes_ += number(tag >> 16U, 2, syntax_.big) + number(tag & 0xffffU, 2, syntax_.big);
    if (!syntax_.typed) {
      bytes_ += number(promised, 4, syntax_.big);
    } else if (std::find(wide.begin(), wide.end(), type) != wide.end()) {
      bytes_ += type + "\0\0"s + number(promised, 4, syntax_.big);
    } else {
      bytes_ += type + number(promised, 2, syntax_.big);
    }
    bytes_ += value;
    return *this;
  }
  Elements& text(std::uint32_t tag, const std::string& type, std::string value) {
    if (value.size() % 2 == 1) value += ' ';
    return raw(tag, type, value);
  }
  Elements& word(std::uint32_t tag, unsigned value) { return raw(tag, "US", number(value, 2, syntax_.big)); }
  // Items with or without lengths.
  Elements& sequence(std::uint32_t tag, const std::vector<std::string>& items, bool open_ended) {
    std::string value;
    for (const std::string& item : items) {
      value += delimiter(0xe000, open_ended ? no_length : static_cast<std::uint32_t>(item.size())) + item;
      if (open_ended) value += delimiter(0xe00d, 0);
    }
    if (open_ended) value += delimiter(0xe0dd, 0);
    return raw(tag, "SQ", value, open_ended ? std::optional(no_length) : std::nullopt);
  }
  Elements& fragments(const std::vector<std::string>& list) {
    std::string value = delimiter(0xe000, 0);
    for (const std::string& each : list) {
      value += delimiter(0xe000, static_cast<std::uint32_t>(each.size())) + each;
    }
    return raw(0x7fe00010, "OB", value + delimiter(0xe0dd, 0), no_length);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string delimiter(unsigned which, std::uint32_t length) const {
    return number(0xfffe, 2, syntax_.big) + number(which, 2, syntax_.big) + number(length, 4, syntax_.big);
  }

  Syntax syntax_;
  std::string bytes_;
};

// Deflated bytes of blocks that are stored as they are.
std::string stored_blocks(const std::string& bytes) {
  std::string result;
  for (std::size_t at = 0; at < bytes.size(); at += 60000) {
    const std::string part = bytes.substr(at, 60000);
    const bool last = at + part.size() == bytes.size();
    result += (last ? "\1"s : "\0"s) + number(part.size(), 2) + number(~part.size() & 0xffffU, 2) + part;
  }
  return result;
}

std::string file_of(const Syntax& syntax, const std::string& data_set,
                    const std::string& kind = "1.2.840.10008.5.1.4.1.1.2") {
  Elements preface(explicit_little);
  preface.text(0x00020002, "UI", kind).text(0x00020010, "UI", syntax.uid);
  Elements length(explicit_little);
  length.raw(0x00020000, "UL", number(preface.bytes().size(), 4));
  return std::string(128, '\0') + "DICM" + length.bytes() + preface.bytes() +
         (syntax.deflated ? stored_blocks(data_set) : data_set);
}

// One file. Samples are numbers of the type that the header says.
struct Dicom {
  Syntax syntax = explicit_little;
  int width = 3;
  int height = 2;
  int channels = 1;
  int planar = 0;
  int allocated = 16;
  int stored = 16;
  int high = -1;  // -1: right
  bool is_signed = false;
  std::string colours = "MONOCHROME2";
  std::vector<double> position = {0, 0, 0};
  std::vector<double> orientation = {1, 0, 0, 0, 1, 0};
  std::vector<double> pixel = {0.5, 0.25};
  std::string slope = {};
  std::string intercept = {};
  std::string series = "1.2.3";
  int series_number = 4;
  std::string description = "T1";
  int instance = 1;
  std::string uid = {};
  int time = 0;
  int echo = 0;
  int frames = 0;                                          // 0: not said
  std::function<void(Elements&)> more = [](Elements&) {};  // before the pixels
  std::vector<std::int64_t> samples = {1, 2, 3, 4, 5, 6};
  std::string pixels = {};  // instead of the samples
  bool has_pixels = true;

  static std::string joined(const std::vector<double>& numbers) {
    return fmt::format("{}", fmt::join(numbers, "\\"));
  }

  std::string native() const {
    std::string bytes;
    for (const std::int64_t sample : samples) {
      bytes +=
          number(static_cast<std::uint64_t>(sample), static_cast<std::size_t>(allocated) / 8, syntax.big);
    }
    if (bytes.size() % 2 == 1) bytes += '\0';
    return bytes;
  }

  // Runs of two equal bytes or more, and the bytes between them.
  static std::string packed(const std::string& bytes) {
    std::string result;
    for (std::size_t at = 0; at < bytes.size();) {
      std::size_t run = 1;
      while (at + run < bytes.size() && run < 128 && bytes[at + run] == bytes[at]) ++run;
      if (run > 1) {
        result += static_cast<char>(257 - run);
        result += bytes[at];
      } else {
        result += '\0';
        result += bytes[at];
      }
      at += run;
    }
    return result;
  }

  std::string fragment(int frame) const {
    const auto bytes = static_cast<std::size_t>(allocated) / 8;
    const auto wide = static_cast<std::size_t>(channels);
    const std::size_t count = static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * wide;
    std::string header = number(bytes * wide, 4);
    std::string segments;
    for (std::size_t channel = 0; channel < wide; ++channel) {
      for (std::size_t byte = bytes; byte-- > 0;) {
        std::string plane;
        for (std::size_t i = channel; i < count; i += wide) {
          const auto sample =
              static_cast<std::uint64_t>(samples[static_cast<std::size_t>(frame) * count + i]);
          plane += static_cast<char>(sample >> 8 * byte);
        }
        header += number(64 + segments.size(), 4);
        segments += packed(plane);
      }
    }
    header.resize(64, '\0');
    return header + segments + (segments.size() % 2 == 1 ? "\0"s : ""s);
  }

  std::string data_set() const {
    Elements elements(syntax);
    elements.text(0x00080008, "CS", "ORIGINAL\\PRIMARY");
    elements.text(0x00080018, "UI", uid.empty() ? fmt::format("1.9.{}.{}.{}", instance, time, echo) : uid);
    elements.text(0x0008103e, "LO", description);
    elements.text(0x00100010, "PN", "Secret^Name");
    if (echo > 0) elements.text(0x00180086, "IS", std::to_string(echo));
    elements.text(0x0020000e, "UI", series).text(0x00200011, "IS", std::to_string(series_number));
    elements.text(0x00200013, "IS", std::to_string(instance));
    if (!position.empty()) elements.text(0x00200032, "DS", joined(position));
    if (!orientation.empty()) elements.text(0x00200037, "DS", joined(orientation));
    if (time > 0) elements.text(0x00200100, "IS", std::to_string(time));
    elements.word(0x00280002, static_cast<unsigned>(channels)).text(0x00280004, "CS", colours);
    if (channels > 1) elements.word(0x00280006, static_cast<unsigned>(planar));
    if (frames > 0) elements.text(0x00280008, "IS", std::to_string(frames));
    elements.word(0x00280010, static_cast<unsigned>(height)).word(0x00280011, static_cast<unsigned>(width));
    if (!pixel.empty()) elements.text(0x00280030, "DS", joined(pixel));
    elements.word(0x00280100, static_cast<unsigned>(allocated))
        .word(0x00280101, static_cast<unsigned>(stored));
    elements.word(0x00280102, static_cast<unsigned>(high < 0 ? stored - 1 : high));
    elements.word(0x00280103, is_signed ? 1 : 0);
    if (!intercept.empty()) elements.text(0x00281052, "DS", intercept);
    if (!slope.empty()) elements.text(0x00281053, "DS", slope);
    more(elements);
    if (!has_pixels) return elements.bytes();
    if (syntax.uid == rle.uid) {
      std::vector<std::string> list;
      for (int frame = 0; frame < std::max(1, frames); ++frame) list.push_back(fragment(frame));
      return elements.fragments(list).bytes();
    }
    return elements.raw(0x7fe00010, allocated == 8 ? "OB" : "OW", pixels.empty() ? native() : pixels).bytes();
  }

  std::string bytes() const { return file_of(syntax, data_set()); }
};

class DicomTest : public testing::FolderTest {
 protected:
  fs::path save(const std::string& name, const Dicom& dicom) const {
    fs::create_directories(path(name).parent_path());
    return file(name, dicom.bytes());
  }

  // Slices at z = 0, 2, 4 ... whose samples all are their number.
  void save_slices(const std::string& folder, int count, const Dicom& like = {}) const {
    for (int z = 0; z < count; ++z) {
      Dicom slice = like;
      slice.position = {1, 2, 2.0 * z};
      slice.instance = 100 - z;
      slice.samples = std::vector<std::int64_t>(6, z);
      save(fmt::format("{}/{}{}", folder, like.series_number, (z * 7) % count), slice);
    }
  }

  static std::vector<double> values(InputFile& input, int page = 0) {
    input.select_page(page);
    const ImageSpec& spec = input.info().spec;
    Image image(spec);
    input.read_rows(0, image.view());
    std::vector<double> list;
    for (int i = 0; i < spec.width * spec.height * spec.channels; ++i) {
      const auto* samples =
          static_cast<const std::byte*>(image.view().data) + i * bytes_per_sample(spec.type);
      if (spec.type == PixelType::u8) list.push_back(std::to_integer<int>(*samples));
      std::uint16_t word = 0;
      float real = 0;
      if (spec.type == PixelType::u16) std::memcpy(&word, samples, sizeof word);
      if (spec.type == PixelType::f32) std::memcpy(&real, samples, sizeof real);
      if (spec.type == PixelType::u16) list.push_back(word);
      if (spec.type == PixelType::f32) list.push_back(real);
    }
    return list;
  }

  std::vector<double> values_of(const Dicom& dicom) const {
    return values(*InputFile::open(save("one.dcm", dicom)));
  }

  // The first value of each page.
  static std::vector<double> first_values(InputFile& input) {
    std::vector<double> list;
    for (int page = 0; page < input.info().pages; ++page) list.push_back(values(input, page).front());
    return list;
  }

  static std::string failure(const fs::path& name, const OpenOptions& options = {}) {
    return io_failure(name, [&] {
      const auto input = InputFile::open(name, options);
      for (int page = 0; page < input->info().pages; ++page) values(*input, page);
    });
  }
  std::string failure_of(const Dicom& dicom) const { return failure(save("one.dcm", dicom)); }
};

using Values = std::vector<double>;

TEST_F(DicomTest, SyntaxesAndTypes) {
  for (const Syntax& syntax : {explicit_little, implicit_little, explicit_big, deflated, rle}) {
    for (const int bits : {8, 16, 32}) {
      for (const bool is_signed : {false, true}) {
        Dicom dicom;
        dicom.syntax = syntax;
        dicom.allocated = dicom.stored = bits;
        dicom.is_signed = is_signed;
        const std::int64_t most = (std::int64_t{1} << (bits - (is_signed ? 1 : 0))) - 1;
        dicom.samples = {0, 1, 2, most, is_signed ? -1 : 5, is_signed ? -most - 1 : 5};
        Values expected;
        for (const std::int64_t sample : dicom.samples) {
          expected.push_back(bits == 32 ? static_cast<double>(static_cast<float>(sample))
                                        : static_cast<double>(sample));
        }
        const auto input = InputFile::open(save("one.dcm", dicom));
        const std::string what = fmt::format("{} {} {}", syntax.uid, bits, is_signed);
        EXPECT_EQ(values(*input), expected) << what;
        const bool stays = bits < 32 && !is_signed;
        EXPECT_EQ(input->info().spec.type, !stays      ? PixelType::f32
                                           : bits == 8 ? PixelType::u8
                                                       : PixelType::u16);
        EXPECT_EQ(input->info().format, "DICOM");
        EXPECT_EQ(input->info().note,
                  stays ? "" : fmt::format("{}{} samples converted to f32", is_signed ? 'i' : 'u', bits));
        EXPECT_EQ(input->info().white_unknown, !stays);
        input->check_unchanged();
      }
    }
  }
}

TEST_F(DicomTest, BitsThatCount) {
  Dicom dicom;
  dicom.stored = 12;
  dicom.samples = {0xf001, 0xffff, 0x0fff, 0x1000, 0x0800, 0x0002};
  EXPECT_EQ(values_of(dicom), (Values{1, 4095, 4095, 0, 2048, 2}));
  EXPECT_EQ(InputFile::open(path("one.dcm"))->info().spec.white(), 4095);
  dicom.is_signed = true;
  EXPECT_EQ(values_of(dicom), (Values{1, -1, -1, 0, -2048, 2}));
  EXPECT_EQ(InputFile::open(path("one.dcm"))->info().spec.range, 2047);
  dicom.high = 15;
  dicom.samples = {0x001f, 0xffff, 0x8000, 0x7ff0, 0x0000, 0x0010};
  EXPECT_EQ(values_of(dicom), (Values{1, -1, -2048, 2047, 0, 1}));
  dicom.high = 16;
  EXPECT_NE(failure_of(dicom).find("damaged"), std::string::npos);
  dicom.high = 10;
  EXPECT_NE(failure_of(dicom).find("damaged"), std::string::npos);
}

TEST_F(DicomTest, SlopeAndIntercept) {
  Dicom dicom;
  dicom.slope = "1";
  dicom.intercept = "0";
  dicom.samples = {0, 1, 2, 3, 65535, 7};
  EXPECT_EQ(values_of(dicom), (Values{0, 1, 2, 3, 65535, 7}));
  EXPECT_EQ(InputFile::open(path("one.dcm"))->info().spec.type, PixelType::u16);
  dicom.intercept = "-1024 ";
  EXPECT_EQ(values_of(dicom), (Values{-1024, -1023, -1022, -1021, 64511, -1017}));
  EXPECT_EQ(InputFile::open(path("one.dcm"))->info().note,
            "u16 samples converted to f32, slope 1 and intercept -1024 applied");
  dicom.slope = "+2.5E-1";
  dicom.intercept = "";
  EXPECT_EQ(values_of(dicom), (Values{0, 0.25, 0.5, 0.75, 16383.75, 1.75}));
  dicom.slope = "1e300";
  EXPECT_EQ(failure_of(dicom), "its DICOM header is damaged: a slope of 1e+300 and an intercept of 0");
  dicom.slope = "0";
  EXPECT_NE(failure_of(dicom).find("a slope of 0"), std::string::npos);
  dicom.slope = "1\\x";
  EXPECT_EQ(failure_of(dicom), "its DICOM header is damaged: (0028,1053) is \"x\", not a number");
}

TEST_F(DicomTest, ColoursAndPlanes) {
  for (const Syntax& syntax : {explicit_little, implicit_little, explicit_big, deflated, rle}) {
    Dicom dicom;
    dicom.syntax = syntax;
    dicom.width = 2;
    dicom.height = 1;
    dicom.channels = 3;
    dicom.colours = "RGB";
    dicom.allocated = dicom.stored = 8;
    dicom.samples = {1, 2, 3, 4, 5, 6};
    EXPECT_EQ(values_of(dicom), (Values{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(InputFile::open(path("one.dcm"))->info().spec.colour, Colour::rgb);
    if (syntax.uid == rle.uid) continue;  // its planes are those of RLE
    dicom.planar = 1;
    EXPECT_EQ(values_of(dicom), (Values{1, 3, 5, 2, 4, 6}));
  }
  Dicom dicom;
  dicom.colours = "MONOCHROME1";
  EXPECT_EQ(values_of(dicom), (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(InputFile::open(path("one.dcm"))->info().note,
            "MONOCHROME1: large values are dark, as in the file");
  dicom.colours = "PALETTE COLOR";
  EXPECT_EQ(failure_of(dicom), "its colours are PALETTE COLOR, which cannot be read: gray and RGB can");
  dicom.colours = "RGB";
  EXPECT_EQ(failure_of(dicom), "its DICOM header is damaged: 1 channels of RGB");
}

TEST_F(DicomTest, RowsInAnyOrder) {
  for (const Syntax& syntax : {explicit_little, explicit_big, deflated, rle}) {
    Dicom dicom;
    dicom.syntax = syntax;
    dicom.allocated = dicom.stored = 8;
    dicom.width = 5;
    dicom.height = 3;
    dicom.frames = 2;
    dicom.samples.clear();
    for (int i = 0; i < 30; ++i) dicom.samples.push_back(i);
    const auto input = InputFile::open(save("one.dcm", dicom));
    ImageSpec row = input->info().spec;
    row.height = 1;
    Image image(row);
    for (const int page : {1, 0}) {
      input->select_page(page);
      for (const int y : {2, 0, 1}) {
        input->read_rows(y, image.view());
        const auto* samples = static_cast<const std::byte*>(image.view().data);
        for (int x = 0; x < 5; ++x) EXPECT_EQ(std::to_integer<int>(samples[x]), 15 * page + 5 * y + x);
      }
    }
    EXPECT_NE(io_failure(path("one.dcm"), [&] { input->select_page(2); }).find("page 3"), std::string::npos);
  }
}

// Bytes of 8-bit samples in words of 16 bits, which are big endian.
TEST_F(DicomTest, BytesInBigEndianWords) {
  Dicom dicom;
  dicom.syntax = explicit_big;
  dicom.allocated = dicom.stored = 8;
  dicom.width = 3;
  dicom.height = 1;
  dicom.frames = 2;
  dicom.more = [](Elements& elements) { elements.raw(0x7fe00010, "OW", "\2\1\4\3\6\5"s); };
  dicom.has_pixels = false;
  const auto input = InputFile::open(save("one.dcm", dicom));
  EXPECT_EQ(values(*input, 0), (Values{1, 2, 3}));
  EXPECT_EQ(values(*input, 1), (Values{4, 5, 6}));
}

TEST_F(DicomTest, SequencesAreSkipped) {
  for (const Syntax& syntax : {explicit_little, implicit_little, explicit_big, deflated}) {
    for (const bool open_ended : {false, true}) {
      Dicom dicom;
      dicom.syntax = syntax;
      dicom.more = [&](Elements& elements) {
        // What looks like the image's own attributes and pixels.
        Elements inner(syntax);
        inner.word(0x00280010, 99).word(0x00280011, 98).raw(0x7fe00010, "OW", "abcd");
        Elements middle(syntax);
        middle.sequence(0x00880200, {inner.bytes(), "", inner.bytes()}, open_ended);
        elements.sequence(0x00400555, {middle.bytes(), middle.bytes()}, open_ended);
        elements.sequence(0x00400556, {}, open_ended);
      };
      EXPECT_EQ(values_of(dicom), (Values{1, 2, 3, 4, 5, 6})) << syntax.uid << open_ended;
    }
  }
  // An unknown type without a length has items without types.
  Dicom dicom;
  dicom.more = [](Elements& elements) {
    Elements inner(implicit_little);
    inner.word(0x00280010, 99);
    const std::string item = number(0xe000fffe, 4) + number(no_length, 4) + inner.bytes() +
                             number(0xe00dfffe, 4) + number(0, 4) + number(0xe0ddfffe, 4) + number(0, 4);
    elements.raw(0x00410010, "UN", item, no_length);
    // A small picture of compressed pixels.
    Elements icon(explicit_little);
    icon.fragments({"abcd", "ef"});
    elements.sequence(0x00880200, {icon.bytes()}, true);
  };
  EXPECT_EQ(values_of(dicom), (Values{1, 2, 3, 4, 5, 6}));
}

TEST_F(DicomTest, SequencesTooDeep) {
  for (const int depth : {16, 17, 100000}) {
    Dicom dicom;
    dicom.more = [&](Elements& elements) {
      std::string begin;
      std::string end;
      for (int i = 1; i < depth; ++i) {
        begin += number(0xe000fffe, 4) + number(no_length, 4) + number(0x05550040, 4) + "SQ\0\0"s +
                 number(no_length, 4);
        end += number(0xe00dfffe, 4) + number(0, 4) + number(0xe0ddfffe, 4) + number(0, 4);
      }
      begin += number(0xe000fffe, 4) + number(0, 4);
      elements.raw(0x00400555, "SQ", begin + number(0xe0ddfffe, 4) + number(0, 4) + end, no_length);
    };
    if (depth <= 16) {
      EXPECT_EQ(values_of(dicom), (Values{1, 2, 3, 4, 5, 6}));
    } else {
      EXPECT_EQ(failure_of(dicom), "its DICOM header is damaged: sequences in sequences, more than 16 deep");
    }
  }
}

TEST_F(DicomTest, OrderOfSlices) {
  Dicom like;
  save_slices("s", 9, like);
  file("s/readme.txt", std::string(500, 'x'));
  file("s/empty", "");
  file("s/.hidden", "hidden");
  file("s/DICOMDIR", file_of(explicit_little, "", "1.2.840.10008.1.3.10"));
  const auto input = InputFile::open(path("s"));
  EXPECT_EQ(first_values(*input), (Values{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(input->info().note, "3 files without DICOM images left out");
  ASSERT_TRUE(input->info().volume);
  EXPECT_EQ(input->info().volume->depth, 9);
  EXPECT_EQ(input->info().volume->spacing, (std::array<double, 3>{0.25, 0.5, 2}));
  EXPECT_TRUE(holds_dicom(path("s")));
  EXPECT_TRUE(holds_dicom(path("s/40")));
  EXPECT_FALSE(holds_dicom(path("s/readme.txt")));
  EXPECT_FALSE(holds_dicom(path("nowhere")));
}

TEST_F(DicomTest, OrderWithoutPositions) {
  for (int i = 0; i < 4; ++i) {
    Dicom slice;
    slice.position = slice.orientation = {};
    slice.instance = 12 - i;
    slice.samples = std::vector<std::int64_t>(6, i);
    save(fmt::format("s/{}", i), slice);
  }
  EXPECT_EQ(first_values(*InputFile::open(path("s"))), (Values{3, 2, 1, 0}));
  EXPECT_EQ(InputFile::open(path("s"))->info().note, "no positions of slices: in the order of their numbers");
  save("s/with", {.uid = "1.1"});
  EXPECT_NE(failure(path("s")).find("some of its images have a position in space and some have none"),
            std::string::npos);
}

TEST_F(DicomTest, SlopesOfSlicesDiffer) {
  for (int z = 0; z < 3; ++z) {
    Dicom slice;
    slice.position = {0, 0, 1.0 * z};
    slice.instance = z;
    slice.slope = std::to_string(z + 1);
    slice.is_signed = z == 2;
    slice.samples[0] = z == 2 ? -4 : 4;
    save(fmt::format("s/{}", z), slice);
  }
  const auto input = InputFile::open(path("s"));
  EXPECT_EQ(first_values(*input), (Values{4, 8, -12}));
  EXPECT_EQ(input->info().note, "i16 samples converted to f32, slope and intercept of each slice applied");
}

TEST_F(DicomTest, SeveralSeries) {
  save_slices("s", 3);
  Dicom other;
  other.series = "1.2.9";
  other.series_number = 2;
  other.description = "Localizer \xe4";
  save_slices("s", 2, other);
  EXPECT_EQ(
      failure(path("s")),
      "holds 2 series: 2 (Localizer ?, 2 images), 4 (T1, 3 images); --series 2 chooses the first of them");
  OpenOptions options;
  options.series = "2";
  EXPECT_EQ(InputFile::open(path("s"), options)->info().pages, 2);
  options.series = "1.2.3";
  EXPECT_EQ(InputFile::open(path("s"), options)->info().pages, 3);
  options.series = "3";
  EXPECT_EQ(failure(path("s"), options),
            "--series 3: there is none, but: 2 (Localizer ?, 2 images), 4 (T1, 3 images)");
}

TEST_F(DicomTest, VolumesInTime) {
  for (const bool echoes : {false, true}) {
    for (int volume = 0; volume < 3; ++volume) {
      for (int z = 0; z < 4; ++z) {
        Dicom slice;
        slice.position = {0, 0, -1.5 * z};
        slice.instance = 50 - 4 * volume - z;  // not in the order of time
        (echoes ? slice.echo : slice.time) = volume + 1;
        slice.samples = std::vector<std::int64_t>(6, 10 * volume + 3 - z);
        save(fmt::format("{}/{}-{}", echoes ? "echoes" : "times", z, volume), slice);
      }
    }
    const auto input = InputFile::open(path(echoes ? "echoes" : "times"));
    EXPECT_EQ(first_values(*input), (Values{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}));
    EXPECT_EQ(input->info().volume->depth, 4);
    EXPECT_EQ(input->info().pages, 12);
  }
  fs::remove(path("times/1-2"));
  EXPECT_EQ(
      failure(path("times")),
      "its 11 images at 4 positions do not make whole volumes: 3 images at most positions, but 2 at -1.5 mm "
      "(1-0)");
}

TEST_F(DicomTest, MissingSlices) {
  save_slices("s", 6);
  fs::remove(path(fmt::format("s/4{}", 3 * 7 % 6)));
  const auto input = InputFile::open(path("s"));
  EXPECT_EQ(first_values(*input), (Values{0, 1, 2, 4, 5}));
  EXPECT_EQ(input->info().note,
            "slices are missing: 1, such as behind slice 3, where the next is 4 mm away instead of 2");
  EXPECT_EQ(input->info().volume->spacing[2], 2);
}

TEST_F(DicomTest, SlicesThatDoNotFit) {
  save_slices("size", 3);
  save("size/wide", {.width = 6, .height = 1, .position = {0, 0, 9}, .uid = "1.1"});
  EXPECT_EQ(
      failure(path("size")),
      "its images are not slices of one volume: 3 of 3 x 2, 16 bits (first 40), 1 of 6 x 1, 16 bits (first "
      "wide); keep those of one size in a folder of their own");
  save_slices("turned", 3);
  save("turned/coronal", {.orientation = {1, 0, 0, 0, 0, -1}, .uid = "1.1"});
  EXPECT_EQ(failure(path("turned")),
            "its images have several orientations: 3 axial (first 40), 1 coronal (first coronal); keep those "
            "of one "
            "in a folder of their own");
  save_slices("twice", 3);
  fs::copy(path("twice/40"), path("twice/copy"));
  EXPECT_EQ(failure(path("twice")), "40 and copy are the same image: remove one");
}

TEST_F(DicomTest, FramesWithPositions) {
  for (const Syntax& syntax : {explicit_little, implicit_little, explicit_big, deflated, rle}) {
    for (const bool open_ended : {false, true}) {
      Dicom dicom;
      dicom.syntax = syntax;
      dicom.frames = 3;
      dicom.position = dicom.orientation = dicom.pixel = {};
      dicom.samples = {};
      for (const int value : {7, 8, 9}) dicom.samples.insert(dicom.samples.end(), 6, value);
      dicom.more = [&](Elements& elements) {
        const auto group = [&](std::uint32_t sequence, const std::function<void(Elements&)>& fill) {
          Elements inner(syntax);
          fill(inner);
          Elements outer(syntax);
          return outer.sequence(sequence, {inner.bytes()}, open_ended).bytes();
        };
        std::string shared =
            group(0x00209116, [](Elements& e) { e.text(0x00200037, "DS", "0\\1\\0\\0\\0\\1"); });
        shared += group(0x00289110,
                        [](Elements& e) { e.text(0x00180050, "DS", "99").text(0x00280030, "DS", "3\\2"); });
        elements.sequence(0x52009229, {shared}, open_ended);
        std::vector<std::string> frames;
        for (const char* x : {"5", "-5", "0"}) {
          frames.push_back(
              group(0x00209113, [&](Elements& e) { e.text(0x00200032, "DS", fmt::format("{}\\2\\3", x)); }));
        }
        elements.sequence(0x52009230, frames, open_ended);
      };
      const auto input = InputFile::open(save("one.dcm", dicom));
      EXPECT_EQ(first_values(*input), (Values{8, 9, 7})) << syntax.uid << open_ended;
      EXPECT_EQ(input->info().volume->spacing, (std::array<double, 3>{2, 3, 5}));
      EXPECT_EQ(input->info().volume->depth, 3);
    }
  }
}

TEST_F(DicomTest, FramesWithoutPositions) {
  Dicom dicom;
  dicom.frames = 2;
  dicom.more = [](Elements& elements) {
    elements.text(0x00180050, "DS", "4");  // out of order, which does not matter
  };
  dicom.samples = {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2};
  const auto input = InputFile::open(save("one.dcm", dicom));
  EXPECT_EQ(first_values(*input), (Values{1, 2}));
  EXPECT_EQ(input->info().volume->spacing, (std::array<double, 3>{0.25, 0.5, 4}));
  EXPECT_EQ(input->info().note, "no positions of slices: in the order of frames");
  dicom.frames = 3;
  EXPECT_EQ(failure_of(dicom),
            "truncated: the header promises 36 bytes of pixels (3 x 2, 3 frames), the file has 24");
  dicom.frames = -1;
  dicom.more = [](Elements& elements) { elements.text(0x00280008, "IS", "99999999999"); };
  EXPECT_NE(failure_of(dicom).find("99999999999 frames"), std::string::npos);
}

float real_at(const std::string& bytes, std::size_t at) {
  float value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

TEST_F(DicomTest, PlaceInSpace) {
  save_slices("s", 4);
  const auto input = InputFile::open(path("s"));
  const FileInfo& info = input->info();
  const auto output = OutputFile::create(path("out.nii"), info, input.get());
  Image image(info.spec);
  for (int page = 0; page < info.pages; ++page) {
    if (page > 0) output->next_page();
    input->select_page(page);
    input->read_rows(0, image.view());
    output->write_rows(0, image.view());
  }
  output->commit();
  const std::string bytes = bytes_of(path("out.nii"));
  EXPECT_EQ(bytes.find("Secret"), std::string::npos);
  EXPECT_EQ(bytes.substr(252, 4), "\1\0\1\0"s);  // both codes: the scanner's
  EXPECT_EQ(bytes[123], 2);                      // millimetres
  const std::array<float, 12> expected = {-0.25, 0, 0, -1, 0, -0.5, 0, -2, 0, 0, 2, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(real_at(bytes, 280 + 4 * i), expected[i]) << i;
  const std::array<float, 6> quaternion = {0, 0, 1, -1, -2, 0};  // half a turn about z
  for (std::size_t i = 0; i < quaternion.size(); ++i)
    EXPECT_EQ(real_at(bytes, 256 + 4 * i), quaternion[i]) << i;
  EXPECT_EQ(metadata_not_kept(path("out.nii"), info, *input), "DICOM attributes");
  EXPECT_EQ(metadata_not_kept(path("out.npy"), info, *input), "DICOM attributes");
}

TEST_F(DicomTest, CompressedPixels) {
  Dicom dicom;
  dicom.syntax = rle;
  dicom.syntax.uid = "1.2.840.10008.1.2.4.90";
  EXPECT_EQ(
      failure_of(dicom),
      "its pixels are lossless JPEG 2000 (transfer syntax 1.2.840.10008.1.2.4.90), which is not decoded: "
      "gdcmconv --raw makes a file that can be read");
  dicom.syntax.uid = "1.2.840.10008.1.2.4.50";
  EXPECT_NE(failure_of(dicom).find("JPEG baseline"), std::string::npos);
  EXPECT_NE(failure_of(dicom).find("dcmdjpeg"), std::string::npos);
  dicom.syntax.uid = "1.2.840.10008.1.2.4.80";
  EXPECT_NE(failure_of(dicom).find("JPEG-LS"), std::string::npos);
  dicom.syntax.uid = "1.2.3.4";
  EXPECT_EQ(failure_of(dicom), "its transfer syntax 1.2.3.4 is not known");
}

TEST_F(DicomTest, DamagedRle) {
  Dicom dicom;
  dicom.syntax = rle;
  dicom.samples = {1, 1, 1, 2, 2, 300};
  const std::string good = dicom.bytes();
  EXPECT_EQ(values(*InputFile::open(file("one.dcm", good))), (Values{1, 1, 1, 2, 2, 300}));
  const std::size_t fragment = good.find(number(2, 4) + number(64, 4));
  ASSERT_NE(fragment, std::string::npos);
  const auto changed = [&](std::size_t at, const std::string& bytes) {
    std::string bad = good;
    bad.replace(fragment + at, bytes.size(), bytes);
    return failure(file("one.dcm", bad));
  };
  EXPECT_EQ(changed(0, number(3, 4)), "its RLE pixels are damaged: 3 segments instead of 2");
  EXPECT_NE(changed(4, number(0xffffffff, 4)).find("segment 1"), std::string::npos);
  EXPECT_NE(changed(8, number(5, 4)).find("segment 1 is at 64 to 5"), std::string::npos);
  EXPECT_NE(changed(64, "\x80\x80").find("ends after"), std::string::npos);
  EXPECT_NE(changed(64, "\x7f").find("ends after"), std::string::npos);
  dicom.frames = 2;
  dicom.samples.resize(12);
  dicom.more = [](Elements& elements) { elements.text(0x00280008, "IS", "3"); };
  EXPECT_EQ(failure_of(dicom), "its DICOM header is damaged: 2 RLE fragments for 3 frames");
  // A picture that no fragment of this size can hold.
  dicom = {};
  dicom.syntax = rle;
  dicom.more = [](Elements& elements) { elements.word(0x00280010, 65535).word(0x00280011, 65535); };
  EXPECT_NE(failure_of(dicom).find("cannot hold 65535 x 65535 pixels"), std::string::npos);
}

TEST_F(DicomTest, CutOffAnywhere) {
  for (const Syntax& syntax : {explicit_little, implicit_little, explicit_big, deflated, rle}) {
    Dicom dicom;
    dicom.syntax = syntax;
    dicom.more = [&](Elements& elements) {
      Elements inner(syntax);
      inner.word(0x00280010, 99);
      elements.sequence(0x00400555, {inner.bytes(), inner.bytes()}, true);
    };
    const std::string whole = dicom.bytes();
    save("s/other", {.uid = "1.1"});
    const std::size_t step = syntax.uid == explicit_little.uid ? 1 : 7;
    for (std::size_t size = 133; size < whole.size(); size += step) {
      const fs::path cut = file("s/cut", whole.substr(0, size));
      const std::string alone = failure(cut);
      EXPECT_NE(alone, "") << size;
      // In a folder too, the file is named.
      EXPECT_EQ(io_failure(cut,
                           [&] {
                             const auto input = InputFile::open(path("s"));
                             for (int page = 0; page < input->info().pages; ++page) values(*input, page);
                           }),
                alone)
          << syntax.uid << size;
    }
  }
}

TEST_F(DicomTest, WildLengths) {
  // Any 4 bytes of a file, as if they were a length: it is read or refused.
  for (const Syntax& syntax : {explicit_little, implicit_little, explicit_big, deflated, rle}) {
    Dicom dicom;
    dicom.syntax = syntax;
    dicom.more = [&](Elements& elements) {
      Elements inner(syntax);
      inner.word(0x00280010, 99);
      elements.sequence(0x00400555, {inner.bytes()}, false);
      elements.sequence(0x00400556, {inner.bytes()}, true);
    };
    const std::string whole = dicom.bytes();
    constexpr std::array wild = {0xffffffffU, 0xfffffffeU, 0x7fffffffU, 0U, 8U};
    for (std::size_t at = 132; at + 4 <= whole.size(); at += 2) {
      std::string bad = whole;
      bad.replace(at, 4, number(wild[at / 2 % wild.size()], 4));
      const fs::path name = file("one.dcm", bad);
      try {
        const auto input = InputFile::open(name);
        for (int page = 0; page < input->info().pages; ++page) {
          if (input->info().spec.width <= 4096 && input->info().spec.height <= 4096) values(*input, page);
        }
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::io);
        EXPECT_TRUE(std::string(error.what()).starts_with(name.string() + ": ")) << error.what();
      }
    }
  }
}

TEST_F(DicomTest, Refused) {
  EXPECT_EQ(failure(file("a.dcm", file_of(explicit_little, ""))), "truncated: it ends before its pixels");
  EXPECT_EQ(failure(file("a.dcm", file_of(explicit_little, "", "1.2.840.10008.5.1.4.1.1.88.11"))),
            "a DICOM file that contains no image");
  EXPECT_EQ(failure_of({.allocated = 1, .stored = 1, .pixels = "ab"}),
            "its samples have 1 bits: 8, 16 and 32 can be read");
  EXPECT_NE(failure_of({.width = 0}).find("an image has at least one"), std::string::npos);
  EXPECT_NE(failure_of({.position = {1, 2}}).find("(0020,0032) has 2 numbers, not 3"), std::string::npos);
  EXPECT_NE(failure_of({.orientation = {1, 0, 0, 1, 0, 0}}).find("unit vectors at a right angle"),
            std::string::npos);
  EXPECT_NE(failure_of({.position = {1e300, 0, 0}}).find("a position of 1e+300 mm"), std::string::npos);
  Dicom mosaic;
  mosaic.more = [](Elements& elements) { elements.text(0x00080008, "CS", "DERIVED\\MOSAIC"); };
  EXPECT_NE(failure_of(mosaic).find("dcm2niix"), std::string::npos);
  Dicom floats;
  floats.more = [](Elements& elements) { elements.raw(0x7fe00008, "OF", "abcd"); };
  EXPECT_EQ(failure_of(floats), "its pixels are floats, which cannot be read from DICOM files");
  fs::create_directory(path("none"));
  file("none/a.txt", "x");
  EXPECT_EQ(failure(path("none")), "is a folder, not an image");
  EXPECT_FALSE(can_write("a.dcm", nullptr));
}

TEST_F(DicomTest, FilesThatChange) {
  save_slices("s", 3);
  const auto input = InputFile::open(path("s"));
  const fs::path changed = path("s/40");
  file("s/40", bytes_of(changed) + "x");
  EXPECT_EQ(io_failure(changed, [&] { input->check_unchanged(); }), "changed while it was read");
  EXPECT_EQ(io_failure(changed,
                       [&] {
                         for (int page = 0; page < 3; ++page) values(*input, page);
                       }),
            "changed while it was read");
}

TEST_F(DicomTest, ManyFilesAreNotKeptOpen) {
  save_slices("s", 1100);
  const auto input = InputFile::open(path("s"));
  EXPECT_EQ(input->info().pages, 1100);
  EXPECT_EQ(first_values(*input).back(), 1099);
#ifdef __linux__
  EXPECT_LT(std::distance(fs::directory_iterator("/proc/self/fd"), {}), 100);
#endif
}

TEST_F(DicomTest, OpeningCanBeStopped) {
  save_slices("s", 3);
  OpenOptions options;
  options.stop = [] { return true; };
  try {
    InputFile::open(path("s"), options);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
}

}  // namespace
}  // namespace ungrain::io
