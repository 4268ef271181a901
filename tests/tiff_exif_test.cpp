// The EXIF of TIFF files, of bytes put together by hand.
#include "io/tiff_exif.h"

#include <gtest/gtest.h>
#ifndef _WIN32  // which has no limits of a file's size
#include <sys/resource.h>
#endif

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/tiff_reader.h"

#include "platform/files.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

struct Kind {
  bool big = false;
  bool big_endian = false;
};
constexpr Kind kinds[] = {{false, false}, {false, true}, {true, false}, {true, true}};

struct Entry {
  int tag = 0;
  int type = 0;
  std::uint64_t count = 0;
  std::string value;
};

// A TIFF file in the making, from the end to the start: values, then directories, then what points to them.
class Tiff {
 public:
  explicit Tiff(Kind kind) : kind_(kind) {
    bytes = kind.big_endian ? "MM" : "II";
    bytes += number(kind.big ? 43 : 42, 2);
    if (kind.big) bytes += number(8, 2) + number(0, 2);
    bytes += number(0, slot());
  }

  std::string number(std::uint64_t value, std::size_t size) const {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t place = kind_.big_endian ? size - 1 - i : i;
      text += static_cast<char>(value >> (8 * place) & 0xffU);
    }
    return text;
  }
  Entry text(int tag, const std::string& value) const { return {tag, 2, value.size() + 1, value + '\0'}; }
  Entry numbers(int tag, int type, std::size_t unit, const std::vector<std::uint64_t>& values) const {
    std::string all;
    for (const std::uint64_t value : values) all += number(value, unit);
    return {tag, type, type == 5 || type == 10 ? values.size() / 2 : values.size(), all};
  }
  Entry pointer(int tag, std::uint64_t to) const { return numbers(tag, kind_.big ? 18 : 4, slot(), {to}); }

  std::size_t put(const std::vector<Entry>& entries, std::uint64_t next = 0) {
    std::string table = number(entries.size(), kind_.big ? 8 : 2);
    for (const Entry& entry : entries) {
      std::string value = entry.value;
      if (value.size() > slot()) {
        if (bytes.size() % 2 != 0) bytes += '\0';
        const std::size_t at = bytes.size();
        bytes += value;
        value = number(at, slot());
      }
      value.resize(slot());
      table += number(static_cast<std::uint64_t>(entry.tag), 2);
      table += number(static_cast<std::uint64_t>(entry.type), 2) + number(entry.count, slot()) + value;
    }
    if (bytes.size() % 2 != 0) bytes += '\0';
    const std::size_t at = bytes.size();
    bytes += table + number(next, slot());
    return at;
  }
  void start_at(std::uint64_t directory) {
    bytes.replace(kind_.big ? 8 : 4, slot(), number(directory, slot()));
  }
  std::size_t slot() const { return kind_.big ? 8 : 4; }

  std::string bytes;

 private:
  Kind kind_;
};

std::vector<Entry> structure(const Tiff& tiff) {
  return {tiff.numbers(256, 3, 2, {64}), tiff.numbers(257, 3, 2, {48}), tiff.numbers(273, 4, 4, {8})};
}

