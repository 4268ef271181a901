// NIfTI-1 and NIfTI-2, single files: .nii and .nii.gz. The first axis is x (columns), the second y (rows);
// all further axes are pages, in the file's order. Row 0 is the file's first row: nothing is flipped.
//
// A header begins with its size, which tells the version and the byte order. Headers are brought to little
// endian when they are read, and everything else here reads and writes little endian.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "io/builtin_formats.h"
#include "io/failure.h"
#include "io/gzip.h"
#include "io/sample_matrix.h"

namespace ungrain::io {
namespace {

using namespace std::string_view_literals;

struct Numbers {
  std::size_t at;
  std::size_t size;  // bytes of each
  std::size_t count;
};

// Where a version keeps its fields.
struct Version {
  int number;
  std::size_t bytes;  // of the header
  std::size_t magic;
  std::string_view single;  // magic of a file that also contains the samples
  std::string_view pair;    // magic of a header whose samples are in another file
  std::size_t integer;      // bytes of a dimension
  std::size_t real;         // bytes of a floating-point number
  std::size_t dim;
  std::size_t datatype;
  std::size_t bitpix;
  std::size_t pixdim;
  std::size_t vox_offset;
  std::size_t slope;
  std::size_t intercept;
  std::size_t cal_max;
  std::size_t cal_min;
  std::size_t units;
  std::size_t units_size;
  std::size_t forms;             // codes of the quaternion and of the matrix
  std::size_t form_size;         // bytes of a code
  std::size_t quaternion;        // b, c, d, the offsets, then the three rows of the matrix
  std::vector<Numbers> numbers;  // all fields that have a byte order
};

constexpr std::size_t flag_bytes = 4;  // between header and extensions
constexpr std::size_t axes = 8;        // entries of dim and pixdim; the first of dim is the number of axes

const std::array<Version, 2>& versions() {
  static const std::array<Version, 2> list = {
      Version{.number = 1,
              .bytes = 348,
              .magic = 344,
              .single = "n+1\0"sv,
              .pair = "ni1\0"sv,
              .integer = 2,
              .real = 4,
              .dim = 40,
              .datatype = 70,
              .bitpix = 72,
              .pixdim = 76,
              .vox_offset = 108,
              .slope = 112,
              .intercept = 116,
              .cal_max = 124,
              .cal_min = 128,
              .units = 123,
              .units_size = 1,
              .forms = 252,
              .form_size = 2,
              .quaternion = 256,
              .numbers = {{0, 4, 1},
                          {32, 4, 1},
                          {36, 2, 1},
                          {40, 2, 8},      // dim
                          {56, 4, 3},      // intent_p1 …
                          {68, 2, 4},      // intent_code, datatype, bitpix, slice_start
                          {76, 4, 11},     // pixdim, vox_offset, scl_slope, scl_inter
                          {120, 2, 1},     // slice_end
                          {124, 4, 4},     // cal_max, cal_min, slice_duration, toffset
                          {140, 4, 2},     // glmax, glmin
                          {252, 2, 2},     // qform_code, sform_code
                          {256, 4, 18}}},  // quatern_b … srow_z
      Version{.number = 2,
              .bytes = 540,
              .magic = 4,
              .single = "n+2\0\r\n\x1a\n"sv,
              .pair = "ni2\0\r\n\x1a\n"sv,
              .integer = 8,
              .real = 8,
              .dim = 16,
              .datatype = 12,
              .bitpix = 14,
              .pixdim = 104,
              .vox_offset = 168,
              .slope = 176,
              .intercept = 184,
              .cal_max = 192,
              .cal_min = 200,
              .units = 500,
              .units_size = 4,
              .forms = 344,
              .form_size = 4,
              .quaternion = 352,
              .numbers = {{0, 4, 1},
                          {12, 2, 2},     // datatype, bitpix
                          {16, 8, 8},     // dim
                          {80, 8, 11},    // intent_p1 …, pixdim
                          {168, 8, 9},    // vox_offset … slice_end
                          {344, 4, 2},    // qform_code, sform_code
                          {352, 8, 18},   // quatern_b … srow_z
                          {496, 4, 3}}},  // slice_code, xyzt_units, intent_code
  };
  return list;
}

constexpr std::size_t longest_header = 540;

// The header's bytes in little endian.
class Fields {
 public:
  Fields(const Version& version, Bytes bytes) : version_(&version), bytes_(std::move(bytes)) {}

