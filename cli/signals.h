// Ctrl-C and its kin.
#pragma once

#include "ungrain/denoiser.h"

namespace ungrain::cli {

// Before any thread is started: from then on the first SIGINT, SIGTERM or SIGHUP sets interrupted() and the
// program ends by itself, leaving no half file; the second ends it at once.
void watch_signals();
// As the program found them, for another one that this process becomes.
void unwatch_signals();

const CancelToken& interrupted();

}  // namespace ungrain::cli
