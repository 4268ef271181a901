#include "platform/console.h"

#include <fcntl.h>
#include <signal.h>  // NOLINT: sigwait and masks are POSIX, not <csignal>
#include <sys/ioctl.h>
#include <unistd.h>

#include <thread>
#include <utility>

namespace ungrain::platform {

bool prepare_standard_streams() {
  bool output_closed = false;
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) != -1) continue;
    if (descriptor == STDOUT_FILENO) output_closed = true;
    if (open("/dev/null", O_RDWR) == -1) break;
  }
  return output_closed;
}

std::vector<std::string> arguments_of(int argc, char** argv) { return {argv + 1, argv + argc}; }

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void watch_interrupts(std::function<void()> first, std::function<void()> second) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    // In the background of a script SIGINT is ignored, and stays ignored.
    struct sigaction current {};
    if (sigaction(number, nullptr, &current) == 0 && current.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  // Every thread inherits the mask, so that only the thread below receives signals.
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread([set, first = std::move(first), second = std::move(second)] {
    int signal_number = 0;
    if (sigwait(&set, &signal_number) != 0) return;
    first();
    if (sigwait(&set, &signal_number) != 0) return;
    second();
  }).detach();
  // A closed pipe or a full disk becomes a failed write with a message instead of ending the program.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

void unwatch_interrupts() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
}

}  // namespace ungrain::platform
