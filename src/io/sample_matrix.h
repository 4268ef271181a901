// Files with uncompressed samples at places that the header gives: binary PNM, PFM, NPY and NIfTI.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "io/array_order.h"
#include "io/image_file.h"
#include "io/source_file.h"

namespace ungrain::io {

// How a sample is stored.
enum class Sample : std::uint8_t { bit, u8, i8, u16, i16, u32, i32, u64, i64, f16, f32, f64 };

struct MatrixLayout {
  Sample sample = Sample::u8;
  bool big_endian = false;
  std::uint64_t offset = 0;  // of the samples, in the file
  enum class Order : std::uint8_t {
    rows,            // interleaved, from the top
    rows_bottom_up,  // interleaved, from the bottom
    columns,         // Fortran order: column by column, channel by channel
    scattered,       // by `strides`; a scratch file brings them into the order of rows
  };
  Order order = Order::rows;
  std::uint64_t row_stride = 0;   // bytes from a row to the next, of Order::rows; 0: contiguous
  std::uint64_t page_stride = 0;  // bytes from a page to the next; unused with `scattered`
  ArrayAxes strides = {};         // samples, of Order::scattered
  unsigned max_sample = 0;        // a larger sample is an error; 0: no limit
  unsigned multiplier = 1;        // of u8 samples: 255 turns 0 and 1 into black and white
  // A value is slope * sample + intercept. Unless they are 1 and 0, the image is f32.
  double slope = 1;
  double intercept = 0;
  bool gzip = false;  // the file is compressed; offsets are of its content. Only with Order::rows.

  bool scaled() const { return slope != 1 || intercept != 0; }
};

// Throws unless an image can have these sizes, which come from an untrusted header.
void check_size(const std::filesystem::path& file, std::int64_t width, std::int64_t height,
                std::int64_t channels);

// Throws where the file is shorter than its header says, or, of a gzip file, where no content of that size
// fits into it. Returns how many bytes follow the samples.
std::uint64_t check_file_size(const SourceFile& file, const ImageSpec& spec, const MatrixLayout& layout,
                              int pages = 1);

std::unique_ptr<InputFile> open_matrix(SourceFile file, FileInfo info, const MatrixLayout& layout);

// `header` comes first, then the samples: layout.offset is the header's size.
std::unique_ptr<OutputFile> create_matrix(const std::filesystem::path& path, const FileInfo& info,
                                          const std::string& header, const MatrixLayout& layout);

}  // namespace ungrain::io
