// The pages of a file as one sequence, for methods that look along it.
#pragma once

#include <functional>

#include "io/image_file.h"
#include "ungrain/sequence.h"

namespace ungrain::cli {

class PageReader : public SliceReader {
 public:
  // `file` is at its first page. Each `depth` pages are a scene; 0: all are one.
  explicit PageReader(io::InputFile& file, int depth = 0) : file_(file), depth_(depth) {}
  bool has(int slice) override { return slice < file_.info().pages; }
  bool starts_scene(int slice) override { return depth_ > 0 ? slice % depth_ == 0 : slice == 0; }
  // Throws Error(cancelled) after Ctrl-C.
  void read_rows(int slice, int first, const ImageView& rows) override;

 private:
  io::InputFile& file_;
  int depth_;
  int page_ = 0;
};

class PageWriter : public SliceWriter {
 public:
  // `rows` takes the rows and hands them on to `file`; `progress` is told the share of the pages that is
  // written.
  PageWriter(io::OutputFile& file, RowWriter& rows, const io::FileInfo& info,
             std::function<void(double fraction)> progress);
  void write_rows(int slice, int first, const ConstImageView& rows) override;

 private:
  io::OutputFile& file_;
  RowWriter& rows_;
  double all_rows_;
  std::function<void(double fraction)> progress_;
  int page_ = 0;
  double rows_written_ = 0;
};

}  // namespace ungrain::cli
