// A file of slices as a file of volumes: each of its pages is a volume, whose rows are slices
// (ungrain/volume.h).
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "io/image_file.h"

namespace ungrain::cli {

// Which pages are the slices of which volume: `asked` slices each, as the file says, or all of them. Throws
// Error(io) where the file's pages are not a multiple.
io::PageOrder volume_order(const io::FileInfo& info, std::optional<int> asked, const std::string& shown_name);

// The sizes of voxels, where the file tells them.
std::optional<std::array<double, 3>> voxel_spacing(const io::FileInfo& info);

// The pages of a file in the order of volumes: slices of the first volume, then those of the second ...
std::unique_ptr<io::InputFile> in_order_of_volumes(std::unique_ptr<io::InputFile> file,
                                                   const io::PageOrder& order);

// A file whose pages are written in the order of volumes. Pages that are before their turn in the file wait
// in a scratch file. `info` is the file's, `path` its name for errors.
std::unique_ptr<io::OutputFile> from_order_of_volumes(std::unique_ptr<io::OutputFile> file,
                                                      const io::PageOrder& order, const io::FileInfo& info,
                                                      const std::filesystem::path& path);

// The slices of one volume follow each other in `slices`.
class VolumeInput : public io::InputFile {
 public:
  VolumeInput(std::unique_ptr<io::InputFile> slices, int depth);

  const io::FileInfo& info() const override { return info_; }
  const io::Metadata& metadata() const override { return slices_->metadata(); }
  std::uint64_t decoding_bytes() const override { return slices_->decoding_bytes(); }
  std::vector<int> selected_pages() const override { return slices_->selected_pages(); }
  void select_page(int volume) override { volume_ = volume; }
  void read_rows(int first, const ImageView& rows) override;
  // The same of the slices' lines from `line` on, as many as the rows' own slices have.
  void read_lines(int first, int line, const ImageView& rows);
  void check_unchanged() override { slices_->check_unchanged(); }

 private:
  std::unique_ptr<io::InputFile> slices_;
  io::FileInfo info_;
  int volume_ = 0;
  int page_ = 0;  // of the slices
};

// The first volume of a file. All its pages are slices, unless the file says otherwise.
Image read_volume(const std::filesystem::path& path);

// The same as slices: `volumes` is the info of a file of volumes.
io::FileInfo info_of_slices(const io::FileInfo& volumes);

class VolumeOutput : public io::OutputFile {
 public:
  explicit VolumeOutput(std::unique_ptr<io::OutputFile> slices) : slices_(std::move(slices)) {}

  void write_rows(int first, const ConstImageView& rows) override;
  void next_page() override {}  // the first slice of the next volume tells it
  void commit() override { slices_->commit(); }

 private:
  std::unique_ptr<io::OutputFile> slices_;
  bool begun_ = false;
};

}  // namespace ungrain::cli
