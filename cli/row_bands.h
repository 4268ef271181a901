// A file's rows a band at a time, for the commands that walk over it once.
#pragma once

#include "io/image_file.h"
#include "ungrain/image.h"

namespace ungrain::cli {

// Rows from `first` on that come to about a million pixels.
int band_rows(const ImageSpec& image, int first);

class RowBand {
 public:
  explicit RowBand(const ImageSpec& image);

  // The next rows of the file; false after the last. Throws Error(cancelled) after Ctrl-C.
  bool read_next(RowReader& file);
  ImageView view() { return rows(first_, count_); }  // its region says where the rows lie
  // Room for the rows that `other` has now.
  ImageView same_rows(const RowBand& other) { return rows(other.first_, other.count_); }
  int first() const { return first_; }

 private:
  ImageView rows(int first, int count);

  ImageSpec image_;
  int rows_;
  Image memory_;
  int first_ = 0;
  int count_ = 0;
};

}  // namespace ungrain::cli
