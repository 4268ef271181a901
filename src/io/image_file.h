// Image files as streams of rows. Nothing outside this folder knows file formats.
//
// PNM, PAM, PFM, BMP and NPY are read and written by our own code; everything else by libvips, in builds that
// have it (UNGRAIN_HAVE_VIPS). What a file is, on reading, is told by its content; on writing by the name's
// extension.
//
// Every failure is Error(io): one line, the file's name first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file_access.h"
#include "io/metadata.h"
#include "ungrain/denoiser.h"
#include "ungrain/image.h"

namespace ungrain::io {

enum class TiffCompression : std::uint8_t { none, lzw, deflate, packbits, zstd, lzma, jpeg };

// What channels mean where it is neither gray, red, green and blue, nor independent channels.
enum class ColourModel : std::uint8_t { usual, cmyk, lab };

struct FileInfo {
  ImageSpec spec;  // of one page; all pages have the same
  int pages = 1;
  std::string format = {};  // "TIFF", "PNG", "PGM" ...
  FileAccess access = {};   // of the file that an output is made from: OutputFile::create() sets it
  std::string note = {};    // what reading converted or left out ("f64 samples converted to f32"), or empty
  ColourModel model = ColourModel::usual;
  // The samples' type does not tell the white level and nothing else in the file does: floats, and integers
  // that became floats.
  bool white_unknown = false;
  bool turned = false;  // the file's pixels lie on a side: the rows are not those of the file
  // Of an NPY array: its axis that counts the pages, and whether one channel has an axis of its own too.
  std::optional<int> page_axis = {};
  bool channel_axis = false;
};

// Pages of a file, counted from 1.
class PageList {
 public:
  static constexpr std::int64_t open_end = std::numeric_limits<std::int64_t>::max();  // to the last page
  void add(std::int64_t first, std::int64_t last) { ranges_.emplace_back(first, last); }
  bool all() const { return ranges_.empty(); }
  bool contains(std::size_t page) const;
  std::int64_t largest() const;  // 0: no page is named
  // That is named and that a file of so many does not have; 0: none.
  std::int64_t first_missing(int pages) const;
  // The pages of a file that has so many, counted from 0, in its own order.
  std::vector<int> of(int pages) const;
  std::string text() const;  // "1,3-5,8-"

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
};

struct OpenOptions {
  std::optional<int> axis = {};  // of NPY arrays: the one that counts the pages; negative: from the end
  PageList pages = {};           // none named: all
  // Whether the last of two or four channels is alpha; nothing: as the file says.
  std::optional<bool> alpha = {};
  std::uint64_t memory = 0;  // bytes that decoding may take; 0: as many as it likes
};

// Samples are what the file holds, but for 64-bit floats and signed or 32-bit integers, which become f32 (the
// note says so). Only PNM files and some TIFF files tell their white level; others have their type's own:
// 255, 65535, 1. Pixels are upright: where the file says that they lie on a side, rows are the upright
// image's.
class InputFile : public RowReader {
 public:
  // Throws also where decoding takes more than options.memory, which the message tells.
  static std::unique_ptr<InputFile> open(const std::filesystem::path& path, const OpenOptions& options = {});

  virtual const FileInfo& info() const = 0;
  virtual const Metadata& metadata() const;
  // Memory that decoding takes besides the rows it gives: decoders of some formats hold the whole image.
  virtual std::uint64_t decoding_bytes() const { return 0; }
  // The pages of the file that are this one's, where options chose some of them.
  virtual std::vector<int> selected_pages() const { return {}; }
  // 0 at first. In order is fast; going back may decode again from the start.
  virtual void select_page(int page) = 0;
  // `rows` has info()'s width, channels and type and any strides. Any order works; in order is fast.
  void read_rows(int first, const ImageView& rows) override = 0;
  // Throws "changed while it was read" where size, time or inode are not what they were at open(). Call it
  // after the last row and before the commit() of an output of the same name.
  virtual void check_unchanged() = 0;
  const FileAccess& access() const { return access_; }  // at open()

 private:
  FileAccess access_;
};

struct SaveOptions {
  int quality = 95;  // 1 to 100, of lossy formats: JPEG, WebP, HEIF, AVIF, JPEG XL, JPEG 2000
  // Of TIFF; nothing: as `like` where that is a TIFF file, or else none.
  std::optional<TiffCompression> compression = {};
  std::vector<int> pages = {};  // of `like` that the pages are; empty: the same
};

// What would be lost of the metadata of `like`: "EXIF, ICC profile"; empty: nothing.
std::string metadata_not_kept(const std::filesystem::path& path, const FileInfo& info, const InputFile& like);

// Writes to a hidden temporary file beside `path`; commit() puts it in the place of `path`, the destructor
// without commit() removes it. `path` may be the file that is being read.
class OutputFile : public RowWriter {
 public:
  // The metadata of `like` (may be null), which need not stay open, are carried over as far as both formats
  // can hold them: EXIF, XMP, IPTC, ICC profile, resolution, orientation, animation delays, TIFF tiles. A new
  // file is open to nobody who may not read `like`; one that is replaced keeps its permissions.
  static std::unique_ptr<OutputFile> create(const std::filesystem::path& path, const FileInfo& info,
                                            const InputFile* like, const SaveOptions& options = {});

  // Rows of the current page, in order, each once. Integer samples above the spec's white level are an
  // image's own business, except that PNM, where they would be invalid, clamps them.
  void write_rows(int first, const ConstImageView& rows) override = 0;
  virtual void next_page() = 0;  // after the last row of one page and before the first of the next
  virtual void commit() = 0;     // after the last row of the last page
};

// Whether the extension is one that this build can write; `why_not`, where not null, says what it can.
bool can_write(const std::filesystem::path& path, std::string* why_not);
// The same for an image: its channels and number of pages too. Not its type: see writable_type().
bool can_write(const std::filesystem::path& path, const ImageSpec& spec, int pages, std::string* why_not);

// The nearest to the spec's type that the format can hold: .jpg only u8, .png u8 and u16, .pfm f32.
PixelType writable_type(const std::filesystem::path& path, const ImageSpec& spec);
inline PixelType writable_type(const std::filesystem::path& path, PixelType wanted) {
  return writable_type(path, ImageSpec{.channels = 3, .type = wanted, .colour = Colour::rgb});
}

// Whether integers of another white level than their type's are to be written as they are: the format tells
// the level, or its numbers are measurements.
bool keeps_white_level(const std::filesystem::path& path);

// In lower case and with the dot, for help texts and for finding the images of a folder.
std::vector<std::string> readable_extensions();
std::vector<std::string> writable_extensions();

// The first of the format that FileInfo names: ".tif" of "TIFF".
std::string extension_of(const std::string& format);

// Whether the extension is that of the format of this name (FileInfo::format).
bool is_format(const std::filesystem::path& path, std::string_view format);

// Byte by byte, with the same care as an OutputFile. `input` is the file that was opened by the name `from`.
void copy_file(const std::filesystem::path& from, InputFile& input, const std::filesystem::path& to);

Image read_image(const std::filesystem::path& path);  // the first page
void write_image(const std::filesystem::path& path, const ConstImageView& image,
                 const InputFile* like = nullptr);

// Removes the temporary files of every OutputFile that is alive, for a program that is about to be ended by
// force.
void remove_temporaries() noexcept;

// Removes the temporary files that killed processes left in the folder of an output, as the first OutputFile
// of a folder does too; for a program that finds the outputs done and makes none.
void remove_leftovers_beside(const std::filesystem::path& target);

}  // namespace ungrain::io
