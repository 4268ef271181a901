// Volumes: slices of one spec that are filtered as a solid, by methods that look along all three axes
// (volume_methods()).
//
// To the library a volume is an image whose rows are its slices: row z holds the lines of slice z one after
// the other (ImageSpec::slice). Everything that takes images takes it: Denoiser, resolve(), regions of
// slices, readers and writers of rows.
//
//   ungrain::ImageSpec spec = ungrain::volume_spec({.width = 181, .height = 217, .type = PixelType::f32},
//   181); ungrain::Denoiser d = ungrain::Denoiser::create(ungrain::Bm4dParams{.sigma = {20}}, spec);
//   d.run({noisy, spec}, {clean, spec});
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ungrain/export.h"
#include "ungrain/image.h"
#include "ungrain/parameters.h"

UNGRAIN_API_BEGIN
namespace ungrain {

// Throws Error(invalid_argument) where a slice has too many voxels.
ImageSpec volume_spec(const ImageSpec& slice, int depth);
ImageSpec slice_spec(const ImageSpec& volume);
// One row of a volume as the image that it holds, in the same memory.
ImageView slice_view(const ImageView& row);
ConstImageView slice_view(const ConstImageView& row);

// The methods that filter a volume as a solid.
std::vector<MethodInfo> volume_methods();

// The methods for images that are for volumes, too: the slices are a sequence, of which they look at those
// before and after each. The same slices as a solid are not for them.
std::vector<MethodInfo> methods_along_slices();
bool looks_along_slices(std::string_view method);

// The sizes of a voxel along x, y and z as methods take them (`aspect`): its depth over its width. Throws
// Error(invalid_argument) where they are not positive.
double voxel_aspect(const std::array<double, 3>& spacing);
// Sets the parameters along z, except those that is_given() names: windows become as long as along x, and the
// methods of solids get the aspect.
void follow_voxels(MethodParams& params, double aspect,
                   const std::function<bool(const std::string& name)>& is_given);

}  // namespace ungrain
UNGRAIN_API_END
