// Files by descriptor, as POSIX has them. On Windows descriptors are the C library's and paths are wide.
// Functions that return bool or a count set errno where they fail (false, -1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ungrain::platform {

enum class FileKind { file, folder, link, other };

struct FileStatus {
  FileKind kind = FileKind::other;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t seconds = 0;  // of the last change
  std::int64_t nanoseconds = 0;
  unsigned mode = 0;  // permission bits; on Windows those of the owner, for everybody
  unsigned group = 0;
  bool ours = true;              // belongs to this user; on Windows not asked
  bool passes_group_on = false;  // a folder whose new files get its group
};

std::optional<FileStatus> status_of(int descriptor);
std::optional<FileStatus> status_of(const std::filesystem::path& path);       // links followed
std::optional<FileStatus> link_status_of(const std::filesystem::path& path);  // of a link itself

struct Opening {
  bool read = true;
  bool write = false;
  bool create = false;       // where there is none, with the permissions `mode`
  bool must_be_new = false;  // with create
  bool append = false;       // every write goes to the end
  bool follow_links = true;  // of the last component of the path
  bool wait = true;          // false: a named pipe without a writer is opened at once
  unsigned mode = 0600;
};
int open_file(const std::filesystem::path& path, const Opening& how);  // closed in other programs
bool close_file(int descriptor);
int duplicate(int descriptor);  // above the standard streams, closed in other programs

// Once: fewer bytes than asked for are no failure.
std::ptrdiff_t read_some(int descriptor, void* to, std::size_t size);
std::ptrdiff_t write_some(int descriptor, const void* from, std::size_t size);
std::ptrdiff_t read_at(int descriptor, void* to, std::size_t size, std::uint64_t offset);
std::ptrdiff_t write_at(int descriptor, const void* from, std::size_t size, std::uint64_t offset);

// Waits for up to `milliseconds` until a read or a write would not block. False: it still would.
bool wait_readable(int descriptor, int milliseconds);
bool wait_writable(int descriptor, int milliseconds);
std::size_t pipe_block();  // bytes that a pipe that is ready takes without blocking

bool resize_file(int descriptor, std::uint64_t size);
bool flush_to_disk(int descriptor);
void flush_folder(const std::filesystem::path& folder);  // names in it; does nothing where it cannot be done
bool set_permissions(int descriptor, unsigned mode);
// At once for whoever opens `to`: there is the old file or the new one. Also where others have `to` open.
bool replace_file(const std::filesystem::path& from, const std::filesystem::path& to);
bool remove_file(const std::filesystem::path& path);  // also one that is open, or an empty folder

enum class Lock { taken_by_us, taken_by_others, impossible };
Lock lock_file(int descriptor);  // against other processes, until the descriptor is closed or this one ends

bool may_write_file(const std::filesystem::path& file);
bool may_write_folder(const std::filesystem::path& folder);
unsigned group_of_this_process();
// What this thread creates is readable by this user alone. Does nothing where the system has no such setting
// for a thread.
void make_new_files_private();

// A file without a name, gone with its descriptor. -1, with errno, where it cannot be made.
int open_unnamed_file(const std::filesystem::path& folder);
// For this user alone. Empty, with errno, where it cannot be made.
std::filesystem::path make_private_folder(const std::filesystem::path& parent, const std::string& prefix);

// The first bytes of a file as memory. Their room on the disk is allocated first: a disk that fills up later
// would end the program. Null, with errno, where it cannot be had. The descriptor may be closed.
void* map_file(int descriptor, std::size_t bytes);
void unmap(void* memory, std::size_t bytes);

// Files that match a pattern with * and ? (and [] where shells have it), sorted.
std::vector<std::filesystem::path> matching_files(const std::string& pattern);

}  // namespace ungrain::platform
