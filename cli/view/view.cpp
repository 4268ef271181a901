// ungrain view: a page in the browser that shows pictures before and after, with a server on this machine.
#include <atomic>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "arguments.h"
#include "commands.h"
#include "option_values.h"
#include "output.h"
#include "platform/processes.h"
#include "signals.h"
#include "ungrain/error.h"
#include "ungrain/memory.h"
#include "view/api.h"

namespace ungrain::cli {
namespace {

struct ViewSettings {
  std::vector<std::string> files;
  std::string address = "127.0.0.1";
  int port = 0;
  std::string output;
  Device device = {};
  std::size_t memory = 0;
  std::size_t upload_limit = std::size_t{512} << 20U;
  bool no_browser = false;
  bool token = false;
  bool quiet = false;
};

// "8080", "0.0.0.0" or "192.168.1.5:8080".
void parse_address(const std::string& text, ViewSettings& settings) {
  const auto port_of = [&](const std::string& digits) {
    return static_cast<int>(parse_whole("--listen", digits, 65535));
  };
  const std::size_t colon = text.rfind(':');
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
    settings.port = port_of(text);
  } else if (colon != std::string::npos && text.find(':') == colon) {
    settings.address = text.substr(0, colon);
    settings.port = port_of(text.substr(colon + 1));
  } else {
    settings.address = text;
  }
  if (settings.address.empty()) throw UsageError("--listen takes ADDRESS, PORT or ADDRESS:PORT");
}

}  // namespace

int view_command(const Arguments& arguments) {
  ViewSettings settings;
  OptionTable table(
      "See pictures before and after in the browser, try settings, and keep what looks best.\n"
      "A server on this machine shows the files and folders that are named, and nothing else.\n",
      "ungrain view");
  table.add("files...", "images, or folders of images", settings.files);
  table.add("--listen ADDRESS",
            "where the page is served: PORT (0 to 65535), ADDRESS or ADDRESS:PORT (default 127.0.0.1, any "
            "free port; other "
            "addresses than this machine's own need the token in the printed address)",
            [&](const std::string& text) { parse_address(text, settings); });
  table.add("--token", "ask for a token on this machine, too, where others use it", settings.token);
  table.add("-o,--output FOLDER", "where results are saved (default: beside each input)", settings.output);
  add_device_option(table, "auto, cpu, cuda or cuda:N, for previews and for what is saved (default auto)",
                    settings.device);
  table.add("--memory SIZE", "for pictures and previews, such as 512M or 2G (default: half of what is free)",
            [&](const std::string& text) { settings.memory = parse_bytes("--memory", text); });
  table.add("--upload-limit SIZE", "of all files that are dropped on the page (default 512M; 0: none)",
            [&](const std::string& text) {
              settings.upload_limit = text == "0" ? 0 : parse_bytes("--upload-limit", text);
            });
  table.add("--no-browser", "print the address only", settings.no_browser);
  table.add("-q,--quiet", "print the address only, and errors", settings.quiet);
  if (!parse(table, arguments)) return exit_done;
  if (settings.memory == 0)
    settings.memory = std::max<std::size_t>(std::size_t{256} << 20U, free_memory() / 2);
  if (!settings.output.empty() && !std::filesystem::is_directory(settings.output))
    throw UsageError(fmt::format("--output: {} is no folder", settings.output));

  view::Shelf shelf(settings.files);
  const bool needs_token = settings.token || !view::is_loopback(settings.address);
  const std::string token = needs_token ? view::random_token() : "";
  const std::unique_ptr<view::HttpServer> server = view::make_http_server();
  const int port = server->bind(settings.address, settings.port);
  view::Api api(shelf, view::Guard({platform::host_name(), settings.address}, token),
                {.output = settings.output,
                 .device = settings.device,
                 .memory = settings.memory,
                 .upload_limit = settings.upload_limit});
  const bool everywhere = settings.address == "0.0.0.0";
  const std::string address =
      fmt::format("http://{}:{}/{}", everywhere ? platform::host_name() : settings.address, port,
                  token.empty() ? "" : "?token=" + token);
  put(address + "\n");
  flush_output();
  if (!settings.quiet) print_error("Ctrl-C ends it");
  if (!settings.no_browser) platform::open_in_browser(address);
  std::atomic<bool> ended = false;
  std::thread watch([&] {
    while (!ended) {  // a server that has not begun to listen does not know yet that it is to stop
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (interrupted().cancelled()) server->stop();
    }
  });
  server->run(api);
  ended = true;
  watch.join();
  return exit_done;
}

}  // namespace ungrain::cli
