#include "platform/processes.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>  // NOLINT: kill and masks are POSIX, not <csignal>
#include <spawn.h>
#include <stdlib.h>  // NOLINT: setenv is POSIX, not <cstdlib>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>  // NOLINT: localtime_r is POSIX, not <ctime>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include <cerrno>
#include <cstdlib>

#include "platform/console.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace ungrain::platform {
namespace {

namespace fs = std::filesystem;

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

// Copies above the numbers that the program gets, so that giving one does not overwrite another.
class MovedUp {
 public:
  explicit MovedUp(const GivenStreams& streams) {
    constexpr int above = 10;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      copies_[i] = streams[i] < 0 ? -1 : ::fcntl(streams[i], F_DUPFD_CLOEXEC, above);
    }
  }
  MovedUp(const MovedUp&) = delete;
  MovedUp& operator=(const MovedUp&) = delete;
  ~MovedUp() {
    for (const int copy : copies_) {
      if (copy >= 0) ::close(copy);
    }
  }
  int operator[](std::size_t i) const { return copies_[i]; }

 private:
  GivenStreams copies_{};
};

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void* checked(void* found, std::string& why_not) {
  if (found == nullptr) {
    const char* message = dlerror();
    why_not = message == nullptr ? "there is no such symbol" : message;
  }
  return found;
}

}  // namespace

int start_process(const std::vector<std::string>& command, const GivenStreams& streams, Process& process) {
  const MovedUp given(streams);
  SpawnSettings settings;
  for (std::size_t number = 0; number < streams.size(); ++number)
    settings.give(given[number], static_cast<int>(number));
  pid_t number = -1;
  const int problem = posix_spawnp(&number, command.front().c_str(), &settings.files(),
                                   &settings.attributes(), pointers_to(command).data(), environ);
  process = problem == 0 ? number : no_process;
  return problem;
}

int wait_for_end(Process process) {
  int status = 0;
  while (::waitpid(static_cast<pid_t>(process), &status, 0) < 0) {
    if (errno != EINTR) break;
  }
  constexpr int signal_base = 128;  // as shells count
  return WIFEXITED(status) ? WEXITSTATUS(status) : signal_base + WTERMSIG(status);
}

void kill_process(Process process) noexcept { ::kill(static_cast<pid_t>(process), SIGKILL); }

bool make_pipe(int& reading, int& writing) {
  int ends[2] = {-1, -1};
#ifdef __APPLE__
  if (::pipe(ends) != 0) return false;
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
#else
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
#endif
  reading = ends[0];
  writing = ends[1];
  return true;
}

bool is_on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const fs::path folder = rest.substr(0, colon);
    std::error_code error;
    const fs::path file = folder / program;
    if (fs::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0) return true;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return false;
}

int become_program(const std::vector<std::string>& command) {
  unwatch_interrupts();
  execvp(command.front().c_str(), pointers_to(command).data());
  return errno;
}

void open_in_browser(const std::string& address) {
#ifdef __APPLE__
  const char* opener = "open";
#else
  const char* opener = "xdg-open";
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return;
#endif
  const pid_t child = fork();
  if (child != 0) return;
  if (fork() == 0) {
    unwatch_interrupts();
    execlp(opener, opener, address.c_str(), static_cast<char*>(nullptr));
  }
  _exit(0);
}

void* load_library(const fs::path& file, std::string& why_not) {
  // Lazy: most functions of its libraries are never called.
  return checked(dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL), why_not);
}

void* find_symbol(void* library, const char* name, std::string& why_not) {
  return checked(dlsym(library, name), why_not);
}

fs::path program_file() {
  std::error_code error;
#ifdef __APPLE__
  std::uint32_t size = 0;
  _NSGetExecutablePath(nullptr, &size);
  std::string name(size, '\0');
  if (_NSGetExecutablePath(name.data(), &size) != 0) return {};
  return fs::canonical(name.c_str(), error);
#else
  return fs::read_symlink("/proc/self/exe", error);
#endif
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

void set_default_environment(const char* name, const char* value) { setenv(name, value, 0); }

bool random_bytes(void* to, std::size_t size) {
#ifdef __APPLE__
  return getentropy(to, size) == 0;
#else
  return getrandom(to, size, 0) == static_cast<ssize_t>(size);
#endif
}

std::optional<std::tm> local_time(std::time_t time) {
  std::tm result{};
  if (localtime_r(&time, &result) == nullptr) return std::nullopt;
  return result;
}

}  // namespace ungrain::platform
