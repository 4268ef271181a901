#include "io/hdf5_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "io/failure.h"

namespace ungrain::io {
namespace {

std::uint64_t product(const Hdf5Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{1}, std::multiplies<>());
}

// The band as a box of the file. All its pages lie on the last page axis.
Hdf5Box box_of(const Hdf5Array& array, const Hdf5Band& band) {
  Hdf5Box box{Hdf5Sizes(array.shape.size(), 0), array.shape};
  auto page = static_cast<hsize_t>(band.first_page);
  for (std::size_t i = array.page_axes.size(); i-- > 0;) {
    const std::size_t axis = array.page_axes[i];
    box.first[axis] = page % array.shape[axis];
    box.count[axis] = 1;
    page /= array.shape[axis];
  }
  if (!array.page_axes.empty()) box.count[array.page_axes.back()] = static_cast<hsize_t>(band.pages);
  box.first[array.row_axis] = static_cast<hsize_t>(band.first_row);
  box.count[array.row_axis] = static_cast<hsize_t>(band.rows);
  return box;
}

// Chunks, or single samples, joined along the axes from the last to the first.
Hdf5Sizes box_extents(const Hdf5Array& array, const Hdf5Sizes& count, std::uint64_t most_samples) {
  Hdf5Sizes extents(count.size(), 1);
  for (std::size_t axis = 0; axis < count.size() && !array.chunk.empty(); ++axis) {
    extents[axis] = std::min(array.chunk[axis], count[axis]);
  }
  for (std::size_t axis = count.size(); axis-- > 0;) {
    const hsize_t step = extents[axis];
    const std::uint64_t fit = most_samples / product(extents);
    extents[axis] = std::clamp<hsize_t>(step * std::max<std::uint64_t>(1, fit), step, count[axis]);
    if (extents[axis] < count[axis]) break;
  }
  return extents;
}

Hdf5Sizes counts_in_image_order(const Hdf5Array& array, const Hdf5Box& box) {
  Hdf5Sizes counts;
  for (const std::size_t axis : array.image_order()) counts.push_back(box.count[axis]);
  return counts;
}

// IEEE's 16-bit float, for which libhdf5 has had no name until version 1.14.
Hdf5Handle half_type() {
  Hdf5Handle type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  H5Tset_fields(type.id(), 15, 10, 5, 0, 10);  // sign, exponent and its size, mantissa and its size
  H5Tset_size(type.id(), 2);
  H5Tset_ebias(type.id(), 15);
  return type;
}

}  // namespace

std::vector<std::size_t> Hdf5Array::image_order() const {
  std::vector<std::size_t> order = page_axes;
  order.push_back(row_axis);
  order.push_back(column_axis);
  if (channel_axis) order.push_back(*channel_axis);
  return order;
}

bool Hdf5Array::in_image_order() const {
  const std::vector<std::size_t> order = image_order();
  return std::is_sorted(order.begin(), order.end());
}

bool has_plain_rows(const Hdf5Array& array) { return array.chunk.empty() && array.in_image_order(); }

Hdf5Band band_of(const Hdf5Array& array, int page, int row) {
  const auto height = static_cast<int>(array.shape[array.row_axis]);
  const int depth = array.depth();
  int pages = 1;
  if (!array.page_axes.empty() && !array.in_image_order() && array.chunk.empty()) pages = depth;
  int rows = height;
  if (!array.chunk.empty()) {
    const auto chunk = [&](std::size_t axis) {
      return static_cast<int>(std::min(array.chunk[axis], array.shape[axis]));
    };
    if (!array.page_axes.empty()) pages = chunk(array.page_axes.back());
    if (pages == 1) rows = chunk(array.row_axis);
  }
  const int volume = page / depth * depth;
  Hdf5Band band;
  band.first_page = volume + (page - volume) / pages * pages;
  band.pages = std::min(pages, volume + depth - band.first_page);
  band.first_row = row / rows * rows;
  band.rows = std::min(rows, height - band.first_row);
  return band;
}

Hdf5BandStore::Hdf5BandStore(const std::filesystem::path& owner, std::uint64_t bytes,
                             std::uint64_t most_memory) {
  if (bytes <= most_memory) {
    memory_.resize(bytes);
  } else {
    file_ = std::make_unique<ScratchFile>(owner);
  }
}

void Hdf5BandStore::write(const std::byte* from, std::size_t size, std::uint64_t offset) {
  if (file_) {
    file_->write(from, size, offset);
  } else {
    std::memcpy(memory_.data() + offset, from, size);
  }
}

void Hdf5BandStore::read(std::byte* to, std::size_t size, std::uint64_t offset) const {
  if (file_) {
    file_->read(to, size, offset);
  } else {
    std::memcpy(to, memory_.data() + offset, size);
  }
}

std::size_t Hdf5Box::samples() const { return product(count); }

