#include "platform/console.h"

#include <fcntl.h>
#include <io.h>

#include <atomic>
#include <utility>

#include "platform/windows.h"

#include <shellapi.h>

namespace ungrain::platform {
namespace {

struct Watch {
  std::function<void()> first;
  std::function<void()> second;
  std::atomic<int> requests{0};
};

Watch& watch() {
  static auto* const shared = new Watch;  // never destroyed: a request may come during exit
  return *shared;
}

// Windows calls it on a thread of its own.
BOOL WINAPI on_request(DWORD event) {
  if (watch().requests++ == 0) {
    watch().first();
  } else {
    watch().second();
  }
  // Closing the console and logging off end the process when this returns: it is given the time to end by
  // itself, of which the system allows some seconds.
  if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) Sleep(INFINITE);
  return TRUE;
}

}  // namespace

bool prepare_standard_streams() {
  bool output_closed = false;
  for (const int descriptor : {standard_input, standard_output, standard_error}) {
    if (_get_osfhandle(descriptor) < 0) {  // -2: a program without a console
      if (descriptor == standard_output) output_closed = true;
      const int nothing = _open("NUL", _O_RDWR | _O_BINARY);
      if (nothing >= 0 && nothing != descriptor) {
        _dup2(nothing, descriptor);
        _close(nothing);
      }
    }
    _setmode(descriptor, _O_BINARY);
  }
  SetConsoleOutputCP(CP_UTF8);
  // The progress bar erases lines by a terminal's control sequences.
  const auto error = reinterpret_cast<HANDLE>(_get_osfhandle(standard_error));
  DWORD mode = 0;
  if (GetConsoleMode(error, &mode) != 0) SetConsoleMode(error, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  return output_closed;
}

std::vector<std::string> arguments_of(int argc, char** argv) {
  int count = 0;
  wchar_t** words = CommandLineToArgvW(GetCommandLineW(), &count);
  if (words == nullptr) return {argv + 1, argv + argc};
  std::vector<std::string> list;
  for (int i = 1; i < count; ++i) list.push_back(narrow(words[i]));
  LocalFree(words);
  return list;
}

bool is_terminal(int descriptor) {
  DWORD mode = 0;  // _isatty() takes every device for a terminal, NUL too
  return GetConsoleMode(reinterpret_cast<HANDLE>(_get_osfhandle(descriptor)), &mode) != 0;
}

int terminal_width() {
  CONSOLE_SCREEN_BUFFER_INFO info{};
  const auto error = reinterpret_cast<HANDLE>(_get_osfhandle(standard_error));
  return GetConsoleScreenBufferInfo(error, &info) != 0 ? info.srWindow.Right - info.srWindow.Left + 1 : 0;
}

void watch_interrupts(std::function<void()> first, std::function<void()> second) {
  watch().first = std::move(first);
  watch().second = std::move(second);
  SetConsoleCtrlHandler(on_request, TRUE);
}

void unwatch_interrupts() { SetConsoleCtrlHandler(on_request, FALSE); }

}  // namespace ungrain::platform
