#include "io/child_process.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "io/failure.h"
#include "platform/files.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

OwnedDescriptor unnamed_file() {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  OwnedDescriptor file(platform::open_unnamed_file(folder));
  if (file.number() < 0) fail(folder, "no temporary file can be made", errno);
  return file;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const Streams& streams)
    : errors_(unnamed_file()) {
  const int problem = platform::start_process(
      command, {streams.input, streams.output, errors_.number(), streams.third}, process_);
  if (problem != 0) fail(command.front(), "cannot be started", problem);
}

ChildProcess::~ChildProcess() {
  if (process_ == platform::no_process) return;
  kill();
  wait();
}

void ChildProcess::kill() noexcept {
  if (process_ != platform::no_process) platform::kill_process(process_);
}

int ChildProcess::wait() {
  if (process_ == platform::no_process) return status_;
  status_ = platform::wait_for_end(std::exchange(process_, platform::no_process));
  return status_;
}

std::string ChildProcess::errors() const {
  constexpr std::size_t most = std::size_t{1} << 16U;
  std::string text(most, '\0');
  const std::ptrdiff_t got = platform::read_at(errors_.number(), text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

Pipe make_pipe() {
  int reading = -1;
  int writing = -1;
  if (!platform::make_pipe(reading, writing))
    throw Error(ErrorCode::io,
                fmt::format("no pipe can be made: {}", std::generic_category().message(errno)));
  return {OwnedDescriptor(reading), OwnedDescriptor(writing)};
}

std::string output_of(const std::string& name, const std::vector<std::string>& command,
                      const StopWaiting& stop) {
  Pipe pipe = make_pipe();
  ChildProcess process(command, {.output = pipe.writing.number()});
  pipe.writing.close();
  ByteSource bytes(std::move(pipe.reading), command.front(), stop);
  std::string text;
  for (int byte = bytes.next(); byte != ByteSource::end; byte = bytes.next()) text += static_cast<char>(byte);
  if (process.wait() != 0) fail(name, fmt::format("{}: {}", command.front(), last_line(process.errors())));
  return text;
}

}  // namespace ungrain::io