void for_each_box(const Hdf5Array& array, const Hdf5Band& band, std::size_t sample_bytes,
                  std::uint64_t most_bytes, const std::function<void(const Hdf5Box&)>& work) {
  const Hdf5Box whole = box_of(array, band);
  const Hdf5Sizes extents = box_extents(array, whole.count, most_bytes / sample_bytes);
  Hdf5Sizes done(whole.count.size(), 0);  // along each axis
  while (true) {
    Hdf5Box box = whole;
    for (std::size_t axis = 0; axis < done.size(); ++axis) {
      box.first[axis] += done[axis];
      box.count[axis] = std::min(extents[axis], whole.count[axis] - done[axis]);
    }
    work(box);
    std::size_t axis = done.size();
    while (axis-- > 0) {
      done[axis] += extents[axis];
      if (done[axis] < whole.count[axis]) break;
      done[axis] = 0;
      if (axis == 0) return;
    }
  }
}

std::uint64_t most_box_samples(const Hdf5Array& array, const Hdf5Band& band, std::size_t sample_bytes,
                               std::uint64_t most_bytes) {
  return product(box_extents(array, box_of(array, band).count, most_bytes / sample_bytes));
}

void reorder_box(const Hdf5Array& array, const Hdf5Box& box, std::size_t sample_bytes, bool to_image,
                 std::vector<std::byte>& samples) {
  if (array.in_image_order()) return;
  const std::vector<std::size_t> order = array.image_order();
  const std::size_t axes = order.size();
  std::vector<std::size_t> strides(axes, 1);  // of the file's axes, in samples
  for (std::size_t axis = axes - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * box.count[axis + 1];
  const Hdf5Sizes counts = counts_in_image_order(array, box);
  std::vector<std::byte> result(samples.size());
  Hdf5Sizes at(axes, 0);  // in the image's order
  std::size_t in_file = 0;
  const std::size_t all = box.samples();
  for (std::size_t in_image = 0; in_image < all; ++in_image) {
    const std::size_t from = (to_image ? in_file : in_image) * sample_bytes;
    const std::size_t to = (to_image ? in_image : in_file) * sample_bytes;
    std::memcpy(result.data() + to, samples.data() + from, sample_bytes);
    for (std::size_t axis = axes; axis-- > 0;) {
      in_file += strides[order[axis]];
      if (++at[axis] < counts[axis]) break;
      in_file -= strides[order[axis]] * counts[axis];
      at[axis] = 0;
    }
  }
  samples.swap(result);
}

void for_each_run(const Hdf5Array& array, const Hdf5Band& band, const Hdf5Box& box, std::size_t sample_bytes,
                  const std::function<void(std::size_t, std::uint64_t, std::size_t)>& run) {
  const hsize_t channels = array.channel_axis ? array.shape[*array.channel_axis] : 1;
  const std::uint64_t pixel = channels * sample_bytes;
  const hsize_t width = array.shape[array.column_axis];
  const hsize_t columns = box.count[array.column_axis];
  const std::uint64_t left = box.first[array.column_axis];
  const hsize_t rows = box.count[array.row_axis];
  const std::uint64_t top = box.first[array.row_axis] - static_cast<hsize_t>(band.first_row);
  hsize_t pages = 1;
  std::uint64_t before = 0;  // pages of the band
  if (!array.page_axes.empty()) {
    const std::size_t axis = array.page_axes.back();
    pages = box.count[axis];
    before = box.first[axis] - static_cast<hsize_t>(band.first_page) % array.shape[axis];
  }
  const bool whole_rows = columns == width;
  const hsize_t joined = whole_rows ? rows : 1;
  const std::size_t bytes = joined * columns * pixel;
  std::size_t in_box = 0;
  for (hsize_t page = 0; page < pages; ++page) {
    for (hsize_t row = 0; row < rows; row += joined) {
      const std::uint64_t line = (before + page) * static_cast<std::uint64_t>(band.rows) + top + row;
      run(in_box, (line * width + left) * pixel, bytes);
      in_box += bytes;
    }
  }
}

Hdf5Handle file_space_of(const std::filesystem::path& file, hid_t dataset, const Hdf5Box& box) {
  Hdf5Handle space = checked(file, "its dataset cannot be used", H5Dget_space(dataset), H5Sclose);
  check(
      file, "its dataset cannot be used",
      H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, box.first.data(), nullptr, box.count.data(), nullptr));
  return space;
}

Hdf5Handle memory_space_of(const Hdf5Box& box) {
  const hsize_t samples = box.samples();
  return {H5Screate_simple(1, &samples, nullptr), H5Sclose};
}

Hdf5Handle memory_type(PixelType type) {
  switch (type) {
    case PixelType::u8:
      return {H5Tcopy(H5T_NATIVE_UINT8), H5Tclose};
    case PixelType::u16:
      return {H5Tcopy(H5T_NATIVE_UINT16), H5Tclose};
    case PixelType::f16: {
      Hdf5Handle type_of_half = half_type();
      H5Tset_order(type_of_half.id(), H5Tget_order(H5T_NATIVE_FLOAT));
      return type_of_half;
    }
    case PixelType::f32:
      break;
  }
  return {H5Tcopy(H5T_NATIVE_FLOAT), H5Tclose};
}

Hdf5Handle stored_type(PixelType type) {
  Hdf5Handle stored = memory_type(type);
  if (type != PixelType::u8) H5Tset_order(stored.id(), H5T_ORDER_LE);
  return stored;
}

std::string shape_text(const Hdf5Sizes& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

}  // namespace ungrain::io
