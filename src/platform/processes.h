// Other programs, loaded modules, the environment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ungrain::platform {

using Process = std::intptr_t;  // a process number, or on Windows a handle
inline constexpr Process no_process = -1;

// Descriptors that a program gets as 0, 1, 2 and 3. -1: the first three lead to nowhere, the last is closed.
using GivenStreams = std::array<int, 4>;

// Starts a program that is found on PATH. Ctrl-C does not reach it. 0, or the errno that says why not.
int start_process(const std::vector<std::string>& command, const GivenStreams& streams, Process& process);
int wait_for_end(Process process);  // its exit status, or 128 + the signal that ended it
void kill_process(Process process) noexcept;
bool make_pipe(int& reading, int& writing);  // both closed in other programs; errno where it fails
bool is_on_path(const std::string& program);

// This process becomes the program, or ends with its status. Returns errno where it cannot be run.
int become_program(const std::vector<std::string>& command);

void open_in_browser(const std::string& address);  // where there is one; waits for nothing

// A shared library. Null, with a message, where it cannot be loaded or has no such symbol.
void* load_library(const std::filesystem::path& file, std::string& why_not);
void* find_symbol(void* library, const char* name, std::string& why_not);
inline constexpr const char* library_ending =
#ifdef _WIN32
    ".dll";
#else
    ".so";  // also on macOS, where CMake gives it to modules
#endif

std::filesystem::path program_file();                               // of this process; empty: unknown
std::string host_name();                                            // empty: unknown
void set_default_environment(const char* name, const char* value);  // unless it is set
bool random_bytes(void* to, std::size_t size);                      // that nobody can guess
std::optional<std::tm> local_time(std::time_t time);

}  // namespace ungrain::platform
