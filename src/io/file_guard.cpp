#include "io/file_guard.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "platform/files.h"

namespace ungrain::io {
namespace {

namespace fs = std::filesystem;
using platform::FileStatus;

constexpr std::string_view guard_ending = ".lock";

bool is_at(const fs::path& path, int descriptor) {
  const std::optional<FileStatus> opened = platform::status_of(descriptor);
  const std::optional<FileStatus> named = platform::link_status_of(path);
  return opened && named && opened->device == named->device && opened->inode == named->inode;
}

bool is_our_file(const FileStatus& status) { return status.kind == platform::FileKind::file && status.ours; }

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
  const fs::path guarded = guard.parent_path() / guard.stem();
  const std::optional<FileStatus> status = platform::link_status_of(guarded);
  if (status && (!is_our_file(*status) || !platform::remove_file(guarded))) return;
  platform::remove_file(guard);
}

void remove_if_dead(const fs::path& guard) {
  // Opened for writing, because NFS grants exclusive locks only to such descriptors.
  const int descriptor = platform::open_file(guard, {.write = true, .follow_links = false, .wait = false});
  if (descriptor < 0) return;
  const std::optional<FileStatus> status = platform::status_of(descriptor);
  const bool ours = status && is_our_file(*status) && status->size == 0;
  if (ours && platform::lock_file(descriptor) == platform::Lock::taken_by_us && is_at(guard, descriptor)) {
    remove_with_guarded(guard);
  }
  platform::close_file(descriptor);
}

}  // namespace

FileGuard::FileGuard(fs::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

FileGuard::FileGuard(FileGuard&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

FileGuard::~FileGuard() {
  if (descriptor_ < 0) return;
  platform::remove_file(path_);
  platform::close_file(descriptor_);
}

std::optional<FileGuard> FileGuard::create(const fs::path& file) {
  fs::path path = file;
  path += guard_ending;
  const int descriptor = platform::open_file(path, {.write = true, .create = true, .must_be_new = true});
  if (descriptor < 0) return std::nullopt;
  // Another process may have removed the guard as a leftover before it was locked. On a file system without
  // locks no process can lock it, so no process removes anything.
  const bool taken = platform::lock_file(descriptor) == platform::Lock::taken_by_others;
  if (taken || !is_at(path, descriptor)) {
    platform::close_file(descriptor);
    errno = EEXIST;
    return std::nullopt;
  }
  return FileGuard(std::move(path), descriptor);
}

void remove_leftovers(const fs::path& folder) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  const std::lock_guard lock(mutex);
  if (!seen.insert(folder.string()).second) return;
  // Collected before any is removed: a folder may be listed incompletely while it changes.
  std::set<fs::path> guards;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_guard_name(entry->path().filename().string())) guards.insert(entry->path());
  }
  for (const fs::path& guard : guards) remove_if_dead(guard);
}

}  // namespace ungrain::io
