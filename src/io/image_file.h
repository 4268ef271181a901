// Image files as streams of rows. Nothing outside this folder knows file formats.
//
// PNM, PAM, PFM, BMP and NPY are read and written by our own code; everything else by libvips, in builds that
// have it (UNGRAIN_HAVE_VIPS). What a file is, on reading, is told by its content; on writing by the name's
// extension.
//
// Every failure is Error(io): one line, the file's name first.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ungrain/denoiser.h"
#include "ungrain/image.h"

namespace ungrain::io {

struct FileInfo {
  ImageSpec spec;  // of one page; all pages have the same
  int pages = 1;
  std::string format = {};  // "TIFF", "PNG", "PGM" ...
  std::string note = {};    // what reading converted or left out ("f64 samples converted to f32"), or empty
  // Of an NPY array: its axis that counts the pages, and whether one channel has an axis of its own too.
  std::optional<int> page_axis = {};
  bool channel_axis = false;
};

struct OpenOptions {
  std::optional<int> axis = {};  // of NPY arrays: the one that counts the pages; negative: from the end
};

// Samples are what the file holds, but for 64-bit floats and signed or 32-bit integers, which become f32 (the
// note says so). Only PNM files tell their white level; others have their type's own: 255, 65535, 1. Pixels
// are not rotated: an EXIF orientation stays a tag.
class InputFile : public RowReader {
 public:
  static std::unique_ptr<InputFile> open(const std::filesystem::path& path, const OpenOptions& options = {});

  virtual const FileInfo& info() const = 0;
  // 0 at first. In order is fast; going back may decode again from the start.
  virtual void select_page(int page) = 0;
  // `rows` has info()'s width, channels and type and any strides. Any order works; in order is fast.
  void read_rows(int first, const ImageView& rows) override = 0;
  // Throws "changed while it was read" where size, time or inode are not what they were at open(). Call it
  // after the last row and before the commit() of an output of the same name.
  virtual void check_unchanged() = 0;
};

struct SaveOptions {
  int quality = 95;  // 1 to 100, of lossy formats: JPEG, WebP, HEIF, AVIF, JPEG XL, JPEG 2000
};

// Writes to a hidden temporary file beside `path`; commit() puts it in the place of `path`, the destructor
// without commit() removes it. `path` may be the file that is being read.
class OutputFile : public RowWriter {
 public:
  // The metadata of `like` (may be null), which need not stay open, are carried over as far as both formats
  // can hold them: EXIF, XMP, IPTC, ICC profile, resolution, orientation, animation delays, TIFF tiles.
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

// The nearest to `wanted` that the format can hold: .jpg only u8, .png u8 and u16, .pfm f32.
PixelType writable_type(const std::filesystem::path& path, PixelType wanted);

// In lower case and with the dot, for help texts and for finding the images of a folder.
std::vector<std::string> readable_extensions();
std::vector<std::string> writable_extensions();

// The first of the format that FileInfo names: ".tif" of "TIFF".
std::string extension_of(const std::string& format);

Image read_image(const std::filesystem::path& path);  // the first page
void write_image(const std::filesystem::path& path, const ConstImageView& image,
                 const InputFile* like = nullptr);

// Removes the temporary files of every OutputFile that is alive, for a program that is about to be ended by
// force.
void remove_temporaries() noexcept;

}  // namespace ungrain::io
