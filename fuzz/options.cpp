// The command line, up to the parameters of a method. The input: one word a line.
#include "arguments.h"

#include "fuzz.h"
#include "io/failure.h"
#include "streams.h"

namespace ungrain::io {

// In the place of the library's: an option that names an image must not make this read files.
Image read_image(const std::filesystem::path& path) { fail(path, "there is no such file"); }

}  // namespace ungrain::io

namespace ungrain::cli {

// Nothing here reads streams.
std::string with_stream_names(std::string_view message) { return std::string(message); }

}  // namespace ungrain::cli

namespace {

using namespace ungrain;

cli::Arguments words_of(std::string_view text) {
  cli::Arguments words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

void add_value(CLI::App& app, const char* option, const std::function<void(const std::string&)>& parse) {
  app.add_option_function<std::string>(option, parse)->type_name("");
}

void read_command_line(const cli::Arguments& words) {
  cli::MethodOptions method(words, "bm3d");
  std::vector<std::string> files;
  bool quiet = false;
  CLI::App app("", "ungrain");
  app.add_option("files", files)->type_name("");
  app.add_flag("-q,--quiet", quiet);
  add_value(app, "-d,--device", [](const std::string& text) { cli::parse_device_option(text); });
  add_value(app, "--threads", [](const std::string& text) { cli::parse_whole("--threads", text, 4096); });
  add_value(app, "--memory", [](const std::string& text) { cli::parse_bytes(text); });
  add_value(app, "--range", [](const std::string& text) { cli::parse_range(text); });
  add_value(app, "--depth", [](const std::string& text) { cli::parse_pixel_type(text); });
  add_value(app, "--nonfinite", [](const std::string& text) { cli::parse_nonfinite(text); });
  add_value(app, "--seed", [](const std::string& text) { cli::parse_seed(text); });
  add_value(app, "--size", [](const std::string& text) { cli::parse_size(text); });
  method.add_to(app);
  if (cli::parse(app, words, cli::other_methods_option)) method.read();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    read_command_line(words_of({reinterpret_cast<const char*>(data), size}));
  } catch (const cli::UsageError& error) {
    fuzz::require(*error.what() != '\0', "an error without a message");
  }
  return 0;
}
