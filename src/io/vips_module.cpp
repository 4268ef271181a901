// The module's entry, which vips_loaded.cpp looks up.
#include "io/vips_functions.h"

extern "C" const ungrain::io::ModuleVersion* ungrain_vips_functions() { return &ungrain::io::vips_table; }
