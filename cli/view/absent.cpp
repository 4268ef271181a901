// ungrain view in builds without cpp-httplib.
#include "commands.h"
#include "ungrain/error.h"

namespace ungrain::cli {

int view_command(const Arguments&) {
  throw Error(ErrorCode::unsupported,
              "this build has no view: it needs cpp-httplib (Debian's libcpp-httplib-dev and libssl-dev)");
}

}  // namespace ungrain::cli
