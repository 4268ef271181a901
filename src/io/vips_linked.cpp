// vips_functions() of programs that link libvips.
#include "io/vips_functions.h"

namespace ungrain::io {

const VipsFunctions& vips_functions() { return vips_table; }

}  // namespace ungrain::io
