#include "page_slices.h"

#include <utility>

#include "signals.h"
#include "ungrain/error.h"

namespace ungrain::cli {

void PageReader::read_rows(int slice, int first, const ImageView& rows) {
  if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted");
  if (first_ + slice != page_) file_.select_page(first_ + slice);
  page_ = first_ + slice;
  file_.read_rows(first, rows);
}

PageWriter::PageWriter(io::OutputFile& file, RowWriter& rows, const io::FileInfo& info,
                       std::function<void(double fraction)> progress)
    : file_(file),
      rows_(rows),
      all_rows_(static_cast<double>(info.spec.height) * info.pages),
      progress_(std::move(progress)) {}

void PageWriter::write_rows(int slice, int first, const ConstImageView& rows) {
  if (first_ + slice != page_) file_.next_page();
  page_ = first_ + slice;
  rows_.write_rows(first, rows);
  rows_written_ += rows.spec.height;
  progress_(rows_written_ / all_rows_);
}

}  // namespace ungrain::cli
