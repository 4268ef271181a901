#include "volume_file.h"

#include <fmt/format.h>

#include "signals.h"
#include "ungrain/error.h"
#include "ungrain/volume.h"

namespace ungrain::cli {
int volume_depth(const io::FileInfo& info, std::optional<int> asked, const std::string& shown_name) {
  const int depth = asked.value_or(info.volume ? info.volume->depth : info.pages);
  if (depth >= 1 && info.pages % depth == 0) return depth;
  throw Error(ErrorCode::io, fmt::format("{}: its {} slices do not make volumes of {} (--slices)", shown_name,
                                         info.pages, depth));
}

VolumeInput::VolumeInput(std::unique_ptr<io::InputFile> slices, int depth)
    : slices_(std::move(slices)), info_(slices_->info()) {
  info_.spec = volume_spec(info_.spec, depth);
  info_.pages /= depth;
}

void VolumeInput::read_rows(int first, const ImageView& rows) { read_lines(first, 0, rows); }

void VolumeInput::read_lines(int first, int line, const ImageView& rows) {
  for (int z = 0; z < rows.spec.height; ++z) {
    if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted");
    const int page = volume_ * info_.spec.height + first + z;
    if (page != page_) slices_->select_page(page);
    page_ = page;
    slices_->read_rows(line, slice_view(rows.rows(z, 1)));
  }
}

Image read_volume(const std::filesystem::path& path) {
  io::OpenOptions options;
  options.axis = 0;
  auto file = io::InputFile::open(path, options);
  const int depth = volume_depth(file->info(), std::nullopt, path.string());
  VolumeInput volumes(std::move(file), depth);
  Image volume(volumes.info().spec);
  volumes.read_rows(0, volume.view());
  return volume;
}

io::FileInfo info_of_slices(const io::FileInfo& volumes) {
  io::FileInfo info = volumes;
  info.spec = slice_spec(volumes.spec);
  info.pages = volumes.pages * volumes.spec.height;
  return info;
}

void VolumeOutput::write_rows(int, const ConstImageView& rows) {
  for (int z = 0; z < rows.spec.height; ++z) {
    if (begun_) slices_->next_page();
    begun_ = true;
    slices_->write_rows(0, slice_view(rows.rows(z, 1)));
  }
}

}  // namespace ungrain::cli