  const Version& version() const { return *version_; }
  const Bytes& bytes() const { return bytes_; }

  std::int64_t integer(std::size_t at, std::size_t size) const {
    const std::uint64_t bits = number(at, size);
    const auto unused = static_cast<unsigned>(64 - 8 * size);
    return std::bit_cast<std::int64_t>(bits << unused) >> unused;
  }
  double real(std::size_t at) const {
    const std::uint64_t bits = number(at, version_->real);
    return version_->real == 4 ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)))
                               : std::bit_cast<double>(bits);
  }
  std::int64_t dim(std::size_t axis) const {
    return integer(version_->dim + axis * version_->integer, version_->integer);
  }
  double pixdim(std::size_t axis) const { return real(version_->pixdim + axis * version_->real); }

  void set_integer(std::size_t at, std::size_t size, std::int64_t value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (std::size_t i = 0; i < size; ++i) bytes_[at + i] = static_cast<std::byte>(bits >> (8 * i) & 0xffU);
  }
  void set_real(std::size_t at, double value) {
    const std::uint64_t bits = version_->real == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                                                   : std::bit_cast<std::uint64_t>(value);
    set_integer(at, version_->real, std::bit_cast<std::int64_t>(bits));
  }
  void set_dim(std::size_t axis, std::int64_t value) {
    set_integer(version_->dim + axis * version_->integer, version_->integer, value);
  }
  void set_pixdim(std::size_t axis, double value) {
    set_real(version_->pixdim + axis * version_->real, value);
  }
  void set_text(std::size_t at, std::string_view text) { std::memcpy(&bytes_[at], text.data(), text.size()); }

 private:
  std::uint64_t number(std::size_t at, std::size_t size) const {
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8U | std::to_integer<std::uint64_t>(bytes_[at + i]);
    return value;
  }

  const Version* version_;
  Bytes bytes_;
};

struct Datatype {
  int code;
  std::string_view name;
  std::int64_t bits;  // of a voxel
  Sample sample;
  PixelType type;
  int channels = 1;
  double range = 0;
};

constexpr std::array datatypes = {
    Datatype{2, "u8", 8, Sample::u8, PixelType::u8},
    Datatype{4, "i16", 16, Sample::i16, PixelType::f32, 1, 32767},
    Datatype{8, "i32", 32, Sample::i32, PixelType::f32, 1, 2147483647},
    Datatype{16, "f32", 32, Sample::f32, PixelType::f32},
    Datatype{64, "f64", 64, Sample::f64, PixelType::f32},
    Datatype{128, "rgb", 24, Sample::u8, PixelType::u8, 3},
    Datatype{256, "i8", 8, Sample::i8, PixelType::f32, 1, 127},
    Datatype{512, "u16", 16, Sample::u16, PixelType::u16},
    Datatype{768, "u32", 32, Sample::u32, PixelType::f32, 1, 4294967295},
    Datatype{1024, "i64", 64, Sample::i64, PixelType::f32, 1, 9223372036854775807.0},
    Datatype{1280, "u64", 64, Sample::u64, PixelType::f32, 1, 18446744073709551615.0},
    Datatype{2304, "rgba", 32, Sample::u8, PixelType::u8, 4},
};

[[noreturn]] void damaged(const SourceFile& file, const std::string& how) {
  fail(file.path(), fmt::format("its NIfTI header is damaged: {}", how));
}

// The bytes of a file, or of what a gzip file contains.
class Content {
 public:
  explicit Content(const SourceFile& file) : file_(file) {
    if (is_gzip(file)) gzip_.emplace(file);
  }
  bool compressed() const { return gzip_.has_value(); }
  std::size_t read_some(void* to, std::size_t size, std::uint64_t offset) {
    return gzip_ ? gzip_->read_some(to, size, offset) : file_.read_some(to, size, offset);
  }

 private:
  const SourceFile& file_;
  std::optional<GzipReader> gzip_;
};

