#include "signals.h"

#include <cstdlib>

#include "commands.h"
#include "io/image_file.h"
#include "platform/console.h"

namespace ungrain::cli {
namespace {

CancelToken& token() {
  static CancelToken shared;
  return shared;
}

}  // namespace

void watch_signals() {
  token();
  platform::watch_interrupts([] { token().cancel(); },
                             [] {
                               io::remove_temporaries();
                               std::_Exit(exit_failed);
                             });
}

const CancelToken& interrupted() { return token(); }

}  // namespace ungrain::cli
