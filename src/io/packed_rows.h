// Conversion between packed interleaved rows, as files store them, and the rows of a view.
#pragma once

#include <cstddef>
#include <filesystem>

#include "ungrain/image.h"

namespace ungrain::io {

std::size_t row_bytes(const ImageSpec& spec);

void unpack_row(const std::byte* packed, const ImageView& rows, int y);
void pack_row(const ConstImageView& rows, int y, std::byte* packed);

// Throws Error(invalid_argument) unless rows [first, first + rows.spec.height) belong to the image and `rows`
// lies in host memory and has its width, channels and type.
void check_rows(const std::filesystem::path& file, const ImageSpec& spec, int first,
                const ConstImageView& rows);

// Checks that a writer gets each page's rows in order.
class RowCursor {
 public:
  RowCursor(std::filesystem::path file, int height, int pages);

  void take(int first, int count);  // throws Error(invalid_argument) out of order
  void next_page();                 // throws also where rows of this page, or pages, are missing or too many
  void check_complete() const;
  int page() const { return page_; }

 private:
  void check_page_complete() const;

  std::filesystem::path file_;
  int height_;
  int pages_;
  int page_ = 0;
  int row_ = 0;
};

}  // namespace ungrain::io
