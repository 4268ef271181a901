#include "io/image_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "io/builtin_formats.h"
#include "io/dng_output.h"
#include "io/failure.h"
#include "io/formats.h"
#include "io/ome_xml.h"
#include "io/raw_file.h"
#include "io/signature.h"
#include "io/source_file.h"
#include "io/temporary_file.h"
#include "io/tiff_reader.h"
#include "io/wrapped_input.h"

#if UNGRAIN_HAVE_RAW
#include "io/raw_input.h"
#endif
#if UNGRAIN_HAVE_TIFF
#include "io/tiff_input.h"
#include "io/tiff_output.h"
#endif
#if UNGRAIN_HAVE_HDF5
#include "io/hdf5_functions.h"
#endif
#if UNGRAIN_HAVE_VIPS
#include "io/vips_functions.h"
#endif
#if UNGRAIN_HAVE_VIPS || UNGRAIN_HAVE_HDF5
#include "ungrain/error.h"
#endif

namespace ungrain::io {
namespace {

[[maybe_unused]] std::string unreadable(const SourceFile& file) {
  const std::string_view format = format_by_signature(file);
  if (format.empty()) return "not an image that this build can read (PNM, PAM, PFM, BMP, NPY, NIfTI, DICOM)";
  return fmt::format(
      "a {} file: this build, without the library that reads it, reads PNM, PAM, PFM, BMP, NPY, NIfTI "
      "and DICOM",
      format);
}

#if UNGRAIN_HAVE_VIPS || UNGRAIN_HAVE_HDF5
// The functions of a module; an error names the file that needs it.
template <class Functions>
const Functions& module_for(const std::filesystem::path& path, const Functions& (*functions)()) {
  try {
    return functions();
  } catch (const Error& error) {
    fail(path, error.what());
  }
}
#endif
#if UNGRAIN_HAVE_VIPS
const VipsFunctions& vips_for(const std::filesystem::path& path) { return module_for(path, vips_functions); }
#endif

// The signature stands at the beginning, or behind a block of the user's whose size is a power of two.
bool is_hdf5(const SourceFile& file) {
  constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
  constexpr std::uint64_t largest_user_block = 4096;
  std::array<char, signature.size()> start{};
  for (std::uint64_t at = 0; at <= largest_user_block; at = std::max<std::uint64_t>(512, 2 * at)) {
    const std::size_t got = file.read_some(start.data(), start.size(), at);
    if (std::string_view(start.data(), got) == signature) return true;
  }
  return false;
}

std::unique_ptr<InputFile> open_with_libhdf5(SourceFile file, [[maybe_unused]] const OpenOptions& options) {
#if UNGRAIN_HAVE_HDF5
  const std::filesystem::path path = file.path();
  return module_for(path, hdf5_functions).open(std::move(file), options);
#else
  fail(file.path(), "an HDF5 file: this build lacks libhdf5, which reads it");
#endif
}

std::unique_ptr<InputFile> open_decoder(SourceFile file, [[maybe_unused]] const OpenOptions& options) {
  if (is_pnm(file)) return open_pnm(std::move(file));
  if (is_pfm(file)) return open_pfm(std::move(file));
  if (is_bmp(file)) return open_bmp(std::move(file));
  if (is_npy(file)) return open_npy(std::move(file), options);
  if (is_nifti(file)) return open_nifti(std::move(file));
  if (is_dicom(file)) return open_dicom(file, options);  // before TIFF, which the first bytes may also be
  if (is_hdf5(file)) return open_with_libhdf5(std::move(file), options);
  if (is_format(file.path(), "HDF5")) fail(file.path(), "not an HDF5 file, though it is named like one");
  if (const std::string kind = raw_kind(file); !kind.empty()) {
#if UNGRAIN_HAVE_RAW
    return open_raw(std::move(file), kind);
#else
    fail(file.path(),
         fmt::format("{}: this build lacks LibRaw, which reads it; develop it first, to a TIFF file for "
                     "instance",
                     kind));
#endif
  }
  if (const std::string other = what_it_is_instead(file); !other.empty()) fail(file.path(), other);
#if UNGRAIN_HAVE_TIFF
  if (is_tiff(file)) return open_tiff(std::move(file), options);
#else
  if (TiffReader(file).is_tiff()) fail(file.path(), unreadable(file));
#endif
#if UNGRAIN_HAVE_VIPS
  return vips_for(file.path()).open(std::move(file), options);
#else
  fail(file.path(), unreadable(file));
#endif
}

std::unique_ptr<InputFile> open_path(const std::filesystem::path& path, const OpenOptions& options,
                                     FileAccess* access) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error) && holds_dicom(path)) {
    return open_dicom_folder(path, options, access);
  }
  SourceFile source(path);
  *access = source.access();
  return open_decoder(std::move(source), options);
}