bool has_text(const Bytes& bytes, std::size_t at, std::string_view text) {
  return bytes.size() >= at + text.size() && std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

bool has_magic(const Bytes& start, const Version& version) {
  return has_text(start, version.magic, version.single) || has_text(start, version.magic, version.pair);
}

struct Kind {
  const Version* version = nullptr;  // null: no NIfTI header
  bool big_endian = false;
  bool size_is_right = false;
};

// By the header's size; by the magic where the size is wrong.
Kind kind_of(const Bytes& start) {
  for (const Version& version : versions()) {
    const auto low = static_cast<char>(version.bytes & 0xffU);
    const auto high = static_cast<char>(version.bytes >> 8U);
    if (has_text(start, 0, std::string{low, high, '\0', '\0'})) return {&version, false, true};
    // "ftyp" follows the size of the first box of HEIF and video files.
    if (has_text(start, 0, std::string{'\0', '\0', high, low}) && !has_text(start, 4, "ftyp")) {
      return {&version, true, true};
    }
  }
  for (const Version& version : versions()) {
    if (has_magic(start, version)) return {&version, false, false};
  }
  return {};
}

Bytes start_of(Content& content) {
  Bytes start(longest_header);
  start.resize(content.read_some(start.data(), start.size(), 0));
  return start;
}

Fields read_fields(const SourceFile& file, Content& content, bool* big_endian) {
  Bytes start = start_of(content);
  const Kind kind = kind_of(start);
  if (kind.version == nullptr) {  // only gzip files come here
    fail(file.path(), "a gzip file that contains no NIfTI image: decompress it first");
  }
  const Version& version = *kind.version;
  if (!kind.size_is_right) {
    damaged(file, fmt::format("its size is not {}, which NIfTI-{} has", version.bytes, version.number));
  }
  if (start.size() < version.bytes) fail(file.path(), "truncated: it ends in its header");
  if (has_text(start, version.magic, version.pair)) {
    fail(file.path(),
         "a NIfTI header whose samples are in another file (.img), which cannot be read: join them in a .nii "
         "file");
  }
  if (!has_text(start, version.magic, version.single)) {
    damaged(file, fmt::format("the magic \"{}\" is missing (Analyze 7.5 has none and cannot be read)",
                              version.single.substr(0, 3)));
  }
  start.resize(version.bytes);
  *big_endian = kind.big_endian;
  for (const Numbers& field : version.numbers) {
    for (std::size_t i = 0; i < field.count && kind.big_endian; ++i) {
      std::byte* number = &start[field.at + i * field.size];
      std::reverse(number, number + field.size);
    }
  }
  return {version, std::move(start)};
}

const Datatype& read_datatype(const SourceFile& file, const Fields& fields) {
  const auto code = static_cast<int>(fields.integer(fields.version().datatype, 2));
  const auto known = std::find_if(datatypes.begin(), datatypes.end(),
                                  [&](const Datatype& datatype) { return datatype.code == code; });
  if (known == datatypes.end()) {
    const bool complex = code == 32 || code == 1792 || code == 2048;
    const bool wide = code == 1536;
    if (complex) fail(file.path(), "its samples are complex numbers, which cannot be read");
    if (wide) fail(file.path(), "its samples are 128-bit floats, which cannot be read");
    if (code == 1) fail(file.path(), "its samples are single bits, which cannot be read");
    damaged(file, fmt::format("the datatype {} is not known", code));
  }
  const std::int64_t bits = fields.integer(fields.version().bitpix, 2);
  if (bits != known->bits) {
    damaged(file, fmt::format("{} bits a voxel, and the datatype {} ({}) has {}", bits, code, known->name,
                              known->bits));
  }
  return *known;
}

// Fills in width, height, pages and volume.
void read_shape(const SourceFile& file, const Fields& fields, int channels, FileInfo& info) {
  const std::int64_t count = fields.dim(0);
  if (count < 1 || count >= static_cast<std::int64_t>(axes)) {
    damaged(file, fmt::format("it has {} axes: 1 to 7 are possible", count));
  }
  std::array<std::int64_t, axes> lengths{};
  lengths.fill(1);
  for (std::size_t axis = 1; axis <= static_cast<std::size_t>(count); ++axis) {
    lengths[axis] = fields.dim(axis);
    if (lengths[axis] < 1) damaged(file, fmt::format("axis {} has the length {}", axis, lengths[axis]));
  }
  check_size(file.path(), lengths[1], lengths[2], channels);
  info.spec.width = static_cast<int>(lengths[1]);
  info.spec.height = static_cast<int>(lengths[2]);
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  std::int64_t pages = 1;
  for (std::size_t axis = 3; axis < axes; ++axis) {
    if (lengths[axis] > most / pages) {
      fail(file.path(), fmt::format("its header says more than {} slices, which is the limit", most));
    }
    pages *= lengths[axis];
  }
  info.pages = static_cast<int>(pages);
  VolumeShape volume{.depth = static_cast<int>(lengths[3])};
  for (std::size_t i = 0; i < volume.spacing.size(); ++i) {
    const double distance = std::abs(fields.pixdim(i + 1));
    if (std::isfinite(distance) && distance > 0) volume.spacing[i] = distance;
  }
  info.volume = volume;
}

std::uint64_t read_offset(const SourceFile& file, const Fields& fields) {
  const Version& version = fields.version();
  const std::uint64_t least = version.bytes + flag_bytes;
  constexpr double most = 9e18;
  const double offset = version.number == 1 ? fields.real(version.vox_offset)
                                            : static_cast<double>(fields.integer(version.vox_offset, 8));
  // Written so that NaN is refused.
  if (!(offset >= static_cast<double>(least))) {
    damaged(file, fmt::format("the samples begin at byte {:.10g}, in the header of {}", offset, least));
  }
  if (offset > most || offset != std::floor(offset)) {
    damaged(file, fmt::format("the samples begin at byte {:.10g}", offset));
  }
  return version.number == 1 ? static_cast<std::uint64_t>(offset)
                             : static_cast<std::uint64_t>(fields.integer(version.vox_offset, 8));
}

// A slope of 0 means that there is no scaling. Common programs write NaN for that, too.
void read_scaling(const SourceFile& file, const Fields& fields, MatrixLayout& layout) {
  const double slope = fields.real(fields.version().slope);
  const double intercept = fields.real(fields.version().intercept);
  if (slope == 0 || !std::isfinite(slope)) return;
  if (!std::isfinite(intercept)) {
    damaged(file, fmt::format("the slope is {:g} and the intercept {:g}", slope, intercept));
  }
  layout.slope = slope;
  layout.intercept = intercept;
}

// vox_offset is a 32-bit float in NIfTI-1, exact up to 16 MiB.
constexpr std::uint64_t most_extension_bytes = (std::uint64_t{16} << 20U) - 1024;

// Nothing where they are damaged or too long.
std::optional<Bytes> read_extensions(Content& content, const Version& version, bool big_endian,
                                     std::uint64_t end) {
  std::array<std::byte, flag_bytes> flag{};
  if (content.read_some(flag.data(), flag.size(), version.bytes) < flag.size()) return Bytes{};
  const std::uint64_t begin = version.bytes + flag_bytes;
  if (flag[0] == std::byte{0} || end == begin) return Bytes{};
  if (end - begin > most_extension_bytes) return std::nullopt;
  Bytes bytes(end - begin);
  if (content.read_some(bytes.data(), bytes.size(), begin) < bytes.size()) return std::nullopt;
  std::size_t at = 0;
  constexpr std::size_t head = 8;  // size and code
  while (bytes.size() - at >= head) {
    if (big_endian) {
      std::reverse(&bytes[at], &bytes[at] + 4);
      std::reverse(&bytes[at] + 4, &bytes[at] + 8);
    }
    std::uint32_t size = 0;
    for (std::size_t i = 4; i-- > 0;) size = size << 8U | std::to_integer<std::uint32_t>(bytes[at + i]);
    if (size == 0) break;  // padding
    if (size < head || size > bytes.size() - at) return std::nullopt;
    at += size;
  }
  bytes.resize(at);
  return bytes;
}

std::string note_of(const Datatype& datatype, const MatrixLayout& layout) {
  std::string note;
  if (datatype.sample != Sample::f32 && (layout.scaled() || datatype.type == PixelType::f32)) {
    note = fmt::format("{} samples converted to f32", datatype.name);
  }
  if (layout.scaled()) {
    note += fmt::format("{}slope {:g} and intercept {:g} applied", note.empty() ? "" : ", ", layout.slope,
                        layout.intercept);
  }
  return note;
}

class NiftiInput final : public InputFile {
 public:
  NiftiInput(std::unique_ptr<InputFile> samples, NiftiHeader header) : samples_(std::move(samples)) {
    metadata_.nifti = std::move(header);
  }

  const FileInfo& info() const override { return samples_->info(); }
  const Metadata& metadata() const override { return metadata_; }
  void check_unchanged() override { samples_->check_unchanged(); }
  void select_page(int page) override { samples_->select_page(page); }
  void read_rows(int first, const ImageView& rows) override { samples_->read_rows(first, rows); }

 private:
  std::unique_ptr<InputFile> samples_;
  Metadata metadata_;
};

std::uint64_t page_bytes(const ImageSpec& spec, std::int64_t voxel_bits) {
  return static_cast<std::uint64_t>(spec.width) * static_cast<std::uint64_t>(spec.height) *
         static_cast<std::uint64_t>(voxel_bits / 8);
}

const Datatype& datatype_of(const ImageSpec& spec) {
  return *std::find_if(datatypes.begin(), datatypes.end(), [&](const Datatype& datatype) {
    const bool as_is =
        datatype.sample == Sample::u8 || datatype.sample == Sample::u16 || datatype.sample == Sample::f32;
    return as_is && datatype.type == spec.type && datatype.channels == spec.channels;
  });
}

// The header of `like` where the output has its shape.
std::optional<Fields> kept_fields(const FileInfo& info, const InputFile* like, const SaveOptions& options) {
  if (like == nullptr || !like->metadata().nifti) return std::nullopt;
  if (!options.pages.empty() || !like->selected_pages().empty()) return std::nullopt;
  const ImageSpec& before = like->info().spec;
  if (before.width != info.spec.width || before.height != info.spec.height ||
      like->info().pages != info.pages) {
    return std::nullopt;
  }
  const Bytes& bytes = like->metadata().nifti->fields;
  return Fields(versions()[bytes.size() == versions()[0].bytes ? 0 : 1], bytes);
}

// A header of these dimensions and distances, which says nothing else. Lengths are those of the first axes.
Fields plain_fields(const std::vector<std::int64_t>& lengths, const std::optional<VolumeShape>& volume) {
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const Version& version = versions()[longest <= std::numeric_limits<std::int16_t>::max() ? 0 : 1];
  Fields fields(version, Bytes(version.bytes));
  fields.set_integer(0, 4, static_cast<std::int64_t>(version.bytes));
  fields.set_text(version.magic, version.single);
  fields.set_dim(0, static_cast<std::int64_t>(lengths.size()));
  for (std::size_t axis = 1; axis < axes; ++axis) {
    fields.set_dim(axis, axis <= lengths.size() ? lengths[axis - 1] : 1);
  }
  for (std::size_t axis = 0; axis < axes; ++axis) {
    fields.set_pixdim(axis, volume && axis >= 1 && axis <= 3 ? volume->spacing[axis - 1] : 1);
  }
  return fields;
}

// A header without a place in space: distances of voxels only.
Fields new_fields(const FileInfo& info, const InputFile* like) {
  std::optional<VolumeShape> volume = info.volume;
  if (!volume && like != nullptr) volume = like->info().volume;
  // Slices of a NIfTI file that were chosen are no series any more, those of other files may be one.
  const bool of_nifti = like != nullptr && like->metadata().nifti;
  const int depth =
      info.volume && !of_nifti && info.pages % info.volume->depth == 0 ? info.volume->depth : info.pages;
  std::vector<std::int64_t> lengths = {info.spec.width, info.spec.height, depth};
  if (depth < info.pages) lengths.push_back(info.pages / depth);
  Fields fields = plain_fields(lengths, volume);
  const Version& version = fields.version();
  if (volume && of_nifti) {
    const Bytes& bytes = like->metadata().nifti->fields;
    const Version& before = versions()[bytes.size() == versions()[0].bytes ? 0 : 1];
    constexpr auto of_space = std::byte{7};  // bits of xyzt_units
    fields.set_integer(version.units, version.units_size,
                       std::to_integer<int>(bytes[before.units] & of_space));
  }
  return fields;
}

using Rotation = std::array<std::array<double, 3>, 3>;

// The unit quaternion of a rotation, without its first number, which is not negative.
std::array<double, 3> quaternion_of(const Rotation& r) {
  const auto root = [](double square) { return std::sqrt(std::max(0.0, square)); };
  const double a = root(1 + r[0][0] + r[1][1] + r[2][2]) / 2;
  // The largest of the numbers is found as a root, the others by dividing by it.
  const std::array<double, 3> squares = {1 + r[0][0] - r[1][1] - r[2][2], 1 - r[0][0] + r[1][1] - r[2][2],
                                         1 - r[0][0] - r[1][1] + r[2][2]};
  if (a > 0.5) {
    return {(r[2][1] - r[1][2]) / (4 * a), (r[0][2] - r[2][0]) / (4 * a), (r[1][0] - r[0][1]) / (4 * a)};
  }
  const auto largest =
      static_cast<std::size_t>(std::max_element(squares.begin(), squares.end()) - squares.begin());
  const std::size_t next = (largest + 1) % 3;
  const std::size_t last = (largest + 2) % 3;
  std::array<double, 3> q{};
  q[largest] = root(squares[largest]) / 2;
  q[next] = (r[next][largest] + r[largest][next]) / (4 * q[largest]);
  q[last] = (r[last][largest] + r[largest][last]) / (4 * q[largest]);
  const double first = (r[last][next] - r[next][last]) / (4 * q[largest]);
  for (double& number : q) number = first < 0 ? -number : number;
  return q;
}

// The directions of the axes. Nothing where they are not at right angles, which a quaternion cannot say.
std::optional<Rotation> rotation_of(const VoxelAffine& affine) {
  Rotation directions{};  // by axis
  for (std::size_t axis = 0; axis < 3; ++axis) {
    double square = 0;
    for (std::size_t i = 0; i < 3; ++i) square += affine[i][axis] * affine[i][axis];
    for (std::size_t i = 0; i < 3; ++i) directions[axis][i] = affine[i][axis] / std::sqrt(square);
  }
  constexpr double tolerance = 0.005;
  Rotation rotation{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::array<double, 3>& other = directions[(axis + 1) % 3];
    double cosine = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      cosine += directions[axis][i] * other[i];
      rotation[i][axis] = directions[axis][i];
    }
    if (!(std::abs(cosine) < tolerance)) return std::nullopt;
  }
  return rotation;
}

