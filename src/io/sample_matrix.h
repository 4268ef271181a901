// Files whose samples lie uncompressed at places that the header tells: binary PNM, PFM and NPY.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "io/array_order.h"
#include "io/image_file.h"
#include "io/source_file.h"

namespace ungrain::io {

// How a sample is stored.
enum class Sample : std::uint8_t { bit, u8, i8, u16, i16, u32, i32, f16, f32, f64 };

struct MatrixLayout {
  Sample sample = Sample::u8;
  bool big_endian = false;
  std::uint64_t offset = 0;  // of the samples, in the file
  enum class Order : std::uint8_t {
    rows,            // interleaved, from the top
    rows_bottom_up,  // interleaved, from the bottom
    columns,         // Fortran: a column after the other, a channel after the other
    scattered,       // as `strides` say; brought into the order of rows in a scratch file
  };
  Order order = Order::rows;
  std::uint64_t row_stride = 0;   // bytes from a row to the next, of Order::rows; 0: they lie together
  std::uint64_t page_stride = 0;  // bytes from a page to the next; of `scattered` none
  ArrayAxes strides = {};         // samples, of Order::scattered
  unsigned max_sample = 0;        // a larger one is an error; 0: any is right
  unsigned multiplier = 1;        // of u8 samples: 255 makes 0 and 1 black and white
};

// Sizes from a header, which may be anything. Throws unless an image can have them.
void check_size(const std::filesystem::path& file, std::int64_t width, std::int64_t height,
                std::int64_t channels);

// Throws where the file is too short for what its header says. Returns how many bytes follow the samples.
std::uint64_t check_file_size(const SourceFile& file, const ImageSpec& spec, const MatrixLayout& layout,
                              int pages = 1);

std::unique_ptr<InputFile> open_matrix(SourceFile file, FileInfo info, const MatrixLayout& layout);

// `header` comes first, then the samples: layout.offset is the header's size.
std::unique_ptr<OutputFile> create_matrix(const std::filesystem::path& path, const FileInfo& info,
                                          const std::string& header, const MatrixLayout& layout);

}  // namespace ungrain::io
