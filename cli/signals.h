// SIGINT (Ctrl-C), SIGTERM and SIGHUP.
#pragma once

#include "ungrain/denoiser.h"

namespace ungrain::cli {

// Called before any thread is started: from then on the first SIGINT, SIGTERM or SIGHUP sets interrupted(),
// and the program ends by itself without partial files; the second signal ends it at once.
void watch_signals();

const CancelToken& interrupted();

}  // namespace ungrain::cli
