// Reads a command's arguments, and defines the options that several commands share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "io/image_file.h"
#include "method_options.h"
#include "option_table.h"
#include "option_values.h"
#include "ungrain/denoiser.h"
#include "ungrain/image.h"

namespace ungrain::cli {

// Reads `arguments` into the variables of the table's options. False: help was asked for and printed. Throws
// UsageError.
bool parse(OptionTable& table, const Arguments& arguments);

// A command or a method, for the manual and for the shells' completions.
struct CommandText {
  std::string name;
  std::string summary;
  std::vector<Option> positionals = {};
  std::vector<Option> options = {};  // of a command: without the methods'
  bool has_method = false;           // a command that also takes a method's options
};
struct Tables {
  std::vector<CommandText> commands;
  std::vector<CommandText> methods;
};
// From the same tables that read the command lines.
Tables describe();

void add_format_option(OptionTable& table, std::string& format);
void add_device_option(OptionTable& table, std::string help, Device& device);
void add_range_option(OptionTable& table, std::string help, std::optional<double>& range);
void add_depth_option(OptionTable& table, std::string help, std::optional<PixelType>& depth);
// --axis, --dataset, --pages and --alpha.
void add_open_options(OptionTable& table, io::OpenOptions& options);
// --series, of commands that take folders of DICOM files.
void add_series_option(OptionTable& table, io::OpenOptions& options);
// --jpeg-quality and --compression.
void add_save_options(OptionTable& table, io::SaveOptions& options, bool& quality_given);

// Throws Error(no_device) with the reason, so that a missing device ends the run before the first file.
void check_device(Device wanted);

}  // namespace ungrain::cli
