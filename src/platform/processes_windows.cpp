#include "platform/processes.h"

#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <stdlib.h>  // NOLINT: _putenv_s and rand_s are not in <cstdlib>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "platform/windows.h"

#include <shellapi.h>

extern "C" int rand_s(unsigned* value);  // hidden by the headers unless a macro comes before all of them

namespace ungrain::platform {
namespace {

namespace fs = std::filesystem;

HANDLE handle_of(int descriptor) { return reinterpret_cast<HANDLE>(_get_osfhandle(descriptor)); }

// As the C library of the program takes a command line apart.
std::wstring quoted(const std::wstring& word) {
  if (!word.empty() && word.find_first_of(L" \t\n\v\"") == std::wstring::npos) return word;
  std::wstring result = L"\"";
  std::size_t slashes = 0;
  for (const wchar_t c : word) {
    if (c == L'\\') {
      ++slashes;
      continue;
    }
    result.append(c == L'"' ? 2 * slashes + 1 : slashes, L'\\');
    slashes = 0;
    result += c;
  }
  result.append(2 * slashes, L'\\');
  return result + L'"';
}

// Copies that the program inherits, closed with this object.
class InheritedHandles {
 public:
  explicit InheritedHandles(const GivenStreams& streams) {
    for (std::size_t i = 0; i < streams.size(); ++i) handles_[i] = inheritable(streams[i], i);
  }
  InheritedHandles(const InheritedHandles&) = delete;
  InheritedHandles& operator=(const InheritedHandles&) = delete;
  ~InheritedHandles() {
    for (const HANDLE handle : handles_) {
      if (handle != INVALID_HANDLE_VALUE) CloseHandle(handle);
    }
  }
  HANDLE operator[](std::size_t i) const { return handles_[i]; }

  // How C libraries tell a program which descriptors it has: their number, a byte of flags and a handle each.
  std::vector<unsigned char> as_descriptors() const {
    const auto count = static_cast<int>(handles_.size());
    std::vector<unsigned char> block(sizeof count + handles_.size() * (1 + sizeof(HANDLE)));
    std::memcpy(block.data(), &count, sizeof count);
    constexpr unsigned char is_open = 0x01;
    constexpr unsigned char is_pipe = 0x08;
    for (std::size_t i = 0; i < handles_.size(); ++i) {
      const HANDLE handle = handles_[i];
      if (handle != INVALID_HANDLE_VALUE) {
        block[sizeof count + i] =
            static_cast<unsigned char>(is_open | (GetFileType(handle) == FILE_TYPE_PIPE ? is_pipe : 0));
      }
      std::memcpy(block.data() + sizeof count + handles_.size() + i * sizeof handle, &handle, sizeof handle);
    }
    return block;
  }

  std::vector<HANDLE> open_ones() const {
    std::vector<HANDLE> list(handles_.begin(), handles_.end());
    std::erase(list, INVALID_HANDLE_VALUE);
    return list;
  }

 private:
  static HANDLE inheritable(int descriptor, std::size_t as) {
    HANDLE copy = INVALID_HANDLE_VALUE;
    if (descriptor >= 0) {
      if (DuplicateHandle(GetCurrentProcess(), handle_of(descriptor), GetCurrentProcess(), &copy, 0, TRUE,
                          DUPLICATE_SAME_ACCESS) == 0) {
        return INVALID_HANDLE_VALUE;
      }
    } else if (as < 3) {
      SECURITY_ATTRIBUTES inherit{sizeof inherit, nullptr, TRUE};
      copy = CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherit,
                         OPEN_EXISTING, 0, nullptr);
    }
    return copy;
  }

  std::array<HANDLE, 4> handles_{};
};

// The list of what a program inherits: no handle that another thread happens to have open.
class InheritanceList {
 public:
  explicit InheritanceList(std::vector<HANDLE> handles) : handles_(std::move(handles)) {
    SIZE_T size = 0;
    InitializeProcThreadAttributeList(nullptr, 1, 0, &size);
    memory_.resize(size);
    list_ = reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(memory_.data());
    InitializeProcThreadAttributeList(list_, 1, 0, &size);
    UpdateProcThreadAttribute(list_, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles_.data(),
                              handles_.size() * sizeof(HANDLE), nullptr, nullptr);
  }
  InheritanceList(const InheritanceList&) = delete;
  InheritanceList& operator=(const InheritanceList&) = delete;
  ~InheritanceList() { DeleteProcThreadAttributeList(list_); }
  LPPROC_THREAD_ATTRIBUTE_LIST get() const { return list_; }

 private:
  std::vector<HANDLE> handles_;
  std::vector<std::byte> memory_;
  LPPROC_THREAD_ATTRIBUTE_LIST list_ = nullptr;
};

}  // namespace

