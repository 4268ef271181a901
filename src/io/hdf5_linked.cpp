// hdf5_functions() of programs that link libhdf5.
#include "io/hdf5_functions.h"

namespace ungrain::io {

const Hdf5Functions& hdf5_functions() { return hdf5_table; }

}  // namespace ungrain::io
