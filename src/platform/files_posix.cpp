#include "platform/files.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <stdlib.h>  // NOLINT: mkdtemp is POSIX, not <cstdlib>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

#include <cerrno>
#include <climits>
#include <cstdio>

namespace ungrain::platform {
namespace {

namespace fs = std::filesystem;

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::file;
  if (S_ISDIR(mode)) return FileKind::folder;
  if (S_ISLNK(mode)) return FileKind::link;
  return FileKind::other;
}

FileStatus converted(const struct stat& status) {
#ifdef __APPLE__
  const auto& modified = status.st_mtimespec;
#else
  const auto& modified = status.st_mtim;
#endif
  return {.kind = kind_of(status.st_mode),
          .device = static_cast<std::uint64_t>(status.st_dev),
          .inode = static_cast<std::uint64_t>(status.st_ino),
          .size = static_cast<std::uint64_t>(status.st_size),
          .seconds = static_cast<std::int64_t>(modified.tv_sec),
          .nanoseconds = static_cast<std::int64_t>(modified.tv_nsec),
          .mode = status.st_mode & 0777U,
          .group = status.st_gid,
          .ours = status.st_uid == ::geteuid(),
          .passes_group_on = (status.st_mode & S_ISGID) != 0};
}

bool wait_for(int descriptor, short events, int milliseconds) {
  pollfd wanted{descriptor, events, 0};
  return ::poll(&wanted, 1, milliseconds) != 0;
}

// 0, or errno's number.
int allocate(int descriptor, std::size_t bytes) {
#ifdef __APPLE__
  fstore_t room{F_ALLOCATEALL, F_PEOFPOSMODE, 0, static_cast<off_t>(bytes), 0};
  if (::fcntl(descriptor, F_PREALLOCATE, &room) == -1) return errno;
  return ::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
#else
  return ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
#endif
}

}  // namespace

std::optional<FileStatus> status_of(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return std::nullopt;
  return converted(status);
}

std::optional<FileStatus> status_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return converted(status);
}

std::optional<FileStatus> link_status_of(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
  return converted(status);
}

int open_file(const fs::path& path, const Opening& how) {
  int flags = O_CLOEXEC | (how.read && how.write ? O_RDWR : how.write ? O_WRONLY : O_RDONLY);
  if (how.create) flags |= O_CREAT;
  if (how.must_be_new) flags |= O_EXCL;
  if (how.append) flags |= O_APPEND;
  if (!how.follow_links) flags |= O_NOFOLLOW;
  if (!how.wait) flags |= O_NONBLOCK;  // regular files ignore it
  return ::open(path.c_str(), flags, static_cast<mode_t>(how.mode));
}

bool close_file(int descriptor) { return ::close(descriptor) == 0; }

int duplicate(int descriptor) { return ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); }

std::ptrdiff_t read_some(int descriptor, void* to, std::size_t size) { return ::read(descriptor, to, size); }

std::ptrdiff_t write_some(int descriptor, const void* from, std::size_t size) {
  return ::write(descriptor, from, size);
}

std::ptrdiff_t read_at(int descriptor, void* to, std::size_t size, std::uint64_t offset) {
  return ::pread(descriptor, to, size, static_cast<off_t>(offset));
}

std::ptrdiff_t write_at(int descriptor, const void* from, std::size_t size, std::uint64_t offset) {
  return ::pwrite(descriptor, from, size, static_cast<off_t>(offset));
}

bool wait_readable(int descriptor, int milliseconds) { return wait_for(descriptor, POLLIN, milliseconds); }

bool wait_writable(int descriptor, int milliseconds) { return wait_for(descriptor, POLLOUT, milliseconds); }

std::size_t pipe_block() { return PIPE_BUF; }

bool resize_file(int descriptor, std::uint64_t size) {
  return ::ftruncate(descriptor, static_cast<off_t>(size)) == 0;
}

bool flush_to_disk(int descriptor) {
#ifdef __APPLE__
  // There fsync() leaves the bytes in the disk's own memory. Not every file system has the other.
  if (::fcntl(descriptor, F_FULLFSYNC) == 0) return true;
#endif
  return ::fsync(descriptor) == 0;
}

void flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);  // not every file system supports it
  ::close(descriptor);
}

bool set_permissions(int descriptor, unsigned mode) {
  return ::fchmod(descriptor, static_cast<mode_t>(mode)) == 0;
}

bool replace_file(const fs::path& from, const fs::path& to) {
  return std::rename(from.c_str(), to.c_str()) == 0;
}

bool remove_file(const fs::path& path) { return std::remove(path.c_str()) == 0; }

Lock lock_file(int descriptor) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return Lock::taken_by_us;
  return errno == EWOULDBLOCK ? Lock::taken_by_others : Lock::impossible;
}

bool may_write_file(const fs::path& file) {
  return ::faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) == 0;
}

bool may_write_folder(const fs::path& folder) {
  return ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

unsigned group_of_this_process() { return ::getegid(); }

void make_new_files_private() {
#ifdef __linux__
  // The umask belongs to the whole process unless a thread unshares it.
  if (unshare(CLONE_FS) == 0) umask(077);
#endif
}

int open_unnamed_file(const fs::path& folder) {
  std::string name = (folder / "ungrain-XXXXXX").native();
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor >= 0) ::unlink(name.c_str());
  return descriptor;
}

fs::path make_private_folder(const fs::path& parent, const std::string& prefix) {
  std::string name = (parent / (prefix + "XXXXXX")).native();
  if (::mkdtemp(name.data()) == nullptr) return {};
  return name;
}

void* map_file(int descriptor, std::size_t bytes) {
  if (const int refused = allocate(descriptor, bytes); refused != 0) {
    errno = refused;
    return nullptr;
  }
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void unmap(void* memory, std::size_t bytes) { ::munmap(memory, bytes); }

std::vector<fs::path> matching_files(const std::string& pattern) {
  std::vector<fs::path> found;
  glob_t result{};
  if (glob(pattern.c_str(), 0, nullptr, &result) == 0) {
    for (std::size_t i = 0; i < result.gl_pathc; ++i) found.emplace_back(result.gl_pathv[i]);
  }
  globfree(&result);
  return found;
}

}  // namespace ungrain::platform
