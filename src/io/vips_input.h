// Files that libvips decodes, as streams of rows.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "io/image_file.h"
#include "io/source_file.h"
#include "io/tiff_tiles.h"
#include "io/vips_session.h"

namespace ungrain::io {

// All pages are opened as libvips has them: one image, a page below the other. Decoding goes from top to
// bottom; going back opens the file again.
class VipsInput final : public InputFile {
 public:
  explicit VipsInput(SourceFile file);

  const FileInfo& info() const override { return info_; }
  void select_page(int page) override;
  void read_rows(int first, const ImageView& rows) override;
  void check_unchanged() override { file_.check_unchanged(); }

  VipsImage* image() const { return image_.get(); }  // for its metadata
  std::optional<TileSize> tiles() const { return tiff_tiles(file_); }

 private:
  void find_loader();
  VipsPointer<VipsImage> load(bool all_pages);
  void open();
  void describe();
  void convert();
  [[noreturn]] void fail_to_load();

  SourceFile file_;
  std::string loader_;           // libvips' class
  bool by_source_ = false;       // given the bytes, not the name
  VipsPointer<VipsImage> exif_;  // fields that libvips leaves out; null: none
  VipsPointer<VipsImage> image_;
  FileInfo info_;
  int page_ = 0;
  int next_row_ = 0;  // of all pages together
};

std::unique_ptr<InputFile> open_vips(SourceFile file);

}  // namespace ungrain::io
