// The work of ungrain cluster, which Python does.
#pragma once

#include <string>

namespace ungrain::cli {

// This process becomes Python with the package's ungrain.cluster. `options` is what cluster_options()
// returns; `what` needs Python, in messages. Throws Error(unsupported) where no Python can be run.
[[noreturn]] void become_python(const std::string& what, const std::string& options);

}  // namespace ungrain::cli