void set_affine(const VoxelAffine& affine, Fields& fields) {
  const Version& version = fields.version();
  constexpr int of_scanner = 1;
  const auto real_at = [&](std::size_t index) { return version.quaternion + index * version.real; };
  for (std::size_t i = 0; i < 12; ++i) fields.set_real(real_at(6 + i), affine[i / 4][i % 4]);
  fields.set_integer(version.forms + version.form_size, version.form_size, of_scanner);
  std::optional<Rotation> rotation = rotation_of(affine);
  if (!rotation) return;
  Rotation& r = *rotation;
  const double determinant = r[0][0] * (r[1][1] * r[2][2] - r[1][2] * r[2][1]) -
                             r[0][1] * (r[1][0] * r[2][2] - r[1][2] * r[2][0]) +
                             r[0][2] * (r[1][0] * r[2][1] - r[1][1] * r[2][0]);
  const double side = determinant < 0 ? -1 : 1;  // a mirrored third axis, as pixdim[0] tells
  for (std::size_t i = 0; i < 3; ++i) r[i][2] *= side;
  fields.set_pixdim(0, side);
  const std::array<double, 3> quaternion = quaternion_of(r);
  for (std::size_t i = 0; i < 3; ++i) {
    fields.set_real(real_at(i), quaternion[i]);
    fields.set_real(real_at(3 + i), affine[i][3]);
  }
  fields.set_integer(version.forms, version.form_size, of_scanner);
}

}  // namespace

