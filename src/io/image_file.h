// Image files as streams of rows. Nothing outside this folder knows file formats.
//
// Our own code reads and writes PNM, PAM, PFM, BMP, NPY and NIfTI, and reads DICOM; libtiff, LibRaw and
// libhdf5 do theirs and libvips everything else, in builds that have them (UNGRAIN_HAVE_VIPS ...). On
// reading, a file's content decides its format; on writing, the name's extension.
//
// Every failure is Error(io): one line, the file's name first.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
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

// Meaning of channels that are neither gray, rgb nor independent.
enum class ColourModel : std::uint8_t { usual, cmyk, lab };

// The pages of a file that are slices of volumes. The pages of one volume follow each other.
struct VolumeShape {
  int depth = 1;                              // slices of one volume; FileInfo::pages is a multiple of it
  std::array<double, 3> spacing = {1, 1, 1};  // distances of voxels along x, y and z, in the file's unit
};

// Which page of a file is which slice of which volume. Volumes count channels first, then frames.
struct PageOrder {
  int depth = 1;     // slices of one volume
  int channels = 1;  // each channel of each frame is a volume
  int frames = 1;
  int slice_step = 1;  // pages from one slice to the next, and so on
  int channel_step = 1;
  int frame_step = 1;

  int volumes() const { return channels * frames; }
  int pages() const { return depth * volumes(); }
  int page(int volume, int slice) const {
    return volume / channels * frame_step + volume % channels * channel_step + slice * slice_step;
  }
  // Whether the pages of one volume follow each other, and the volumes too.
  bool is_plain() const {
    return (depth == 1 || slice_step == 1) && (channels == 1 || channel_step == depth) &&
           (frames == 1 || frame_step == depth * channels);
  }
};

// What a file's description says about its pages (OME-TIFF, ImageJ). They are images of their own unless
// volumes are asked for.
struct PageStack {
  std::optional<PageOrder> order = {};                // nothing: the description does not tell it
  std::optional<std::array<double, 3>> spacing = {};  // distances of voxels along x, y and z, in one unit
  std::string note = {};                              // what of the description is not used, and why
};

struct FileInfo {
  ImageSpec spec;  // of one page; all pages have the same
  int pages = 1;
  std::string format = {};  // "TIFF", "PNG", "PGM" ...
  FileAccess access = {};   // of the source of an output; OutputFile::create() sets it
  std::string note = {};    // what reading converted or left out ("f64 samples converted to f32"), or empty
  ColourModel model = ColourModel::usual;
  // Neither the samples' type nor the file tells the white level: floats, and integers that became floats.
  bool white_unknown = false;
  bool turned = false;  // the file's pixels lie on a side: its rows are not the image's rows
  // Of an NPY or HDF5 array: the axis that counts the pages, and whether a single channel has its own axis.
  std::optional<int> page_axis = {};
  bool channel_axis = false;
  bool gzip = false;                       // the whole file is compressed: .nii.gz
  std::optional<VolumeShape> volume = {};  // of NIfTI, DICOM and HDF5 files: their pages are slices
  std::optional<PageStack> stack = {};     // of TIFF files
};

// Pages of a file, counted from 1.
class PageList {
 public:
  static constexpr std::int64_t open_end = std::numeric_limits<std::int64_t>::max();  // to the last page
  void add(std::int64_t first, std::int64_t last) { ranges_.emplace_back(first, last); }
  bool all() const { return ranges_.empty(); }
  bool contains(std::size_t page) const;
  std::int64_t largest() const;  // 0: no page is named
  // The first listed page that a file of `pages` pages lacks; 0: none.
  std::int64_t first_missing(int pages) const;
  // The pages listed, of a file with `pages` pages, counted from 0, in the file's order.
  std::vector<int> of(int pages) const;
  std::string text() const;  // "1,3-5,8-"

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
};

struct OpenOptions {
  // Of NPY and HDF5 arrays: the axis that counts the pages; negative: from the end.
  std::optional<int> axis = {};
  std::string dataset = {};  // of HDF5 files: the path of the array; empty: found
  PageList pages = {};       // none named: all
  // Whether the last of two or four channels is alpha; nothing: as the file says.
  std::optional<bool> alpha = {};
  std::uint64_t memory = 0;  // bytes that decoding may take; 0: no limit
  std::string series = {};   // of DICOM files: its number or identifier; empty: there is one only
  // Asked now and then while a folder is read. True: opening ends in Error(cancelled).
  std::function<bool()> stop = {};
};

// Samples are the file's, except 64-bit floats, signed, 32-bit and 64-bit integers, and samples of NIfTI and
// DICOM files with a slope or an intercept, which become f32 (the note says so). Only PNM and DICOM files and
// some TIFF files store a white level; for others it is the type's own: 255, 65535, 1. Pixels are upright:
// where the file stores them on a side, rows are those of the upright image.
class InputFile : public RowReader {
 public:
  // Also throws where decoding takes more than options.memory; the message says how much. A folder with DICOM
  // files is a file of their frames.
  static std::unique_ptr<InputFile> open(const std::filesystem::path& path, const OpenOptions& options = {});

