// The formats that every build has. PNM, PFM, NPY and NIfTI read their headers here; sample_matrix.h reads
// the samples. DICOM has files of its own, dicom_*.h.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "io/image_file.h"
#include "io/source_file.h"

namespace ungrain::io {

bool is_pnm(const SourceFile& file);
std::unique_ptr<InputFile> open_pnm(SourceFile file);
std::unique_ptr<OutputFile> create_pnm(const std::filesystem::path& path, const FileInfo& info);

bool is_pfm(const SourceFile& file);
std::unique_ptr<InputFile> open_pfm(SourceFile file);
std::unique_ptr<OutputFile> create_pfm(const std::filesystem::path& path, const FileInfo& info);

bool is_bmp(const SourceFile& file);
std::unique_ptr<InputFile> open_bmp(SourceFile file);
std::unique_ptr<OutputFile> create_bmp(const std::filesystem::path& path, const FileInfo& info);

bool is_npy(const SourceFile& file);
std::unique_ptr<InputFile> open_npy(SourceFile file, const OpenOptions& options);
std::unique_ptr<OutputFile> create_npy(const std::filesystem::path& path, const FileInfo& info);

// Also true for any gzip file: open_nifti() refuses those that contain something else.
bool is_nifti(const SourceFile& file);
std::unique_ptr<InputFile> open_nifti(SourceFile file);
// An output of the shape of `like` (may be null) keeps its header.
std::unique_ptr<OutputFile> create_nifti(const std::filesystem::path& path, const FileInfo& info,
                                         const InputFile* like, const SaveOptions& options);

// Voxel indices (column, row, slice, 1) to millimetres towards the patient's right, front and head: a row for
// each of the three.
using VoxelAffine = std::array<std::array<double, 4>, 3>;

struct VoxelSpace {
  std::optional<VoxelAffine> affine = {};  // of a scanner; nothing: not known
  bool millimetres = false;                // the unit of info.volume's spacing
  double seconds = 0;                      // from a volume to the next; 0: not known
};

// The header of a NIfTI file with the pages of `info`, which are slices of info.volume.
NiftiHeader nifti_header(const FileInfo& info, const VoxelSpace& space);

// DICOM files are only read: one file, or the files of one series in a folder. `access` becomes that of all
// its files. A file begins with 128 bytes of anything, then "DICM".
bool is_dicom(const SourceFile& file);
std::unique_ptr<InputFile> open_dicom(const SourceFile& file, const OpenOptions& options);
std::unique_ptr<InputFile> open_dicom_folder(const std::filesystem::path& folder, const OpenOptions& options,
                                             FileAccess* access);

}  // namespace ungrain::io