std::string size_text(double bytes) {
  constexpr double gib = 1024.0 * 1024 * 1024;
  return bytes >= gib ? fmt::format("{:.1f} GiB", bytes / gib)
                      : fmt::format("{:.0f} MiB", bytes / gib * 1024);
}

// Decoders that hold the whole image need this memory under any limit.
void check_memory(const std::filesystem::path& path, const InputFile& file, std::uint64_t limit) {
  const std::uint64_t needed = file.decoding_bytes();
  if (limit == 0 || needed <= limit) return;
  const ImageSpec& spec = file.info().spec;
  constexpr double mib = 1024.0 * 1024;
  constexpr double for_filters = 64 * mib;  // for a filter of a small image
  fail(path,
       fmt::format("a {} file of {} x {} pixels that must be decoded whole, which takes {}: --memory {:.0f}M "
                   "would do",
                   file.info().format, spec.width, spec.height, size_text(static_cast<double>(needed)),
                   std::ceil((static_cast<double>(needed) * 1.5 + for_filters) / mib)));
}

void check_info(const std::filesystem::path& path, const FileInfo& info) {
  validate(info.spec);
  std::string why_not;
  if (info.pages < 1) fail(path, "an image has at least one page");
  if (!can_write(path, info.spec, info.pages, &why_not)) fail(path, why_not);
  const Format& format = *format_of_extension(path);
  if (info.model == ColourModel::lab && format.name != "TIFF") {
    fail(path, fmt::format("{} does not hold Lab colours; write .tif", format.name));
  }
  if (!holds(format, info.spec)) {
    fail(path,
         fmt::format("{} cannot hold {}{} samples; {} would do", format.name, name(info.spec.type),
                     holds(format, info.spec.type) ? " rgb" : "", name(writable_type(path, info.spec))));
  }
}

}  // namespace

bool PageList::contains(std::size_t page) const {
  const auto number = static_cast<std::int64_t>(page);
  return all() || std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
           return range.first <= number && number <= range.second;
         });
}

std::int64_t PageList::largest() const {
  std::int64_t most = 0;
  for (const auto& [first, last] : ranges_) most = std::max(most, last);
  return most;
}

std::int64_t PageList::first_missing(int pages) const {
  for (const auto& [first, last] : ranges_) {
    if (first > pages) return first;
    if (last > pages && last != open_end) return pages + 1;
  }
  return 0;
}

std::vector<int> PageList::of(int pages) const {
  std::vector<int> list;
  for (int page = 0; page < pages; ++page) {
    if (contains(static_cast<std::size_t>(page) + 1)) list.push_back(page);
  }
  return list;
}

