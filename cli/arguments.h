// Reading the command line: CLI11 with messages of our own, and options made from the methods' descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "io/image_file.h"
#include "ungrain/denoiser.h"
#include "ungrain/image.h"
#include "ungrain/parameters.h"

namespace ungrain::cli {

// Reads `arguments` into the app's options. False: help was asked for and printed. Throws UsageError with one
// line that names the option; one that is not there comes with the nearest that is, or with `whose` it is.
using Whose = std::string (*)(const std::string& option);
bool parse(CLI::App& app, const Arguments& arguments, Whose whose = nullptr);

// Runs a command only up to where it would read its arguments, and shows the app that would.
void see_options_of(int (*command)(const Arguments&), const std::function<void(const CLI::App&)>& see);

std::string option_name(const std::string& parameter);  // sigma_range -> --sigma-range
std::string option_help(const ParamInfo& info);         // help, what it takes, default

// The options of one method, as the user wrote them.
class MethodOptions {
 public:
  // Looks for --method among the arguments first, because the other options depend on it.
  MethodOptions(const Arguments& arguments, std::string_view default_method);
  void add_to(CLI::App& app);

  // With strengths on the 0-255 scale. Throws UsageError that names the option.
  MethodParams read() const;
  // For an image: strengths in its own units. Images among the parameters live as long as this object.
  MethodParams for_image(const ImageSpec& spec) const;
  // The text given for a parameter; empty: none.
  std::string given(const std::string& parameter) const;
  // The same, which is then as if it were not given.
  std::string take(const std::string& parameter);
  // What images among the parameters hold, for --resume.
  std::string images_text() const;

 private:
  std::string default_method_;
  std::string method_;
  std::string preset_;
  MethodParams read_for(double white) const;
  const Image& image(const std::string& parameter, double white) const;

  std::map<std::string, std::string> given_;
  // By parameter and white level: files' samples are on the 0-255 scale, as all strengths are, unless they
  // are floats up to the white level of an image whose white is less.
  mutable std::map<std::pair<std::string, double>, Image> images_;
  mutable std::mutex mutex_;
};

std::string other_methods_option(const std::string& option);  // for parse(): "--patch is an option of nlm"

// Values of options. These throw UsageError that names the option, what it takes and what was given.
Device parse_device_option(const std::string& text);  // "cuda:1"
std::size_t parse_bytes(const std::string& text);     // "512M"
PixelType parse_pixel_type(const std::string& text);  // "u8"
NonFinite parse_nonfinite(const std::string& text);   // "fill"
double parse_range(const std::string& text);          // a positive number
std::uint64_t parse_whole(std::string_view option, const std::string& text, std::uint64_t largest,
                          std::uint64_t smallest = 0);
std::uint64_t parse_seed(const std::string& text);
double parse_amount(const ParamInfo& info, const std::string& text);
struct Size {
  int width = 0;
  int height = 0;
};
Size parse_size(const std::string& text);  // "768x512"

void add_format_option(CLI::App& app, std::string& format);
// --axis, --pages and --alpha.
void add_open_options(CLI::App& app, io::OpenOptions& options);
// --jpeg-quality and --compression.
void add_save_options(CLI::App& app, io::SaveOptions& options, bool& quality_given);
// All values of the options that take one word of a list: "yes, no".
inline constexpr std::string_view alpha_choices = "yes, no";
inline constexpr std::string_view channels_choices = "auto, gray, gray-alpha, rgb, rgba, multi";
std::string compression_choices();
std::vector<std::string> words_of(std::string_view choices);
// One of channels_choices; says in `open` whether one is alpha.
std::string parse_channels(const std::string& text, io::OpenOptions& open);

// Throws Error(no_device) with the reason, so that a device that is missing ends the run before the first
// file.
void check_device(Device wanted);

}  // namespace ungrain::cli
