#include "platform/files.h"

#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "platform/windows.h"

namespace ungrain::platform {
namespace {

namespace fs = std::filesystem;

bool failed() {
  errno = errno_of(GetLastError());
  return false;
}

HANDLE handle_of(int descriptor) { return reinterpret_cast<HANDLE>(_get_osfhandle(descriptor)); }

// Closed with its owner.
class OwnedHandle {
 public:
  explicit OwnedHandle(HANDLE handle) : handle_(handle) {}
  OwnedHandle(const OwnedHandle&) = delete;
  OwnedHandle& operator=(const OwnedHandle&) = delete;
  ~OwnedHandle() {
    if (valid()) CloseHandle(handle_);
  }
  bool valid() const { return handle_ != INVALID_HANDLE_VALUE; }
  HANDLE get() const { return handle_; }

 private:
  HANDLE handle_;
};

// Everything is shared, as on other systems: a file that is open can be read, replaced and removed.
constexpr DWORD share_everything = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

bool is_device(DWORD type) { return type == FILE_TYPE_PIPE || type == FILE_TYPE_CHAR; }

std::optional<FileStatus> status_of_handle(HANDLE handle, bool follow_links) {
  FileStatus status;
  if (is_device(GetFileType(handle))) return status;
  BY_HANDLE_FILE_INFORMATION info{};
  if (GetFileInformationByHandle(handle, &info) == 0) {
    failed();
    return std::nullopt;
  }
  const bool link = !follow_links && (info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0;
  const bool folder = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  status.kind = link ? FileKind::link : folder ? FileKind::folder : FileKind::file;
  status.device = info.dwVolumeSerialNumber;
  status.inode = static_cast<std::uint64_t>(info.nFileIndexHigh) << 32U | info.nFileIndexLow;
  status.size = static_cast<std::uint64_t>(info.nFileSizeHigh) << 32U | info.nFileSizeLow;
  const auto ticks = static_cast<std::int64_t>(info.ftLastWriteTime.dwHighDateTime) << 32U |
                     static_cast<std::int64_t>(info.ftLastWriteTime.dwLowDateTime);
  constexpr std::int64_t ticks_per_second = 10'000'000;  // since 1601
  constexpr std::int64_t seconds_to_1970 = 11'644'473'600;
  status.seconds = ticks / ticks_per_second - seconds_to_1970;
  status.nanoseconds = ticks % ticks_per_second * 100;
  status.mode = (info.dwFileAttributes & FILE_ATTRIBUTE_READONLY) != 0 ? 0444 : 0666;
  return status;
}

std::optional<FileStatus> status_of_path(const fs::path& path, bool follow_links) {
  const DWORD flags = FILE_FLAG_BACKUP_SEMANTICS | (follow_links ? 0 : FILE_FLAG_OPEN_REPARSE_POINT);
  const OwnedHandle handle(CreateFileW(path.c_str(), FILE_READ_ATTRIBUTES, share_everything, nullptr,
                                       OPEN_EXISTING, flags, nullptr));
  if (!handle.valid()) {
    failed();
    return std::nullopt;
  }
  return status_of_handle(handle.get(), follow_links);
}

OVERLAPPED place_of(std::uint64_t offset) {
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(offset);
  place.OffsetHigh = static_cast<DWORD>(offset >> 32U);
  return place;
}

DWORD at_most(std::size_t size) {
  return static_cast<DWORD>(std::min<std::size_t>(size, std::size_t{1} << 30U));
}

// Different in every call and, but for chance, in every process.
std::wstring unique_name(const std::wstring& prefix) {
  static std::atomic<unsigned> count{0};
  LARGE_INTEGER time{};
  QueryPerformanceCounter(&time);
  return prefix + std::to_wstring(GetCurrentProcessId()) + L"-" +
         std::to_wstring(static_cast<unsigned long>(time.LowPart)) + L"-" + std::to_wstring(++count);
}

// Since Windows 10 also a file that others have open can be replaced, as on other systems.
bool replace_open_file(const fs::path& from, const fs::path& to) {
  const OwnedHandle handle(CreateFileW(from.c_str(), DELETE | SYNCHRONIZE, share_everything, nullptr,
                                       OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT, nullptr));
  if (!handle.valid()) return false;
  std::error_code error;
  const std::wstring name = fs::absolute(to, error).native();
  if (error) return false;
  const std::size_t bytes = sizeof(FILE_RENAME_INFO) + name.size() * sizeof(wchar_t);
  std::vector<std::byte> memory(bytes);
  auto* info = reinterpret_cast<FILE_RENAME_INFO*>(memory.data());
  constexpr DWORD replace = 0x1;   // FILE_RENAME_FLAG_REPLACE_IF_EXISTS
  constexpr DWORD as_posix = 0x2;  // FILE_RENAME_FLAG_POSIX_SEMANTICS
  const DWORD flags = replace | as_posix;
  static_assert(offsetof(FILE_RENAME_INFO, ReplaceIfExists) == 0);
  std::copy_n(reinterpret_cast<const std::byte*>(&flags), sizeof flags, memory.data());
  info->FileNameLength = static_cast<DWORD>(name.size() * sizeof(wchar_t));
  std::copy(name.begin(), name.end(), info->FileName);
  constexpr auto rename_info_ex = static_cast<FILE_INFO_BY_HANDLE_CLASS>(22);  // not in every header
  return SetFileInformationByHandle(handle.get(), rename_info_ex, info, static_cast<DWORD>(bytes)) != 0;
}

}  // namespace

std::optional<FileStatus> status_of(int descriptor) {
  const HANDLE handle = handle_of(descriptor);
  if (handle == INVALID_HANDLE_VALUE) return std::nullopt;
  return status_of_handle(handle, true);
}

std::optional<FileStatus> status_of(const fs::path& path) { return status_of_path(path, true); }

std::optional<FileStatus> link_status_of(const fs::path& path) { return status_of_path(path, false); }

int open_file(const fs::path& path, const Opening& how) {
  DWORD access = how.read ? GENERIC_READ : 0;
  if (how.write) access |= how.append ? FILE_APPEND_DATA | FILE_READ_ATTRIBUTES : GENERIC_WRITE;
  const DWORD creation = !how.create ? OPEN_EXISTING : how.must_be_new ? CREATE_NEW : OPEN_ALWAYS;
  // With backup semantics a folder can be opened, too: who opens it says that it is one.
  DWORD flags = FILE_ATTRIBUTE_NORMAL;
  if (!how.write) flags |= FILE_FLAG_BACKUP_SEMANTICS;
  if (!how.follow_links) flags |= FILE_FLAG_OPEN_REPARSE_POINT;
  OwnedHandle handle(CreateFileW(path.c_str(), access, share_everything, nullptr, creation, flags, nullptr));
  if (!handle.valid()) {
    failed();
    return -1;
  }
  if (!how.follow_links) {
    const std::optional<FileStatus> status = status_of_handle(handle.get(), false);
    if (status && status->kind == FileKind::link) {
      errno = ELOOP;
      return -1;
    }
  }
  HANDLE own = nullptr;  // a copy, so that the one above may be closed
  if (DuplicateHandle(GetCurrentProcess(), handle.get(), GetCurrentProcess(), &own, 0, FALSE,
                      DUPLICATE_SAME_ACCESS) == 0) {
    failed();
    return -1;
  }
  const int kind = _O_BINARY | _O_NOINHERIT | (how.append ? _O_APPEND : 0) |
                   (how.read && how.write ? _O_RDWR
                    : how.write           ? _O_WRONLY
                                          : _O_RDONLY);
  const int descriptor = _open_osfhandle(reinterpret_cast<intptr_t>(own), kind);
  if (descriptor < 0) CloseHandle(own);
  return descriptor;
}

bool close_file(int descriptor) { return _close(descriptor) == 0; }

int duplicate(int descriptor) {
  const int copy = _dup(descriptor);
  if (copy >= 0) SetHandleInformation(handle_of(copy), HANDLE_FLAG_INHERIT, 0);
  return copy;
}

std::ptrdiff_t read_some(int descriptor, void* to, std::size_t size) {
  DWORD done = 0;
  if (ReadFile(handle_of(descriptor), to, at_most(size), &done, nullptr) != 0) return done;
  if (GetLastError() == ERROR_BROKEN_PIPE) return 0;  // the end: nobody writes any more
  failed();
  return -1;
}

std::ptrdiff_t write_some(int descriptor, const void* from, std::size_t size) {
  DWORD done = 0;
  if (WriteFile(handle_of(descriptor), from, at_most(size), &done, nullptr) != 0) return done;
  failed();
  return -1;
}

std::ptrdiff_t read_at(int descriptor, void* to, std::size_t size, std::uint64_t offset) {
  OVERLAPPED place = place_of(offset);
  DWORD done = 0;
  if (ReadFile(handle_of(descriptor), to, at_most(size), &done, &place) != 0) return done;
  if (GetLastError() == ERROR_HANDLE_EOF) return 0;
  failed();
  return -1;
}

std::ptrdiff_t write_at(int descriptor, const void* from, std::size_t size, std::uint64_t offset) {
  OVERLAPPED place = place_of(offset);
  DWORD done = 0;
  if (WriteFile(handle_of(descriptor), from, at_most(size), &done, &place) != 0) return done;
  failed();
  return -1;
}

bool wait_readable(int descriptor, int milliseconds) {
  const HANDLE handle = handle_of(descriptor);
  if (GetFileType(handle) != FILE_TYPE_PIPE) return true;
  DWORD waiting = 0;
  // A pipe without a writer is readable: the read tells its end.
  if (PeekNamedPipe(handle, nullptr, 0, nullptr, &waiting, nullptr) == 0 || waiting > 0) return true;
  constexpr int step = 5;
  for (int waited = 0; waited < milliseconds; waited += step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(step));
    if (PeekNamedPipe(handle, nullptr, 0, nullptr, &waiting, nullptr) == 0 || waiting > 0) return true;
  }
  return false;
}

// Anonymous pipes cannot be asked. A write that blocks ends with the reader.
bool wait_writable(int /*descriptor*/, int /*milliseconds*/) { return true; }

std::size_t pipe_block() { return 4096; }

bool resize_file(int descriptor, std::uint64_t size) {
  FILE_END_OF_FILE_INFO end{};
  end.EndOfFile.QuadPart = static_cast<LONGLONG>(size);
  return SetFileInformationByHandle(handle_of(descriptor), FileEndOfFileInfo, &end, sizeof end) != 0 ||
         failed();
}

bool flush_to_disk(int descriptor) { return FlushFileBuffers(handle_of(descriptor)) != 0 || failed(); }

void flush_folder(const fs::path& /*folder*/) {}  // NTFS writes names to its own journal

// Rights are inherited from the folder; there are no bits to set.
bool set_permissions(int /*descriptor*/, unsigned /*mode*/) { return true; }

bool replace_file(const fs::path& from, const fs::path& to) {
  if (replace_open_file(from, to)) return true;
  return MoveFileExW(from.c_str(), to.c_str(), MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0 ||
         failed();
}

bool remove_file(const fs::path& path) {
  if (DeleteFileW(path.c_str()) != 0) return true;
  const DWORD error = GetLastError();
  if (error == ERROR_ACCESS_DENIED && RemoveDirectoryW(path.c_str()) != 0) return true;
  errno = errno_of(error);
  return false;
}

Lock lock_file(int descriptor) {
  OVERLAPPED place{};
  if (LockFileEx(handle_of(descriptor), LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, MAXDWORD,
                 MAXDWORD, &place) != 0) {
    return Lock::taken_by_us;
  }
  return GetLastError() == ERROR_LOCK_VIOLATION ? Lock::taken_by_others : Lock::impossible;
}

bool may_write_file(const fs::path& file) {
  const DWORD attributes = GetFileAttributesW(file.c_str());
  if (attributes == INVALID_FILE_ATTRIBUTES) return failed();
  if ((attributes & FILE_ATTRIBUTE_READONLY) == 0) return true;
  errno = EACCES;
  return false;
}

// Rights are known when a file is created in it.
bool may_write_folder(const fs::path& folder) {
  return GetFileAttributesW(folder.c_str()) != INVALID_FILE_ATTRIBUTES || failed();
}

unsigned group_of_this_process() { return 0; }

void make_new_files_private() {}

int open_unnamed_file(const fs::path& folder) {
  const fs::path name = folder / unique_name(L"ungrain-");
  const HANDLE handle =
      CreateFileW(name.c_str(), GENERIC_READ | GENERIC_WRITE | DELETE, share_everything, nullptr, CREATE_NEW,
                  FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    failed();
    return -1;
  }
  const int descriptor =
      _open_osfhandle(reinterpret_cast<intptr_t>(handle), _O_BINARY | _O_NOINHERIT | _O_RDWR);
  if (descriptor < 0) CloseHandle(handle);
  return descriptor;
}

fs::path make_private_folder(const fs::path& parent, const std::string& prefix) {
  // The folder for temporary files belongs to one user, and what is made in it inherits that.
  fs::path path = parent / unique_name(widen(prefix));
  if (CreateDirectoryW(path.c_str(), nullptr) != 0) return path;
  failed();
  return {};
}

void* map_file(int descriptor, std::size_t bytes) {
  if (!resize_file(descriptor, bytes)) return nullptr;
  const auto size = static_cast<std::uint64_t>(bytes);
  const HANDLE mapping =
      CreateFileMappingW(handle_of(descriptor), nullptr, PAGE_READWRITE, static_cast<DWORD>(size >> 32U),
                         static_cast<DWORD>(size), nullptr);
  if (mapping == nullptr) {
    failed();
    return nullptr;
  }
  void* memory = MapViewOfFile(mapping, FILE_MAP_ALL_ACCESS, 0, 0, bytes);
  if (memory == nullptr) failed();
  CloseHandle(mapping);  // the view keeps it
  return memory;
}

void unmap(void* memory, std::size_t /*bytes*/) { UnmapViewOfFile(memory); }

std::vector<fs::path> matching_files(const std::string& pattern) {
  const fs::path wanted = pattern;
  std::vector<fs::path> found;
  WIN32_FIND_DATAW entry{};
  const HANDLE search = FindFirstFileW(wanted.c_str(), &entry);  // * and ? in the last component
  if (search == INVALID_HANDLE_VALUE) return found;
  do {
    if (entry.cFileName[0] != L'.') found.push_back(wanted.parent_path() / entry.cFileName);
  } while (FindNextFileW(search, &entry) != 0);
  FindClose(search);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace ungrain::platform
