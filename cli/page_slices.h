// Pages of a file as a sequence, for methods that look along it.
#pragma once

#include <functional>

#include "io/image_file.h"
#include "ungrain/sequence.h"

namespace ungrain::cli {

class PageReader : public SliceReader {
 public:
  // So many pages from the first on.
  PageReader(io::InputFile& file, int first, int count) : file_(file), first_(first), count_(count) {}
  bool has(int slice) override { return slice < count_; }
  // Throws Error(cancelled) after Ctrl-C.
  void read_rows(int slice, int first, const ImageView& rows) override;

 private:
  io::InputFile& file_;
  int first_;
  int count_;
  int page_ = -1;  // the one selected
};

class PageWriter : public SliceWriter {
 public:
  // `rows` takes the rows and hands them on to `file`; `progress` is told the share of the pages that is
  // written.
  PageWriter(io::OutputFile& file, RowWriter& rows, const io::FileInfo& info,
             std::function<void(double fraction)> progress);
  void begin_sequence(int first_page) { first_ = first_page; }
  void write_rows(int slice, int first, const ConstImageView& rows) override;

 private:
  io::OutputFile& file_;
  RowWriter& rows_;
  double all_rows_;
  std::function<void(double fraction)> progress_;
  int first_ = 0;  // page of the sequence
  int page_ = 0;
  double rows_written_ = 0;
};

}  // namespace ungrain::cli
