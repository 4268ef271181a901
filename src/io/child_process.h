// Another program that runs beside this one, found on PATH.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/byte_streams.h"
#include "platform/processes.h"

namespace ungrain::io {

// Its errors are collected. It is in a process group of its own: Ctrl-C reaches this program alone, which
// then ends the other one in order.
class ChildProcess {
 public:
  // Descriptors that the program gets as its own; -1: /dev/null.
  struct Streams {
    int input = -1;
    int output = -1;
    int third = -1;  // as descriptor 3
  };
  // Throws Error(io) "PROGRAM: is not there ..." where PATH has no such program.
  ChildProcess(const std::vector<std::string>& command, const Streams& streams);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();  // kills it where it still runs

  // Waits for its end. Its exit status, or 128 + the signal that ended it.
  int wait();
  void kill() noexcept;
  std::string errors() const;  // all that it wrote on its standard error

 private:
  platform::Process process_ = platform::no_process;
  int status_ = -1;
  OwnedDescriptor errors_;
};

struct Pipe {
  OwnedDescriptor reading;
  OwnedDescriptor writing;
};
Pipe make_pipe();  // closed in other programs

// Runs the program to its end and returns what it printed. Throws Error(io) "NAME: PROGRAM: its last error".
std::string output_of(const std::string& name, const std::vector<std::string>& command,
                      const StopWaiting& stop);

}  // namespace ungrain::io