int start_process(const std::vector<std::string>& command, const GivenStreams& streams, Process& process) {
  process = no_process;
  std::wstring line;
  for (const std::string& word : command) line += (line.empty() ? L"" : L" ") + quoted(widen(word));
  const InheritedHandles given(streams);
  const InheritanceList inherited(given.open_ones());
  std::vector<unsigned char> descriptors = given.as_descriptors();
  STARTUPINFOEXW start{};
  start.StartupInfo.cb = sizeof start;
  start.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
  start.StartupInfo.hStdInput = given[0];
  start.StartupInfo.hStdOutput = given[1];
  start.StartupInfo.hStdError = given[2];
  start.StartupInfo.cbReserved2 = static_cast<WORD>(descriptors.size());
  start.StartupInfo.lpReserved2 = descriptors.data();
  start.lpAttributeList = inherited.get();
  PROCESS_INFORMATION started{};
  // In a group of its own Ctrl-C reaches this program alone.
  constexpr DWORD flags = CREATE_NEW_PROCESS_GROUP | EXTENDED_STARTUPINFO_PRESENT;
  if (CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, flags, nullptr, nullptr,
                     &start.StartupInfo, &started) == 0) {
    return errno_of(GetLastError());
  }
  CloseHandle(started.hThread);
  process = reinterpret_cast<Process>(started.hProcess);
  return 0;
}

int wait_for_end(Process process) {
  const auto handle = reinterpret_cast<HANDLE>(process);
  DWORD status = 1;
  WaitForSingleObject(handle, INFINITE);
  GetExitCodeProcess(handle, &status);
  CloseHandle(handle);
  return static_cast<int>(status);
}

void kill_process(Process process) noexcept {
  constexpr UINT killed = 137;  // as elsewhere: 128 and the number of SIGKILL
  TerminateProcess(reinterpret_cast<HANDLE>(process), killed);
}

bool make_pipe(int& reading, int& writing) {
  int ends[2] = {-1, -1};
  constexpr unsigned bytes = 1U << 16U;
  if (_pipe(ends, bytes, _O_BINARY | _O_NOINHERIT) != 0) return false;
  reading = ends[0];
  writing = ends[1];
  return true;
}

bool is_on_path(const std::string& program) {
  return SearchPathW(nullptr, widen(program).c_str(), L".exe", 0, nullptr, nullptr) > 0;
}

int become_program(const std::vector<std::string>& command) {
  Process process = no_process;
  const int problem = start_process(command, {0, 1, 2, -1}, process);
  if (problem == 0) std::_Exit(wait_for_end(process));
  return problem;
}

void open_in_browser(const std::string& address) {
  ShellExecuteW(nullptr, L"open", widen(address).c_str(), nullptr, nullptr, SW_SHOWNORMAL);
}

void* load_library(const fs::path& file, std::string& why_not) {
  void* library =
      reinterpret_cast<void*>(LoadLibraryExW(file.c_str(), nullptr, LOAD_WITH_ALTERED_SEARCH_PATH));
  if (library == nullptr) why_not = std::system_category().message(static_cast<int>(GetLastError()));
  return library;
}

void* find_symbol(void* library, const char* name, std::string& why_not) {
  void* found = reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(library), name));
  if (found == nullptr) why_not = std::system_category().message(static_cast<int>(GetLastError()));
  return found;
}

fs::path program_file() {
  std::wstring name(1024, L'\0');
  for (;;) {
    const DWORD size = GetModuleFileNameW(nullptr, name.data(), static_cast<DWORD>(name.size()));
    if (size == 0) return {};
    if (size < name.size()) return name.substr(0, size);
    name.resize(name.size() * 2);
  }
}

std::string host_name() {
  wchar_t name[256] = {};
  DWORD size = 255;
  return GetComputerNameExW(ComputerNameDnsHostname, name, &size) != 0 ? narrow(name) : "";
}

void set_default_environment(const char* name, const char* value) {
  if (std::getenv(name) == nullptr) _putenv_s(name, value);
}

bool random_bytes(void* to, std::size_t size) {
  auto* bytes = static_cast<unsigned char*>(to);
  while (size > 0) {
    unsigned value = 0;
    if (rand_s(&value) != 0) return false;
    const std::size_t part = std::min(size, sizeof value);
    std::memcpy(bytes, &value, part);
    bytes += part;
    size -= part;
  }
  return true;
}

std::optional<std::tm> local_time(std::time_t time) {
  std::tm result{};
  if (localtime_s(&result, &time) != 0) return std::nullopt;
  return result;
}

}  // namespace ungrain::platform
