// A file of slices as a file of volumes: each of its pages is a volume, whose rows are slices
// (ungrain/volume.h).
#pragma once

#include <memory>
#include <optional>

#include "io/image_file.h"

namespace ungrain::cli {

// How many slices make a volume: what was asked for, what the file says, or all of them. Throws Error(io)
// where the file's pages are not a multiple.
int volume_depth(const io::FileInfo& info, std::optional<int> asked, const std::string& shown_name);

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
  io::InputFile& slices() { return *slices_; }

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
