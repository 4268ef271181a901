// hdf5_functions() of the program, which loads the module with libhdf5 when a file needs it.
#include "io/hdf5_functions.h"
#include "ungrain/error.h"

namespace ungrain::io {

const Hdf5Functions& hdf5_functions() {
  static const LoadedModule loaded = load_module("ungrain-hdf5", "ungrain_hdf5_functions");
  if (loaded.functions == nullptr) throw Error(ErrorCode::io, loaded.why_not);
  return static_cast<const Hdf5Functions&>(*loaded.functions);
}

}  // namespace ungrain::io