std::string PageList::text() const {
  std::vector<std::string> parts;
  for (const auto& [first, last] : ranges_) {
    parts.push_back(first == last      ? fmt::format("{}", first)
                    : last == open_end ? fmt::format("{}-", first)
                                       : fmt::format("{}-{}", first, last));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

const Metadata& InputFile::metadata() const {
  static const Metadata none;
  return none;
}

std::unique_ptr<InputFile> InputFile::open(const std::filesystem::path& path, const OpenOptions& options) {
  FileAccess access;
  std::unique_ptr<InputFile> file = open_path(path, options, &access);
  if (!options.pages.all()) {
    const int pages = file->info().pages;
    if (options.pages.first_missing(pages) > 0) {
      fail(path, fmt::format("has {} page{}: --pages names page {}", pages, pages == 1 ? "" : "s",
                             options.pages.first_missing(pages)));
    }
    // A raw file has one page and more than rows.
    if (dynamic_cast<RawFile*>(file.get()) == nullptr) {
      file = with_pages(std::move(file), options.pages.of(pages));
    }
  }
  if (file->metadata().orientation != 1) {
    // Half of the memory is reserved for the filter.
    file = upright(std::move(file), options.memory / 2);
  }
  check_memory(path, *file, options.memory);
  file->access_ = access;
  return file;
}

std::string metadata_not_kept(const std::filesystem::path& path, const FileInfo& info,
                              const InputFile& like) {
  const Format* format = format_of_extension(path);
  if (format == nullptr) return "";
  const Metadata& metadata = like.metadata();
  unsigned lost = kinds_of(metadata) & ~format->keeps;
  if (!metadata.icc.empty() && like.info().spec.channels != info.spec.channels) lost |= keeps_icc;
  // JPEG files say 1, 72 or 96 dots an inch by default, which carries no information.
  if (metadata.resolution) {
    const bool centimetres = metadata.resolution->unit == Resolution::Unit::centimetre;
    const double per_inch = metadata.resolution->x * (centimetres ? 2.54 : 1);
    if (metadata.resolution->unit != Resolution::Unit::none && per_inch < 96.5) {
      lost &= ~static_cast<unsigned>(keeps_resolution);
    }
  }
  // What a DICOM file has of it is among its attributes.
  if (like.info().format == "DICOM") lost &= ~static_cast<unsigned>(keeps_nifti);
  // The affine matrix and the axes of the whole volume are not those of some slices.
  if (metadata.nifti && !like.selected_pages().empty()) lost |= keeps_nifti;
  if (metadata.hdf5 && !like.selected_pages().empty()) lost |= keeps_hdf5;
  std::string text = kinds_text(lost);
  const bool tiff_to_tiff = format->codec == Codec::tiff && metadata.tiff_tags;
  if (tiff_to_tiff && is_ome_xml(metadata.description) && !keeps_ome_xml(metadata, like.selected_pages())) {
    text += text.empty() ? "OME-XML" : ", OME-XML";
  }
  if (!metadata.unread.empty()) text += (text.empty() ? "" : ", ") + metadata.unread;
  return text;
}

std::unique_ptr<OutputFile> OutputFile::create(const std::filesystem::path& path, const FileInfo& given,
                                               const InputFile* like,
                                               [[maybe_unused]] const SaveOptions& options) {
  FileInfo info = given;
  info.access = like == nullptr ? FileAccess{} : like->access();
  const bool same_channels = like != nullptr && like->info().spec.channels == info.spec.channels;
  if (same_channels && info.spec.colour == Colour::multi) info.model = like->info().model;
  if (is_format(path, "DNG")) {
    const auto* raw = dynamic_cast<const RawFile*>(like);
    if (raw == nullptr) fail(path, "a DNG file is made from a camera raw file, and this is none; write .tif");
    RawInfo samples = raw->raw();
    samples.noise.clear();  // the samples are no longer the camera's
    return create_dng(path, info, samples, raw->metadata());
  }
  check_info(path, info);
  switch (format_of_extension(path)->codec) {
    case Codec::pnm:
      return create_pnm(path, info);
    case Codec::pfm:
      return create_pfm(path, info);
    case Codec::bmp:
      return create_bmp(path, info);
    case Codec::npy:
      return create_npy(path, info);
    case Codec::nifti:
      return create_nifti(path, info, like, options);
    case Codec::hdf5:
#if UNGRAIN_HAVE_HDF5
      return module_for(path, hdf5_functions).create(path, info, like, options);
#else
      break;
#endif
    case Codec::tiff:
#if UNGRAIN_HAVE_TIFF
      return create_tiff(path, info, like, options);
#else
      break;
#endif
    case Codec::vips:
    case Codec::dng:
    case Codec::raw:
    case Codec::dicom:
      break;
  }
#if UNGRAIN_HAVE_VIPS
  return vips_for(path).create(path, info, like, options);
#else
  fail(path, "cannot be written without libvips");
#endif
}

bool is_format(const std::filesystem::path& path, std::string_view format) {
  const Format* found = format_of_extension(path);
  return found != nullptr && found->name == format;
}

void copy_file(const std::filesystem::path& from, InputFile& input, const std::filesystem::path& to) {
  const SourceFile source(from);
  TemporaryFile file(to, input.access());
  Bytes block(std::size_t{1} << 20U);
  for (std::uint64_t at = 0; at < source.size();) {
    const std::size_t got = source.read_some(block.data(), block.size(), at);
    if (got == 0) break;
    file.write(block.data(), got, at);
    at += got;
  }
  input.check_unchanged();
  file.commit();
}

Image read_image(const std::filesystem::path& path) {
  const std::unique_ptr<InputFile> file = InputFile::open(path);
  Image image(file->info().spec);
  file->read_rows(0, image.view());
  return image;
}

void write_image(const std::filesystem::path& path, const ConstImageView& image, const InputFile* like) {
  const std::unique_ptr<OutputFile> file = OutputFile::create(path, {.spec = image.spec}, like);
  file->write_rows(0, image);
  file->commit();
}

}  // namespace ungrain::io
