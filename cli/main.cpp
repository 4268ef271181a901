// ungrain: the command line program.
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "commands.h"
#include "output.h"
#include "platform/console.h"
#include "signals.h"
#include "ungrain/error.h"
#include "ungrain/parameters.h"
#include "ungrain/version.h"

namespace ungrain::cli {
namespace {

constexpr Command command_table[] = {
    {"denoise", "remove noise from files (the default: its name may be left out)", denoise_command},
    {"video", "remove noise from a clip, its frames together", video_command},
    {"volume", "remove noise from volumes: MRI, CT and microscopy stacks", volume_command},
    {"view", "see pictures before and after in the browser, try settings, keep the result", view_command},
    {"noise", "add noise of a known kind to a file", noise_command},
    {"compare", "PSNR, SSIM, FSIM, MSE and largest error of files against a clean one", compare_command},
    {"estimate", "estimate the strength of the noise of files", estimate_command},
    {"methods", "list the methods, or one method's options", methods_command},
    {"devices", "list what the work can run on", devices_command},
    {"formats", "list the file formats and what each can hold", formats_command},
    {"cluster", "denoise a Zarr array or a TIFF stack on a Dask cluster (needs the Python package)",
     cluster_command},
    {"demo", "render a scene, add noise, denoise it with every method", demo_command},
    {"manual", "print the manual page", manual_command},
    {"completion", "print what bash, zsh or fish need to complete command lines", completion_command},
};

void print_help() {
  print(
      "ungrain {}: image denoising that keeps edges\n\n"
      "  ungrain photo.jpg                       writes photo.ungrain.jpg\n"
      "  ungrain photo.tif -o out.tif --method bilateral --radius 7 --sigma-range 25\n"
      "  ungrain *.tif -o cleaned/ --resume      a batch that can be interrupted and taken up again\n\n"
      "Commands (ungrain COMMAND --help tells the options of each):\n",
      UNGRAIN_VERSION);
  for (const Command& command : command_table) print("  {:<12}{}\n", command.name, command.summary);
}

// Otherwise a misspelt command would be taken for a missing file.
void refuse_misspelt_command(const std::string& word) {
  std::error_code error;
  if (word.find_first_of("./*?[") != std::string::npos || word.starts_with('-')) return;
  if (std::filesystem::exists(word, error)) return;
  std::vector<std::string> names;
  for (const Command& command : command_table) names.emplace_back(command.name);
  if (const std::string near = nearest(word, names); !near.empty()) {
    throw UsageError(fmt::format("there is no file or command '{}'; did you mean {}?", word, near));
  }
}

int run(const Arguments& arguments) {
  if (arguments.empty()) {
    print_help();
    throw UsageError("name at least one file, or a command");
  }
  const std::string& first = arguments.front();
  if (first == "--help" || first == "-h" || first == "help") {
    print_help();
    return exit_done;
  }
  if (first == "--version" || first == "-V" || first == "version") {
    print("ungrain {}\n", UNGRAIN_VERSION);
    return exit_done;
  }
  for (const Command& command : command_table) {
    if (first == command.name) return command.run({arguments.begin() + 1, arguments.end()});
  }
  refuse_misspelt_command(first);
  return denoise_command(arguments);
}

}  // namespace

std::span<const Command> commands() { return command_table; }

}  // namespace ungrain::cli

int main(int argc, char** argv) {
  using namespace ungrain;
  cli::hold_standard_streams();
  cli::watch_signals();
  try {
    const int status = cli::run(platform::arguments_of(argc, argv));
    return cli::finish_output() ? status : cli::exit_failed;
  } catch (const cli::UsageError& error) {
    cli::print_error(error.what());
    return cli::exit_usage;
  } catch (const Error& error) {
    cli::print_error(error.what());
    return error.code() == ErrorCode::invalid_argument ? cli::exit_usage : cli::exit_failed;
  } catch (const std::bad_alloc&) {
    cli::print_error("out of memory");
    return cli::exit_failed;
  } catch (const std::exception& error) {
    cli::print_error(error.what());
    return cli::exit_failed;
  }
}
