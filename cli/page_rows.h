// A page of a file, decoded once although it is read twice: to measure its noise and to filter it.
#pragma once

#include "io/image_file.h"
#include "ungrain/denoiser.h"

namespace ungrain::cli {

class PageRows : public RowReader {
 public:
  // Holds the page in memory if `hold`; else every reading decodes it. Throws Error(cancelled) after Ctrl-C.
  PageRows(io::InputFile& file, bool hold);
  void read_rows(int first, const ImageView& rows) override;
  Image all();                                   // the page, in memory
  const Image& held() const { return pixels_; }  // empty: every reading decodes the page

 private:
  io::InputFile& file_;
  Image pixels_;  // held()
};

}  // namespace ungrain::cli