  virtual const FileInfo& info() const = 0;
  virtual const Metadata& metadata() const;
  // Memory that decoding takes besides the rows it gives: decoders of some formats hold the whole image.
  virtual std::uint64_t decoding_bytes() const { return 0; }
  // The file's pages that this input has, where options selected some of them.
  virtual std::vector<int> selected_pages() const { return {}; }
  // 0 at first. Ascending order is fast; going back may decode again from the start.
  virtual void select_page(int page) = 0;
  // `rows` has info()'s width, channels and type and any strides. Any order works; ascending order is fast.
  void read_rows(int first, const ImageView& rows) override = 0;
  // Throws "changed while it was read" where size, time or inode differ from those at open(). Call it after
  // the last row and before the commit() of an output of the same name.
  virtual void check_unchanged() = 0;
  const FileAccess& access() const { return access_; }  // at open()

 private:
  FileAccess access_;
};

struct SaveOptions {
  int quality = 95;  // 1 to 100, of lossy formats: JPEG, WebP, HEIF, AVIF, JPEG XL, JPEG 2000
  // Of TIFF and HDF5 (none or deflate); nothing: that of `like` where it has the same format, else none.
  std::optional<TiffCompression> compression = {};
  std::vector<int> pages = {};  // the pages of `like` that the output has; empty: all
};

// Kinds of metadata of `like` that the output cannot hold: "EXIF, ICC profile"; empty: none.
std::string metadata_not_kept(const std::filesystem::path& path, const FileInfo& info, const InputFile& like);

// Writes to a hidden temporary file beside `path`; commit() puts it in the place of `path`, the destructor
// without commit() removes it. `path` may be the file that is being read.
class OutputFile : public RowWriter {
 public:
  // Copies the metadata of `like` (may be null, need not stay open) as far as both formats can hold them:
  // EXIF, XMP, IPTC, ICC profile, resolution, orientation, animation delays, TIFF tiles, NIfTI header, the
  // rest of an HDF5 file. Nobody who may not read `like` can read a new file; a replaced file keeps its
  // permissions.
  static std::unique_ptr<OutputFile> create(const std::filesystem::path& path, const FileInfo& info,
                                            const InputFile* like, const SaveOptions& options = {});

  // Rows of the current page, in order, each once. Integer samples above the spec's white level are written
  // unchanged, except in PNM, where they are invalid and are clamped.
  void write_rows(int first, const ConstImageView& rows) override = 0;
  virtual void next_page() = 0;  // after the last row of one page and before the first of the next
  virtual void commit() = 0;     // after the last row of the last page
};

// Whether a file is DICOM, or a folder contains one that is. Their names need not tell.
bool holds_dicom(const std::filesystem::path& path);

// Whether this build can read files of this extension.
bool can_read(const std::filesystem::path& path);
// Whether this build can write files of this extension; `why_not`, where not null, says what it can write.
bool can_write(const std::filesystem::path& path, std::string* why_not);
// The same for an image: checks its channels and number of pages too, but not its type (writable_type()).
bool can_write(const std::filesystem::path& path, const ImageSpec& spec, int pages, std::string* why_not);

// The type nearest to the spec's that the format can hold: .jpg only u8, .png u8 and u16, .pfm f32.
PixelType writable_type(const std::filesystem::path& path, const ImageSpec& spec);
inline PixelType writable_type(const std::filesystem::path& path, PixelType wanted) {
  return writable_type(path, ImageSpec{.channels = 3, .type = wanted, .colour = Colour::rgb});
}

// Whether integers of another white level than their type's are written unchanged: the format stores the
// level, or its numbers are measurements.
bool keeps_white_level(const std::filesystem::path& path);

// In lower case and with the dot, for help texts. They load libvips; can_read() and can_write() of a path
// only where its format needs it.
std::vector<std::string> readable_extensions();
std::vector<std::string> writable_extensions();

// A name's extension and what stands before it: as path::extension() and path::stem() give them, but .nii.gz
// is one extension.
std::string file_extension(const std::filesystem::path& path);
std::filesystem::path file_stem(const std::filesystem::path& path);
// Whether a file of this name is written compressed as a whole.
bool is_gzip_name(const std::filesystem::path& path);

// The first extension of a format of FileInfo::format: ".tif" for "TIFF".
std::string extension_of(const std::string& format);

// Whether the extension belongs to the format of this name (FileInfo::format).
bool is_format(const std::filesystem::path& path, std::string_view format);

// Copies bytes, with the same safety as an OutputFile. `input` is the file opened as `from`.
void copy_file(const std::filesystem::path& from, InputFile& input, const std::filesystem::path& to);

Image read_image(const std::filesystem::path& path);  // the first page
void write_image(const std::filesystem::path& path, const ConstImageView& image,
                 const InputFile* like = nullptr);

// Removes the temporary files of all live OutputFiles. For a program that is about to be killed.
void remove_temporaries() noexcept;

// Removes the temporary files that killed processes left in the folder of an output, as the first OutputFile
// in a folder does. For a program that finds all outputs done and creates none.
void remove_leftovers_beside(const std::filesystem::path& target);

}  // namespace ungrain::io
