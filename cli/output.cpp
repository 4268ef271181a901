#include "output.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "io/failure.h"
#include "platform/console.h"
#include "streams.h"

namespace ungrain::cli {
namespace {

// errno of the first failed write; nothing is written after a gap.
int& output_error() {
  static int number = 0;
  return number;
}

bool& output_closed() {
  static bool closed = false;
  return closed;
}

bool& reports_aside() {
  static bool aside = false;
  return aside;
}

}  // namespace

void hold_standard_streams() { output_closed() = platform::prepare_standard_streams(); }

bool standard_output_was_closed() { return output_closed(); }

void put_reports_aside() { reports_aside() = true; }

void put(std::string_view text) {
  if (reports_aside()) {
    put_aside(text);
    return;
  }
  if (output_error() != 0) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size()) output_error() = errno;
}

void flush_output() {
  if (output_error() == 0 && std::fflush(stdout) != 0) output_error() = errno;
}

void put_aside(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);  // if this fails there is nowhere to report it
  std::fflush(stderr);
}

void print_error(std::string_view message) {
  put_aside(fmt::format("ungrain: {}\n", io::one_line(with_stream_names(message))));
}

bool finish_output() {
  flush_output();
  if (output_error() == 0 || output_error() == EPIPE) return true;
  print_error(fmt::format("the standard output cannot be written: {}",
                          std::generic_category().message(output_error())));
  return false;
}

}  // namespace ungrain::cli
