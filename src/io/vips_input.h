// Files that libvips decodes, as streams of rows.
#pragma once

#include <memory>
#include <string>

#include "io/formats.h"
#include "io/image_file.h"
#include "io/source_file.h"
#include "io/vips_session.h"

namespace ungrain::io {

// libvips opens all pages as one image, one below the other. Decoding goes from top to bottom; going back
// reopens the file.
class VipsInput final : public InputFile {
 public:
  VipsInput(SourceFile file, const OpenOptions& options);

  const FileInfo& info() const override { return info_; }
  const Metadata& metadata() const override { return metadata_; }
  std::uint64_t decoding_bytes() const override { return decoding_bytes_; }
  void select_page(int page) override;
  void read_rows(int first, const ImageView& rows) override;
  void check_unchanged() override { file_.check_unchanged(); }

 private:
  void find_loader();
  VipsPointer<VipsImage> load(bool all_pages);
  void open();
  void describe(const OpenOptions& options);
  void count_memory();
  void convert();
  void choose_exr_channels();
  const float* as_floats(const double* row, int y);
  [[noreturn]] void fail_to_load();

  SourceFile file_;
  std::string loader_;      // libvips' class
  bool by_source_ = false;  // opened as bytes, not by name
  const Format* format_ = nullptr;
  VipsPointer<VipsImage> image_;
  FileInfo info_;
  Metadata metadata_;
  std::uint64_t decoding_bytes_ = 0;
  bool tolerant_ = false;  // of harmless defects in a JPEG file
  std::vector<float> floats_;
  int page_ = 0;
  int next_row_ = 0;  // of all pages together
};

std::unique_ptr<InputFile> open_vips(SourceFile file, const OpenOptions& options);

}  // namespace ungrain::io
