#include "io/hdf5_functions.h"

#include "io/hdf5_input.h"
#include "io/hdf5_output.h"
#include "ungrain/version.h"

namespace ungrain::io {

const Hdf5Functions hdf5_table = {
    {.version = UNGRAIN_VERSION},
    &open_hdf5,
    &create_hdf5,
};

}  // namespace ungrain::io
