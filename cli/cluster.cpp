// ungrain cluster: Dask is a Python library, so the Python package does the work, with the options that were
// read here. This process becomes the Python process (exec), which then owns signals, the terminal and the
// exit status.
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "arguments.h"
#include "cluster.h"
#include "cluster_options.h"
#include "commands.h"
#include "platform/processes.h"
#include "ungrain/error.h"

namespace ungrain::cli {
namespace {

constexpr const char* hand_over = R"(import sys
sys.path = [folder for folder in sys.path if folder]  # not what lies where the user happens to be
try:
    from ungrain.cluster import main
except ImportError as error:
    if error.name not in ("ungrain", "ungrain.cluster", "numpy"):
        raise
    print(f"ungrain: {sys.argv[1]} needs the Python package, which {sys.executable} does not have: pip install '.[dask]' in "
          "ungrain's source folder, or name another Python in UNGRAIN_PYTHON", file=sys.stderr)
    sys.exit(1)
if __name__ == "__main__":
    sys.exit(main(options=sys.argv[2])))";

}  // namespace

void become_python(const std::string& what, const std::string& options) {
  const char* named = std::getenv("UNGRAIN_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  const int problem = platform::become_program({python, "-c", hand_over, what, options});
  throw Error(ErrorCode::unsupported,
              fmt::format("{} needs Python: {} cannot be run ({})", what, python, std::strerror(problem)));
}

int cluster_command(const Arguments& arguments) {
  const std::string options = cluster_options(arguments, parse);
  if (options.empty()) return exit_done;
  become_python("cluster", options);
}

}  // namespace ungrain::cli