// A photograph with everything.
Tiff photograph(Kind kind) {
  Tiff tiff(kind);
  const std::size_t interoperability = tiff.put({tiff.text(1, "R98")});
  const std::size_t exif = tiff.put({
      tiff.numbers(33437, 5, 4, {28, 10}),
      tiff.text(36867, "2024:05:06 07:08:09"),
      tiff.numbers(37380, 10, 4, {0xffffffffU, 3}),
      {37500, 7, 9, "MakerNote"},
      {37501, 77, 3, "odd"},
      tiff.numbers(40962, 3, 2, {64}),
      tiff.pointer(40965, interoperability),
      tiff.numbers(50000, 12, 8, {0x4009'21fb'5444'2d18U}),
  });
  const std::size_t gps =
      tiff.put({{0, 1, 4, "\2\3\0\0"s}, tiff.text(1, "N"), tiff.numbers(2, 5, 4, {48, 1, 8, 1, 30, 1})});
  std::vector<Entry> first = structure(tiff);
  first.push_back(tiff.text(271, "Grainworks"));
  first.push_back(tiff.numbers(274, 3, 2, {6}));
  first.push_back(tiff.pointer(34665, exif));
  first.push_back(tiff.pointer(34853, gps));
  const std::size_t second = tiff.put(structure(tiff));
  tiff.start_at(tiff.put(first, second));
  return tiff;
}

Tiff bare(Kind kind) {
  Tiff tiff(kind);
  const std::size_t second = tiff.put(structure(tiff));
  tiff.start_at(tiff.put(structure(tiff), second));
  return tiff;
}

const TiffField* field_of(const TiffDirectory& directory, int tag) {
  const auto found = std::find_if(directory.fields.begin(), directory.fields.end(),
                                  [&](const TiffField& field) { return field.tag == tag; });
  return found == directory.fields.end() ? nullptr : &*found;
}

std::string value_of(const TiffReader& tiff, const TiffDirectory& directory, int tag) {
  const TiffField* field = field_of(directory, tag);
  if (field == nullptr || !tiff.holds(*field)) return "(none)";
  const std::vector<std::byte> bytes = tiff.bytes(field->at, static_cast<std::size_t>(field->bytes));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TiffDirectory directory_behind(const TiffReader& tiff, const TiffDirectory& directory, int tag) {
  const TiffField* field = field_of(directory, tag);
  return field == nullptr ? TiffDirectory{} : tiff.directory(tiff.number(field->at, tiff.slot_bytes()));
}

std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> as_span(const std::string& text) { return std::as_bytes(std::span(text)); }

class TiffExif : public testing::Test {
 protected:
  TiffExif() {
    folder_ = platform::make_private_folder(fs::temp_directory_path(), "ungrain-exif-");
    file_ = folder_ / "a.tif";
  }
  ~TiffExif() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void write(const std::string& bytes) const {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string written() const {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string exif() const { return as_text(exif_of_tiff(SourceFile(file_))); }
  std::string exif_of(const std::string& bytes) const {
    write(bytes);
    return exif();
  }

  fs::path folder_;
  fs::path file_;
};

// Reading
// -------------------------------------------------------------------------------------------------------------

TEST_F(TiffExif, EveryKindOfFileGivesTheSameBlock) {
  const std::string block = exif_of(photograph({}).bytes);
  ASSERT_TRUE(block.starts_with("Exif\0\0II*\0\10\0\0\0"s));
  for (const Kind kind : kinds)
    EXPECT_EQ(exif_of(photograph(kind).bytes), block) << kind.big << kind.big_endian;

  const TiffReader tiff(as_span(block).subspan(6));
  const TiffDirectory first = tiff.directory(tiff.first_directory());
  EXPECT_TRUE(first.complete);
  EXPECT_EQ(first.next, 0U);
  EXPECT_EQ(first.fields.size(), 4U);
  EXPECT_EQ(value_of(tiff, first, 271), "Grainworks\0"s);
  EXPECT_EQ(value_of(tiff, first, 274), "\6\0"s);
  EXPECT_EQ(field_of(first, 34665)->type, 4);
  const TiffDirectory exif = directory_behind(tiff, first, 34665);
  EXPECT_EQ(exif.fields.size(), 8U);
  EXPECT_EQ(value_of(tiff, exif, 33437), "\34\0\0\0\12\0\0\0"s);
  EXPECT_EQ(value_of(tiff, exif, 36867), "2024:05:06 07:08:09\0"s);
  EXPECT_EQ(value_of(tiff, exif, 37380), "\xff\xff\xff\xff\3\0\0\0"s);
  EXPECT_EQ(value_of(tiff, exif, 37500), "MakerNote");
  EXPECT_EQ(value_of(tiff, exif, 37501), "odd");
  EXPECT_EQ(field_of(exif, 37501)->type, 7);
  EXPECT_EQ(value_of(tiff, exif, 40962), "\100\0"s);
  EXPECT_EQ(value_of(tiff, exif, 50000), "\x18\x2d\x44\x54\xfb\x21\x09\x40");
  EXPECT_EQ(value_of(tiff, directory_behind(tiff, exif, 40965), 1), "R98\0"s);
  const TiffDirectory gps = directory_behind(tiff, first, 34853);
  EXPECT_EQ(value_of(tiff, gps, 0), "\2\3\0\0"s);
  EXPECT_EQ(value_of(tiff, gps, 1), "N\0"s);
  EXPECT_EQ(value_of(tiff, gps, 2), "\60\0\0\0\1\0\0\0\10\0\0\0\1\0\0\0\36\0\0\0\1\0\0\0"s);
}

TEST_F(TiffExif, ABlockByteForByte) {
  Tiff tiff(Kind{.big_endian = true});
  tiff.start_at(tiff.put({tiff.text(271, "Grainworks"), tiff.numbers(274, 3, 2, {6})}));
  EXPECT_EQ(exif_of(tiff.bytes),
            "Exif\0\0II\52\0\10\0\0\0"
            "\2\0"
            "\x0f\1\2\0\13\0\0\0\46\0\0\0"
            "\x12\1\3\0\1\0\0\0\6\0\0\0"
            "\0\0\0\0"
            "Grainworks\0"s);
}

TEST_F(TiffExif, NothingToTellIsNoBlock) {
  for (const Kind kind : kinds) {
    EXPECT_EQ(exif_of(bare(kind).bytes), "");
    Tiff tiff(kind);
    tiff.start_at(tiff.put({tiff.text(270, "a"), tiff.numbers(274, 3, 2, {6}), tiff.text(305, "scanner")}));
    EXPECT_EQ(exif_of(tiff.bytes), "");
  }
  EXPECT_EQ(exif_of("not a TIFF file"), "");
  EXPECT_EQ(exif_of("I"), "");
}

TEST_F(TiffExif, WhatIsTooLargeIsLeftOut) {
  for (const Kind kind : kinds) {
    Tiff tiff(kind);
    const std::size_t exif = tiff.put({tiff.text(36867, "2024:05:06 07:08:09"),
                                       {37500, 7, 100000, std::string(100000, 'm')},
                                       {37510, 7, 40000, std::string(40000, 'c')},
                                       {37511, 7, 30000, std::string(30000, 'd')},
                                       tiff.numbers(40962, 3, 2, {64})});
    tiff.start_at(tiff.put({tiff.text(271, "Grainworks"), tiff.pointer(34665, exif)}));
    const std::string block = exif_of(tiff.bytes);
    EXPECT_LE(block.size(), 60U * 1024);
    const TiffReader reader(as_span(block).subspan(6));
    const TiffDirectory first = reader.directory(reader.first_directory());
    const TiffDirectory inner = directory_behind(reader, first, 34665);
    EXPECT_EQ(value_of(reader, first, 271), "Grainworks\0"s);
    EXPECT_EQ(inner.fields.size(), 3U);
    EXPECT_EQ(value_of(reader, inner, 37511), std::string(30000, 'd'));
    EXPECT_EQ(value_of(reader, inner, 40962), "\100\0"s);
  }
}

TEST_F(TiffExif, ManyEntriesAreKeptWithinTheLimit) {
  Tiff tiff(Kind{});
  std::vector<Entry> many;
  for (int i = 0; i < 4000; ++i) many.push_back(tiff.numbers(40000 + i, 5, 4, {1, 2}));
  const std::size_t exif = tiff.put(many);
  const std::size_t gps = tiff.put(many);
  tiff.start_at(tiff.put({tiff.text(271, "abc"), tiff.pointer(34665, exif), tiff.pointer(34853, gps)}));
  const std::string block = exif_of(tiff.bytes);
  EXPECT_LE(block.size(), 60U * 1024);
  EXPECT_GT(block.size(), 59U * 1024);
}

TEST_F(TiffExif, LoopsEnd) {
  for (const Kind kind : kinds) {
    Tiff tiff(kind);
    const std::size_t here = tiff.bytes.size();
    // One directory that is its own Exif, GPS, interoperability and next one.
    const std::size_t at =
        tiff.put({tiff.numbers(271, 2, 1, {'G', 0}), tiff.pointer(330, here), tiff.pointer(34665, here),
                  tiff.pointer(34853, here), tiff.pointer(40965, here)},
                 here);
    ASSERT_EQ(at, here);
    tiff.start_at(at);
    const std::string block = exif_of(tiff.bytes);
    EXPECT_LT(block.size(), 200U);
    add_exif_to_tiff(file_, as_span(block));
    EXPECT_EQ(written(), tiff.bytes);  // it has them all
    write(bare(kind).bytes);
    add_exif_to_tiff(file_, as_span("Exif\0\0"s + tiff.bytes));
    EXPECT_EQ(exif(), block);
  }
}

TEST_F(TiffExif, NumbersBeyondTheEnd) {
  for (const Kind kind : kinds) {
    for (const std::uint64_t wanted : {std::uint64_t{1000}, std::uint64_t{0xffffffff},
                                       std::uint64_t{1} << 63U, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
      const std::uint64_t far = kind.big ? wanted : std::min<std::uint64_t>(wanted, 0xffffffff);
      Tiff tiff(kind);
      const std::string far_slot = tiff.number(far, tiff.slot());
      tiff.start_at(tiff.put({tiff.text(271, "abc"),
                              {272, 2, far, far_slot},
                              {306, 5, far, far_slot},
                              {315, 2, 20, far_slot},
                              tiff.pointer(34665, far),
                              tiff.pointer(34853, far)}));
      const std::string block = exif_of(tiff.bytes);
      const TiffReader reader(as_span(block).subspan(6));
      EXPECT_EQ(reader.directory(8).fields.size(), 1U);
      tiff.start_at(far);
      EXPECT_EQ(exif_of(tiff.bytes), "");
      Tiff counted(kind);
      const std::size_t at = counted.put({counted.text(271, "abc")});
      counted.start_at(at);
      const std::size_t count_bytes = kind.big ? 8 : 2;
      counted.bytes.replace(at, count_bytes, counted.number(far, count_bytes));
      EXPECT_NE(exif_of(counted.bytes), "");
      add_exif_to_tiff(file_, as_span(photograph(kind).bytes));
      EXPECT_EQ(written(), counted.bytes);  // not one to be rewritten
    }
  }
}

TEST_F(TiffExif, TruncatedAnywhere) {
  const std::string block = exif_of(photograph({}).bytes);
  for (const Kind kind : kinds) {
    const std::string whole = photograph(kind).bytes;
    const std::string plain = bare(kind).bytes;
    for (std::size_t size = 1; size < whole.size(); ++size) {
      EXPECT_NO_THROW(exif_of(whole.substr(0, size))) << size;
      EXPECT_NO_THROW(add_exif_to_tiff(file_, as_span(block))) << size;
      write(plain);
      EXPECT_NO_THROW(add_exif_to_tiff(file_, as_span(whole.substr(0, size)))) << size;
      EXPECT_NO_THROW(exif()) << size;
    }
    for (std::size_t size = 0; size < block.size(); ++size) {
      write(plain);
      EXPECT_NO_THROW(add_exif_to_tiff(file_, as_span(block.substr(0, size)))) << size;
      const SourceFile source(file_);
      const TiffReader tiff(source);
      EXPECT_TRUE(tiff.directory(tiff.first_directory()).complete) << size;
    }
  }
}

TEST_F(TiffExif, DamagedAnywhere) {
  std::mt19937 random(1);
  const std::string block = exif_of(photograph({}).bytes);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = photograph(kinds[i % 4]).bytes;
    for (unsigned damage = 0; damage <= random() % 4; ++damage) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    }
    EXPECT_NO_THROW(EXPECT_LE(exif_of(bytes).size(), 60U * 1024)) << i;
    EXPECT_NO_THROW(add_exif_to_tiff(file_, as_span(block))) << i;
    write(bare(kinds[i / 4 % 4]).bytes);
    EXPECT_NO_THROW(add_exif_to_tiff(file_, as_span(bytes))) << i;
    EXPECT_NO_THROW(exif()) << i;
  }
}

// Writing
// -------------------------------------------------------------------------------------------------------------

TEST_F(TiffExif, AddingKeepsTheFileAndGivesTheBlockBack) {
  const std::string block = exif_of(photograph({}).bytes);
  for (const Kind kind : kinds) {
    SCOPED_TRACE(std::to_string(kind.big) + std::to_string(kind.big_endian));
    Tiff tiff = bare(kind);
    tiff.bytes += "odd";
    for (const std::string& given : {block, block.substr(6), "Exif\0\0"s + photograph(kinds[1]).bytes}) {
      write(tiff.bytes);
      add_exif_to_tiff(file_, as_span(given));
      EXPECT_EQ(exif(), block);
      // All but the header's offset is where it was.
      const std::size_t header = kind.big ? 16 : 8;
      EXPECT_EQ(written().substr(0, header - tiff.slot()), tiff.bytes.substr(0, header - tiff.slot()));
      EXPECT_EQ(written().substr(header, tiff.bytes.size() - header), tiff.bytes.substr(header));

      const SourceFile source(file_);
      const TiffReader reader(source);
      const TiffDirectory first = reader.directory(reader.first_directory());
      EXPECT_TRUE(first.complete);
      EXPECT_EQ(reader.first_directory() % 8, 0U);
      std::vector<int> tags;
      for (const TiffField& field : first.fields) tags.push_back(field.tag);
      EXPECT_EQ(tags, (std::vector<int>{256, 257, 271, 273, 274, 34665, 34853}));
      EXPECT_EQ(value_of(reader, first, 256), tiff.number(64, 2));
      EXPECT_EQ(value_of(reader, first, 273), tiff.number(8, 4));
      const TiffDirectory second = reader.directory(first.next);
      EXPECT_EQ(second.fields.size(), 3U);
      EXPECT_EQ(second.next, 0U);

      const std::string once = written();
      add_exif_to_tiff(file_, as_span(given));
      EXPECT_EQ(written(), once);
    }
  }
}

TEST_F(TiffExif, TheFilesOwnTagsWin) {
  const std::string block = exif_of(photograph({}).bytes);
  for (const Kind kind : kinds) {
    Tiff tiff(kind);
    tiff.start_at(tiff.put({tiff.text(271, "Other make"), tiff.numbers(274, 3, 2, {1})}));
    write(tiff.bytes);
    add_exif_to_tiff(file_, as_span(block));
    const SourceFile source(file_);
    const TiffReader reader(source);
    const TiffDirectory first = reader.directory(reader.first_directory());
    EXPECT_EQ(first.fields.size(), 4U);
    EXPECT_EQ(value_of(reader, first, 271), "Other make\0"s);
    EXPECT_EQ(value_of(reader, first, 274), tiff.number(1, 2));
    EXPECT_EQ(directory_behind(reader, first, 34665).fields.size(), 8U);
  }
}

TEST_F(TiffExif, AddingNothingLeavesTheFile) {
  for (const std::string& nothing : {""s, "Exif\0\0"s, "Exif\0\0II*\0\10\0\0\0\0\0\0\0\0\0"s, "nonsense"s}) {
    const std::string bytes = bare({}).bytes;
    write(bytes);
    add_exif_to_tiff(file_, as_span(nothing));
    EXPECT_EQ(written(), bytes);
  }
  write("not a TIFF file");
  add_exif_to_tiff(file_, as_span(photograph({}).bytes));
  EXPECT_EQ(written(), "not a TIFF file");
}

TEST_F(TiffExif, FourGigabytesAreTheEndOfAClassicFile) {
  const std::string block = exif_of(photograph({}).bytes);
  for (const Kind kind : kinds) {
    write(bare(kind).bytes);
    std::error_code sparse;
    fs::resize_file(file_, 0xffffffc0U, sparse);
    if (sparse) GTEST_SKIP() << "no sparse files here";
    add_exif_to_tiff(file_, as_span(block));
    EXPECT_EQ(fs::file_size(file_) > 0xffffffc0U, kind.big);
    EXPECT_EQ(exif(), kind.big ? block : "");
  }
}

#ifndef _WIN32
TEST_F(TiffExif, AFullDiskIsAnError) {
  const std::string block = exif_of(photograph({}).bytes);
  const std::string bytes = bare({}).bytes;
  write(bytes);
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{bytes.size() + 20, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  try {
    add_exif_to_tiff(file_, as_span(block), "named.tif");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(message, "named.tif: cannot be written: File too large");
  EXPECT_EQ(exif(), "");
  EXPECT_EQ(written().substr(0, bytes.size()), bytes);
}
#endif

}  // namespace
}  // namespace ungrain::io
