// The command line, up to the parameters of a method. The input: one word a line.
#include "arguments.h"

#include "cluster_options.h"
#include "fuzz.h"
#include "io/failure.h"
#include "streams.h"

namespace ungrain::io {

// In the place of the library's: an option that names an image must not make this read files.
Image read_image(const std::filesystem::path& path) { fail(path, "there is no such file"); }

}  // namespace ungrain::io

namespace ungrain::cli {

// Nothing here describes commands or reads streams.
std::span<const Command> commands() { return {}; }
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

void read_command_line(const cli::Arguments& words) {
  cli::MethodOptions method(io::read_image);
  std::vector<std::string> files;
  bool quiet = false;
  Options options;
  std::optional<double> range;
  std::optional<PixelType> depth;
  io::OpenOptions open;
  io::SaveOptions save;
  bool quality_given = false;
  cli::OptionTable table("", "ungrain");
  table.add("files...", "", files);
  table.add("-q,--quiet", "", quiet);
  cli::add_device_option(table, "", options.device);
  table.add("--threads N", "", [](const std::string& text) { cli::parse_whole("--threads", text, 4096); });
  table.add("--memory SIZE", "", [](const std::string& text) { cli::parse_bytes("--memory", text); });
  cli::add_range_option(table, "", range);
  cli::add_depth_option(table, "", depth);
  cli::add_open_options(table, open);
  cli::add_save_options(table, save, quality_given);
  table.add("--seed N", "", [](const std::string& text) { cli::parse_whole("--seed", text); });
  table.add("--size WxH", "", [](const std::string& text) { cli::parse_size(text); });
  method.add_to(table);
  if (table.read(words)) method.read();
}

void read_cluster_command_line(const cli::Arguments& words) {
  const std::string json = cli::cluster_options(
      words, [](cli::OptionTable& table, const cli::Arguments& all) { return table.read(all); });
  fuzz::require(json.empty() || json.ends_with('}'), "an object that does not end");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const auto read : {read_command_line, read_cluster_command_line}) {
    try {
      read(words_of({reinterpret_cast<const char*>(data), size}));
    } catch (const cli::UsageError& error) {
      fuzz::require(*error.what() != '\0', "an error without a message");
    }
  }
  return 0;
}
