// The formats that every build has. PNM, PFM, NPY and NIfTI read their headers here; sample_matrix.h reads
// the samples.
#pragma once

#include <memory>

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

}  // namespace ungrain::io