NiftiHeader nifti_header(const FileInfo& info, const VoxelSpace& space) {
  const int depth = info.volume ? info.volume->depth : info.pages;
  std::vector<std::int64_t> lengths = {info.spec.width, info.spec.height, depth};
  if (info.pages > depth) lengths.push_back(info.pages / depth);
  Fields fields = plain_fields(lengths, info.volume);
  constexpr int millimetres = 2;
  constexpr int seconds = 8;
  const int units = (space.millimetres ? millimetres : 0) + (space.seconds > 0 ? seconds : 0);
  fields.set_integer(fields.version().units, fields.version().units_size, units);
  if (space.seconds > 0) fields.set_pixdim(4, space.seconds);
  if (space.affine) set_affine(*space.affine, fields);
  return {.fields = fields.bytes()};
}

bool is_nifti(const SourceFile& file) {
  if (is_gzip(file)) return true;
  Content content(file);
  return kind_of(start_of(content)).version != nullptr;
}

std::unique_ptr<InputFile> open_nifti(SourceFile file) {
  Content content(file);
  FileInfo info;
  info.format = "NIfTI";
  info.gzip = content.compressed();
  MatrixLayout layout;
  layout.gzip = info.gzip;
  const Fields fields = read_fields(file, content, &layout.big_endian);
  const Datatype& datatype = read_datatype(file, fields);
  read_shape(file, fields, datatype.channels, info);
  layout.sample = datatype.sample;
  layout.offset = read_offset(file, fields);
  if (datatype.channels == 1) read_scaling(file, fields, layout);  // colours have none
  ImageSpec& spec = info.spec;
  spec.type = layout.scaled() ? PixelType::f32 : datatype.type;
  spec.channels = datatype.channels;
  spec.colour = spec.channels == 1 ? Colour::gray : Colour::rgb;
  spec.alpha = spec.channels == 4;
  spec.range = layout.scaled() ? 0 : datatype.range;
  info.white_unknown = is_float(spec.type);
  info.note = note_of(datatype, layout);
  check_file_size(file, spec, layout, info.pages);
  layout.page_stride = page_bytes(spec, datatype.bits);
  NiftiHeader header{.fields = fields.bytes()};
  if (std::optional<Bytes> extensions =
          read_extensions(content, fields.version(), layout.big_endian, layout.offset)) {
    header.extensions = std::move(*extensions);
  } else {
    info.note += fmt::format("{}header extensions left out", info.note.empty() ? "" : ", ");
  }
  return std::make_unique<NiftiInput>(open_matrix(std::move(file), std::move(info), layout),
                                      std::move(header));
}

