// ungrain volume of a Zarr array or an OME-Zarr image: the work of ungrain cluster --volume on this machine.
#pragma once

#include <string>

#include "denoise_file.h"
#include "option_table.h"

namespace ungrain::cli {

// Whether a path names a Zarr array or group: by what the folder holds, or by its name.
bool is_zarr(const std::string& path);

// Hands over to Python. Throws UsageError where an option has no meaning for Zarr.
[[noreturn]] void denoise_zarr_volume(const OptionTable& table, const Settings& settings);

}  // namespace ungrain::cli
