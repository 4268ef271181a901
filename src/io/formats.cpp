#include "io/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io/image_file.h"

#if UNGRAIN_HAVE_VIPS
#include "io/vips_functions.h"
#endif

namespace ungrain::io {
namespace {

constexpr PixelType u8 = PixelType::u8;
constexpr PixelType u16 = PixelType::u16;
constexpr PixelType f16 = PixelType::f16;
constexpr PixelType f32 = PixelType::f32;

constexpr unsigned plain = layout_gray | layout_rgb;
constexpr unsigned with_alpha = plain | layout_gray_alpha | layout_rgb_alpha;
constexpr unsigned any = with_alpha | layout_two | layout_four;

constexpr unsigned comments_in_jpeg = UNGRAIN_VIPS_KEEPS_COMMENTS ? keeps_comments : 0;
constexpr unsigned photograph = keeps_exif | keeps_xmp | keeps_icc;

const std::vector<Format>& table() {
  // clang-format off
  static const std::vector<Format> list = {
      {"PGM", {".pgm"}, Codec::pnm, "", "", {u8, u16}, layout_gray},
      {"PPM", {".ppm"}, Codec::pnm, "", "", {u8, u16}, layout_rgb},
      {"PNM", {".pnm"}, Codec::pnm, "", "", {u8, u16}, any},
      {"PAM", {".pam"}, Codec::pnm, "", "", {u8, u16}, any},
      {"PBM", {".pbm"}, Codec::pnm, "", "", {}},
      {"PFM", {".pfm"}, Codec::pfm, "", "", {f32}, plain},
      {"BMP", {".bmp"}, Codec::bmp, "", "", {u8}, plain | layout_rgb_alpha},
      {"BMP", {".dib"}, Codec::bmp, "", "", {}},
      {"NPY", {".npy"}, Codec::npy, "", "", {u8, u16, f16, f32}, any, true},
      {"NIfTI", {".nii", ".nii.gz"}, Codec::nifti, "", "", {u8, u16, f32}, plain | layout_rgb_alpha, true, keeps_nifti},
      {"DICOM", {".dcm", ".dicom", ".ima"}, Codec::dicom, "", "", {}},
      {"HDF5", {".h5", ".hdf5", ".hdf", ".nxs"}, Codec::hdf5, "", "", {u8, u16, f16, f32}, plain | layout_four, true, keeps_hdf5},
      {"JPEG", {".jpg", ".jpeg", ".jpe"}, Codec::vips, "jpegload", "jpegsave", {u8}, plain | layout_four, false,
       photograph | keeps_iptc | keeps_photoshop | keeps_resolution | comments_in_jpeg},
      {"PNG", {".png"}, Codec::vips, "pngload", "pngsave", {u8, u16}, with_alpha, false,
       photograph | keeps_resolution | keeps_png_texts},
      {"TIFF", {".tif", ".tiff"}, Codec::tiff, "", "", {u8, u16, f16, f32}, any, true,
       photograph | keeps_iptc | keeps_photoshop | keeps_resolution | keeps_description | keeps_tiff_tags},
      {"WebP", {".webp"}, Codec::vips, "webpload", "webpsave", {u8}, with_alpha, true, photograph | keeps_animation},
      {"GIF", {".gif"}, Codec::vips, "gifload", "gifsave", {u8}, with_alpha, true, keeps_animation},
      {"HEIF", {".heic", ".heif", ".avif"}, Codec::vips, "heifload", "heifsave", {u8, u16}, with_alpha, false, photograph},
      {"JPEG XL", {".jxl"}, Codec::vips, "jxlload", "jxlsave_buffer", {u8, u16, f32}, with_alpha, false, photograph},
      {"JPEG 2000", {".jp2", ".j2k", ".jpc"}, Codec::vips, "jp2kload", "jp2ksave_buffer", {u8, u16}, with_alpha, false,
       photograph | keeps_iptc},
      {"FITS", {".fits", ".fit", ".fts"}, Codec::vips, "fitsload", "fitssave", {u8, u16, f32}, plain, false, keeps_fits_cards},
      {"Radiance", {".hdr"}, Codec::vips, "radload", "radsave", {f32}, layout_rgb},
      {"OpenEXR", {".exr"}, Codec::vips, "openexrload", "", {}},
      {"DNG", {".dng"}, Codec::dng, "", "", {u16}, layout_gray | layout_four, false, keeps_exif | keeps_xmp},
      {"camera raw", {".cr2", ".cr3", ".nef", ".nrw", ".arw", ".raf", ".orf", ".rw2", ".pef"}, Codec::raw, "", "", {}},
  };
  // clang-format on
  return list;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool vips_has(std::string_view operation) {
#if UNGRAIN_HAVE_VIPS
  return !operation.empty() && vips_functions().has_operation(operation);
#else
  return static_cast<void>(operation), false;
#endif
}

std::vector<std::string> extensions_where(bool (*possible)(const Format&)) {
  std::vector<std::string> list;
  for (const Format& format : formats()) {
    if (possible(format)) list.insert(list.end(), format.extensions.begin(), format.extensions.end());
  }
  return list;
}

std::string layout_name(unsigned layout) {
  switch (layout) {
    case layout_gray:
      return "gray";
    case layout_gray_alpha:
      return "gray with alpha";
    case layout_rgb:
      return "rgb";
    case layout_rgb_alpha:
      return "rgb with alpha";
    case layout_two:
      return "2 channels";
    default:
      return "4 channels";
  }
}

}  // namespace

std::string file_extension(const std::filesystem::path& path) {
  const std::string last = path.extension().string();
  const std::string before = path.stem().extension().string();
  return lower(before + last) == ".nii.gz" ? before + last : last;
}

std::filesystem::path file_stem(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.substr(0, name.size() - file_extension(path).size());
}

bool is_gzip_name(const std::filesystem::path& path) { return lower(file_extension(path)).ends_with(".gz"); }

std::span<const Format> formats() { return table(); }

bool can_read(const Format& format) {
  if (format.codec == Codec::dng || format.codec == Codec::raw) return UNGRAIN_HAVE_RAW != 0;
  if (format.codec == Codec::tiff) return UNGRAIN_HAVE_TIFF != 0;
  if (format.codec == Codec::hdf5) return UNGRAIN_HAVE_HDF5 != 0;
  return format.codec != Codec::vips || vips_has(format.loader);
}

bool can_write(const Format& format) {
  if (format.codec == Codec::tiff) return UNGRAIN_HAVE_TIFF != 0;
  if (format.codec == Codec::hdf5) return UNGRAIN_HAVE_HDF5 != 0;
  return format.layouts != 0 && (format.codec != Codec::vips || vips_has(format.saver));
}

bool holds(const Format& format, PixelType type) {
  return std::find(format.types.begin(), format.types.end(), type) != format.types.end();
}

bool holds(const Format& format, const ImageSpec& spec) {
  if (format.codec == Codec::nifti && spec.channels > 1) return spec.type == u8;
  return holds(format, spec.type);
}

// Chosen by the number of channels: no format distinguishes one independent channel from gray, or three from
// rgb.
Layout layout_of(const ImageSpec& spec) {
  switch (spec.channels) {
    case 1:
      return layout_gray;
    case 2:
      return spec.alpha ? layout_gray_alpha : layout_two;
    case 3:
      return layout_rgb;
    default:
      return spec.alpha ? layout_rgb_alpha : layout_four;
  }
}

std::string layout_names(unsigned layouts) {
  std::vector<std::string> names;
  for (unsigned bit = layout_gray; bit <= layout_four; bit *= 2) {
    if ((layouts & bit) != 0) names.push_back(layout_name(bit));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

const Format* format_of_extension(const std::filesystem::path& path) {
  const std::string extension = lower(file_extension(path));
  for (const Format& format : formats()) {
    if (std::find(format.extensions.begin(), format.extensions.end(), extension) != format.extensions.end()) {
      return &format;
    }
  }
  return nullptr;
}

const Format* format_of_loader(std::string_view loader) {
  for (const Format& format : formats()) {
    if (!format.loader.empty() && loader.starts_with(format.loader)) return &format;
  }
  return nullptr;
}

bool can_read(const std::filesystem::path& path) {
  const Format* format = format_of_extension(path);
  return format != nullptr && can_read(*format);
}

bool can_write(const std::filesystem::path& path, std::string* why_not) {
  const Format* format = format_of_extension(path);
  if (format != nullptr && can_write(*format)) return true;
  if (why_not != nullptr) {
    const std::string list = fmt::format("{}", fmt::join(writable_extensions(), " "));
    const std::string extension = file_extension(path);
    *why_not = extension.empty()
                   ? fmt::format("has no extension to tell the format by; this build writes {}", list)
                   : fmt::format("{} files cannot be written; this build writes {}", extension, list);
  }
  return false;
}

bool can_write(const std::filesystem::path& path, const ImageSpec& spec, int pages, std::string* why_not) {
  if (!can_write(path, why_not)) return false;
  const Format& format = *format_of_extension(path);
  std::string problem;
  if ((format.layouts & layout_of(spec)) == 0 || (spec.channels == 3 && spec.alpha)) {
    const std::string given =
        spec.channels == 3 && spec.alpha ? "2 channels with alpha" : layout_name(layout_of(spec));
    problem = fmt::format("{} holds {}, not {}", format.name, layout_names(format.layouts), given);
  } else if (pages > 1 && !format.pages) {
    problem = fmt::format("{} holds one page, not {}; write .tif", format.name, pages);
  }
  if (why_not != nullptr) *why_not = problem;
  return problem.empty();
}

PixelType writable_type(const std::filesystem::path& path, const ImageSpec& spec) {
  const PixelType wanted = spec.type;
  const Format* format = format_of_extension(path);
  if (format == nullptr) return wanted;
  if (is_float(wanted) && spec.colour_channels() == 1 && format->name == "JPEG XL")
    return u16;  // libvips has no gray float format
  // Lossless types first, then by increasing loss.
  static constexpr std::array<std::array<PixelType, 4>, 4> preferences = {{
      {u8, u16, f32, f16},
      {u16, f32, f16, u8},
      {f16, f32, u16, u8},
      {f32, u16, f16, u8},
  }};
  for (const PixelType type : preferences[static_cast<std::size_t>(wanted)]) {
    ImageSpec candidate = spec;
    candidate.type = type;
    if (holds(*format, candidate)) return type;
  }
  return wanted;
}

std::string extension_of(const std::string& format) {
  for (const Format& known : formats()) {
    if (known.name == format) return std::string(known.extensions.front());
  }
  return {};
}

bool keeps_white_level(const std::filesystem::path& path) {
  const Format* format = format_of_extension(path);
  if (format == nullptr) return true;
  return format->codec == Codec::pnm || format->codec == Codec::npy || format->codec == Codec::nifti ||
         format->codec == Codec::tiff || format->codec == Codec::hdf5 || format->name == "FITS";
}

std::vector<std::string> readable_extensions() { return extensions_where(&can_read); }
std::vector<std::string> writable_extensions() {
  return extensions_where([](const Format& format) { return can_write(format); });
}

}  // namespace ungrain::io
