// Metadata of a file, in the form in which formats exchange them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ungrain::io {

using Bytes = std::vector<std::byte>;

struct Resolution {
  enum class Unit : std::uint8_t { none, inch, centimetre };
  double x = 0;  // pixels per unit
  double y = 0;
  Unit unit = Unit::none;
};

// A text chunk of a PNG file as it is stored: tEXt, zTXt or iTXt.
struct PngText {
  std::string type;
  Bytes data;
};

// How a TIFF file stores its pixels, for an output of the same layout.
struct TiffStorage {
  int compression = 1;  // TIFF's numbers
  int tile_width = 0;   // 0: strips
  int tile_height = 0;
  int photometric = 1;
  int samples = 1;                        // a pixel
  bool planar = false;                    // each channel by itself
  bool turned = false;                    // width and height were exchanged since
  std::vector<std::uint16_t> extra = {};  // what the samples beyond the colours are: ExtraSamples
};

// The header of a NIfTI file, for an output of the same shape. Its numbers are little endian.
struct NiftiHeader {
  Bytes fields = {};      // 348 bytes of NIfTI-1, 540 of NIfTI-2
  Bytes extensions = {};  // each with its size and code
};

// The directories of a TIFF file, from which a TIFF output copies its tags.
class TiffTagSource;

// Where an HDF5 file has its samples, for an output that keeps the rest of the file.
struct Hdf5Origin;

struct Metadata {
  Bytes exif;       // a small TIFF file, without "Exif\0\0" in front
  Bytes xmp;        // an XML packet
  Bytes iptc;       // IIM records, without Photoshop's wrapping
  Bytes photoshop;  // "8BIM" resources, as in a TIFF's tag 34377 and a JPEG's APP13
  Bytes icc;
  std::optional<Resolution> resolution;
  std::string description;
  int orientation = 1;  // EXIF's, 1 to 8: the rotation that turns the stored pixels upright
  std::vector<PngText> png_texts;
  std::vector<std::string> jpeg_comments;
  std::vector<int> jpeg_steps;          // JpegSegments's steps
  std::string unread;                   // metadata of the file that we cannot read, for the report
  std::vector<std::string> fits_cards;  // of 80 characters, without those that describe the pixels
  std::vector<int> delays;              // milliseconds that each page of an animation is shown
  std::optional<int> loops;             // how often an animation is shown; 0: for ever
  std::shared_ptr<const TiffTagSource> tiff_tags;
  std::optional<TiffStorage> tiff_storage;
  std::optional<NiftiHeader> nifti;
  std::shared_ptr<const Hdf5Origin> hdf5;
};

// Kinds of metadata; a bit each.
enum MetadataKind : std::uint16_t {
  keeps_exif = 1,
  keeps_xmp = 2,
  keeps_iptc = 4,
  keeps_icc = 8,
  keeps_resolution = 16,
  keeps_description = 32,
  keeps_png_texts = 64,
  keeps_fits_cards = 128,
  keeps_animation = 256,
  keeps_tiff_tags = 512,  // of microscopes, maps, ... in a TIFF
  keeps_photoshop = 1024,
  keeps_comments = 2048,
  keeps_nifti = 4096,
  keeps_hdf5 = 8192,
};

unsigned kinds_of(const Metadata& metadata);
std::string kinds_text(unsigned kinds);  // "EXIF, ICC profile"

// IPTC records inside Photoshop's resources, and resources that hold these records instead of their former
// ones. Damaged resources give nothing and are left out.
Bytes iptc_in_photoshop(const Bytes& photoshop);
Bytes photoshop_with_iptc(const Bytes& photoshop, const Bytes& iptc);

// For pixels that were turned upright: sets orientation 1, in the XMP packet too, and removes the thumbnail.
void set_upright(Metadata& metadata);

}  // namespace ungrain::io
