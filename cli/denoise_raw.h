// Filters a camera raw file with one method, in linear light and before demosaicing.
#pragma once

#include "denoise_file.h"
#include "io/raw_file.h"

namespace ungrain::cli {

// Writes a DNG file, or the photograph that LibRaw develops from the filtered samples. `outcome.in` describes
// the file; the rest of `outcome` is filled in, except the times.
void denoise_raw(io::RawFile& file, const fs::path& output, const MethodParams& params,
                 const Options& options, const Settings& settings, Outcome& outcome);

// The parameters with which a mosaic is filtered. Throws Error(io) that names the file where the options are
// not for camera raw files.
MethodParams params_for_mosaic(const MethodParams& params, const Settings& settings, const std::string& file);

// The file's samples, filtered. What was found is added to `outcome`; its `method` and `params` are set.
Image filter_mosaic(io::RawFile& file, const MethodParams& params, const Options& options, Outcome& outcome);

}  // namespace ungrain::cli
