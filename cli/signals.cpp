#include "signals.h"

#include <signal.h>  // NOLINT: sigwait and masks are POSIX, not <csignal>
#include <unistd.h>

#include <thread>

#include "commands.h"
#include "io/image_file.h"

namespace ungrain::cli {
namespace {

CancelToken& token() {
  static CancelToken shared;
  return shared;
}

void serve(const sigset_t& set) {
  int signal_number = 0;
  if (sigwait(&set, &signal_number) != 0) return;
  token().cancel();
  if (sigwait(&set, &signal_number) != 0) return;
  io::remove_temporaries();
  _exit(exit_failed);
}

}  // namespace

void watch_signals() {
  token();
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    // In the background of a script SIGINT is ignored, and stays ignored.
    struct sigaction current {};
    if (sigaction(number, nullptr, &current) == 0 && current.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  // Every thread inherits the mask, so that only the thread below receives signals.
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread([set] { serve(set); }).detach();
  // A closed pipe or a full disk becomes a failed write with a message instead of ending the program.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

void unwatch_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
}

const CancelToken& interrupted() { return token(); }

}  // namespace ungrain::cli
