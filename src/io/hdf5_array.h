// A dataset of an HDF5 file as pages of rows, and the transfer between the two orders of samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/hdf5_handle.h"
#include "io/image_file.h"
#include "io/scratch_file.h"

namespace ungrain::io {

using Hdf5Sizes = std::vector<hsize_t>;

// The meaning of a dataset's axes. Any number of axes counts pages; the last of these counts the slices of a
// volume.
struct Hdf5Array {
  Hdf5Sizes shape;
  Hdf5Sizes chunk = {};  // of chunked storage; empty: contiguous
  std::vector<std::size_t> page_axes = {};
  std::size_t row_axis = 0;
  std::size_t column_axis = 1;
  std::optional<std::size_t> channel_axis = {};

  int depth() const { return page_axes.empty() ? 1 : static_cast<int>(shape[page_axes.back()]); }
  // The axes as an image has them: pages, rows, columns, channels.
  std::vector<std::size_t> image_order() const;
  bool in_image_order() const;
};

// Where an HDF5 input has its samples.
struct Hdf5Origin {
  std::filesystem::path file;
  std::string dataset;
  Hdf5Array array;
};

// Pages and rows that are decoded or encoded together, so that each chunk is so once. A band lies in one
// volume.
struct Hdf5Band {
  int first_page = 0;
  int pages = 0;
  int first_row = 0;
  int rows = 0;

  bool contains(int page, int row) const {
    return page >= first_page && page < first_page + pages && row >= first_row && row < first_row + rows;
  }
};

// Whether rows of a page can be transferred by themselves: contiguous storage in the image's order.
bool has_plain_rows(const Hdf5Array& array);
// The band that contains a row.
Hdf5Band band_of(const Hdf5Array& array, int page, int row);

// The samples of a band in the image's order: in memory up to `most_memory` bytes, else in a scratch file.
class Hdf5BandStore {
 public:
  Hdf5BandStore(const std::filesystem::path& owner, std::uint64_t bytes, std::uint64_t most_memory);
  void write(const std::byte* from, std::size_t size, std::uint64_t offset);
  void read(std::byte* to, std::size_t size, std::uint64_t offset) const;

 private:
  std::vector<std::byte> memory_;
  std::unique_ptr<ScratchFile> file_;
};

// A part of a dataset: by axis of the file.
struct Hdf5Box {
  Hdf5Sizes first;
  Hdf5Sizes count;
  std::size_t samples() const;
};

// Calls `work` for boxes that fill the band: whole chunks, as many as `most_bytes` hold and at least one.
void for_each_box(const Hdf5Array& array, const Hdf5Band& band, std::size_t sample_bytes,
                  std::uint64_t most_bytes, const std::function<void(const Hdf5Box&)>& work);
// The largest number of samples that one of these boxes has.
std::uint64_t most_box_samples(const Hdf5Array& array, const Hdf5Band& band, std::size_t sample_bytes,
                               std::uint64_t most_bytes);

// Samples of a box from the file's order to the image's, or back.
void reorder_box(const Hdf5Array& array, const Hdf5Box& box, std::size_t sample_bytes, bool to_image,
                 std::vector<std::byte>& samples);

// Calls `run` for each run of a box's samples that lies in one piece, both in the box (in the image's order)
// and in the store of the band: places and size in bytes, and the run's first row.
void for_each_run(
    const Hdf5Array& array, const Hdf5Band& band, const Hdf5Box& box, std::size_t sample_bytes,
    const std::function<void(std::size_t in_box, std::uint64_t in_band, std::size_t bytes)>& run);

// The selection of a box in a dataset, and of as many samples in memory.
Hdf5Handle file_space_of(const std::filesystem::path& file, hid_t dataset, const Hdf5Box& box);
Hdf5Handle memory_space_of(const Hdf5Box& box);

// libhdf5's type of samples in memory.
Hdf5Handle memory_type(PixelType type);
// The type in which new datasets store them: little endian.
Hdf5Handle stored_type(PixelType type);

std::string shape_text(const Hdf5Sizes& shape);  // "(10, 20, 30)"

}  // namespace ungrain::io
