// The subcommands, one file each. Each takes its arguments without the program's name and its own and returns
// the exit status: 0 done, 1 an input failed (the others are done). Wrong usage is thrown as UsageError.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ungrain::cli {

inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Arguments = std::vector<std::string>;

int denoise_command(const Arguments& arguments);  // also without its name: ungrain photo.jpg
int video_command(const Arguments& arguments);
int volume_command(const Arguments& arguments);
int view_command(const Arguments& arguments);
int noise_command(const Arguments& arguments);
int compare_command(const Arguments& arguments);
int estimate_command(const Arguments& arguments);
int methods_command(const Arguments& arguments);
int devices_command(const Arguments& arguments);
int formats_command(const Arguments& arguments);
int cluster_command(const Arguments& arguments);  // hands over to the Python package
int demo_command(const Arguments& arguments);
int manual_command(const Arguments& arguments);
int completion_command(const Arguments& arguments);

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(const Arguments&);
};

std::span<const Command> commands();

}  // namespace ungrain::cli