std::unique_ptr<OutputFile> create_nifti(const std::filesystem::path& path, const FileInfo& info,
                                         const InputFile* like, const SaveOptions& options) {
  std::optional<Fields> kept = kept_fields(info, like, options);
  const Bytes extensions = kept ? like->metadata().nifti->extensions : Bytes{};
  Fields fields = kept ? std::move(*kept) : new_fields(info, like);
  const Version& version = fields.version();
  const Datatype& datatype = datatype_of(info.spec);
  fields.set_integer(version.datatype, 2, datatype.code);
  fields.set_integer(version.bitpix, 2, datatype.bits);
  fields.set_real(version.slope, 1);
  fields.set_real(version.intercept, 0);
  fields.set_real(version.cal_max, 0);
  fields.set_real(version.cal_min, 0);
  constexpr std::uint64_t alignment = 16;
  const std::uint64_t end = version.bytes + flag_bytes + extensions.size();
  const std::uint64_t offset = (end + alignment - 1) / alignment * alignment;
  if (version.number == 1) {
    constexpr std::size_t glmax_and_glmin = 140;  // of the samples; unused
    fields.set_integer(glmax_and_glmin, 8, 0);
    fields.set_real(version.vox_offset, static_cast<double>(offset));
  } else {
    fields.set_integer(version.vox_offset, 8, static_cast<std::int64_t>(offset));
  }
  std::string header(reinterpret_cast<const char*>(fields.bytes().data()), fields.bytes().size());
  header.resize(header.size() + flag_bytes, '\0');
  if (!extensions.empty()) header[version.bytes] = 1;
  header.append(reinterpret_cast<const char*>(extensions.data()), extensions.size());
  header.resize(offset, '\0');

  MatrixLayout layout;
  layout.sample = datatype.sample;
  layout.offset = header.size();
  layout.page_stride = page_bytes(info.spec, datatype.bits);
  layout.gzip = is_gzip_name(path);
  return create_matrix(path, info, header, layout);
}

}  // namespace ungrain::io
