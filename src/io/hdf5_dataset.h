// Finds the dataset of an HDF5 file that holds the image, and what its type, axes and attributes mean.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/hdf5_array.h"

namespace ungrain::io {

// The path of the dataset: as asked, NeXus' default, or the only one of numbers with two or more axes. Throws
// where there is none or several.
std::string find_dataset(const std::filesystem::path& path, hid_t file, const std::string& asked);

// Throws where the dataset's samples are in other files, or compressed by a filter that is not there.
void check_storage(const std::filesystem::path& path, hid_t file, hid_t dataset, const std::string& name);

struct Hdf5Sample {
  PixelType type = PixelType::u8;
  std::size_t stored_bytes = 1;
  double range = 0;          // of integers that become floats; 0: none
  bool from_double = false;  // read as f64: libhdf5 would turn what f32 cannot hold into infinity
  std::string note = {};     // what is converted
};
// Throws where the samples are no numbers.
Hdf5Sample sample_of(const std::filesystem::path& path, hid_t dataset, const std::string& name);

// `axis` counts the pages of an array of three axes; nothing: the first does.
Hdf5Array array_of(const std::filesystem::path& path, hid_t dataset, const std::string& name,
                   std::optional<int> axis);

// Sizes of a voxel along x, y and z: of the attribute element_size_um (ilastik, ImageJ), or of NeXus' axes
// where their values are evenly spaced. Nothing: not told.
std::optional<std::array<double, 3>> spacing_of(hid_t file, hid_t dataset, const std::string& name,
                                                const Hdf5Array& array);

}  // namespace ungrain::io
