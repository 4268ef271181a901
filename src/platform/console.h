// What a command line program asks of the system: its streams, its terminal, its arguments, Ctrl-C.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ungrain::platform {

inline constexpr int standard_input = 0;
inline constexpr int standard_output = 1;
inline constexpr int standard_error = 2;

// Opens those of the three standard streams that are closed, so that no file gets their numbers, and makes
// them pass bytes unchanged. True: the standard output was closed.
bool prepare_standard_streams();

std::vector<std::string> arguments_of(int argc, char** argv);  // without the program's name, in UTF-8

bool is_terminal(int descriptor);
int terminal_width();  // of the standard error; 0: unknown

// Requests to end: SIGINT (Ctrl-C), SIGTERM and SIGHUP, or on Windows Ctrl-C, Ctrl-Break and the closing of
// the console. Called before any thread is started: from then on the first request calls `first` and the
// second one `second`, on a thread of its own. Writes to closed pipes fail with an error instead of ending
// the program.
void watch_interrupts(std::function<void()> first, std::function<void()> second);
// As the program found them, for the program that this process becomes.
void unwatch_interrupts();

}  // namespace ungrain::platform
