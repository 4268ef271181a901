// DICOM as image files: one file, or the files of a series in a folder. Frames are pages, in the order of
// their positions; rows are in the file's order. The voxels' place in space is kept as a NIfTI header.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "io/builtin_formats.h"
#include "io/dicom_file.h"
#include "io/dicom_pixels.h"
#include "io/dicom_series.h"
#include "io/failure.h"
#include "io/packed_rows.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

namespace fs = std::filesystem;

bool scaled(const DicomVolumes& volumes) {
  return std::any_of(volumes.slices.begin(), volumes.slices.end(),
                     [](const DicomSlice& slice) { return slice.scaling != DicomScaling{}; });
}

bool has_signs(const DicomVolumes& volumes) {
  return std::any_of(volumes.files.begin(), volumes.files.end(),
                     [](const DicomFile& file) { return file.pixels.is_signed; });
}

int most_bits(const DicomVolumes& volumes) {
  int bits = 1;
  for (const DicomFile& file : volumes.files) bits = std::max(bits, file.pixels.bits);
  return bits;
}

std::string conversion_text(const DicomVolumes& volumes) {
  const DicomPixels& pixels = volumes.files.front().pixels;
  std::string text =
      fmt::format("{}{} samples converted to f32", has_signs(volumes) ? 'i' : 'u', 8 * pixels.bytes);
  if (!scaled(volumes)) return text;
  const DicomScaling& first = volumes.slices.front().scaling;
  const bool same = std::all_of(volumes.slices.begin(), volumes.slices.end(),
                                [&](const DicomSlice& slice) { return slice.scaling == first; });
  return text + (same ? fmt::format(", slope {:g} and intercept {:g} applied", first.slope, first.intercept)
                      : ", slope and intercept of each slice applied");
}

ImageSpec spec_of(const DicomVolumes& volumes) {
  const DicomPixels& pixels = volumes.files.front().pixels;
  ImageSpec spec;
  spec.width = pixels.width;
  spec.height = pixels.height;
  spec.channels = pixels.channels;
  spec.colour = pixels.channels == 1 ? Colour::gray : Colour::rgb;
  const bool as_float = pixels.bytes == 4 || has_signs(volumes) || scaled(volumes);
  spec.type = as_float ? PixelType::f32 : pixels.bytes == 1 ? PixelType::u8 : PixelType::u16;
  const int bits = most_bits(volumes);
  if (!as_float) {
    // Bits that are not used lie above white.
    if (bits < 8 * pixels.bytes) spec.range = static_cast<double>((1 << bits) - 1);
  } else if (!scaled(volumes)) {
    spec.range = static_cast<double>((std::int64_t{1} << (bits - (has_signs(volumes) ? 1 : 0))) - 1);
  }
  return spec;
}

class DicomInput final : public InputFile {
 public:
  DicomInput(fs::path name, DicomVolumes volumes) : name_(std::move(name)), volumes_(std::move(volumes)) {
    info_.format = "DICOM";
    info_.spec = spec_of(volumes_);
    info_.pages = static_cast<int>(volumes_.slices.size());
    info_.volume = VolumeShape{.depth = volumes_.depth, .spacing = volumes_.spacing};
    info_.white_unknown = is_float(info_.spec.type);
    if (info_.white_unknown) volumes_.notes.insert(volumes_.notes.begin(), conversion_text(volumes_));
    info_.note = fmt::format("{}", fmt::join(volumes_.notes, ", "));
    metadata_.nifti = nifti_header(
        info_, {.affine = volumes_.affine, .millimetres = volumes_.millimetres, .seconds = volumes_.seconds});
    metadata_.unread = "DICOM attributes";
  }

  const FileInfo& info() const override { return info_; }
  const Metadata& metadata() const override { return metadata_; }

  std::uint64_t decoding_bytes() const override {
    std::uint64_t most = 0;
    for (const DicomFile& file : volumes_.files) {
      most = std::max(most, DicomPixelReader::decoding_bytes(file.pixels));
    }
    return most;
  }

  void check_unchanged() override {
    for (const DicomFile& file : volumes_.files) io::check_unchanged(file.path, file.stamp);
  }

  void select_page(int page) override {
    if (page < 0 || page >= info_.pages) fail(name_, fmt::format("has no page {}", page + 1));
    page_ = static_cast<std::size_t>(page);
  }

