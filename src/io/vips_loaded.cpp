// vips_functions() of the program, which loads the module with libvips when a file needs it.
#include "io/vips_functions.h"
#include "ungrain/error.h"

namespace ungrain::io {

const VipsFunctions& vips_functions() {
  static const LoadedModule loaded = load_module("ungrain-vips", "ungrain_vips_functions");
  if (loaded.functions == nullptr) throw Error(ErrorCode::io, loaded.why_not);
  return static_cast<const VipsFunctions&>(*loaded.functions);
}

}  // namespace ungrain::io
