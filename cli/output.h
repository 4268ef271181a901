// The program's messages: lines on the standard output, errors on the standard error. A stream that cannot be
// written never ends the work.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace ungrain::cli {

// Called first: a file that is opened while a standard stream is closed would get its descriptor, and our
// lines would be written into that file.
void hold_standard_streams();

bool standard_output_was_closed();  // before hold_standard_streams()

void put_reports_aside();               // from now on put() writes on the standard error
void put(std::string_view text);        // on the standard output
void put_aside(std::string_view text);  // on the standard error, at once
void flush_output();                    // so that a reader sees a file's line when the file is done

template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... arguments) {
  put(fmt::format(format, std::forward<Args>(arguments)...));
}

void print_error(std::string_view message);  // "ungrain: …", always one line

// Called after the last line: returns false, and says so, where something could not be written. A reader that
// has closed the pipe wanted no more: that is not a failure.
bool finish_output();

}  // namespace ungrain::cli