  void read_rows(int first, const ImageView& rows) override {
    check_rows(name_, info_.spec, first, rows);
    const DicomSlice& slice = volumes_.slices[page_];
    if (!reader_ || slice.file != open_file_) {
      reader_.reset();  // one file is open at a time
      reader_ = std::make_unique<DicomPixelReader>(volumes_.files[slice.file]);
      open_file_ = slice.file;
    }
    reader_->read_rows(slice.frame, first, rows, slice.scaling);
  }

 private:
  fs::path name_;
  DicomVolumes volumes_;
  FileInfo info_;
  Metadata metadata_;
  std::size_t page_ = 0;
  std::size_t open_file_ = 0;
  std::unique_ptr<DicomPixelReader> reader_;
};

// Numbers in names by their value: im2 before im10.
bool name_before(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
      continue;
    }
    const auto number = [&](const std::string& text, std::size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const std::size_t begin = at;
      while (at < text.size() && digit(text[at])) ++at;
      return std::string_view(text).substr(begin, at - begin);
    };
    const std::string_view first = number(a, i);
    const std::string_view second = number(b, j);
    if (first.size() != second.size()) return first.size() < second.size();
    if (first != second) return first < second;
  }
  if (i < a.size() || j < b.size()) return j < b.size();
  return a < b;  // zeros before numbers differ
}

constexpr std::uintmax_t shortest_file = 132;  // preamble and magic

// The files of a folder that may be DICOM, and how many cannot be.
struct Candidates {
  std::vector<fs::path> files;
  int others = 0;
};

Candidates candidates_in(const fs::path& folder) {
  Candidates found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::error_code dangling;
    if (entry.path().filename().string().starts_with('.') || !entry.is_regular_file(dangling)) continue;
    const std::uintmax_t size = entry.file_size(dangling);
    if (!dangling && size >= shortest_file) {
      found.files.push_back(entry.path());
    } else {
      ++found.others;
    }
  }
  if (error) fail(folder, "cannot be read", error.value());
  std::sort(found.files.begin(), found.files.end(), [](const fs::path& a, const fs::path& b) {
    return name_before(a.filename().string(), b.filename().string());
  });
  return found;
}

bool is_dicom_file(const fs::path& path) {
  try {
    return is_dicom(SourceFile(path));
  } catch (const Error&) {  // one that cannot be opened is named where it is opened
    return false;
  }
}

}  // namespace

bool holds_dicom(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return is_dicom_file(path);
  if (!fs::is_directory(path, error)) return false;
  try {
    const Candidates found = candidates_in(path);
    return std::any_of(found.files.begin(), found.files.end(), is_dicom_file);
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<InputFile> open_dicom(const SourceFile& file, const OpenOptions& options) {
  std::optional<DicomFile> header = read_dicom_file(file);
  if (!header) fail(file.path(), "a DICOM file that contains no image");
  std::vector<DicomFile> files;
  files.push_back(std::move(*header));
  files = choose_series(file.path(), std::move(files), options.series);
  return std::make_unique<DicomInput>(file.path(), arrange_volumes(file.path(), std::move(files)));
}

std::unique_ptr<InputFile> open_dicom_folder(const fs::path& folder, const OpenOptions& options,
                                             FileAccess* access) {
  Candidates found = candidates_in(folder);
  std::vector<DicomFile> files;
  for (const fs::path& path : found.files) {
    if (options.stop && options.stop()) throw Error(ErrorCode::cancelled, "interrupted");
    const SourceFile source(path);
    std::optional<DicomFile> header = is_dicom(source) ? read_dicom_file(source) : std::nullopt;
    if (header) {
      files.push_back(std::move(*header));
    } else {
      ++found.others;
    }
  }
  if (files.empty()) fail(folder, "a folder without DICOM images");
  files = choose_series(folder, std::move(files), options.series);
  *access = files.front().access;
  for (const DicomFile& file : files) *access = access->shared_with(file.access);
  DicomVolumes volumes = arrange_volumes(folder, std::move(files));
  if (found.others > 0) {
    volumes.notes.push_back(
        fmt::format("{} file{} without DICOM images left out", found.others, found.others == 1 ? "" : "s"));
  }
  return std::make_unique<DicomInput>(folder, std::move(volumes));
}

}  // namespace ungrain::io
