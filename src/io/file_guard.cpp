#include "io/file_guard.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace ungrain::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view guard_ending = ".lock";

bool is_at(const fs::path& path, int descriptor) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool is_our_file(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
}

// ".photo.ungrain-1a2b3c4d.jpg.lock", as temporary_file.cpp names them.
bool is_guard_name(std::string_view name) {
  constexpr std::string_view mark = ".ungrain-";
  constexpr std::size_t digits = 8;
  if (!name.starts_with('.') || !name.ends_with(guard_ending)) return false;
  name.remove_suffix(guard_ending.size());
  const std::size_t marked = name.rfind(mark);
  if (marked == std::string_view::npos || marked < 2) return false;
  name.remove_prefix(marked + mark.size());
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return name.size() >= digits && std::all_of(name.begin(), name.begin() + digits, is_digit) &&
         (name.size() == digits || name[digits] == '.');
}

void remove_with_guarded(const fs::path& guard) {
  const std::string& name = guard.native();
  const std::string guarded = name.substr(0, name.size() - guard_ending.size());
  struct stat status {};
  if (::lstat(guarded.c_str(), &status) == 0 && (!is_our_file(status) || ::unlink(guarded.c_str()) != 0)) {
    return;
  }
  ::unlink(guard.c_str());
}

void remove_if_dead(const fs::path& guard) {
  // Opened for writing, because NFS grants exclusive locks only to such descriptors.
  const int descriptor = ::open(guard.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return;
  struct stat status {};
  const bool ours = ::fstat(descriptor, &status) == 0 && is_our_file(status) && status.st_size == 0;
  if (ours && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 && is_at(guard, descriptor)) {
    remove_with_guarded(guard);
  }
  ::close(descriptor);
}

}  // namespace

FileGuard::FileGuard(fs::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

FileGuard::FileGuard(FileGuard&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

FileGuard::~FileGuard() {
  if (descriptor_ < 0) return;
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

std::optional<FileGuard> FileGuard::create(const fs::path& file) {
  fs::path path = file;
  path += guard_ending;
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return std::nullopt;
  // Another process may have removed the guard as a leftover before it was locked. On a file system without
  // locks no process can lock it, so no process removes anything.
  const bool taken = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (taken || !is_at(path, descriptor)) {
    ::close(descriptor);
    errno = EEXIST;
    return std::nullopt;
  }
  return FileGuard(std::move(path), descriptor);
}

void remove_leftovers(const fs::path& folder) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  const std::lock_guard lock(mutex);
  if (!seen.insert(folder.native()).second) return;
  // Collected before any is removed: a folder may be listed incompletely while it changes.
  std::set<fs::path> guards;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_guard_name(entry->path().filename().native())) guards.insert(entry->path());
  }
  for (const fs::path& guard : guards) remove_if_dead(guard);
}

}  // namespace ungrain::io
