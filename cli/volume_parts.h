// Volumes whose slices are too large for the memory: they are filtered in parts of their lines, each part
// from the first slice to the last. Results wait in a scratch file until all parts of a slice are there.
#pragma once

#include "ungrain/denoiser.h"
#include "volume_file.h"

namespace ungrain::cli {

// Filters the volume that `in` is at. `params` are resolved; `spec` is the volume's, with the given white
// level. The result has the same bits as that of a run on whole slices. Throws Error(out_of_memory) where
// even narrow parts do not fit.
Report denoise_in_parts(const MethodParams& params, const ImageSpec& spec, const Options& options,
                        VolumeInput& in, RowWriter& out, const ImageSpec& out_spec);

}  // namespace ungrain::cli
