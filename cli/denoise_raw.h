// Filters a camera raw file with one method, in linear light and before demosaicing.
#pragma once

#include "denoise_file.h"
#include "io/raw_file.h"

namespace ungrain::cli {

// Writes a DNG file, or the photograph that LibRaw develops from the filtered samples. `outcome.in` describes
// the file; the rest of `outcome` is filled in, except the times.
void denoise_raw(io::RawFile& file, const fs::path& output, const MethodParams& params,
                 const Options& options, const Settings& settings, Outcome& outcome);

}  // namespace ungrain::cli
