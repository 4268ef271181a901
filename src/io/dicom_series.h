// DICOM files as volumes: which belong together, in which order, and where their voxels are in space.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/builtin_formats.h"
#include "io/dicom_file.h"

namespace ungrain::io {

// The files of the series that was asked for: by its number or its identifier; empty: of the only one there
// is. Throws where there are several, with a list. `name` is the folder or the file in messages.
std::vector<DicomFile> choose_series(const std::filesystem::path& name, std::vector<DicomFile> files,
                                     const std::string& asked);

struct DicomSlice {
  std::size_t file = 0;
  int frame = 0;
  DicomScaling scaling = {};
};

// The pages of one volume follow each other; so do the volumes of a series in time.
struct DicomVolumes {
  std::vector<DicomFile> files;
  std::vector<DicomSlice> slices;
  int depth = 1;                              // slices of one volume
  std::array<double, 3> spacing = {1, 1, 1};  // along x, y, z
  std::optional<VoxelAffine> affine;          // nothing: the files do not tell it
  bool millimetres = false;                   // the spacing's unit is known
  double seconds = 0;                         // from a volume to the next; 0: not known
  std::vector<std::string> notes;             // what is unusual
};

// Throws where the images differ in size or orientation, or do not make whole volumes.
DicomVolumes arrange_volumes(const std::filesystem::path& name, std::vector<DicomFile> files);

}  // namespace ungrain::io
