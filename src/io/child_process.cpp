#include "io/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>  // NOLINT: kill and masks are POSIX, not <csignal>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "io/failure.h"
#include "ungrain/error.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace ungrain::io {
namespace {

OwnedDescriptor unnamed_file() {
  std::string name = (std::filesystem::temp_directory_path() / "ungrain-XXXXXX").native();
  OwnedDescriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.number() < 0) fail(name, "cannot be created", errno);
  ::unlink(name.c_str());
  return file;
}

// What posix_spawn needs, freed with this object.
class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawn_file_actions_init(&files_);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t usual;
    sigemptyset(&usual);
    for (const int number : {SIGPIPE, SIGXFSZ}) sigaddset(&usual, number);
    posix_spawnattr_setsigdefault(&attributes_, &usual);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&files_);
  }

  void give(int descriptor, int as) {
    if (descriptor >= 0) {
      posix_spawn_file_actions_adddup2(&files_, descriptor, as);
    } else if (as <= STDERR_FILENO) {
      posix_spawn_file_actions_addopen(&files_, as, "/dev/null", O_RDWR, 0);
    }
  }

  const posix_spawn_file_actions_t& files() const { return files_; }
  const posix_spawnattr_t& attributes() const { return attributes_; }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

// A copy above the numbers that the program gets, so that giving one does not overwrite another.
OwnedDescriptor moved_up(int descriptor) {
  constexpr int above = 10;
  if (descriptor < 0) return {};
  return OwnedDescriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, above));
}

}  // namespace

bool is_on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::filesystem::path folder = rest.substr(0, colon);
    std::error_code error;
    const std::filesystem::path file = folder / program;
    if (std::filesystem::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0) return true;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return false;
}

ChildProcess::ChildProcess(const std::vector<std::string>& command, const Streams& streams)
    : errors_(unnamed_file()) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const std::array<OwnedDescriptor, 4> given{moved_up(streams.input), moved_up(streams.output),
                                             moved_up(errors_.number()), moved_up(streams.third)};
  SpawnSettings settings;
  for (std::size_t number = 0; number < given.size(); ++number)
    settings.give(given[number].number(), static_cast<int>(number));
  const int problem = posix_spawnp(&process_, command.front().c_str(), &settings.files(),
                                   &settings.attributes(), words.data(), environ);
  if (problem != 0) {
    process_ = -1;
    fail(command.front(), "cannot be started", problem);
  }
}

ChildProcess::~ChildProcess() {
  if (process_ < 0) return;
  kill();
  wait();
}

void ChildProcess::kill() noexcept {
  if (process_ >= 0) ::kill(process_, SIGKILL);
}

int ChildProcess::wait() {
  if (process_ < 0) return status_;
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0) {
    if (errno != EINTR) break;
  }
  process_ = -1;
  constexpr int signal_base = 128;  // as shells count
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : signal_base + WTERMSIG(status);
  return status_;
}

std::string ChildProcess::errors() const {
  constexpr std::size_t most = std::size_t{1} << 16U;
  std::string text(most, '\0');
  const ssize_t got = ::pread(errors_.number(), text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

Pipe make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::io,
                fmt::format("no pipe can be made: {}", std::generic_category().message(errno)));
  return {OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1])};
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
