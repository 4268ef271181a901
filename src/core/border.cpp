#include "core/border.h"

#include "core/samples.h"

namespace ungrain {

void gather(const ConstPlanes& planes, int plane, const Extent& image, Border border, const Rect& want,
            float* out, std::ptrdiff_t out_stride) {
  gather(rows_of_plane(planes, plane), image, border, want, out, out_stride);
}

}  // namespace ungrain
