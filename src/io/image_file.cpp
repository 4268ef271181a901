#include "io/image_file.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "io/builtin_formats.h"
#include "io/failure.h"
#include "io/formats.h"
#include "io/signature.h"
#include "io/source_file.h"

#if UNGRAIN_HAVE_VIPS
#include "io/vips_input.h"
#include "io/vips_output.h"
#endif

namespace ungrain::io {
namespace {

std::unique_ptr<InputFile> open_with_library(SourceFile file) {
#if UNGRAIN_HAVE_VIPS
  return open_vips(std::move(file));
#else
  const std::string_view format = format_by_signature(file);
  if (!format.empty()) {
    fail(file.path(),
         fmt::format("a {} file: this build, without libvips, reads PNM, PAM, PFM, BMP and NPY", format));
  }
  fail(file.path(), "not an image that this build can read (PNM, PAM, PFM, BMP, NPY)");
#endif
}

void check_info(const std::filesystem::path& path, const FileInfo& info) {
  validate(info.spec);
  std::string why_not;
  if (info.pages < 1) fail(path, "an image has at least one page");
  if (!can_write(path, info.spec, info.pages, &why_not)) fail(path, why_not);
  const Format& format = *format_of_extension(path);
  if (!holds(format, info.spec.type)) {
    fail(path, fmt::format("{} cannot hold {} samples; {} would do", format.name, name(info.spec.type),
                           name(writable_type(path, info.spec.type))));
  }
}

}  // namespace

std::unique_ptr<InputFile> InputFile::open(const std::filesystem::path& path, const OpenOptions& options) {
  SourceFile file(path);
  if (is_pnm(file)) return open_pnm(std::move(file));
  if (is_pfm(file)) return open_pfm(std::move(file));
  if (is_bmp(file)) return open_bmp(std::move(file));
  if (is_npy(file)) return open_npy(std::move(file), options);
  return open_with_library(std::move(file));
}

std::unique_ptr<OutputFile> OutputFile::create(const std::filesystem::path& path, const FileInfo& info,
                                               [[maybe_unused]] const InputFile* like,
                                               [[maybe_unused]] const SaveOptions& options) {
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
    case Codec::vips:
      break;
  }
#if UNGRAIN_HAVE_VIPS
  return create_vips(path, info, like, options);
#else
  fail(path, "cannot be written without libvips");
#endif
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
