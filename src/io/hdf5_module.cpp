// The module's entry, which hdf5_loaded.cpp looks up.
#include "io/hdf5_functions.h"

extern "C" const ungrain::io::ModuleVersion* ungrain_hdf5_functions() { return &ungrain::io::hdf5_table; }
