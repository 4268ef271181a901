// A file's rows a band at a time, for commands that read it once.
#pragma once

#include "io/image_file.h"
#include "ungrain/image.h"

namespace ungrain::cli {

// Rows from `first` on that come to about a million pixels.
int band_rows(const ImageSpec& image, int first);

class RowBand {
 public:
  // `reach`: rows that are also held above and below the band, as far as the image goes.
  explicit RowBand(const ImageSpec& image, int reach = 0);

  // The next rows of the file, each read once; false after the last. Throws Error(cancelled) after Ctrl-C.
  bool read_next(RowReader& file);
  // With the rows above and below; its region gives their position.
  ImageView view() { return rows(held_first_, held_end_ - held_first_); }
  // Memory for the rows that `other` has now, without those above and below.
  ImageView same_rows(const RowBand& other) { return rows(other.first_, other.count_); }
  int first() const { return first_; }

 private:
  ImageView rows(int first, int count);

  ImageSpec image_;
  int reach_;
  int rows_;
  Image memory_;
  int first_ = 0;
  int count_ = 0;
  int held_first_ = 0;  // the rows in memory
  int held_end_ = 0;
};

}  // namespace ungrain::cli
