// HttpServer with cpp-httplib. Its library brings TLS and compression libraries, which take time to load:
// the module is loaded for `ungrain view` alone.
#include <httplib.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "ungrain/error.h"
#include "ungrain/version.h"
#include "view/http.h"

namespace ungrain::cli::view {
namespace {

// A connection takes a thread while it is open. Browsers open six each; an idle one is closed soon, so that
// silent clients do not keep others out.
constexpr std::size_t threads = 96;
constexpr int idle_seconds = 3;
constexpr int read_seconds = 10;
constexpr int write_seconds = 20;
constexpr std::size_t requests_of_connection = 1000;
constexpr std::size_t largest_body = 1 << 20;                  // that is held in memory
constexpr std::size_t largest_upload = std::size_t{1} << 40U;  // HttpHandler::receive() has its own limit

HttpRequest request_of(const httplib::Request& from) {
  HttpRequest request;
  request.method = from.method;
  request.path = from.path;
  for (const auto& [name, value] : from.params) request.query[name] = value;
  for (const auto& [name, value] : from.headers) {
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    request.headers[lower] = value;
  }
  return request;
}

void send_file(const std::string& path, const std::string& type, httplib::Response& to) {
  auto file = std::make_shared<std::ifstream>(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file->tellg();
  if (!*file || size < 0) {
    to.status = 404;
    to.set_content(R"({"error": "the file is no longer there"})", "application/json");
    return;
  }
  to.set_content_provider(static_cast<std::size_t>(size), type,
                          [file](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
                            constexpr std::size_t most = 1 << 18;
                            std::string piece(std::min(length, most), '\0');
                            file->seekg(static_cast<std::streamoff>(offset));
                            file->read(piece.data(), static_cast<std::streamsize>(piece.size()));
                            const auto got = static_cast<std::size_t>(file->gcount());
                            if (got == 0) return false;
                            return sink.write(piece.data(), got);
                          });
}

void send(const HttpAnswer& answer, httplib::Response& to) {
  to.status = answer.status;
  for (const auto& [name, value] : answer.headers) to.set_header(name, value);
  if (answer.file.empty()) {
    to.set_content(answer.body, answer.type);
  } else {
    send_file(answer.file, answer.type, to);
  }
}

class HttplibServer : public HttpServer {
 public:
  HttplibServer() {
    server_.new_task_queue = [] { return new httplib::ThreadPool(threads); };
    server_.set_keep_alive_timeout(idle_seconds);
    server_.set_keep_alive_max_count(requests_of_connection);
    server_.set_read_timeout(read_seconds);
    server_.set_write_timeout(write_seconds);
    server_.set_payload_max_length(largest_upload);
    server_.set_tcp_nodelay(true);
    // Not SO_REUSEPORT, the library's own choice: another user's program could take over the port.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
  }

  int bind(const std::string& address, int port) override {
    const int bound = port == 0                             ? server_.bind_to_any_port(address)
                      : server_.bind_to_port(address, port) ? port
                                                            : -1;
    if (bound > 0) return bound;
    throw Error(ErrorCode::io, "nothing can listen on " + address + ", port " + std::to_string(port) +
                                   ": it is taken, or not an address of this machine");
  }

  void run(HttpHandler& handler) override {
    using Reply = httplib::Server::HandlerResponse;
    server_.set_pre_routing_handler([&](const httplib::Request& from, httplib::Response& to) {
      const HttpAnswer answer = handler.admit(request_of(from));
      if (answer.status == 200) return Reply::Unhandled;
      to.set_header("Connection", "close");  // a body that follows is not read
      send(answer, to);
      return Reply::Handled;
    });
    server_.Get(".*", [&](const httplib::Request& from, httplib::Response& to) {
      send(handler.answer(request_of(from)), to);
    });
    server_.Post(".*", [&](const httplib::Request& from, httplib::Response& to,
                           const httplib::ContentReader& content) { receive(handler, from, to, content); });
    server_.listen_after_bind();
  }

  void stop() override { server_.stop(); }

 private:
  static void receive(HttpHandler& handler, const httplib::Request& from, httplib::Response& to,
                      const httplib::ContentReader& content) {
    HttpRequest request = request_of(from);
    if (from.is_multipart_form_data()) {
      send({400, "application/json", R"({"error": "forms are not taken"})"}, to);
      return;
    }
    const ReadBody read = [&](const std::function<bool(const char*, std::size_t)>& take) {
      return content([&](const char* bytes, std::size_t size) { return take(bytes, size); });
    };
    if (handler.receives(request)) {
      send(handler.receive(request, read), to);
      return;
    }
    const bool complete = read([&](const char* bytes, std::size_t size) {
      if (request.body.size() + size > largest_body) return false;
      request.body.append(bytes, size);
      return true;
    });
    if (complete) {
      send(handler.answer(request), to);
    } else {
      to.set_header("Connection", "close");
      send({413, "application/json", R"({"error": "the request is too large, or not complete"})"}, to);
    }
  }

  httplib::Server server_;
};

HttpServer* make() { return new HttplibServer; }

const HttpFunctions table = {{UNGRAIN_VERSION}, make};

}  // namespace
}  // namespace ungrain::cli::view

extern "C" const ungrain::io::ModuleVersion* ungrain_http_functions() { return &ungrain::cli::view::table; }
